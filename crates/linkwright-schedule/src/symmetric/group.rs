//! How a rank sees the others: a group that acts on ranks.
//!
//! ```text
//!   cyclic   rank r sees as `x` what rank 0 sees as `x`, turned by r:   r + x mod p
//!   xor      ... with the bits of r flipped, p a power of two:          r xor x
//! ```
//!
//! Both are commutative, and each takes every rank to every other: there is nothing to tell ranks
//! apart by. So what is proved of rank 0 is proved of all of them.

/// The ways round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Cyclic,
    Xor,
}

/// A group that acts on `ranks` ranks, and on the blocks of a buffer cut into as many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    ranks: u32,
    action: Action,
}

impl Group {
    /// Ranks in a circle.
    pub fn cyclic(ranks: u32) -> Self {
        let action = Action::Cyclic;
        Group { ranks, action }
    }

    /// Ranks at the corners of a cube; for a power of two.
    pub fn xor(ranks: u32) -> Self {
        assert!(ranks.is_power_of_two(), "{ranks} ranks are no cube");
        let action = Action::Xor;
        Group { ranks, action }
    }

    /// Number of ranks.
    #[inline]
    pub fn ranks(self) -> u32 {
        self.ranks
    }

    /// Whether intervals of ranks stay intervals, round the circle.
    #[inline]
    pub(super) fn is_circle(self) -> bool {
        self.action == Action::Cyclic
    }

    /// What rank `r` sees as `x`; just as well, `x` steps on from `r`.
    #[inline]
    pub fn act(self, r: u32, x: u32) -> u32 {
        match self.action {
            Action::Xor => r ^ x,
            Action::Cyclic if r + x >= self.ranks => r + x - self.ranks,
            Action::Cyclic => r + x,
        }
    }

    /// The step that undoes `x`.
    #[inline]
    pub fn back(self, x: u32) -> u32 {
        match self.action {
            Action::Cyclic if x > 0 => self.ranks - x,
            _ => x,
        }
    }

    /// Where the interval of `len` places from `first` on goes under `x`, as intervals.
    ///
    /// A turn may cut it in two where it passes rank 0; flipped bits take aligned powers of two to
    /// aligned powers of two.
    pub fn moved(self, x: u32, first: u32, len: u32, mut each: impl FnMut(u32, u32)) {
        if self.action == Action::Cyclic {
            let start = self.act(first, x);
            let head = len.min(self.ranks - start);
            each(start, head);
            if head < len {
                each(0, len - head);
            }
            return;
        }
        let (mut at, mut left) = (first, len);
        while left > 0 {
            let aligned = 1 << at.trailing_zeros().min(31).min(left.ilog2());
            each((at ^ x) & !(aligned - 1), aligned);
            (at, left) = (at + aligned, left - aligned);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_can_stand_for_every_other() {
        let groups = (1..20).map(Group::cyclic).chain([1, 2, 16].map(Group::xor));
        for group in groups {
            let p = group.ranks();
            for x in 0..p {
                assert_eq!(group.act(x, group.back(x)), 0);
                for y in 0..p {
                    assert_eq!(group.act(x, y), group.act(y, x));
                    let to = group.act(group.back(x), y);
                    assert_eq!(group.act(x, to), y);
                }
            }
        }
    }

    #[test]
    fn intervals_move_as_their_places_do() {
        for group in [Group::cyclic(11), Group::xor(16)] {
            let p = group.ranks();
            for (first, x) in (0..p).flat_map(|first| (0..p).map(move |x| (first, x))) {
                for len in 1..=p - first {
                    let mut found = Vec::new();
                    group.moved(x, first, len, |first, len| found.extend(first..first + len));
                    found.sort_unstable();
                    let mut due: Vec<u32> = (first..first + len).map(|y| group.act(x, y)).collect();
                    due.sort_unstable();
                    assert_eq!(found, due, "{group:?}: {len} from {first} by {x}");
                }
            }
        }
    }
}
