//! What the steps of a plan wait for.
//!
//! ```text
//!   thread block    runs its steps in order
//!   dependency      waits until the named step of the other thread block is done
//!   receive         waits until the message was sent
//!   send            waits while the connection is full
//! ```
//!
//! The runtime cuts a step of several chunks into messages that fit its buffers, so its number of messages grows
//! with the data: what counts is the largest size for which the plan may be used, because fewer messages need no
//! more room. A longer loop over the data adds nothing, as one round that ends leaves all connections empty. Full
//! connections order steps only while the data are large, so for data they count for nothing.

use super::links::Links;
use super::plan::{Kind, Plan, Steps};
use crate::error::Result;
use crate::skeleton::{Access, Cells, Skeleton, NONE};
use std::ops::Range;

/// The steps of a plan that ends, in an order in which it can run.
pub(super) fn skeleton(plan: &Plan, links: &Links) -> Result<Skeleton> {
    let mut skeleton = Skeleton::of(links.block_of.clone());
    skeleton.meets.fill(true);
    for block in &plan.blocks {
        for (k, step) in (0..).zip(block.steps.clone()) {
            skeleton.epoch[step as usize] = k;
        }
    }
    let messages = Messages::of(plan, &mut skeleton);
    for step in 0..plan.steps.len() as u32 {
        let (before, send) = (links.before(plan, step), links.sent_by[step as usize]);
        skeleton.seen.extend(before.map(|other| (other, step)));
        skeleton.seen.extend((send != NONE).then_some((send, step)));
        let Some(first) = messages.further(step).next() else {
            continue;
        };
        let before = links.before(plan, step);
        skeleton.later.extend(before.map(|other| (other, first)));
        let next = messages.of_step(step).skip(1);
        skeleton.later.extend(messages.further(step).zip(next));
        if send != NONE {
            let arrivals = messages.further(send).zip(messages.further(step));
            skeleton.later.extend(arrivals);
        }
    }
    for (sender, &receiver) in (0u32..).zip(&links.receiver) {
        if receiver != NONE {
            let sent = messages.of_block(plan, sender, Kind::sends);
            let taken = messages.of_block(plan, receiver, Kind::receives);
            let full = sent.skip(plan.head.slots as usize);
            skeleton.later.extend(taken.zip(full));
        }
    }
    skeleton.run(plan, || cure(plan))?;
    Ok(skeleton)
}

fn cure(plan: &Plan) -> String {
    let head = &plan.head;
    let cut = plan.steps.iter().any(|step| step.count > head.per_message);
    format!(
        " (at its largest size, a connection holds {} messages of {} chunks); move one of these steps to a thread \
         block of its own, or before the other{}",
        head.slots,
        head.per_message,
        if cut { ", or lower maxBytes" } else { "" }
    )
}

/// The messages of each step: as many events, of which the step itself is the last.
struct Messages(Vec<Range<u32>>);

impl Messages {
    fn of(plan: &Plan, skeleton: &mut Skeleton) -> Self {
        let mut further = |step: u32| {
            let (kind, count) = (
                plan.steps[step as usize].kind,
                plan.steps[step as usize].count,
            );
            let first = skeleton.owner.len() as u32;
            if kind.sends() || kind.receives() {
                // A step of more messages than slots blocks as one with a single message too many does.
                let messages = count.div_ceil(plan.head.per_message);
                for _ in 1..messages.min(plan.head.slots + 1) {
                    skeleton.event(step);
                }
            }
            first..skeleton.owner.len() as u32
        };
        Messages((0..plan.steps.len() as u32).map(&mut further).collect())
    }

    /// Those before the step itself.
    fn further(&self, step: u32) -> Range<u32> {
        self.0[step as usize].clone()
    }

    fn of_step(&self, step: u32) -> impl Iterator<Item = u32> {
        self.further(step).chain([step])
    }

    /// The messages of one direction of a thread block.
    fn of_block<'a>(
        &'a self,
        plan: &'a Plan,
        block: u32,
        moves: fn(Kind) -> bool,
    ) -> impl Iterator<Item = u32> + 'a {
        let steps = plan.blocks[block as usize].steps.clone();
        let steps = steps.filter(move |&step| moves(plan.steps[step as usize].kind));
        steps.flat_map(|step| self.of_step(step))
    }
}

/// Refuse a plan with steps in no order that touch a chunk of which one writes it.
pub(super) fn prove(plan: &Plan, skeleton: &Skeleton, cells: &Cells) -> Result<()> {
    let accesses = |index: u32| {
        let step = plan.steps[index as usize];
        let gpu = plan.blocks[skeleton.block[index as usize] as usize].gpu;
        let access = move |used: bool, place, writes| {
            let first = cells.of(gpu, plan.head.goal.canonical(gpu, place));
            let cells = first..first + step.count;
            used.then_some(Access {
                cells,
                writes,
                done: index,
            })
        };
        let read = access(step.kind.reads(), step.src, false);
        read.into_iter()
            .chain(access(step.kind.writes(), step.dst, true))
    };
    skeleton.prove(plan, cells, accesses, "let one depend on the other")
}

/// The steps in the order of the operations that they were written for, where the file keeps these.
pub(super) fn order(plan: &Plan, links: &Links, skeleton: &Skeleton) -> Result<Vec<u32>> {
    if plan.buffers.is_none() {
        return Ok(skeleton.steps().collect());
    }
    let kind = |step: u32| plan.steps[step as usize].kind;
    // The operation of each step, which sends first; a nop belongs to what is behind it.
    let mut ops = vec![(0, false); plan.steps.len()];
    for block in &plan.blocks {
        let mut next = (0, false);
        for step in block.steps.clone().rev() {
            match (plan.steps[step as usize].own, kind(step)) {
                (Some(own), kind) => next = (own.op, kind.receives()),
                (None, Kind::Nop) => {}
                (None, _) => {
                    return plan.error(step, "op is missing; add it, or delete <linkwright>")
                }
            }
            ops[step as usize] = next;
        }
    }
    let key = |step: u32| (ops[step as usize], step);
    for &(earlier, later) in &skeleton.seen {
        let same_block = links.block_of[earlier as usize] == links.block_of[later as usize];
        let alike = match same_block {
            true => {
                [kind(earlier), kind(later)].contains(&Kind::Nop) || kind(earlier) == kind(later)
            }
            false => links.sent_by[later as usize] == earlier,
        };
        let op = ops[later as usize].0;
        if key(earlier) > key(later) || (ops[earlier as usize].0 == op && !alike) {
            let problem =
                format!("op=\"{op}\" contradicts the order of the steps; delete <linkwright>");
            return plan.error(later, problem);
        }
    }
    let mut order: Vec<u32> = (0..plan.steps.len() as u32).collect();
    order.sort_by_key(|&step| key(step));
    Ok(order)
}
