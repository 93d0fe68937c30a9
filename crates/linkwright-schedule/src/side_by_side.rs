//! Schedules at once, each on ranks and memories of its own: nothing of one waits for another.
//!
//! ```text
//!   part 0   ranks 0..a   memories a..a+m          joined   ranks 0..a, a..a+b   memories of part 0, of part 1
//!   part 1   ranks 0..b   memories b..b+n
//! ```
//!
//! Operations are sorted by step, then by part, then as the part has them. Buffers of the same name that parts cut alike
//! become one; otherwise the later one is renamed. Together the parts are no collective, so the result is traffic:
//! bounds and order are proved for all of it, races and contents for each part alone.

use crate::concatenate::add;
use crate::error::{Result, ScheduleError};
use crate::ir::{most_ops, Buffer, BufferId, Op, OpKind, Owner, Remembered, Schedule, MAX_RANKS};
use crate::spec::{Collective, Spec};
use linkwright_core::Participant;

/// `parts`, of equal vectors, as one schedule.
pub fn side_by_side(parts: &[&Schedule]) -> Result<Schedule> {
    let mut joined = header(parts)?;
    let (mut rank, mut memory) = (0, joined.ranks);
    let mut ops = Vec::with_capacity(joined.ops.capacity());
    for (number, part) in parts.iter().enumerate() {
        let mut step = 0;
        for (id, op) in (0u32..).zip(moved(&mut joined, part, rank, memory)?) {
            // What a part has behind a later step stays there.
            step = op.step.max(step);
            ops.push((step, number, id, op));
        }
        (rank, memory) = (rank + part.ranks, memory + part.memories);
    }
    ops.sort_unstable_by_key(|&(step, number, id, _)| (step, number, id));
    let mut ids: Vec<Vec<u32>> = parts.iter().map(|part| vec![0; part.ops.len()]).collect();
    for (new, (_, number, id, op)) in (0u32..).zip(ops) {
        ids[number][id as usize] = new;
        let waits = parts[number].after(id).iter();
        let waits = waits.map(|edge| edge.with_op(ids[number][edge.op() as usize]));
        joined.edges.extend(waits);
        joined.ops.push(op);
        joined.end_edges()?;
    }
    Ok(joined)
}

/// The schedule before buffers, sets and operations; refuses parts that cannot be one.
fn header(parts: &[&Schedule]) -> Result<Schedule> {
    let vector = |part: &Schedule| (part.elements, part.element_bytes);
    let unequal = |part: &&&Schedule| vector(part) != vector(parts[0]);
    let Some(first) = parts.first() else {
        return Err(ScheduleError::Shape(
            "0 schedules; at least 1 is needed".into(),
        ));
    };
    if let Some(other) = parts.iter().find(unequal) {
        return Err(ScheduleError::Shape(format!(
            "vectors of {} elements of {} B and of {} of {} B; put schedules of equal vectors side by side",
            first.elements, first.element_bytes, other.elements, other.element_bytes
        )));
    }
    let total = |of: fn(&Schedule) -> u64| parts.iter().map(|part| of(part)).sum::<u64>();
    let (ranks, memories) = (total(|p| p.ranks.into()), total(|p| p.memories.into()));
    let ops = total(|p| p.ops.len() as u64);
    for (count, most) in [
        (ranks + memories, MAX_RANKS.into()),
        (ops, most_ops() as u64),
    ] {
        if count > most {
            return Err(ScheduleError::TooLarge(most));
        }
    }
    let own_waits = |own, part: &&Schedule| Some(own | part.own_waits.0?);
    let spec = Spec::new(Collective::Pattern, 0);
    Ok(Schedule {
        memories: memories as u32,
        ops: Vec::with_capacity(ops as usize),
        own_waits: Remembered(parts.iter().try_fold(false, own_waits)),
        ..Schedule::empty(spec, ranks as u32, first.elements, first.element_bytes)
    })
}

