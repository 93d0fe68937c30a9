//! Aggregations made of gets and puts, for machines whose network cannot combine.
//!
//! The first target gets the data of one source after another and combines them, then puts the result to
//! the other targets:
//!
//! ```text
//!   aggregate {0,1,2}.v -> {1,2}.v     becomes     local 1.v -> 1.scratch        get 0.v -> 1.scratch (reduce)
//!                                                  get 2.v -> 1.scratch (reduce)
//!                                                  local 1.scratch -> 1.v        put 1.scratch -> 2.v
//! ```
//!
//! It does without scratch where the first target combines in place, or where there is no other target.
//! A schedule with waits besides its hazards cannot be written anew and is refused.

use crate::error::{Result, ScheduleError};
use crate::ir::{add_scratch, ranges_of, BufferId, Combine, Op, OpKind, Schedule, COMPUTE_LANE};
use crate::order::order;
use crate::transforms::{behind, loosen, with_ranges};

/// Replace every aggregation by gets with combination and puts.
pub fn gather_and_put(schedule: &Schedule) -> Result<Schedule> {
    if !schedule.has(OpKind::Aggregate) {
        return Ok(schedule.clone());
    }
    let draft = loosen(schedule).map_err(|_| {
        ScheduleError::Shape(
            "the network cannot aggregate, and a schedule with waits besides those for its hazards cannot be \
             written without aggregations; leave those waits out"
                .into(),
        )
    })?;
    let mut out = Writer {
        scratch: vec![None; draft.buffers.len()],
        draft,
        added: 0,
    };
    for op in std::mem::take(&mut out.draft.ops) {
        match op.kind {
            OpKind::Aggregate => out.aggregation(&op)?,
            _ => out.draft.ops.push(out.in_its_step(op)),
        }
    }
    out.draft.aggregations.clear();
    order(out.draft)
}

/// Writes operations behind those that are there.
struct Writer {
    draft: Schedule,
    /// By buffer, the scratch in which its chunks meet.
    scratch: Vec<Option<BufferId>>,
    /// Steps more than before.
    added: u32,
}

impl Writer {
    fn aggregation(&mut self, op: &Op) -> Result<()> {
        let first = op.from;
        let mut sources = self.draft.sources(op).to_vec();
        // What the first target has itself begins the sum.
        sources.sort_by_key(|&source| source != first);
        let others = self.draft.targets(op)[1..].to_vec();
        let runs: Vec<_> = ranges_of(op, &self.draft.ranges).collect();
        let own = sources[0] == first && op.src_buffer == op.dst_buffer;
        let stays = |run: &(u32, u32, u32)| run.0 == run.1;
        let in_place = own && runs.iter().all(stays) && op.combine == Combine::Replace;
        let alone = others.is_empty() && !(own && runs.iter().any(stays));
        if in_place {
            self.gather(op, &sources[1..], op.dst_buffer, &runs, Combine::Reduce);
            self.hand_out(op, op.dst_buffer, &others, &runs);
        } else if alone {
            self.gather(op, &sources, op.dst_buffer, &runs, op.combine);
        } else {
            let scratch = self.scratch(op.dst_buffer)?;
            self.gather(op, &sources, scratch, &runs, Combine::Replace);
            self.hand_out(op, scratch, &[&[first], &others[..]].concat(), &runs);
        }
        Ok(())
    }

    /// The first target combines the data of `sources` in `buffer`; those of the first one come there by `begin`.
    fn gather(
        &mut self,
        op: &Op,
        sources: &[u32],
        buffer: BufferId,
        runs: &[(u32, u32, u32)],
        begin: Combine,
    ) {
        for (nth, &source) in (0u32..).zip(sources) {
            let combine = if nth == 0 { begin } else { Combine::Reduce };
            let part = Op {
                from: source,
                dst_buffer: buffer,
                combine,
                ..behind(*op, nth)
            };
            self.push(moving(part, OpKind::Get, op.from), runs.to_vec());
        }
    }

