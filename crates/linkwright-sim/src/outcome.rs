//! What a simulation yields.

use crate::critical::{CriticalPath, Segment, Spent};
use crate::error::SimError;
use crate::fabric::{Fabric, LinkTable, Msg, MsgKind};
use crate::messages::{Messages, SIGNAL};
use linkwright_core::TimePs;

/// Half of what 64 bits count, so that sums of a few times are exact too.
const LONGEST: TimePs = TimePs(1 << 63);

/// Time of something that did not happen.
pub(crate) const NEVER: u64 = u64::MAX;

/// The result of one simulation; times in picoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulation {
    /// From the first arrival of a rank to the last finish; of a timed run among several, the time of the slowest rank
    /// from its own start.
    pub makespan: TimePs,
    /// When each rank arrived, or began the run that is timed.
    pub start: Vec<u64>,
    /// When each rank had nothing more to do: its own operations complete, all arrivals handled.
    pub finish: Vec<u64>,
    /// Of an allreduce on a path with a protocol: when each rank arrived, and when it had ended each run.
    pub runs: Vec<Vec<u64>>,
    /// Counts over all messages.
    pub totals: Totals,
    /// Load of every link.
    pub links: LinkTable,
    /// What the time was spent on.
    pub critical: CriticalPath,
    /// Times of every operation, where the run asked for them.
    pub operations: Option<OperationTimes>,
}

/// How long the ranks took, in picoseconds; quantiles lie between two ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean of all ranks.
    pub mean: f64,
    /// The fastest rank.
    pub least: u64,
    /// Half of the ranks took at most this.
    pub median: f64,
    /// 95 % of the ranks took at most this.
    pub p95: f64,
}

impl Spread {
    fn of(mut took: Vec<u64>) -> Spread {
        took.sort_unstable();
        let last = took.len() - 1;
        let quantile = |share: f64| {
            let place = last as f64 * share;
            let (below, part) = (place as usize, place.fract());
            let (low, high) = (took[below] as f64, took[last.min(below + 1)] as f64);
            // From the nearer rank, so that equal times give that time.
            if part < 0.5 {
                low + (high - low) * part
            } else {
                high - (high - low) * (1.0 - part)
            }
        };
        let total: u128 = took.iter().map(|&time| u128::from(time)).sum();
        Spread {
            mean: total as f64 / took.len() as f64,
            least: took[0],
            median: quantile(0.5),
            p95: quantile(0.95),
        }
    }
}

impl Simulation {
    /// The simulation, unless its time left the range in which times are exact.
    pub(crate) fn in_range(self) -> Result<Simulation, SimError> {
        match self.makespan < LONGEST {
            true => Ok(self),
            false => Err(SimError::TooLong { at: self.makespan }),
        }
    }

    /// The same of `ranks` ranks that do what those simulated do.
    pub(crate) fn of_all(mut self, ranks: u32) -> Self {
        let (some, all) = (self.finish.len() as u64, u64::from(ranks));
        self.totals = self.totals.of_all(some, all);
        self.start.resize(ranks as usize, self.start[0]);
        self.finish.resize(ranks as usize, self.finish[0]);
        // The links of a few represent those of all, so they have no names.
        self.links.names.clear();
        self
    }

    /// How long the ranks took, each from its own start.
    pub fn spread(&self) -> Spread {
        Spread::of(
            self.finish
                .iter()
                .zip(&self.start)
                .map(|(end, start)| end - start)
                .collect(),
        )
    }

    /// When the last rank had finished.
    pub fn end_ps(&self) -> u64 {
        self.finish.iter().copied().max().unwrap_or(0)
    }

    /// Times of every operation, or what to do to get them.
    pub(crate) fn recorded(&self) -> Result<&OperationTimes, SimError> {
        self.operations.as_ref().ok_or_else(|| SimError::Option {
            option: "operations",
            problem: "the times of all operations are needed; switch it on".into(),
        })
    }

    /// Most messages that held or wanted one link at one instant.
    pub fn peak_load(&self) -> u32 {
        self.links.peak.iter().copied().max().unwrap_or(0)
    }

