//! What a chunk is made of, seen from the rank that has it: contributions of ranks, by offset.
//!
//! In a ring a chunk gathers neighbours one after the other, in a cube it gathers aligned blocks: one
//! interval of ranks is nearly always enough. It turns with the rank that has it.

use super::super::Group;

/// Chunk `chunk` of the initial data of `len` ranks from `first` on; round the circle where it turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub chunk: u32,
    pub first: u32,
    pub len: u32,
}

/// (chunk, first rank, ranks, how often).
pub(super) type Counted = (u32, u32, u32, u32);

/// A multiset of contributions, in one form only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Contents {
    #[default]
    Nothing,
    /// One interval of ranks, each once.
    One(Interval),
    /// Anything else: ascending intervals that neither overlap nor pass rank 0.
    Many(Box<[Counted]>),
}

/// How contents turn: the ranks always do, the chunks where the initial buffer does.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    pub group: Group,
    pub chunks: bool,
}

impl Turn {
    /// One contribution of the rank at offset `rank`.
    pub fn one(chunk: u32, rank: u32) -> Contents {
        Contents::One(Interval {
            chunk,
            first: rank,
            len: 1,
        })
    }

    /// Contribution `chunk` of every rank.
    pub fn all(self, chunk: u32) -> Contents {
        Contents::One(Interval {
            chunk,
            first: 0,
            len: self.group.ranks(),
        })
    }

    /// `contents`, as seen by a rank for which this one is at offset `by`.
    pub fn turned(self, contents: &Contents, by: u32) -> Contents {
        match contents {
            Contents::Nothing => Contents::Nothing,
            Contents::One(interval) => self.turned_interval(*interval, by),
            Contents::Many(all) => {
                let mut moved = Vec::with_capacity(all.len());
                for &(chunk, first, len, often) in all.iter() {
                    let chunk = self.chunk(chunk, by);
                    let each = |first, len| moved.push((chunk, first, len, often));
                    self.group.moved(by, first, len, each);
                }
                self.normal(moved)
            }
        }
    }

    #[inline]
    fn turned_interval(self, interval: Interval, by: u32) -> Contents {
        let chunk = self.chunk(interval.chunk, by);
        let first = self.group.act(by, interval.first);
        if interval.len == 1 || interval.len == self.group.ranks() || self.group.is_circle() {
            let first = if interval.len == self.group.ranks() {
                0
            } else {
                first
            };
            return Contents::One(Interval {
                chunk,
                first,
                ..interval
            });
        }
        if interval.len.is_power_of_two() && interval.first & (interval.len - 1) == 0 {
            let first = first & !(interval.len - 1);
            return Contents::One(Interval {
                chunk,
                first,
                ..interval
            });
        }
        let mut moved = Vec::new();
        let each = |first, len| moved.push((chunk, first, len, 1));
        self.group.moved(by, interval.first, interval.len, each);
        self.normal(moved)
    }

    fn chunk(self, chunk: u32, by: u32) -> u32 {
        match self.chunks {
            true => self.group.act(by, chunk),
            false => chunk,
        }
    }

    /// Both together.
    #[inline]
    pub fn sum(self, a: &Contents, b: &Contents) -> Contents {
        if let (Contents::One(a), Contents::One(b)) = (a, b) {
            if let Some(joined) = self.joined(*a, *b).or_else(|| self.joined(*b, *a)) {
                return Contents::One(joined);
            }
        }
        let mut all = self.counted(a);
        all.extend(self.counted(b));
        self.normal(all)
    }

    /// One interval of two, where the second follows the first.
    #[inline]
    fn joined(self, a: Interval, b: Interval) -> Option<Interval> {
        let (p, len) = (self.group.ranks(), a.len + b.len);
        let end = a.first + a.len;
        let meets = end == b.first || self.group.is_circle() && end == b.first + p;
        (a.chunk == b.chunk && meets && len <= p).then_some(Interval {
            first: if len == p { 0 } else { a.first },
            len,
            ..a
        })
    }

    /// Ascending intervals; the inverse of [`Turn::normal`].
    pub fn counted(self, contents: &Contents) -> Vec<Counted> {
        match contents {
            Contents::Nothing => Vec::new(),
            Contents::Many(all) => all.to_vec(),
            Contents::One(Interval { chunk, first, len }) => {
                let head = (*len).min(self.group.ranks() - first);
                let mut all = vec![(*chunk, *first, head, 1)];
                if head < *len {
                    all.insert(0, (*chunk, 0, len - head, 1));
                }
                all
            }
        }
    }

    /// The one form of any list of intervals.
    fn normal(self, all: Vec<Counted>) -> Contents {
        let mut ends: Vec<(u32, u32, i64)> = Vec::with_capacity(2 * all.len());
        for (chunk, first, len, often) in all {
            ends.push((chunk, first, i64::from(often)));
            ends.push((chunk, first + len, -i64::from(often)));
        }
        ends.sort_unstable_by_key(|end| (end.0, end.1));
        let mut found: Vec<Counted> = Vec::new();
        let mut often = 0;
        for (i, &(chunk, at, more)) in ends.iter().enumerate() {
            often += more;
            let Some(&(same, next, _)) = ends.get(i + 1) else {
                break;
            };
            if often == 0 || same != chunk || next == at {
                continue;
            }
            match found.last_mut() {
                Some((c, first, len, n))
                    if (*c, *first + *len, i64::from(*n)) == (chunk, at, often) =>
                {
                    *len += next - at;
                }
                _ => found.push((chunk, at, next - at, often as u32)),
            }
        }
        let p = self.group.ranks();
        match found[..] {
            [] => Contents::Nothing,
            [(chunk, first, len, 1)] => Contents::One(Interval { chunk, first, len }),
            [(chunk, 0, tail, 1), (same, first, len, 1)]
                if self.group.is_circle() && chunk == same && first + len == p =>
            {
                let len = len + tail;
                Contents::One(Interval { chunk, first, len })
            }
            _ => Contents::Many(found.into_boxed_slice()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every contribution by itself.
    fn listed(turn: Turn, contents: &Contents) -> Vec<(u32, u32)> {
        let mut all = Vec::new();
        for (chunk, first, len, often) in turn.counted(contents) {
            (0..often).for_each(|_| all.extend((first..first + len).map(|rank| (chunk, rank))));
        }
        all.sort_unstable();
        all
    }

    proptest! {
        #[test]
        fn sums_and_turns_are_those_of_single_contributions(
            circle in any::<bool>(), chunks in any::<bool>(), by in 0u32..16,
            picked in proptest::collection::vec((0u32..2, 0u32..16), 0..12),
        ) {
            let group = if circle { Group::cyclic(16) } else { Group::xor(16) };
            let turn = Turn { group, chunks };
            let mut contents = Contents::Nothing;
            for &(chunk, rank) in &picked {
                contents = turn.sum(&contents, &Turn::one(chunk, rank));
            }
            let mut due = picked.clone();
            due.sort_unstable();
            prop_assert_eq!(listed(turn, &contents), due);
            // However it came about, there is one form of it.
            let back = picked.iter().rev().fold(Contents::Nothing, |sum, &(chunk, rank)| {
                turn.sum(&Turn::one(chunk, rank), &sum)
            });
            prop_assert_eq!(&back, &contents);
            let moved = |&(chunk, rank): &(u32, u32)| {
                (if chunks { group.act(by, chunk) } else { chunk }, group.act(by, rank))
            };
            let mut due: Vec<_> = picked.iter().map(moved).collect();
            due.sort_unstable();
            prop_assert_eq!(listed(turn, &turn.turned(&contents, by)), due);
        }
    }
}
