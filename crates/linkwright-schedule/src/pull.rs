//! Reads instead of writes: who needs data fetches them.
//!
//! ```text
//!   put   0 -> 1    0 writes, is told that the data are there, and tells 1        1 waits for 0
//!   get   0 -> 1    1 asks, and the data come                                     1 waits for no one
//! ```
//!
//! What a rank holds from the start may be read at any time, and no rank has to be told: not 1 that its data are there,
//! not 0 that they are. On a path that announces what it writes, such a message saves an acknowledgement and a notice.
//! Where the chunk that was read is written later, order asks for a notice of the reader that it is free again; scratch
//! that collects sums elsewhere, and collectives out of place, do without.
//!
//! What a rank has only received ([`Pulled::Everything`]) is read behind a notice that it is there: a notice in front
//! of the data instead of one behind them.
//!
//! Lanes keep their numbers, now of the readers, or the reads of each rank take `lanes` lanes in turn: reads of one lane
//! begin one after another. Writes to memories and multicasts stay, since memories issue nothing, and so do schedules
//! with barriers, fences or computes, which order more than data.
//!
//! Source: Liu, Wu and Panda, *High performance RDMA-based MPI implementation over InfiniBand* (IJPP 2004), for
//! protocols that read and protocols that write.

use crate::chunks::Chunks;
use crate::error::Result;
use crate::ir::{OpKind, Schedule};
use crate::order::order;
use crate::transforms::{loosen, positive};

linkwright_core::words! {
    /// Which messages become reads.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Pulled {
        /// Those of data that no operation has written before.
        Initial = "initial data read",
        /// All.
        Everything = "all data read",
    }
}

