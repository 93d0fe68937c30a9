//! A schedule in, a schedule out: slices, repetitions, combinations made explicit.
//!
//! A transform drops all notices and edges, rewrites the operations, and lets [`crate::order`]
//! find the hazards again; what comes out is verified like anything else before it runs. Waits
//! that an author gave in addition to the hazards cannot be rewritten, so a schedule that has some is
//! refused.
//!
//! | transform | what it does |
//! |---|---|
//! | [`refine`] | cuts every chunk into k, leaves the operations whole |
//! | [`pipeline`] | cuts every transfer into k slices that follow each other |
//! | [`crate::windows`] | cuts combined transfers where a vector of w windows is cut, as kernels do |
//! | [`stripe`] | cuts every transfer into k slices on k lanes |
//! | [`unfuse`] | makes the combination at the destination a local operation of its own |
//! | [`repeat`] | runs the schedule n times back to back |
//! | [`relabel`] | renames the ranks |
//! | [`crate::own_scratch`] | gives every arrival scratch of its own |
//! | [`crate::pull`] | lets receivers read what senders write |
//! | [`crate::sums_aside`] | lets sums grow in scratch, so that what others read stays as it is |
//! | [`crate::reorder`] | lets the longest chain of operations begin first |
//! | [`crate::reverse`] | runs an allgather or a broadcast backwards, as reduce-scatter or reduce, and back |
//! | [`crate::concatenate`] | joins two collectives to a third |
//! | [`first_steps`] | keeps the first n steps, with their waits, as traffic |
//! | [`crate::side_by_side()`] | runs schedules at once, each on ranks of its own, as traffic |

use std::ops::Range;

use crate::error::{Result, ScheduleError};
use crate::ir::{add_scratch, ranges_of, BufferId, Combine, Op, OpKind, Schedule, COMPUTE_LANE};
use crate::order::order;
use crate::spec::{Collective, Spec};
use crate::verify::{bounds, VerifyError};

/// Cut every transfer and local operation into `slices` parts that follow each other, so that a
/// relay can send on the first part while the second arrives.
pub fn pipeline(schedule: &Schedule, slices: u32) -> Result<Schedule> {
    sliced(schedule, slices, |op, _| op)
}

/// Cut every transfer into `lanes` parts, part i in lane i.
pub fn stripe(schedule: &Schedule, lanes: u32) -> Result<Schedule> {
    if lanes > u32::from(COMPUTE_LANE) {
        return Err(ScheduleError::Shape(format!(
            "{lanes} lanes; at most {COMPUTE_LANE} besides the compute lane"
        )));
    }
    sliced(schedule, lanes, |op, slice| match op.is_message() {
        true => Op {
            lane: slice as u8,
            ..op
        },
        false => op,
    })
}

fn sliced(schedule: &Schedule, slices: u32, place: impl Fn(Op, u32) -> Op) -> Result<Schedule> {
    let mut draft = refined(schedule, slices)?;
    let ranges = std::mem::take(&mut draft.ranges);
    for op in std::mem::take(&mut draft.ops) {
        if !op.moves_data() {
            draft.ops.push(op);
            continue;
        }
        let all: Vec<_> = ranges_of(&op, &ranges).collect();
        let part = all.iter().map(|range| range.2).sum::<u32>() / slices;
        for slice in 0..slices {
            push(
                &mut draft,
                place(behind(op, slice), slice),
                cut_range(&all, slice * part, part),
            );
        }
    }
    pairing(order(draft)?, slices)
}

/// The schedule, if its chunks still pair after the cut: blocks of a vector and slices of a block part alike
/// only where all are equally long.
fn pairing(schedule: Schedule, slices: u32) -> Result<Schedule> {
    match bounds::check(&schedule) {
        Err(VerifyError::Bounds { problem, .. }) => Err(ScheduleError::Shape(format!(
            "{slices} slices of {} elements do not pair: {problem}; use a vector that all cuts divide",
            schedule.elements
        ))),
        _ => Ok(schedule),
    }
}

/// Part `part` of `op`: a fence before it stands before the first.
pub(crate) fn behind(op: Op, part: u32) -> Op {
    Op {
        fenced: op.fenced && part == 0,
        ..op
    }
}

