//! What a pattern is asked for, and how a list of messages becomes a schedule.

use crate::builder::{Builder, Shape};
use crate::error::Result;
use crate::ir::{Buffer, Schedule};
use crate::spec::Collective;

/// A message, as (from, to).
pub type Message = (u32, u32);

/// What a pattern is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Ranks, grid, and the size of one message as `elements`; `root` is the special rank of
    /// one-to-many and many-to-one patterns.
    pub shape: Shape,
    /// Seed of everything random.
    pub seed: u64,
    /// Messages per pair, or per sender where there are no pairs.
    pub count: u32,
    /// Send in both directions: every message is paired with one in the opposite direction.
    pub both_ways: bool,
}

impl Traffic {
    /// One message per pair one way, seed 0.
    pub fn new(shape: Shape) -> Self {
        Traffic {
            shape,
            seed: 0,
            count: 1,
            both_ways: false,
        }
    }

    /// Columns and rows; one row where there is no grid.
    pub(super) fn grid(&self) -> (u32, u32) {
        self.shape.plane().unwrap_or((self.shape.ranks, 1))
    }

    /// `count` rounds of messages, each into a slot of its own.
    pub(super) fn rounds(&self, mut messages: impl FnMut() -> Vec<Message>) -> Result<Schedule> {
        let rounds: Vec<Vec<Message>> = (0..self.count).map(|_| messages()).collect();
        let mut b = Builder::new(Collective::Pattern, &self.shape);
        let source = b.buffer(Buffer::vector("input", 1)).at(0);
        let forward = rounds.iter().flatten().map(|&(_, to)| to);
        let output = b.buffer(slots("output", self.shape.ranks, forward));
        let reply = self.both_ways.then(|| {
            let backward = rounds.iter().flatten().map(|&(from, _)| from);
            b.buffer(slots("reply", self.shape.ranks, backward))
        });
        let mut used = vec![(0, 0); self.shape.ranks as usize];
        for round in rounds {
            b.step();
            for (from, to) in round {
                let slot = &mut used[to as usize].0;
                b.put(from, source, to, output.at(*slot));
                *slot += 1;
                if let Some(reply) = reply {
                    let slot = &mut used[from as usize].1;
                    b.put(to, source, from, reply.at(*slot));
                    *slot += 1;
                }
            }
        }
        b.finish()
    }
}