    /// The first target brings what is in `buffer` to its place at each of `targets`.
    fn hand_out(&mut self, op: &Op, buffer: BufferId, targets: &[u32], runs: &[(u32, u32, u32)]) {
        for &target in targets {
            let placed = runs.iter().map(|&(_, dst, count)| (dst, dst, count));
            let part = Op {
                src_buffer: buffer,
                fenced: false,
                ..*op
            };
            self.push(moving(part, OpKind::Put, target), placed.collect());
        }
    }

    fn push(&mut self, op: Op, runs: Vec<(u32, u32, u32)>) {
        let op = self.in_its_step(op);
        let op = with_ranges(&mut self.draft, op, runs);
        self.draft.ops.push(op);
        self.added = self.added.saturating_add(1);
    }

    /// The operations of a step are simultaneous, so those made of an aggregation have steps of their own, and what
    /// follows comes later.
    fn in_its_step(&self, op: Op) -> Op {
        Op {
            step: op.step.saturating_add(self.added),
            ..op
        }
    }

    /// The scratch that is cut like `buffer`.
    fn scratch(&mut self, buffer: BufferId) -> Result<BufferId> {
        if let Some(known) = self.scratch[buffer.0 as usize] {
            return Ok(known);
        }
        let made = add_scratch(&mut self.draft.buffers, buffer)?;
        self.scratch[buffer.0 as usize] = Some(made);
        Ok(made)
    }
}

