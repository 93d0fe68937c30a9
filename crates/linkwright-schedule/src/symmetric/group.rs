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
}
