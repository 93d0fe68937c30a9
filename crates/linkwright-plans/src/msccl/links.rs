//! Which send belongs to which receive, and which step a dependency waits for.
//!
//! A connection leads from one GPU to another on one channel. Its messages arrive in the order in which they
//! were sent, so the k-th send of the one thread block meets the k-th receive of the other.

use super::limits::{MAX_CELLS, MAX_TOUCHED};
use super::plan::{Kind, Plan, Space, Step, Steps};
use crate::error::{PlanError, Result};
use crate::skeleton::NONE;
use std::collections::BTreeMap;

/// What ties the steps of a plan together.
pub(super) struct Links {
    /// Thread block of each step.
    pub block_of: Vec<u32>,
    /// The step that sends what a step receives.
    pub sent_by: Vec<u32>,
    /// The thread block that receives what a thread block sends.
    pub receiver: Vec<u32>,
    /// The step that a step waits for by its dependency: the first announced one from the named one on.
    pub after: Vec<u32>,
}

impl Links {
    /// Tie the steps together; refuses what the runtime could not run, or would run otherwise than it seems.
    pub fn of(plan: &Plan) -> Result<Self> {
        sizes(plan)?;
        let mut links = Links {
            block_of: block_of(plan),
            sent_by: vec![NONE; plan.steps.len()],
            receiver: vec![NONE; plan.blocks.len()],
            after: vec![NONE; plan.steps.len()],
        };
        steps(plan, &links.block_of)?;
        links.connect(plan)?;
        links.dependencies(plan)?;
        Ok(links)
    }

    /// The steps that a step waits for by its place in the thread block and by its dependency.
    pub fn before(&self, plan: &Plan, step: u32) -> impl Iterator<Item = u32> {
        let first = plan.blocks[self.block_of[step as usize] as usize]
            .steps
            .start;
        let place = (step > first).then(|| step - 1);
        let after = Some(self.after[step as usize]).filter(|&other| other != NONE);
        place.into_iter().chain(after)
    }

    fn connect(&mut self, plan: &Plan) -> Result<()> {
        let (mut senders, mut receivers) = (BTreeMap::new(), BTreeMap::new());
        for (index, block) in (0u32..).zip(&plan.blocks) {
            let sends = block.send.map(|to| (block.gpu, to, block.channel));
            let receives = block.recv.map(|from| (from, block.gpu, block.channel));
            for (connection, ends) in [(sends, &mut senders), (receives, &mut receivers)] {
                let Some(connection) = connection else {
                    continue;
                };
                if let Some(other) = ends.insert(connection, index) {
                    return twice(plan, connection, other, index);
                }
            }
        }
        for (connection, &sender) in &senders {
            let receiver = receivers.remove(connection).unwrap_or(NONE);
            self.receiver[sender as usize] = receiver;
            self.pair(plan, sender, receiver)?;
        }
        match receivers
            .values()
            .find_map(|&alone| first(plan, alone, Kind::receives))
        {
            Some(step) => plan.error(step, "receives what no thread block sends; add the send"),
            None => Ok(()),
        }
    }

    /// Match the sends of one thread block with the receives of another.
    fn pair(&mut self, plan: &Plan, sender: u32, receiver: u32) -> Result<()> {
        let of = |block: u32, what: fn(Kind) -> bool| {
            let steps = match block {
                NONE => 0..0,
                _ => plan.blocks[block as usize].steps.clone(),
            };
            steps.filter(move |&step| what(plan.steps[step as usize].kind))
        };
        let mut receives = of(receiver, Kind::receives);
        for send in of(sender, Kind::sends) {
            let Some(receive) = receives.next() else {
                let problem = "sends what no step receives; add the receive, or delete this";
                return plan.error(send, problem);
            };
            let count = |step: u32| plan.steps[step as usize].count;
            if count(send) != count(receive) {
                let problem = format!(
                    "sends {} chunks, and {} receives {}; make cnt equal",
                    count(send),
                    plan.place(receive),
                    count(receive)
                );
                return plan.error(send, problem);
            }
            self.sent_by[receive as usize] = send;
        }
        match receives.next() {
            Some(step) => plan.error(step, "receives what no step sends; add the send"),
            None => Ok(()),
        }
    }

    fn dependencies(&mut self, plan: &Plan) -> Result<()> {
        let mut announced = vec![NONE; plan.steps.len()];
        for block in &plan.blocks {
            let mut next = NONE;
            for step in block.steps.clone().rev() {
                if plan.steps[step as usize].announced {
                    next = step;
                }
                announced[step as usize] = next;
            }
        }
        for (index, step) in (0u32..).zip(&plan.steps) {
            let Some((tb, s)) = step.after else { continue };
            let gpu = plan.blocks[self.block_of[index as usize] as usize].gpu;
            let blocks = &plan.gpus[gpu as usize].blocks;
            let block =
                (tb < blocks.len() as u32).then(|| &plan.blocks[(blocks.start + tb) as usize]);
            let Some(named) = block.and_then(|b| b.steps.clone().nth(s as usize)) else {
                let problem = format!(
                    "waits for gpu {gpu}, tb {tb}, step {s}, which does not exist; correct depid and deps"
                );
                return plan.error(index, problem);
            };
            let found = announced[named as usize];
            if found == NONE {
                let problem = format!(
                    "waits for gpu {gpu}, tb {tb}, step {s}, whose end is not announced; set hasdep=\"1\" there"
                );
                return plan.error(index, problem);
            }
            self.after[index as usize] = found;
        }
        Ok(())
    }
}

