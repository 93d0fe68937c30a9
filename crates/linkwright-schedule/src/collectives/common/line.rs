//! Exchanges along one axis of a torus, and which block passes when.
//!
//! A *line* is a ring of places. In every step some of its members meet, and in an allgather each gives
//! the other what that one lacks:
//!
//! ```text
//!   swing over 6, nearest step last    3 apart:  0 <-> 3     0 has 0 3
//!                                      1 apart:  0 <-> 5     0 has 0 3 5 2
//!                                      1 apart:  0 <-> 1     1 gives 0 only 1 and 4
//! ```
//!
//! Every block reaches every member once, along a tree. Backwards, with sums in place of copies, the same
//! trees are a reduce-scatter, so nothing is added twice, whatever the number of members. That is why the
//! steps are kept in the order of a reduce-scatter, nearest first.
//!
//! **Swing** meets everyone in log2 m steps, rounded up, for every even m. The last of an odd number of
//! places has no partner: it gives its block to each other one, and gets theirs, directly. It does so
//! with half of the others in the first step of a reduce-scatter, nearest first, with half of the rest in
//! the second, and so on, as the other members have ever less to send.
//!
//! **Folding.** Doubling distances, and whole vectors with any partners, need a power of two: whole vectors
//! that overlap cannot be told apart. The first places of a longer line then form pairs; the second of a
//! pair folds into the first, its neighbour, and the rest is numbered anew.
//!
//! Source: De Sensi, Bonato, Saam and Hoefler, "Swing: short-cutting rings for higher bandwidth allreduce"
//! (NSDI 2024).

use super::butterfly::Partners;

/// In an allgather, `from` gives `to` these blocks; in a reduce-scatter, `to` gives them to `from`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    pub from: u32,
    pub to: u32,
    /// Blocks, by the members that own them, ascending.
    pub blocks: Vec<u32>,
}

/// The members of one axis and their exchange.
pub struct Line {
    /// Place of each member; the members are numbered along the line.
    pub places: Vec<u32>,
    /// Places that are no members: (place, the place that acts for it).
    pub folded: Vec<(u32, u32)>,
    /// What passes, in the order of a reduce-scatter.
    pub steps: Vec<Vec<Passage>>,
}

/// One meeting of an allgather.
struct Meeting {
    from: u32,
    to: u32,
    /// Whether only the block of `from` passes, not all that `to` lacks.
    own: bool,
}

impl Line {
    /// Exchange in log2 steps over a power of two of `side` places; the others fold. `partner` says whom a
    /// member meets in a round, of so many members.
    pub fn folding(side: u32, partner: impl Fn(u32, u32, u32) -> u32) -> Self {
        let core = 1 << side.ilog2();
        let surplus = side - core;
        let steps = (0..core.ilog2()).map(|i| everyone(core, |m| partner(m, i, core)));
        Line {
            places: (0..core).map(|m| m + m.min(surplus)).collect(),
            folded: (0..surplus).map(|pair| (2 * pair + 1, 2 * pair)).collect(),
            steps: follow(core, &steps.collect::<Vec<_>>(), core),
        }
    }

    /// Swing over all of `side` places.
    pub fn swing(side: u32) -> Self {
        let even = side - side % 2;
        let rounds = even.max(1).next_power_of_two().ilog2();
        let steps = (0..rounds).map(|i| everyone(even, |m| Partners::Swing.of(m, i, even)));
        let mut steps: Vec<_> = steps.collect();
        if even < side {
            meet_directly(&mut steps, even);
        }
        Line {
            places: (0..side).collect(),
            folded: Vec::new(),
            steps: follow(side, &steps, even),
        }
    }

    /// Once round the ring, from neighbour to neighbour.
    pub fn ring(side: u32) -> Self {
        let passage = |s: u32, from: u32| Passage {
            from,
            to: (from + 1) % side,
            // In an allgather, what came first from `side - 2 - s` places before.
            blocks: vec![(from + side - (side - 2 - s)) % side],
        };
        let step = |s| (0..side).map(|from| passage(s, from)).collect();
        Line {
            places: (0..side).collect(),
            folded: Vec::new(),
            steps: (0..side - 1).map(step).collect(),
        }
    }

    /// The same line seen in a mirror: place a of `side` is place -a.
    pub fn mirrored(mut self, side: u32) -> Self {
        let mirror = |place: &mut u32| *place = (side - *place) % side;
        self.places.iter_mut().for_each(mirror);
        for (place, home) in &mut self.folded {
            mirror(place);
            mirror(home);
        }
        self
    }

    /// Number of members.
    pub fn members(&self) -> u32 {
        self.places.len() as u32
    }

    /// What each member answers for before step `s` of a reduce-scatter, ascending.
    pub fn held(&self, s: usize) -> Vec<Vec<u32>> {
        let mut held: Vec<Vec<u32>> = (0..self.members()).map(|member| vec![member]).collect();
        for passage in self.steps[s..].iter().flatten() {
            held[passage.to as usize].extend(&passage.blocks);
        }
        held.iter_mut().for_each(|blocks| blocks.sort_unstable());
        held
    }
}

fn everyone(members: u32, partner: impl Fn(u32) -> u32) -> Vec<Meeting> {
    let meeting = |to| Meeting {
        from: partner(to),
        to,
        own: false,
    };
    (0..members).map(meeting).collect()
}