/// Cut every chunk into `slices` chunks and leave the operations whole, so that [`crate::windows`] finds
/// borders inside what an algorithm treats as one chunk.
pub fn refine(schedule: &Schedule, slices: u32) -> Result<Schedule> {
    pairing(order(refined(schedule, slices)?)?, slices)
}

pub(crate) fn refined(schedule: &Schedule, slices: u32) -> Result<Schedule> {
    positive(slices, "slices")?;
    let mut draft = loosen(schedule)?;
    for buffer in &mut draft.buffers {
        let chunks = u64::from(buffer.blocks) * u64::from(buffer.slices) * u64::from(slices);
        if chunks > u64::from(u32::MAX) {
            return Err(ScheduleError::TooLarge(u64::from(u32::MAX)));
        }
        buffer.slices *= slices;
    }
    for (src, dst, count) in &mut draft.ranges {
        (*src, *dst, *count) = (*src * slices, *dst * slices, *count * slices);
    }
    for op in draft
        .ops
        .iter_mut()
        .filter(|op| op.moves_data() && !op.scattered)
    {
        (op.src, op.dst, op.count) = (op.src * slices, op.dst * slices, op.count * slices);
    }
    Ok(draft)
}

/// Make every combination at a destination a local operation: the transfer goes to scratch, the
/// destination combines it from there. For paths that cannot combine while they write.
pub fn unfuse(schedule: &Schedule) -> Result<Schedule> {
    let fused = |op: &Op| op.combine == Combine::Reduce && op.kind != OpKind::Local;
    if !schedule.ops().iter().any(fused) {
        return Ok(schedule.clone());
    }
    let mut draft = loosen(schedule)?;
    let mut mirrors: Vec<Option<BufferId>> = vec![None; draft.buffers.len()];
    let ops = std::mem::take(&mut draft.ops);
    let mut step = 0;
    let mut locals = Vec::new();
    let mut pending = Pending::new(schedule.ranks + schedule.memories);
    for op in ops {
        if op.step != step || pending.meets(&draft, &op) {
            draft.ops.append(&mut locals);
            pending.clear();
            step = op.step;
        }
        if !fused(&op) {
            draft.ops.push(op);
            continue;
        }
        let slot = op.dst_buffer.0 as usize;
        let scratch = match mirrors[slot] {
            Some(known) => known,
            None => *mirrors[slot].insert(add_scratch(&mut draft.buffers, op.dst_buffer)?),
        };
        draft.ops.push(Op {
            dst_buffer: scratch,
            combine: Combine::Replace,
            ..op
        });
        let targets = draft.targets(&op).to_vec();
        let placed: Vec<_> = ranges_of(&op, &draft.ranges)
            .map(|(_, dst, count)| (dst, dst, count))
            .collect();
        for target in targets {
            let local = op.landing(scratch, target);
            pending.add(target, op.dst_buffer, &placed);
            locals.push(with_ranges(&mut draft, local, placed.clone()));
        }
    }
    draft.ops.append(&mut locals);
    order(draft)
}

/// The chunks that combinations put off to the end of a step will write, by participant and buffer.
///
/// The steps of a builder are simultaneous, so none of its operations meets them. Those of a file or of
/// another tool's plan need not be.
struct Pending {
    /// By participant; most have one in a step.
    of: Vec<Vec<(BufferId, Range<u32>)>>,
    /// Participants that have some.
    some: Vec<u32>,
}

impl Pending {
    fn new(participants: u32) -> Self {
        Pending {
            of: vec![Vec::new(); participants as usize],
            some: Vec::new(),
        }
    }

    fn clear(&mut self) {
        for participant in self.some.drain(..) {
            self.of[participant as usize].clear();
        }
    }

    fn add(&mut self, participant: u32, buffer: BufferId, ranges: &[(u32, u32, u32)]) {
        let chunks = ranges.iter().map(|&(_, dst, count)| dst..dst + count);
        self.of[participant as usize].extend(chunks.map(|range| (buffer, range)));
        self.some.push(participant);
    }