/// Add the buffers, sets, ranges and work of `part` to `joined`, in which its ranks begin at `rank` and its memories at
/// `memory`; its operations there.
fn moved(joined: &mut Schedule, part: &Schedule, rank: u32, memory: u32) -> Result<Vec<Op>> {
    let place = |participant: u32| match participant.checked_sub(part.ranks) {
        None => rank + participant,
        Some(number) => memory + number,
    };
    let (mut buffers, before) = (Vec::with_capacity(part.buffers.len()), joined.buffers.len());
    for buffer in &part.buffers {
        let owner = match buffer.owner {
            Owner::Ranks => Owner::Ranks,
            Owner::One(one) => Owner::One(Participant(place(one.0))),
        };
        let own = Buffer {
            owner,
            ..buffer.clone()
        };
        let known = joined.buffers[..before]
            .iter()
            .position(|known| *known == own);
        buffers.push(match known {
            Some(known) => BufferId(known as u8),
            None => add(&mut joined.buffers, &own)?,
        });
    }
    let (set, pair) = (joined.sets.len() as u32, joined.aggregations.len() as u32);
    let (range, work) = (joined.ranges.len() as u32, joined.work.len() as u32);
    let members = |set: &Vec<u32>| set.iter().map(|&member| place(member)).collect();
    joined.sets.extend(part.sets.iter().map(members));
    let pairs = part.aggregations.iter();
    joined
        .aggregations
        .extend(pairs.map(|&(from, to)| (from + set, to + set)));
    joined.ranges.extend_from_slice(&part.ranges);
    joined.work.extend_from_slice(&part.work);
    let mut ops = part.ops.clone();
    for op in &mut ops {
        op.from = place(op.from);
        op.to = match op.kind {
            OpKind::Multicast | OpKind::Barrier => op.to + set,
            OpKind::Aggregate => op.to + pair,
            _ => place(op.to),
        };
        if op.kind == OpKind::Compute {
            op.count += work;
        }
        if op.moves_data() {
            let home = |id: BufferId| buffers[usize::from(id.0)];
            (op.src_buffer, op.dst_buffer) = (home(op.src_buffer), home(op.dst_buffer));
        }
        if op.scattered {
            (op.src, op.dst) = (op.src + range, op.dst + range);
        }
    }
    Ok(ops)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::{Builder, Shape};
    use crate::collectives::build;
    use crate::transforms::first_steps;
    use crate::{text, verify::is_deterministic, verify::verify};

    fn made(key: &str, ranks: u32) -> Schedule {
        build(key, &Shape::new(ranks, 24)).unwrap()
    }

    /// Two ranks exchange and combine: puts into scratch, local combinations, and notices that scratch is free.
    ///
    /// ```text
    ///   step 1   t0 put 0 -> 1   t1 put 1 -> 0        joined   t0 t1 of part 0, t2 t3 of part 1 (ranks 2 and 3)
    ///   step 1   t2 local 0      t3 local 1                    t4 t5 of part 0, t6 t7 of part 1
    /// ```
    #[test]
    fn the_second_part_is_on_the_next_ranks() {
        let exchange = made("allreduce/recursive_doubling_latency", 4);
        let joined = side_by_side(&[&exchange, &exchange]).unwrap();
        assert_eq!((joined.ranks, joined.buffers.len()), (8, 2));
        let of = |schedule: &Schedule, kind: OpKind, first: u32| {
            let ops = schedule.ops().iter().filter(|op| op.kind == kind);
            let ends = ops.map(|op| (op.from, op.to)).filter(|end| end.0 >= first);
            let shifted = ends.map(|(from, to)| (from - first, to - first));
            shifted.collect::<Vec<_>>()
        };
        for kind in [OpKind::Put, OpKind::Local, OpKind::Notice] {
            assert_eq!(of(&joined, kind, 4), of(&exchange, kind, 0), "{kind:?}");
            assert_eq!(of(&joined, kind, 0).len(), 2 * of(&exchange, kind, 0).len());
        }
        assert!(exchange.has(OpKind::Notice));
    }

    /// Sets, pairs of sets, buffers of one participant, memories and work are all counted from where those before end.
    #[test]
    fn everything_that_is_numbered_is_numbered_on() {
        let part = |ranks: u32| {
            let mut b = Builder::new(Collective::Pattern, &Shape::new(ranks, 8));
            let memory = b.memory();
            let (data, own) = (Buffer::vector("output", 2), Buffer::vector("own", 2));
            let data = b.buffer(data);
            let own = b.buffer(own.only_at(memory));
            b.step();
            b.multicast(0, data.at(0), &[1, 2], data.at(0));
            b.compute(1, 7);
            b.step();
            b.aggregate(&[0, 1], data.at(1), &[2], data.at(1));
            b.step();
            b.put(2, data.at(1), memory, own.at(1));
            b.barrier(&[0, 2]);
            b.finish().unwrap()
        };
        let (three, four) = (part(3), part(4));
        let joined = side_by_side(&[&three, &four]).unwrap();
        verify(&joined).unwrap();
        let names: Vec<&str> = joined.buffers.iter().map(|b| b.name.as_str()).collect();
        assert_eq!(names, ["output", "own", "scratch"]);
        let owners: Vec<Owner> = joined.buffers.iter().map(|b| b.owner).collect();
        let [seventh, eighth] = [7, 8].map(|memory| Owner::One(Participant(memory)));
        assert_eq!(owners, [Owner::Ranks, seventh, eighth]);
        assert_eq!((joined.ranks, joined.memories), (7, 2));
        let shifted = |set: &Vec<u32>| set.iter().map(|member| member + 3).collect::<Vec<_>>();
        let second: Vec<Vec<u32>> = four.sets.iter().map(shifted).collect();
        assert_eq!(joined.sets, [three.sets.clone(), second].concat());
        assert_eq!(joined.aggregations, [(1, 2), (5, 6)]);
        assert_eq!(joined.work, [7, 7]);
        assert_eq!(joined.sent_bytes()[7..], [0, 0]);
        assert_eq!(text::parse(&text::print(&joined)).unwrap(), joined);
    }

    /// The joined schedule is right where all its parts are, and lacks an order where one of them does.
    #[test]
    fn a_race_of_one_part_is_a_race_of_all() {
        let ring = made("allreduce/ring", 6);
        for key in [
            "allreduce/ring",
            "alltoall/linear",
            "broadcast/binomial",
            "allgather/bruck",
        ] {
            let one = made(key, 4);
            let joined = side_by_side(&[&one, &ring, &one]).unwrap();
            verify(&joined).unwrap_or_else(|error| panic!("{key}: {error}"));
            assert!(is_deterministic(&joined), "{key}");
            let sent = [one.sent_bytes(), ring.sent_bytes(), one.sent_bytes()].concat();
            assert_eq!(joined.sent_bytes(), sent, "{key}");
        }
        let mut wrong = ring.clone();
        wrong.edges.clear();
        wrong.edge_start.fill(0);
        let raced = side_by_side(&[&ring, &wrong]).unwrap();
        assert!(verify(&raced).is_ok() && !is_deterministic(&wrong) && !is_deterministic(&raced));
        wrong.ops[0].dst = 6;
        assert!(verify(&side_by_side(&[&ring, &wrong]).unwrap()).is_err());
    }

    /// `output` of the second part is called `scratch` here, and its `scratch` must be another buffer, of the same cut.
    #[test]
    fn a_renamed_buffer_is_not_taken_for_another_of_its_part() {
        let exchange = made("allreduce/recursive_doubling_latency", 4);
        let joined = side_by_side(&[&made("allgather/ring", 4), &exchange]).unwrap();
        let names: Vec<&str> = joined.buffers.iter().map(|b| b.name.as_str()).collect();
        assert_eq!(names, ["output", "scratch", "scratch1"]);
        verify(&joined).unwrap();
    }

    #[test]
    fn unequal_vectors_are_refused() {
        let error = |parts: &[&Schedule]| side_by_side(parts).unwrap_err().to_string();
        let (ring, longer) = (
            made("allreduce/ring", 4),
            build("allreduce/ring", &Shape::new(4, 28)),
        );
        assert!(error(&[&ring, &longer.unwrap()]).contains("24 elements of 4 B and of 28 of 4 B"));
        assert!(error(&[]).contains("0 schedules"));
    }

    /// A ring of 6 ranks has 10 steps of 6 transfers; a prefix of it waits as before, and joined prefixes too.
    #[test]
    fn the_first_steps_are_traffic_that_waits_as_before() {
        let ring = made("allreduce/ring", 6);
        assert_eq!(ring.step_count(), 10);
        assert!(first_steps(&ring, 0).is_err());
        for steps in 1..=11 {
            let first = first_steps(&ring, steps).unwrap();
            assert_eq!(first.step_count(), steps.min(10) as usize);
            verify(&first).unwrap_or_else(|error| panic!("{steps} steps: {error}"));
            for (id, op, edges) in first.ops_with_edges() {
                assert_eq!((op, edges), (&ring.ops()[id as usize], ring.after(id)));
            }
            verify(&side_by_side(&[&first, &first]).unwrap()).unwrap();
        }
        assert_eq!(first_steps(&ring, 10).unwrap().ops(), ring.ops());
    }
}