/// `op` as an operation between `op.from` and `to`, or within one rank.
fn moving(op: Op, kind: OpKind, to: u32) -> Op {
    match op.from == to {
        true => Op {
            kind: OpKind::Local,
            to,
            lane: COMPUTE_LANE,
            hint: crate::ir::Hint::None,
            ..op
        },
        false => Op { kind, to, ..op },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::{Builder, Shape};
    use crate::ir::Buffer;
    use crate::spec::Collective;
    use crate::text::{parse, print};
    use crate::verify::verify;

    fn everyone(ranks: u32) -> Vec<u32> {
        (0..ranks).collect()
    }

    /// One aggregation from all ranks to all, in place or from `input`.
    fn whole(ranks: u32, out_of_place: bool) -> Schedule {
        let mut b = Builder::new(Collective::Allreduce, &Shape::new(ranks, 12));
        let output = b.buffer(Buffer::vector("output", 3));
        let mut from = output;
        if out_of_place {
            b.out_of_place();
            from = b.buffer(Buffer::vector("input", 3));
        }
        let everyone = everyone(ranks);
        b.step();
        b.aggregate(&everyone, from.range(0..3), &everyone, output.range(0..3));
        b.finish().unwrap()
    }

    /// Each rank aggregates its part and multicasts it: three ranks, so parts of a third.
    fn in_parts(ranks: u32) -> Schedule {
        let mut b = Builder::new(Collective::Allreduce, &Shape::new(ranks, 12));
        let output = b.buffer(Buffer::vector("output", ranks));
        b.step();
        for rank in 0..ranks {
            b.aggregate(&everyone(ranks), output.at(rank), &[rank], output.at(rank));
        }
        b.step();
        for rank in 0..ranks {
            let others: Vec<u32> = (0..ranks).filter(|&r| r != rank).collect();
            b.multicast(rank, output.at(rank), &others, output.at(rank));
        }
        b.finish().unwrap()
    }

    fn count(schedule: &Schedule, kind: OpKind) -> usize {
        schedule.ops().iter().filter(|op| op.kind == kind).count()
    }

    #[test]
    fn an_allreduce_is_one_operation() {
        for schedule in [whole(4, false), whole(4, true)] {
            verify(&schedule).unwrap();
            assert_eq!((schedule.ops().len(), schedule.edge_count()), (1, 0));
            assert_eq!(schedule.sent_bytes(), [48; 4]);
            assert_eq!(parse(&print(&schedule)).unwrap(), schedule);
        }
    }

    /// In the second step, rank r overwrites part r of the others, which were read for part r: all know that from r.
    #[test]
    fn parts_are_multicast_without_notices() {
        let schedule = in_parts(4);
        verify(&schedule).unwrap();
        assert_eq!(count(&schedule, OpKind::Notice), 0);
        assert_eq!(schedule.edge_count(), 4);
        assert_eq!(parse(&print(&schedule)).unwrap(), schedule);
    }

    #[test]
    fn gets_and_puts_do_the_same() {
        let lowered = gather_and_put(&whole(4, false)).unwrap();
        verify(&lowered).unwrap();
        let kinds = [OpKind::Get, OpKind::Put, OpKind::Local, OpKind::Aggregate];
        assert_eq!(kinds.map(|kind| count(&lowered, kind)), [3, 3, 0, 0]);
        let lowered = gather_and_put(&whole(4, true)).unwrap();
        verify(&lowered).unwrap();
        assert_eq!(kinds.map(|kind| count(&lowered, kind)), [3, 3, 2, 0]);
        let lowered = gather_and_put(&in_parts(4)).unwrap();
        verify(&lowered).unwrap();
        assert_eq!(kinds.map(|kind| count(&lowered, kind)), [12, 0, 0, 0]);
    }

    /// What one step of a file does after another waits for notices of those who see it.
    #[test]
    fn sources_are_ready_and_free_before_others_go_on() {
        let text = "linkwright-schedule 1\nranks 4\nelements 4\nspec pattern\nbuffer output 2\nset s0 0,1\n\
                    set s1 2,3\nedges infer\nstep 0\nput 3:output[0] -> 1:output[0] replace\n\
                    step 1\naggregate s0:output[0] -> s1:output[1] replace\n\
                    step 2\nput 1:output[1] -> 0:output[0] replace\nput 3:output[1] -> 2:output[0] replace\n\
                    put 3:output[0] -> 2:output[1] replace\nend\n";
        let schedule = parse(text).unwrap();
        let printed = print(&schedule);
        assert!(verify(&schedule).is_ok(), "{printed}");
        let operations: Vec<&str> = printed
            .lines()
            .skip_while(|l| !l.starts_with("step"))
            .collect();
        let wanted = [
            "step 0",
            "t0 put 3:output[0] -> 1:output[0] replace lane=0 src_after=- dst_after=-",
            "step 1",
            // Rank 1 sees that its data are there and tells the initiator, rank 2.
            "t1 notice 1 -> 2 lane=0 after=t0",
            "t2 aggregate s0:output[0] -> s1:output[1] replace lane=0 src_after=- dst_after=t1",
            "step 2",
            // Rank 1 overwrites a source, and rank 3 data of rank 2: rank 2 tells them that all is there.
            "t3 notice 2 -> 1 lane=0 after=t2",
            "t4 notice 2 -> 3 lane=0 after=t2",
            "t5 put 1:output[1] -> 0:output[0] replace lane=0 src_after=t3 dst_after=-",
            // The sources are free when the data are at rank 3, so it needs nobody for that.
            "t6 put 3:output[1] -> 2:output[0] replace lane=0 src_after=t2 dst_after=-",
            "t7 put 3:output[0] -> 2:output[1] replace lane=0 src_after=t4 dst_after=-",
            "end",
        ];
        assert_eq!(operations, wanted);
    }

    /// Where arrivals get scratch of their own, the schedule is written again step by step.
    #[test]
    fn every_step_is_simultaneous() {
        for schedule in [whole(4, false), whole(4, true), in_parts(4)] {
            let lowered = gather_and_put(&schedule).unwrap();
            let own = crate::own_scratch::own_scratch(&lowered).unwrap();
            verify(&own).unwrap();
        }
    }

    #[test]
    fn own_waits_are_refused() {
        let mut b = Builder::new(Collective::Allreduce, &Shape::new(2, 4));
        let output = b.buffer(Buffer::vector("output", 1));
        b.step();
        let first = b.compute(0, 5).position();
        b.step();
        b.aggregate(&[0, 1], output.at(0), &[0, 1], output.at(0))
            .after(first);
        let schedule = b.finish().unwrap();
        verify(&schedule).unwrap();
        let error = gather_and_put(&schedule).unwrap_err().to_string();
        assert!(error.contains("leave those waits out"), "{error}");
    }
}