    /// Whether `op` reads or writes such a chunk, or puts what comes before it in order.
    fn meets(&self, draft: &Schedule, op: &Op) -> bool {
        if self.some.is_empty() {
            return false;
        }
        if !op.moves_data() {
            return matches!(op.kind, OpKind::Barrier | OpKind::Fence);
        }
        let (sources, targets) = (draft.sources(op), draft.targets(op));
        ranges_of(op, &draft.ranges).any(|(src, dst, count)| {
            let written = |&target: &u32| self.has(target, op.dst_buffer, dst..dst + count);
            let read = |&source: &u32| self.has(source, op.src_buffer, src..src + count);
            sources.iter().any(read) || targets.iter().any(written)
        })
    }

    fn has(&self, participant: u32, buffer: BufferId, chunks: Range<u32>) -> bool {
        self.of[participant as usize].iter().any(|(own, range)| {
            *own == buffer && range.start < chunks.end && chunks.start < range.end
        })
    }
}

/// All operations of a rank in one lane, in the order of their ids.
///
/// Always safe: ids are a topological order, so the smallest unfinished operation can always run.
pub fn one_lane(schedule: &Schedule) -> Schedule {
    let mut merged = schedule.clone();
    merged.ops.iter_mut().for_each(|op| op.lane = 0);
    merged
}

/// What `schedule` does in more than `lanes` lanes of a rank, in as many: lane i becomes lane i modulo `lanes`. Arithmetic
/// keeps its own.
///
/// Always safe, as [`one_lane`] is.
pub fn shared_lanes(schedule: &Schedule, lanes: u32) -> Schedule {
    let mut shared = schedule.clone();
    for op in shared.ops.iter_mut().filter(|op| op.lane != COMPUTE_LANE) {
        op.lane = (u32::from(op.lane) % lanes) as u8;
    }
    shared
}

/// The same schedule over vectors of `elements` elements of `element_bytes`: its chunks are cuts of a vector,
/// so operations and waits stay as they are.
///
/// Where S counts equal blocks per rank, the elements are rounded down to a multiple of the ranks. Computes
/// have a fixed amount of work, which no size explains, so a schedule that has some keeps its size.
pub fn resized(schedule: &Schedule, elements: u64, element_bytes: u32) -> Result<Schedule> {
    let elements = match schedule.spec.collective.is_blocked() {
        true => elements / u64::from(schedule.ranks) * u64::from(schedule.ranks),
        false => elements,
    };
    let same = (elements, element_bytes) == (schedule.elements, schedule.element_bytes);
    if schedule.computes() && !same {
        return Err(ScheduleError::Shape(format!(
            "{} elements of {} bytes are part of a schedule that computes; ask for this size",
            schedule.elements, schedule.element_bytes
        )));
    }
    let largest = schedule.buffers.iter().map(|b| u64::from(b.mul)).max();
    let bytes = (elements.checked_mul(u64::from(element_bytes)))
        .and_then(|bytes| bytes.checked_mul(largest.unwrap_or(1).max(1)));
    if element_bytes == 0 || bytes.is_none() {
        return Err(ScheduleError::Shape(format!(
            "{elements} elements of {element_bytes} bytes are not a size that 64 bits count"
        )));
    }
    Ok(Schedule {
        elements,
        element_bytes,
        ..schedule.clone()
    })
}

/// Run the schedule `times` times back to back.
///
/// An allreduce in place then combines what the run before left, so its contributions count
/// p^(times - 1) times. Reductions in place that leave partial results behind cannot be repeated.
pub fn repeat(schedule: &Schedule, times: u32) -> Result<Schedule> {
    positive(times, "repetitions")?;
    let in_place = !schedule.spec.out_of_place;
    if in_place
        && matches!(
            schedule.spec.collective,
            Collective::Reduce | Collective::ReduceScatter
        )
    {
        return Err(ScheduleError::Shape(format!(
            "{} in place leaves partial results behind and cannot be repeated; repeat an allreduce",
            schedule.spec.collective.name()
        )));
    }
    let mut draft = loosen(schedule)?;
    let once = draft.ops.clone();
    let steps = once.iter().map(|op| u64::from(op.step) + 1).max();
    let steps = steps.unwrap_or(0);
    let count = once.len() as u64 * u64::from(times);
    let repeats = draft.spec.repeats.checked_mul(times);
    let (Some(repeats), true) = (repeats, steps * u64::from(times) <= u64::from(u32::MAX)) else {
        return Err(ScheduleError::Shape(format!(
            "{times} repetitions of {} runs and {steps} steps; 32 bits number runs and steps",
            draft.spec.repeats
        )));
    };
    if count > u64::from(u32::MAX) {
        return Err(ScheduleError::TooLarge(count));
    }
    for time in 1..times {
        let begin = time * steps as u32;
        draft.ops.extend(once.iter().map(|op| Op {
            step: op.step + begin,
            ..*op
        }));
    }
    draft.spec.repeats = repeats;
    order(draft)
}