/// Let member `last`, behind an even number of others, meet each of them in one of `steps`.
fn meet_directly(steps: &mut [Vec<Meeting>], last: u32) {
    let mut others: Vec<u32> = (0..last).collect();
    // 0 and last - 1 are neighbours, then 1 and last - 2.
    others.sort_by_key(|&m| (m + 1).min(last - m));
    let rounds = steps.len();
    for (s, step) in steps.iter_mut().enumerate() {
        let most = match s + 1 == rounds {
            true => others.len(),
            false => others.len().div_ceil(2),
        };
        for other in others.drain(..most) {
            let meeting = |from, to| Meeting {
                from,
                to,
                own: true,
            };
            step.extend([meeting(other, last), meeting(last, other)]);
        }
    }
}

/// What passes at the meetings of an allgather, `steps` backwards. Members from `paired` on give their
/// blocks only directly.
fn follow(members: u32, steps: &[Vec<Meeting>], paired: u32) -> Vec<Vec<Passage>> {
    let only = |member| (0..members).map(move |block| block == member).collect();
    let mut has: Vec<Vec<bool>> = (0..members).map(only).collect();
    let mut passed = Vec::with_capacity(steps.len());
    for step in steps.iter().rev() {
        let lacks = |meeting: &Meeting| {
            let (from, to) = (&has[meeting.from as usize], &has[meeting.to as usize]);
            let passes = |&block: &u32| from[block as usize] && !to[block as usize];
            match meeting.own {
                true => vec![meeting.from],
                false => (0..paired).filter(passes).collect(),
            }
        };
        let passage = |meeting: &Meeting| Passage {
            from: meeting.from,
            to: meeting.to,
            blocks: lacks(meeting),
        };
        let passages: Vec<Passage> = step.iter().map(passage).collect();
        for passage in &passages {
            for &block in &passage.blocks {
                has[passage.to as usize][block as usize] = true;
            }
        }
        passed.push(passages);
    }
    passed.reverse();
    passed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> impl Iterator<Item = Line> {
        let doubling = |side| Line::folding(side, |m, i, n| Partners::Doubling.of(m, i, n));
        let swing = |side| Line::folding(side, |m, i, n| Partners::Swing.of(m, i, n));
        (1..=65).flat_map(move |side| {
            [
                doubling(side),
                swing(side),
                Line::swing(side),
                Line::ring(side),
            ]
        })
    }

    #[test]
    fn every_block_comes_once() {
        for line in lines() {
            let everyone: Vec<u32> = (0..line.members()).collect();
            for held in line.held(0) {
                assert_eq!(held, everyone);
            }
        }
    }

    /// A member gives only what it has, and steps are simultaneous.
    #[test]
    fn what_passes_is_there() {
        for line in lines() {
            for s in 0..line.steps.len() {
                let has = line.held(s + 1);
                for passage in &line.steps[s] {
                    let from = &has[passage.from as usize];
                    assert!(passage.blocks.iter().all(|block| from.contains(block)));
                }
            }
        }
    }

    #[test]
    fn as_many_steps_as_the_logarithm() {
        let steps = |side| Line::swing(side).steps.len();
        assert_eq!(
            [2, 3, 4, 5, 6, 7, 8, 9, 12, 64].map(steps),
            [1, 1, 2, 2, 3, 3, 3, 3, 4, 6]
        );
        let folding = |side| {
            Line::folding(side, |m, i, n| Partners::Doubling.of(m, i, n))
                .steps
                .len()
        };
        assert_eq!([2, 3, 4, 5, 8, 12, 64].map(folding), [1, 1, 2, 2, 3, 3, 6]);
    }

    fn gives(line: &Line, s: usize, from: u32) -> Vec<(u32, Vec<u32>)> {
        let passages = line.steps[s].iter().filter(|passage| passage.from == from);
        passages.map(|p| (p.to, p.blocks.clone())).collect()
    }

    /// rho = 1, -1, 3. An allgather begins with 3: 0 <-> 3, 1 <-> 4, 2 <-> 5. Then 0 has 0 3 and 5 has 5 2, and
    /// 1 has 1 4 and 2 has 2 5. Then 0 has 0 3 5 2 and 1 has 1 4 2 5: they lack 1 4 and 0 3.
    #[test]
    fn swing_over_six_places() {
        let line = Line::swing(6);
        assert_eq!(gives(&line, 2, 0), [(3, vec![0])]);
        assert_eq!(gives(&line, 1, 0), [(5, vec![0, 3])]);
        assert_eq!(gives(&line, 0, 0), [(1, vec![0, 3])]);
        assert_eq!(gives(&line, 0, 1), [(0, vec![1, 4])]);
    }

    /// Place 6 is next to 0 and 5, then to 1 and 4: three in the first step, two in the second, one in the last.
    #[test]
    fn the_seventh_place_meets_three_and_two_and_one() {
        let line = Line::swing(7);
        let mine = |to| (to, vec![6]);
        assert_eq!(gives(&line, 0, 6), [mine(0), mine(5), mine(1)]);
        assert_eq!(gives(&line, 1, 6), [mine(4), mine(2)]);
        assert_eq!(gives(&line, 2, 6), [mine(3)]);
        assert_eq!(gives(&line, 0, 1), [(0, vec![1, 4]), (6, vec![1])]);
    }

    #[test]
    fn surplus_places_fold_into_a_neighbour() {
        let line = Line::folding(6, |m, i, n| Partners::Doubling.of(m, i, n));
        assert_eq!(line.folded, [(1, 0), (3, 2)]);
        assert_eq!(line.places, [0, 2, 4, 5]);
    }
}