fn twice<T>(plan: &Plan, (from, to, channel): (u32, u32, u32), a: u32, b: u32) -> Result<T> {
    let (a, b) = (&plan.blocks[a as usize], &plan.blocks[b as usize]);
    Err(PlanError::at(
        format!("gpu {}, tb {}", b.gpu, b.tb),
        format!(
            "the connection from gpu {from} to gpu {to} on channel {channel} belongs to tb {} already; \
             use another channel",
            a.tb
        ),
    ))
}

fn first(plan: &Plan, block: u32, what: fn(Kind) -> bool) -> Option<u32> {
    let mut steps = plan.blocks[block as usize].steps.clone();
    steps.find(|&step| what(plan.steps[step as usize].kind))
}

fn block_of(plan: &Plan) -> Vec<u32> {
    let mut block_of = Vec::with_capacity(plan.steps.len());
    for (index, block) in (0u32..).zip(&plan.blocks) {
        block_of.resize(block.steps.end as usize, index);
    }
    block_of
}

/// Buffers are as large as the collective needs them.
fn sizes(plan: &Plan) -> Result<()> {
    let lengths = plan.head.goal.lengths().map(u64::from);
    let (mut scratch, ranks) = (0, u64::from(plan.head.goal.ranks));
    for (id, gpu) in plan.gpus.iter().enumerate() {
        for (k, key) in ["i_chunks", "o_chunks"].iter().enumerate() {
            let declared = u64::from(gpu.chunks[k]);
            if declared != 0 && declared != lengths[k] {
                let problem = format!(
                    "{key}=\"{declared}\": this collective over {} GPUs with nchunksperloop=\"{}\" has {}",
                    plan.head.goal.ranks, plan.head.chunks, lengths[k]
                );
                return Err(PlanError::at(format!("gpu {id}"), problem));
            }
        }
        scratch = u64::from(gpu.chunks[2]).max(scratch);
        if (lengths[0] + lengths[1] + scratch) * ranks > MAX_CELLS {
            let problem = format!("all GPUs would have more than {MAX_CELLS} chunks; use fewer");
            return Err(PlanError::at(format!("gpu {id}"), problem));
        }
    }
    Ok(())
}

/// Each step on its own: peers, chunks, and the runtime's rules for waits and reductions.
fn steps(plan: &Plan, block_of: &[u32]) -> Result<()> {
    let lengths = plan.head.goal.lengths().map(u64::from);
    let mut touched = 0;
    for (index, step) in (0u32..).zip(&plan.steps) {
        let block = &plan.blocks[block_of[index as usize] as usize];
        let missing = match step.kind {
            kind if kind.sends() && block.send.is_none() => Some("send"),
            kind if kind.receives() && block.recv.is_none() => Some("recv"),
            _ => None,
        };
        if let Some(missing) = missing {
            let problem = format!(
                "{} needs a peer, and the thread block has {missing}=\"-1\"; name the GPU there",
                step.kind.word()
            );
            return plan.error(index, problem);
        }
        let scratch = plan.gpus[block.gpu as usize].chunks[Space::Scratch as usize];
        let used = [
            (step.kind.reads(), step.src),
            (step.kind.writes(), step.dst),
        ];
        for (_, place) in used.into_iter().filter(|used| used.0) {
            let length = match place.space {
                Space::Scratch => u64::from(scratch),
                other => lengths[other as usize],
            };
            let end = u64::from(place.at) + u64::from(step.count);
            if end > length {
                let problem = format!(
                    "chunks {}..{end} of `{}`, which has {length}; correct the offset or cnt",
                    place.at,
                    place.space.word()
                );
                return plan.error(index, problem);
            }
            touched += u64::from(step.count);
        }
        if touched > MAX_TOUCHED {
            let problem =
                format!("the steps up to here touch more than {MAX_TOUCHED} chunks; use fewer");
            return plan.error(index, problem);
        }
        let last = index + 1 == block.steps.end;
        let next = (!last).then(|| &plan.steps[index as usize + 1]);
        rules(plan, index, step, next)?;
    }
    Ok(())
}

/// What the runtime demands of a step and the next one of its thread block.
fn rules(plan: &Plan, index: u32, step: &Step, next: Option<&Step>) -> Result<()> {
    let problem = match (step.kind, next) {
        (Kind::Nop, _) if step.after.is_none() => {
            "nop waits for nothing, and the runtime does not count it; delete it"
        }
        (Kind::Nop, _) if step.announced => "the runtime never announces a nop; set hasdep=\"0\"",
        (Kind::Nop, None) => "nop is the last step, so nothing waits; delete it",
        (Kind::Nop, Some(next)) if next.after.is_none() => {
            "the step after a nop must have a dependency too; move this one there"
        }
        (Kind::Reduce, Some(next))
            if next.kind == Kind::Reduce
                && (next.dst, next.src.space) == (step.dst, step.src.space)
                && next.after.is_none()
                && !step.announced
                && next.count != step.count =>
        {
            "the runtime joins this and the next re, which has another cnt; make them equal"
        }
        _ => return Ok(()),
    };
    plan.error(index, problem)
}