/// The first `steps` steps with all their waits. What they leave behind is unfinished, so they are traffic.
pub fn first_steps(schedule: &Schedule, steps: u32) -> Result<Schedule> {
    positive(steps, "steps")?;
    let mut first = schedule.clone();
    let runs = first.ops.chunk_by(|a, b| a.step == b.step);
    let count = runs.take(steps as usize).map(<[Op]>::len).sum();
    first.ops.truncate(count);
    first.edge_start.truncate(count + 1);
    first.edges.truncate(first.edge_start[count] as usize);
    first.spec = Spec::new(Collective::Pattern, schedule.spec.root);
    Ok(first)
}

/// Let rank r play the part of rank `parts[r]`: the same algorithm over another order of ranks.
pub fn relabel(schedule: &Schedule, parts: &[u32]) -> Result<Schedule> {
    let mut rank_of = vec![u32::MAX; schedule.ranks as usize];
    for (rank, &part) in parts.iter().enumerate() {
        match rank_of.get_mut(part as usize) {
            Some(slot) if *slot == u32::MAX => *slot = rank as u32,
            _ => {
                return Err(ScheduleError::Shape(format!(
                    "part {part} is taken twice or no rank"
                )))
            }
        }
    }
    if parts.len() != schedule.ranks as usize || !order_free(schedule.spec.collective) {
        return Err(ScheduleError::Shape(format!(
            "{} parts for {} ranks of {}; relabel needs one part per rank and a collective whose \
             result does not depend on the order of ranks (allreduce, broadcast, reduce)",
            parts.len(),
            schedule.ranks,
            schedule.spec.collective.name()
        )));
    }
    let mut draft = loosen(schedule)?;
    let map = |participant: u32| {
        rank_of
            .get(participant as usize)
            .copied()
            .unwrap_or(participant)
    };
    draft.spec.root = map(draft.spec.root);
    for set in &mut draft.sets {
        set.iter_mut().for_each(|member| *member = map(*member));
    }
    for buffer in &mut draft.buffers {
        if let crate::ir::Owner::One(one) = &mut buffer.owner {
            one.0 = map(one.0);
        }
    }
    for op in &mut draft.ops {
        op.from = map(op.from);
        if !matches!(
            op.kind,
            OpKind::Multicast | OpKind::Aggregate | OpKind::Barrier
        ) {
            op.to = map(op.to);
        }
    }
    order(draft)
}

fn order_free(collective: Collective) -> bool {
    matches!(
        collective,
        Collective::Allreduce | Collective::Broadcast | Collective::Reduce
    )
}

pub(crate) fn positive(count: u32, what: &str) -> Result<()> {
    match count {
        0 => Err(ScheduleError::Shape(format!(
            "0 {what}; at least 1 is needed"
        ))),
        _ => Ok(()),
    }
}

/// Whether the schedule has waits besides those for its hazards, which its data would not bring back.
pub fn has_own_waits(schedule: &Schedule) -> Result<bool> {
    match schedule.own_waits.0 {
        Some(known) => Ok(known),
        None => Ok(order(without_waits(schedule))? != *schedule),
    }
}

/// The operations of a schedule without edges and notices.
pub(crate) fn loosen(schedule: &Schedule) -> Result<Schedule> {
    match has_own_waits(schedule)? {
        false => Ok(without_waits(schedule)),
        true => Err(ScheduleError::Shape(
            "the schedule has waits besides those for its hazards; transform it before they are added".into(),
        )),
    }
}

fn without_waits(schedule: &Schedule) -> Schedule {
    let ops = schedule.ops.iter();
    Schedule {
        ops: ops
            .filter(|op| op.kind != OpKind::Notice)
            .copied()
            .collect(),
        ..schedule.header()
    }
}