/// Let receivers read what senders write to them, on the lanes of the writes or on `lanes` lanes of each reader in turn.
pub fn pull(schedule: &Schedule, which: Pulled, lanes: Option<u32>) -> Result<Schedule> {
    lanes.map_or(Ok(()), |lanes| positive(lanes, "lanes"))?;
    let mut draft = loosen(schedule)?;
    if !draft.ops.iter().all(|op| op.moves_data() && !op.fenced) {
        return Ok(schedule.clone());
    }
    let chunks = Chunks::of(schedule);
    let mut written = vec![false; chunks.len()];
    let mut reads = vec![0; schedule.ranks as usize];
    for op in &mut draft.ops {
        let (sources, targets) = chunks.touched(schedule, op);
        let initial = || !sources.iter().any(|&source| written[source]);
        let wanted = op.kind == OpKind::Put && op.to < schedule.ranks;
        if wanted && (which == Pulled::Everything || initial()) {
            op.kind = OpKind::Get;
            let turn = &mut reads[op.to as usize];
            op.lane = lanes.map_or(op.lane, |lanes| (*turn % lanes) as u8);
            *turn += 1;
        }
        targets
            .into_iter()
            .for_each(|target| written[target] = true);
    }
    order(draft)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::{Builder, Shape};
    use crate::collectives::samples;
    use crate::ir::{Buffer, Op, Schedule};
    use crate::own_scratch::own_scratch;
    use crate::spec::Collective;
    use crate::text;
    use crate::transforms::{has_own_waits, pipeline, unfuse};
    use crate::verify::verify;

    /// Operations that are no notices, as the schedule has them, whatever initiates and whichever lane.
    fn moves(schedule: &Schedule) -> Vec<Op> {
        let moved = schedule.ops().iter().filter(|op| op.moves_data());
        moved
            .map(|&op| match op.kind {
                OpKind::Get => Op {
                    kind: OpKind::Put,
                    lane: 0,
                    ..op
                },
                _ => Op { lane: 0, ..op },
            })
            .collect()
    }

    /// Puts between ranks, and those of them whose data no operation wrote before.
    fn puts(schedule: &Schedule) -> (usize, usize) {
        let chunks = Chunks::of(schedule);
        let mut written = vec![false; chunks.len()];
        let (mut all, mut initial) = (0, 0);
        for op in schedule.ops() {
            let (sources, targets) = chunks.touched(schedule, op);
            if op.kind == OpKind::Put && op.to < schedule.ranks {
                all += 1;
                initial += usize::from(sources.iter().all(|&source| !written[source]));
            }
            targets
                .into_iter()
                .for_each(|target| written[target] = true);
        }
        (all, initial)
    }

    /// Every algorithm on several shapes, as it is, with scratch of its own, in slices and with sums apart: right, the
    /// same moves, no such puts left, readable again, and the same when it is done twice.
    #[test]
    fn every_algorithm_stays_right() {
        for (name, plain) in samples() {
            if has_own_waits(&plain).unwrap() {
                assert!(pull(&plain, Pulled::Initial, None).is_err());
                continue;
            }
            let own = own_scratch(&plain).unwrap();
            let more = [pipeline(&own, 2).ok(), unfuse(&own).ok()];
            for before in more.into_iter().flatten().chain([plain, own]) {
                for which in Pulled::ALL {
                    for lanes in [None, Some(3)] {
                        let key = format!("{name} {which:?} {lanes:?}");
                        check(&before, which, lanes, &key);
                    }
                }
            }
        }
    }

    fn check(before: &Schedule, which: Pulled, lanes: Option<u32>, key: &str) {
        let after = pull(before, which, lanes).unwrap();
        verify(&after).unwrap_or_else(|e| panic!("{key}: {e}"));
        let plain = |op: &Op| op.moves_data() && !op.fenced || op.kind == OpKind::Notice;
        if !before.ops().iter().all(plain) {
            assert!(after == *before, "{key}");
            return;
        }
        assert!(moves(&after) == moves(before), "{key}");
        let (all, initial) = puts(&after);
        assert_eq!(initial, 0, "{key}");
        assert!(which == Pulled::Initial || all == 0, "{key}");
        assert!(pull(&after, which, lanes).unwrap() == after, "{key}");
        let written = text::print(&after);
        assert!(
            text::print(&text::parse(&written).unwrap()) == written,
            "{key}"
        );
    }

    /// 0 has the data; 1 passes on what it got: 1 reads, then writes; or 1 tells 2 that it has them, and 2 reads.
    #[test]
    fn a_relay_writes_or_is_read_behind_a_notice() {
        let mut b = Builder::new(Collective::Broadcast, &Shape::new(3, 8));
        let data = b.buffer(Buffer::vector("output", 1)).at(0);
        b.step();
        b.put(0, data, 1, data);
        b.step();
        b.put(1, data, 2, data);
        let chain = b.finish().unwrap();
        let kinds = |which| -> Vec<(OpKind, u32, u32)> {
            let after = pull(&chain, which, None).unwrap();
            let all = after.ops().iter().map(|op| (op.kind, op.from, op.to));
            all.collect()
        };
        let (get, put, notice) = (OpKind::Get, OpKind::Put, OpKind::Notice);
        assert_eq!(kinds(Pulled::Initial), [(get, 0, 1), (put, 1, 2)]);
        assert_eq!(
            kinds(Pulled::Everything),
            [(get, 0, 1), (notice, 1, 2), (get, 1, 2)]
        );
    }

    /// Everyone reads from the three others, whose data no operation writes later: no notice. On two lanes they take turns.
    #[test]
    fn an_allgather_needs_no_notice() {
        let shape = Shape::new(4, 64);
        let direct = crate::collectives::build("allgather/linear", &shape).unwrap();
        let after = pull(&direct, Pulled::Initial, Some(2)).unwrap();
        assert_eq!(after.ops().len(), 12);
        for rank in 0..4 {
            let own = after.ops().iter().filter(|op| op.initiator() == rank);
            let lanes: Vec<u8> = own.map(|op| op.lane).collect();
            assert_eq!(lanes, [0, 1, 0]);
        }
    }

    /// In place, each of two ranks adds to what the other one reads: it has to be told that it may.
    #[test]
    fn what_is_read_is_not_overwritten_too_early() {
        let shape = Shape::new(2, 8);
        let exchange = crate::collectives::build("allreduce/recursive_doubling_latency", &shape);
        let after = pull(&exchange.unwrap(), Pulled::Initial, None).unwrap();
        let notices = after.ops().iter().filter(|op| op.kind == OpKind::Notice);
        assert_eq!(notices.count(), 2);
    }
}
