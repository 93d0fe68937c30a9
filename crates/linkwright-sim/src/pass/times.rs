//! When what happened, as far as anybody may still ask: 20 bytes per operation.
//!
//! Whoever waits asks for one completion, the critical path for issue and delivery. All moments of an
//! operation lie shortly after its issue, so they are kept as distances of 32 bits, four milliseconds in
//! picoseconds; the few operations that last longer stand in a list of their own. Free sources and
//! acknowledgements are kept where an edge waits for one, times of 64 bits where the run asked for them.

use crate::critical::{Cause, History};
use crate::graph::Wait;
use crate::outcome::OperationTimes;
use linkwright_schedule::ir::Schedule;

/// In place of a distance: the operation is in the list of long ones.
const LONG: u32 = u32::MAX;

/// All moments of one operation, in picoseconds.
#[derive(Clone, Copy)]
pub(super) struct Moments {
    pub issued: u64,
    pub source_free: u64,
    pub delivered: u64,
    pub visible: u64,
    pub acknowledged: u64,
}

/// One operation; packed, because half of what the pass needs are these.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
struct Record {
    issued: u64,
    /// Distances from the issue.
    visible: u32,
    delivered: u32,
    cause: u32,
}

/// Moments of the operations so far, by id.
pub(super) struct Times {
    records: Vec<Record>,
    /// Distances from the issue; `None` where nobody waits for one.
    source_free: Option<Vec<u32>>,
    acknowledged: Option<Vec<u32>>,
    /// Operations that last longer than 32 bits say, ascending.
    long: Vec<(u32, Moments)>,
    recorded: Option<OperationTimes>,
}

impl Times {
    /// Room for the operations of `schedule`; all times are kept where `record` says so.
    pub fn new(schedule: &Schedule, record: bool) -> Self {
        let operations = schedule.ops().len();
        let room = || Vec::with_capacity(operations);
        let (source_free, acknowledged) = awaited(schedule);
        Times {
            records: Vec::with_capacity(operations),
            source_free: source_free.then(|| Vec::with_capacity(operations)),
            acknowledged: acknowledged.then(|| Vec::with_capacity(operations)),
            long: Vec::new(),
            recorded: record.then(|| OperationTimes {
                issued: room(),
                delivered: room(),
                visible: room(),
            }),
        }
    }

    /// The next operation.
    #[inline]
    pub fn push(&mut self, cause: Cause, at: Moments) {
        let long = at.visible.max(at.acknowledged) - at.issued >= u64::from(LONG);
        if long {
            self.long.push((self.records.len() as u32, at));
        }
        let distance = |moment: u64| {
            if long {
                LONG
            } else {
                (moment - at.issued) as u32
            }
        };
        self.records.push(Record {
            issued: at.issued,
            visible: distance(at.visible),
            delivered: distance(at.delivered),
            cause: cause.0,
        });
        if let Some(table) = &mut self.source_free {
            table.push(distance(at.source_free));
        }
        if let Some(table) = &mut self.acknowledged {
            table.push(distance(at.acknowledged));
        }
        if let Some(times) = &mut self.recorded {
            times.issued.push(at.issued);
            times.delivered.push(at.delivered);
            times.visible.push(at.visible);
        }
    }

    /// When the completion `wait` of operation `id` came; it is one that somebody waits for.
    #[inline]
    pub fn completion(&self, id: u32, wait: Wait) -> u64 {
        let index = id as usize;
        let record = &self.records[index];
        let kept = |table: &Option<Vec<u32>>| table.as_ref().map_or(LONG, |table| table[index]);
        let distance = match wait {
            Wait::Visible => record.visible,
            Wait::SourceFree => kept(&self.source_free),
            Wait::Acknowledged => kept(&self.acknowledged),
        };
        if distance != LONG {
            return record.issued + u64::from(distance);
        }
        let at = self.long(id);
        match wait {
            Wait::Visible => at.visible,
            Wait::SourceFree => at.source_free,
            Wait::Acknowledged => at.acknowledged,
        }
    }

    #[cold]
    fn long(&self, id: u32) -> &Moments {
        let found = self.long.binary_search_by_key(&id, |long| long.0);
        &self.long[found.expect("an operation without distances is in the list")].1
    }

    /// The times of all operations, where the run asked for them.
    pub fn recorded(self) -> Option<OperationTimes> {
        self.recorded
    }
}

impl History for Times {
    fn issued(&self, id: u32) -> u64 {
        self.records[id as usize].issued
    }

    fn delivered(&self, id: u32) -> u64 {
        let record = &self.records[id as usize];
        match record.delivered {
            LONG => self.long(id).delivered,
            distance => record.issued + u64::from(distance),
        }
    }

    fn cause(&self, id: u32) -> Cause {
        Cause(self.records[id as usize].cause)
    }

    fn paid_phase(&self, _: u32) -> bool {
        false // the pass leaves such paths to the engine
    }
}

/// Whether any edge waits for a free source, and whether any waits for an acknowledgement.
fn awaited(schedule: &Schedule) -> (bool, bool) {
    let ops = schedule.ops();
    let (mut source_free, mut acknowledged) = (false, false);
    for (id, op) in (0u32..).zip(ops) {
        for edge in schedule.after(id) {
            // What a rank sends to another it waits for as the source.
            let earlier = &ops[edge.op() as usize];
            let as_source = earlier.from == op.from && earlier.to != op.from;
            source_free |= as_source && !edge.is_acknowledged();
            acknowledged |= edge.is_acknowledged();
        }
        if source_free && acknowledged {
            break;
        }
    }
    (source_free, acknowledged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkwright_schedule::builder::Shape;
    use linkwright_schedule::collectives::find;

    #[test]
    fn long_operations_are_as_exact_as_short_ones() {
        // Recursive doubling waits for free sources, pairwise exchanges for acknowledgements.
        for (key, wait) in [
            ("allreduce/recursive_doubling_latency", Wait::SourceFree),
            ("alltoall/pairwise", Wait::Acknowledged),
        ] {
            let schedule = (find(key).unwrap().build)(&Shape::new(8, 64)).unwrap();
            let mut times = Times::new(&schedule, true);
            let border = u64::from(LONG);
            let lasts = [
                0,
                1,
                border - 3,
                border - 2,
                border - 1,
                border,
                border + 1,
                1 << 60,
            ];
            let all = lasts.map(|last| Moments {
                issued: 7,
                source_free: 7 + last / 2,
                delivered: 7 + last,
                visible: 8 + last,
                acknowledged: 9 + last,
            });
            for (id, at) in (0..).zip(all) {
                times.push(Cause::issue(id), at);
            }
            for (id, at) in (0..).zip(all) {
                let due = match wait {
                    Wait::SourceFree => at.source_free,
                    _ => at.acknowledged,
                };
                assert_eq!(times.completion(id, wait), due);
                assert_eq!(times.completion(id, Wait::Visible), at.visible);
                assert_eq!((times.issued(id), times.delivered(id)), (7, at.delivered));
                assert_eq!(times.cause(id), Cause::issue(id));
            }
            assert_eq!(times.long.len(), 5, "from border - 2 on");
            let recorded = times.recorded().unwrap();
            assert_eq!(recorded.visible, all.map(|at| at.visible));
        }
    }
}