    /// The same, where each rank begins `launch` after it has arrived.
    ///
    /// ```text
    /// arrives |-- launch --| what was simulated |
    ///           overhead     everything later by `launch`
    /// ```
    pub(crate) fn launched(mut self, launch: TimePs) -> Self {
        let ps = launch.0;
        if ps == 0 || self.finish.is_empty() {
            return self;
        }
        self.makespan = TimePs(self.makespan.0 + ps);
        self.finish.iter_mut().for_each(|end| *end += ps);
        for segment in &mut self.critical.segments {
            segment.from_ps += ps;
            segment.to_ps += ps;
        }
        let first = self.start.iter().copied().min().unwrap_or(0);
        let begun = Segment {
            op: None,
            spent: Spent::Overhead,
            from_ps: first,
            to_ps: first + ps,
        };
        self.critical.segments.insert(0, begun);
        if let Some(times) = &mut self.operations {
            let all = [
                &mut times.issued,
                &mut times.offered,
                &mut times.delivered,
                &mut times.visible,
            ];
            for at in all.into_iter().flatten().filter(|at| **at != NEVER) {
                *at += ps;
            }
        }
        self
    }
}

/// Counts over all messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Transfers offered to the fabric; a multicast counts once per target.
    pub transfers: u64,
    /// Notices and signals.
    pub notices: u64,
    /// Bytes delivered.
    pub bytes: u64,
    /// Bytes times links crossed, of transfers; a multicast counts as if it were single ones.
    pub byte_hops: u64,
    /// Links crossed by all transfers together.
    pub hops: u64,
    /// Most links that one transfer crossed.
    pub max_hops: u32,
}

impl Totals {
    /// Mean number of links that a transfer crossed.
    pub fn mean_hops(&self) -> f64 {
        match self.transfers {
            0 => 0.0,
            transfers => self.hops as f64 / transfers as f64,
        }
    }

    #[inline]
    pub(crate) fn count<F: Fabric + ?Sized>(&mut self, m: &Msg, fabric: &F, all: &Messages<'_>) {
        if m.kind == MsgKind::Notice || m.op & SIGNAL != 0 {
            self.notices += 1;
            return;
        }
        if m.kind == MsgKind::Aggregate {
            return self.count_aggregation(m, fabric, all);
        }
        if m.kind != MsgKind::Multicast {
            return self.add(m.bytes, fabric.network().hops(m.from, m.to, m.network));
        }
        for &target in &all.schedule.sets[m.set as usize] {
            self.add(
                m.bytes,
                fabric
                    .network()
                    .hops(m.from, all.endpoint(target), m.network),
            );
        }
    }

    /// An aggregation counts as if each source sent to the first target, and that one to the others.
    fn count_aggregation<F: Fabric + ?Sized>(&mut self, m: &Msg, fabric: &F, all: &Messages<'_>) {
        let others = |set: u32| {
            let places = all.schedule.sets[set as usize].iter();
            places
                .map(|&one| all.endpoint(one))
                .filter(|&place| place != m.from)
        };
        for source in others(m.sources) {
            self.add(m.bytes, fabric.network().hops(source, m.from, m.network));
        }
        for target in others(m.set) {
            self.add(m.bytes, fabric.network().hops(m.from, target, m.network));
        }
    }

    /// The same of `all` ranks, where these are of `some` and all do the same.
    fn of_all(self, some: u64, all: u64) -> Self {
        let scaled = |count: u64| count / some * all;
        Totals {
            transfers: scaled(self.transfers),
            notices: scaled(self.notices),
            bytes: scaled(self.bytes),
            byte_hops: scaled(self.byte_hops),
            hops: scaled(self.hops),
            ..self
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, bytes: u64, hops: u32) {
        self.transfers += 1;
        self.bytes += bytes;
        self.byte_hops += bytes * u64::from(hops);
        self.hops += u64::from(hops);
        self.max_hops = self.max_hops.max(hops);
    }
}

/// Times of every operation, by id, in picoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationTimes {
    /// When its lane took it up.
    pub issued: Vec<u64>,
    /// When its software was done: a message then leaves, local work is then finished.
    pub offered: Vec<u64>,
    /// When the fabric had delivered it, or the local work was finished; the last target's.
    pub delivered: Vec<u64>,
    /// When the last target had handled it.
    pub visible: Vec<u64>,
}

impl OperationTimes {
    /// For this many operations, before anything has happened.
    pub(crate) fn new(operations: usize) -> Self {
        OperationTimes {
            issued: vec![NEVER; operations],
            offered: vec![NEVER; operations],
            delivered: vec![NEVER; operations],
            visible: vec![NEVER; operations],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places 1.5 and 2.85 of 0 to 3: 20 + 0.5 x 10, and 40 - 0.15 x 10.
    #[test]
    fn quantiles_lie_between_two_ranks() {
        let spread = Spread::of(vec![40, 10, 30, 20]);
        assert_eq!(
            spread,
            Spread {
                mean: 25.0,
                least: 10,
                median: 25.0,
                p95: 38.5
            }
        );
        assert_eq!(
            Spread::of(vec![7]),
            Spread {
                mean: 7.0,
                least: 7,
                median: 7.0,
                p95: 7.0
            }
        );
    }
}