/// A buffer with room for every message to the busiest of `targets`; where there is only one
/// target, only there.
fn slots(name: &str, ranks: u32, targets: impl Iterator<Item = u32>) -> Buffer {
    let mut counts = vec![0; ranks as usize];
    targets.for_each(|to| counts[to as usize] += 1);
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let buffer = Buffer {
        mul: most,
        ..Buffer::vector(name, most)
    };
    let mut receivers = (0..ranks).filter(|&r| counts[r as usize] > 0);
    match (receivers.next(), receivers.next()) {
        (Some(only), None) => buffer.only_at(only),
        _ => buffer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ScheduleError;
    use crate::ir::Owner;
    use crate::patterns::{find, REGISTRY};
    use crate::verify::verify;
    use std::collections::HashSet;

    fn traffic(ranks: u32, count: u32, both_ways: bool) -> Traffic {
        Traffic {
            count,
            both_ways,
            seed: 5,
            ..Traffic::new(Shape::new(ranks, 10))
        }
    }

    #[test]
    fn every_pattern_serves_or_waives_any_number_of_ranks() {
        for pattern in REGISTRY {
            for ranks in (1..=33).chain([64, 100]) {
                for both_ways in [false, true] {
                    let schedule = match (pattern.build)(&traffic(ranks, 3, both_ways)) {
                        Ok(schedule) => schedule,
                        Err(ScheduleError::Waived { reason, .. }) => {
                            assert!(reason.contains("use "), "{reason}");
                            continue;
                        }
                        Err(error) => panic!("{} over {ranks}: {error}", pattern.name),
                    };
                    assert_eq!(verify(&schedule).err(), None, "{}", pattern.name);
                    let ops = schedule.ops();
                    assert!(!ops.is_empty(), "{} over {ranks}", pattern.name);
                    assert!(ops.iter().all(|op| op.from != op.to));
                    assert!(ops.iter().all(|op| schedule.op_bytes(op) == 40));
                }
            }
        }
    }

    #[test]
    fn all_but_ping_pong_are_without_order_and_own_their_slots() {
        for pattern in REGISTRY.iter().filter(|p| p.name != "ping_pong") {
            let schedule = (pattern.build)(&traffic(16, 4, true)).unwrap();
            assert_eq!(schedule.edge_count(), 0, "{}", pattern.name);
            let slots: HashSet<_> = schedule
                .ops()
                .iter()
                .map(|op| (op.to, op.dst_buffer.0, op.dst))
                .collect();
            assert_eq!(slots.len(), schedule.ops().len());
        }
    }

    #[test]
    fn both_ways_doubles_and_the_seed_decides() {
        for pattern in REGISTRY {
            let build = |traffic: &Traffic| (pattern.build)(traffic).unwrap();
            let (one, both) = (traffic(16, 4, false), traffic(16, 4, true));
            assert_eq!(build(&both).ops().len(), 2 * build(&one).ops().len());
            assert_eq!(build(&one), build(&one));
            let other = build(&Traffic {
                seed: 6,
                ..one.clone()
            });
            let random = pattern.name.contains("random");
            assert_eq!(build(&one) != other, random, "{}", pattern.name);
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_schedule() {
        let grids = |ranks: u32| {
            (1..=ranks)
                .filter(move |c| ranks % c == 0)
                .map(move |c| (c, ranks / c))
        };
        for pattern in REGISTRY {
            let mut served = 0;
            for ranks in 2..=17 {
                for grid in grids(ranks).map(|(c, r)| vec![c, r]).chain([Vec::new()]) {
                    for (count, both_ways) in [(1, false), (3, false), (2, true)] {
                        let mut asked = traffic(ranks, count, both_ways);
                        asked.shape.grid = grid.clone();
                        let Ok(schedule) = (pattern.build)(&asked) else {
                            continue;
                        };
                        let moved: u64 =
                            schedule.ops().iter().map(|op| schedule.op_bytes(op)).sum();
                        assert_eq!(pattern.bytes(&asked), moved, "{} {asked:?}", pattern.name);
                        served += 1;
                    }
                }
            }
            assert!(served > 30, "{}", pattern.name);
        }
    }

    #[test]
    fn who_sends_to_whom() {
        let line = |ranks| Shape::new(ranks, 1);
        let messages = |name: &str, shape: Shape| -> Vec<Message> {
            let schedule = (find(name).unwrap().build)(&Traffic::new(shape)).unwrap();
            schedule.ops().iter().map(|op| (op.from, op.to)).collect()
        };
        let root = line(4).with_root(2);
        assert_eq!(messages("hot_spot", root.clone()), [(0, 2), (1, 2), (3, 2)]);
        assert_eq!(messages("one_to_many", root), [(2, 0), (2, 1), (2, 3)]);
        assert_eq!(messages("pairs", line(7)), [(0, 3), (1, 4), (2, 5)]);
        assert_eq!(messages("complement", line(3)), [(0, 2), (2, 0)]);
        assert_eq!(messages("neighbour", line(3)), [(0, 1), (1, 2), (2, 0)]);
        let grid = line(6).with_grid(3, 2);
        assert_eq!(
            messages("transpose", grid.clone()),
            [(1, 2), (2, 4), (3, 1), (4, 3)]
        );
        assert_eq!(messages("transpose", line(4)), [(1, 2), (2, 1)]);
        let neighbours = messages("neighbour", grid);
        assert_eq!(neighbours[4..6], [(2, 0), (2, 5)]);
        assert_eq!(neighbours.len(), 12);
        assert_eq!(messages("tornado", line(8))[6], (6, 1));
        assert_eq!(messages("tornado", line(7))[0], (0, 3));
        let square = line(64).with_grid(8, 8);
        assert_eq!(messages("tornado", square)[0], (0, 3 * 8 + 3));
    }

    #[test]
    fn one_receiver_holds_the_only_buffer() {
        let schedule = (find("hot_spot").unwrap().build)(&traffic(8, 2, false)).unwrap();
        let output = schedule.buffer(schedule.buffer_named("output").unwrap());
        assert!(matches!(output.owner, Owner::One(at) if at.0 == 0));
        assert_eq!(output.chunks(), 14);
    }

    #[test]
    fn mistakes_name_their_cure() {
        let error = |traffic: &Traffic| {
            let pattern = find("pattern/pairs").unwrap();
            (pattern.build)(traffic).unwrap_err().to_string()
        };
        assert!(error(&traffic(4, 0, false)).contains("at least 1"));
        assert!(error(&traffic(1, 1, false)).contains("use 2 ranks"));
        assert!(error(&traffic(1 << 30, 1 << 30, false)).contains("fewer"));
        let unknown = find("hotspot").map(|p| p.name).unwrap_err().to_string();
        assert!(unknown.contains("did you mean `hot_spot`?"), "{unknown}");
    }
}
