//! The times of operations that may still be needed: 16 bytes per operation.
//!
//! A waiting operation needs one completion, the critical path the issue and the delivery. All moments of an
//! operation lie shortly after its issue, so they are kept as distances of 32 bits, four milliseconds in
//! picoseconds; the few operations that last longer stand in a list of their own. Free sources and
//! acknowledgements are kept only from where an edge is found to wait for one, times of 64 bits where the run
//! asked for them. The delivery follows from when the message was visible, what handling it takes and how long
//! it waited for that, which is nothing as long as no arrival meets another.

use crate::critical::Cause;
use crate::graph::Wait;
use crate::outcome::OperationTimes;

/// In place of a distance: the operation is in the list of long ones.
const LONG: u32 = u32::MAX;

/// All moments of one operation, in picoseconds.
#[derive(Clone, Copy)]
pub(super) struct Moments {
    pub issued: u64,
    pub offered: u64,
    pub source_free: u64,
    pub delivered: u64,
    /// How long it then waited to be handled.
    pub waited: u64,
    pub visible: u64,
    pub acknowledged: u64,
}

/// One operation.
#[derive(Clone, Copy)]
struct Record {
    issued: u64,
    /// Distance from the issue.
    visible: u32,
    cause: u32,
}

/// Which completions are kept besides what is visible.
#[derive(Clone, Copy, Default)]
pub(super) struct Kept {
    pub source_free: bool,
    pub acknowledged: bool,
}

/// An operation waits for a completion that is not kept: the pass begins again and keeps it.
pub(super) struct NotKept(pub Kept);

/// Moments of the operations so far, by id.
pub(super) struct Times {
    records: Vec<Record>,
    /// Distances from the issue; `None` where no operation waits for one.
    source_free: Option<Vec<u32>>,
    acknowledged: Option<Vec<u32>>,
    /// How long arrivals waited to be handled; empty as long as none did.
    waited: Vec<u32>,
    operations: usize,
    /// Operations that last longer than 32 bits say, ascending.
    long: Vec<(u32, Moments)>,
    recorded: Option<OperationTimes>,
}

impl Times {
    /// Room for this many operations; `record` keeps all times.
    pub fn new(operations: usize, kept: Kept, record: bool) -> Self {
        let room = || Vec::with_capacity(operations);
        Times {
            records: Vec::with_capacity(operations),
            source_free: kept.source_free.then(|| Vec::with_capacity(operations)),
            acknowledged: kept.acknowledged.then(|| Vec::with_capacity(operations)),
            waited: Vec::new(),
            operations,
            long: Vec::new(),
            recorded: record.then(|| OperationTimes {
                issued: room(),
                offered: room(),
                delivered: room(),
                visible: room(),
            }),
        }
    }

    /// The next operation.
    #[inline(always)] // of local operations most moments are one
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
            cause: cause.0,
        });
        if at.waited > 0 && !long {
            self.wait(at.waited as u32);
        }
        if let Some(table) = &mut self.source_free {
            table.push(distance(at.source_free));
        }
        if let Some(table) = &mut self.acknowledged {
            table.push(distance(at.acknowledged));
        }
        if let Some(times) = &mut self.recorded {
            record(times, &at);
        }
    }

    /// The latest operation waited this long to be handled.
    #[inline(never)]
    fn wait(&mut self, distance: u32) {
        if self.waited.is_empty() {
            // Zeros that have not been written yet take no memory.
            self.waited = vec![0; self.operations];
        }
        self.waited[self.records.len() - 1] = distance;
    }

    /// When the completion `wait` of operation `id` came.
    #[inline(always)]
    pub fn completion(&self, id: u32, wait: Wait) -> Result<u64, NotKept> {
        let index = id as usize;
        let record = &self.records[index];
        let distance = match (wait, &self.source_free, &self.acknowledged) {
            (Wait::Visible, ..) => record.visible,
            (Wait::SourceFree, Some(table), _) => table[index],
            (Wait::Acknowledged, _, Some(table)) => table[index],
            _ => return Err(self.not_kept(wait)),
        };
        if distance != LONG {
            return Ok(record.issued + u64::from(distance));
        }
        let at = self.long(id);
        Ok(match wait {
            Wait::Visible => at.visible,
            Wait::SourceFree => at.source_free,
            Wait::Acknowledged => at.acknowledged,
        })
    }

    #[cold]
    fn not_kept(&self, wait: Wait) -> NotKept {
        NotKept(Kept {
            source_free: self.source_free.is_some() || wait == Wait::SourceFree,
            acknowledged: self.acknowledged.is_some() || wait == Wait::Acknowledged,
        })
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

    pub fn issued(&self, id: u32) -> u64 {
        self.records[id as usize].issued
    }

    /// When operation `id` was delivered; `handling` is how long its handling took.
    pub fn delivered(&self, id: u32, handling: u64) -> u64 {
        let record = &self.records[id as usize];
        match record.visible {
            LONG => self.long(id).delivered,
            distance => {
                let waited = self.waited.get(id as usize).map_or(0, |&waited| waited);
                record.issued + u64::from(distance) - handling - u64::from(waited)
            }
        }
    }

    pub fn cause(&self, id: u32) -> Cause {
        Cause(self.records[id as usize].cause)
    }
}

/// The times of the next operation, for a run that asked for them.
#[inline(never)]
fn record(times: &mut OperationTimes, at: &Moments) {
    times.issued.push(at.issued);
    times.offered.push(at.offered);
    times.delivered.push(at.delivered);
    times.visible.push(at.visible);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_operations_are_as_exact_as_short_ones() {
        for wait in [Wait::SourceFree, Wait::Acknowledged] {
            let kept = Kept {
                source_free: wait == Wait::SourceFree,
                acknowledged: wait == Wait::Acknowledged,
            };
            let mut times = Times::new(8, kept, true);
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
                offered: 7,
                source_free: 7 + last / 2,
                delivered: 7 + last,
                waited: last % 2,
                visible: 8 + last + last % 2,
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
                assert_eq!(times.completion(id, wait).ok(), Some(due));
                assert_eq!(times.completion(id, Wait::Visible).ok(), Some(at.visible));
                assert_eq!(
                    (times.issued(id), times.delivered(id, 1)),
                    (7, at.delivered)
                );
                assert_eq!(times.cause(id), Cause::issue(id));
            }
            assert_eq!(times.long.len(), 5, "from border - 2 on");
            let recorded = times.recorded().unwrap();
            assert_eq!(recorded.visible, all.map(|at| at.visible));
        }
    }
}