/// The `count` chunks from the `first` on, counted along `ranges`.
fn cut_range(ranges: &[(u32, u32, u32)], first: u32, count: u32) -> Vec<(u32, u32, u32)> {
    let (mut skip, mut left) = (first, count);
    let mut cut = Vec::new();
    for &(src, dst, length) in ranges {
        let skipped = skip.min(length);
        let taken = left.min(length - skipped);
        skip -= skipped;
        left -= taken;
        if taken > 0 {
            cut.push((src + skipped, dst + skipped, taken));
        }
    }
    cut
}

pub(crate) fn push(draft: &mut Schedule, op: Op, ranges: Vec<(u32, u32, u32)>) {
    let op = match op.moves_data() {
        true => with_ranges(draft, op, ranges),
        false => op,
    };
    draft.ops.push(op);
}

pub(crate) fn with_ranges(draft: &mut Schedule, op: Op, ranges: Vec<(u32, u32, u32)>) -> Op {
    match ranges[..] {
        [] => Op {
            src: 0,
            dst: 0,
            count: 0,
            scattered: false,
            ..op
        },
        [(src, dst, count)] => Op {
            src,
            dst,
            count,
            scattered: false,
            ..op
        },
        _ => {
            let first = draft.ranges.len() as u32;
            let count = ranges.len() as u32;
            draft.ranges.extend(ranges);
            Op {
                src: first,
                dst: first,
                count,
                scattered: true,
                ..op
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Shape;
    use crate::collectives::find;

    fn make(key: &str, ranks: u32) -> Schedule {
        (find(key).unwrap().build)(&Shape::new(ranks, 1000)).unwrap()
    }

    fn messages(schedule: &Schedule) -> (usize, u64) {
        let puts = schedule.ops().iter().filter(|op| op.kind == OpKind::Put);
        let bytes = puts.clone().map(|op| schedule.op_bytes(op)).sum();
        (puts.count(), bytes)
    }

    #[test]
    fn slices_carry_the_same_bytes() {
        let ring = make("allreduce/ring", 4);
        let (count, bytes) = messages(&ring);
        assert_eq!(messages(&pipeline(&ring, 3).unwrap()), (3 * count, bytes));
        assert_eq!(messages(&refine(&ring, 3).unwrap()), (count, bytes));
    }

    #[test]
    fn shared_lanes_keep_arithmetic_apart() {
        let ring = make("allreduce/ring", 4);
        let striped = unfuse(&stripe(&ring, 3).unwrap()).unwrap();
        let lanes = |schedule: &Schedule| {
            let all = schedule.ops().iter().map(|op| op.lane);
            all.collect::<std::collections::BTreeSet<u8>>()
        };
        assert_eq!(lanes(&striped), [0, 1, 2, COMPUTE_LANE].into());
        let shared = shared_lanes(&striped, 2);
        assert_eq!(lanes(&shared), [0, 1, COMPUTE_LANE].into());
        crate::verify(&shared).unwrap();
    }

    #[test]
    fn stripes_use_their_lanes() {
        let striped = stripe(&make("allreduce/ring", 4), 2).unwrap();
        let lanes: Vec<u8> = striped.ops().iter().map(|op| op.lane).take(4).collect();
        assert_eq!(lanes, [0, 1, 0, 1]);
    }

    #[test]
    fn unfused_transfers_replace_and_locals_combine() {
        let unfused = unfuse(&make("allreduce/ring", 4)).unwrap();
        let reduces = |op: &&Op| op.combine == Combine::Reduce;
        assert!(unfused
            .ops()
            .iter()
            .filter(reduces)
            .all(|op| op.kind == OpKind::Local));
        assert_eq!(unfused.ops().iter().filter(reduces).count(), 12);
    }

    #[test]
    fn relabelling_moves_the_ring() {
        let turned = relabel(&make("allreduce/ring", 3), &[2, 0, 1]).unwrap();
        // Part 0 sends to part 1 in the first step: rank 1 to rank 2.
        assert_eq!((turned.ops()[0].from, turned.ops()[0].to), (1, 2));
        assert!(relabel(&make("allreduce/ring", 3), &[0, 0, 1]).is_err());
    }
}
