//! What comes before what in a plan.
//!
//! Two relations are built. A thread block starts its operations one after another, which decides whether a plan
//! ends. Its threads, though, meet only at `nop` and `barrier`: two operations between which none stands may run at
//! the same time, so for data only this counts:
//!
//! ```text
//!   nop, barrier          everything of the thread block before it, before everything behind it
//!   signal -> wait        the k-th of one end of a channel, the k-th of the other end; `rlx` says nothing of data
//!   release -> acquire    the same of a semaphore, whose start value is taken first
//!   packets               whoever wrote them, before whoever reads them
//!   port channel          a put leaves later; the next signal of the channel arrives behind it, `flush` waits for it
//! ```

use super::json::Space;
use super::plan::{Action, Data, Part, Plan};
use crate::error::{PlanError, Result};
use crate::order::sequence;
use std::collections::BTreeMap;

/// No node, no operation.
pub(super) const NONE: u32 = u32::MAX;

/// Most operations of a circle that are printed.
const SHOWN: usize = 12;

/// The events of a plan, in an order in which they can happen. Node k is the start of operation k.
pub(super) struct Events {
    /// All nodes.
    pub sequence: Vec<u32>,
    /// "The data of the first are seen by the second."
    pub seen: Vec<(u32, u32)>,
    /// "The second does not happen before the first", besides.
    pub later: Vec<(u32, u32)>,
    /// The operation of a node.
    pub owner: Vec<u32>,
    /// When each move is done.
    pub done: Vec<u32>,
    /// How often the threads of its block met before an operation.
    pub epoch: Vec<u32>,
    /// Operations that signal, and that wait for it.
    pub signals: Vec<(u32, u32)>,
}

/// The events of `plan`, or why it does not end.
pub(super) fn events(plan: &Plan) -> Result<Events> {
    let mut maker = Maker::new(plan);
    for block in 0..plan.blocks.len() as u32 {
        maker.block(block)?;
    }
    maker.channels()?;
    maker.semaphores()?;
    maker.barriers()?;
    maker.packets()?;
    maker.finish()
}

/// The use of a channel end or a semaphore, in order, by one thread block.
#[derive(Default, Clone)]
struct Uses {
    /// Nodes, and whether they say nothing of data.
    list: Vec<(u32, bool)>,
    block: Option<u32>,
}

/// A round of a barrier: when its thread blocks go on, how many must come, and the operations with which they came.
type Round = (u32, u32, Vec<u32>);

struct Maker<'a> {
    plan: &'a Plan,
    out: Events,
    signals: Vec<Uses>,
    waits: Vec<Uses>,
    releases: Vec<Uses>,
    acquires: Vec<Uses>,
    /// Of each barrier of a GPU, round by round.
    rounds: BTreeMap<(u32, u32), Vec<Round>>,
}

impl<'a> Maker<'a> {
    fn new(plan: &'a Plan) -> Self {
        let ops = plan.ops.len() as u32;
        Maker {
            plan,
            out: Events {
                sequence: Vec::new(),
                seen: Vec::new(),
                later: Vec::new(),
                owner: (0..ops).collect(),
                done: vec![NONE; plan.moves.len()],
                epoch: vec![0; plan.ops.len()],
                signals: Vec::new(),
            },
            signals: vec![Uses::default(); plan.ends.len()],
            waits: vec![Uses::default(); plan.ends.len()],
            releases: vec![Uses::default(); plan.semaphores.len()],
            acquires: vec![Uses::default(); plan.semaphores.len()],
            rounds: BTreeMap::new(),
        }
    }

    fn node(&mut self, op: u32) -> u32 {
        self.out.owner.push(op);
        self.out.owner.len() as u32 - 1
    }

    fn block(&mut self, block: u32) -> Result<()> {
        let mut walk = Walk::default();
        for op in self.plan.blocks[block as usize].ops.clone() {
            self.out.epoch[op as usize] = walk.epoch;
            self.out.later.extend(walk.last.map(|last| (last, op)));
            self.out.seen.extend(walk.met.map(|met| (met, op)));
            let end = match self.plan.ops[op as usize].action {
                Action::Nop => self.meet(&mut walk, op, op),
                Action::Barrier(id, count) => {
                    let round = self.arrive(block, op, id, count, &mut walk);
                    self.meet(&mut walk, op, round)
                }
                Action::Data(data) => self.data(&mut walk, block, op, data)?,
                Action::Signal(ends, relaxed) => {
                    self.control(&mut walk, op, ends);
                    for &end in self.plan.names(ends) {
                        self.signal(&mut walk, block, op, end, relaxed)?;
                    }
                    op
                }
                Action::Wait(ends, relaxed) => {
                    self.control(&mut walk, op, ends);
                    for &end in self.plan.names(ends) {
                        use_of(
                            self.plan,
                            &mut self.waits[end as usize],
                            block,
                            op,
                            op,
                            relaxed,
                        )?;
                    }
                    op
                }
                Action::Flush(ends) => {
                    self.control(&mut walk, op, ends);
                    for end in self.plan.names(ends) {
                        let left = walk.put.remove(end).into_iter().flatten();
                        self.out.seen.extend(left.map(|done| (done, op)));
                    }
                    op
                }
                Action::Release(semaphores) => {
                    self.control(&mut walk, op, semaphores);
                    for &semaphore in self.plan.names(semaphores) {
                        use_of(
                            self.plan,
                            &mut self.releases[semaphore as usize],
                            block,
                            op,
                            op,
                            false,
                        )?;
                    }
                    op
                }
                Action::Acquire(semaphores) => {
                    self.control(&mut walk, op, semaphores);
                    for &semaphore in self.plan.names(semaphores) {
                        use_of(
                            self.plan,
                            &mut self.acquires[semaphore as usize],
                            block,
                            op,
                            op,
                            false,
                        )?;
                    }
                    op
                }
            };
            walk.last = Some(end);
            walk.since.push(end);
        }
        Ok(())
    }

    /// The threads of the block meet in `op` and go on from `node`.
    fn meet(&mut self, walk: &mut Walk, op: u32, node: u32) -> u32 {
        self.out
            .seen
            .extend(walk.since.drain(..).map(|earlier| (earlier, op)));
        (walk.met, walk.single, walk.epoch) = (Some(node), None, walk.epoch + 1);
        node
    }

    /// Entry k of such an operation is done by thread k, so two with one entry each are in order.
    fn control(&mut self, walk: &mut Walk, op: u32, part: Part) {
        if part.1 - part.0 == 1 {
            self.out
                .seen
                .extend(walk.single.map(|earlier| (earlier, op)));
            walk.single = Some(op);
        }
    }

    fn arrive(&mut self, block: u32, op: u32, id: u32, count: u32, walk: &mut Walk) -> u32 {
        let gpu = self.plan.blocks[block as usize].gpu;
        let round = walk.rounds.entry(id).or_insert(0);
        let at = *round;
        *round += 1;
        if self
            .rounds
            .get(&(gpu, id))
            .is_none_or(|rounds| rounds.len() <= at)
        {
            let node = self.node(op);
            self.rounds
                .entry((gpu, id))
                .or_default()
                .push((node, count, Vec::new()));
        }
        let mut node = NONE;
        if let Some(round) = self
            .rounds
            .get_mut(&(gpu, id))
            .and_then(|rounds| rounds.get_mut(at))
        {
            // Who names another number of thread blocks never meets these.
            if round.1 != count {
                round.1 = NONE;
            }
            round.2.push(op);
            node = round.0;
        }
        self.out.seen.push((op, node));
        node
    }

    /// Data that the threads move are done with the operation; a port channel carries them away later.
    fn data(&mut self, walk: &mut Walk, block: u32, op: u32, data: Data) -> Result<u32> {
        let moves = data.moves.0..data.moves.1;
        if data.ports.0 == data.ports.1 {
            moves.for_each(|made| self.out.done[made as usize] = op);
            return Ok(op);
        }
        let mut left = Vec::new();
        for made in moves {
            let end = self.plan.names[(data.ports.0 + made - data.moves.0) as usize];
            let done = self.node(op);
            self.out.seen.push((op, done));
            self.out.done[made as usize] = done;
            walk.carried.entry(end).or_default().push(done);
            walk.put.entry(end).or_default().push(done);
            left.push(done);
            if data.signals {
                self.signal(walk, block, op, end, false)?;
            }
        }
        if !data.flushes {
            return Ok(op);
        }
        let end = self.node(op);
        self.out.seen.push((op, end));
        self.out
            .seen
            .extend(left.into_iter().map(|done| (done, end)));
        Ok(end)
    }

    /// A signal, behind what the channel has carried so far.
    fn signal(
        &mut self,
        walk: &mut Walk,
        block: u32,
        op: u32,
        end: u32,
        relaxed: bool,
    ) -> Result<()> {
        let carried = walk.carried.remove(&end).unwrap_or_default();
        let mut node = op;
        if !carried.is_empty() || walk.arrived.contains_key(&end) {
            node = self.node(op);
            self.out.seen.push((op, node));
            self.out
                .seen
                .extend(carried.iter().map(|&done| (done, node)));
            self.out
                .seen
                .extend(walk.arrived.get(&end).map(|&before| (before, node)));
            walk.arrived.insert(end, node);
        }
        use_of(
            self.plan,
            &mut self.signals[end as usize],
            block,
            op,
            node,
            relaxed,
        )
    }

    fn channels(&mut self) -> Result<()> {
        for end in 0..self.plan.ends.len() {
            let waits = std::mem::take(&mut self.waits[end].list);
            let (gpu, peer) = (self.plan.ends[end].gpu, self.plan.ends[end].peer);
            let other = self.plan.ends[end].other;
            let signals = match other {
                Some(other) => std::mem::take(&mut self.signals[other as usize].list),
                None => Vec::new(),
            };
            for (k, &(wait, relaxed)) in waits.iter().enumerate() {
                let Some(&(signal, also)) = signals.get(k) else {
                    let sent = signals.len();
                    return self.plan.error(
                        wait,
                        format!(
                            "waits for signal {} from gpu {peer}, which sends {sent} through this channel; add a signal \
                             there, or remove the wait",
                            k + 1
                        ),
                    );
                };
                match relaxed || also {
                    true => self.out.later.push((signal, wait)),
                    false => self.out.seen.push((signal, wait)),
                }
                self.out
                    .signals
                    .push((self.out.owner[signal as usize], wait));
            }
            if let Some(&(extra, _)) = signals.get(waits.len()) {
                return self.plan.error(
                    self.out.owner[extra as usize],
                    format!(
                        "gpu {gpu} never waits for signal {} of this channel, so the next run would take it for its \
                         own; add a wait there, or remove the signal",
                        waits.len() + 1
                    ),
                );
            }
        }
        match self.signals.iter().find_map(|uses| uses.list.first()) {
            Some(&(node, _)) => {
                let op = self.out.owner[node as usize];
                self.plan.error(
                    op,
                    "signals a GPU that has no channel back, so it cannot wait; add one there",
                )
            }
            None => Ok(()),
        }
    }

    fn semaphores(&mut self) -> Result<()> {
        for (index, &start) in self.plan.semaphores.iter().enumerate() {
            let releases = std::mem::take(&mut self.releases[index].list);
            for (k, &(acquire, _)) in (0u64..).zip(&self.acquires[index].list) {
                let Some(k) = k.checked_sub(u64::from(start)) else {
                    continue;
                };
                let Some(&(release, _)) = releases.get(k as usize) else {
                    let problem = format!(
                        "waits for release {} of a semaphore that is released {} times; add a sem_release, or remove this",
                        k + 1,
                        releases.len()
                    );
                    return self.plan.error(acquire, problem);
                };
                self.out.seen.push((release, acquire));
                self.out.signals.push((release, acquire));
            }
        }
        Ok(())
    }

    fn barriers(&mut self) -> Result<()> {
        for rounds in self.rounds.values() {
            for (_, needed, came) in rounds {
                if *needed as usize != came.len() {
                    let problem = format!(
                        "{} thread blocks come to this round of the barrier, and num_threadblocks differs; make it as \
                         many, the same at each",
                        came.len()
                    );
                    return self.plan.error(came[0], problem);
                }
            }
        }
        Ok(())
    }

    /// Whoever reads packets waits for them.
    fn packets(&mut self) -> Result<()> {
        let scratch = scratch_units(self.plan);
        let mut writer = vec![NONE; scratch * self.plan.ranks as usize];
        let mut plain: Vec<Option<u32>> = vec![None; self.plan.ranks as usize];
        let mut packets = plain.clone();
        for (op, node, made) in self.all_moves() {
            for (gpu, place, is_packets, writes) in [
                (made.from, made.src, made.reads_packets, false),
                (made.to, made.dst, made.writes_packets, true),
            ] {
                if place.space != Space::Scratch {
                    continue;
                }
                let kinds = if is_packets { &mut packets } else { &mut plain };
                kinds[gpu as usize].get_or_insert(op);
                if !is_packets || !writes {
                    continue;
                }
                for at in place.at..place.at + made.count {
                    let cell = gpu as usize * scratch + at as usize;
                    if writer[cell] != NONE {
                        let other = self.plan.place(self.out.owner[writer[cell] as usize]);
                        return self.plan.error(
                            op,
                            format!(
                                "writes packets where {other} does, and a reader cannot tell them apart; use other chunks of \
                                 scratch"
                            ),
                        );
                    }
                    writer[cell] = node;
                }
            }
        }
        for (gpu, both) in plain.iter().zip(&packets).enumerate() {
            if let (Some(op), Some(other)) = both {
                let other = self.plan.place(*other);
                let problem = format!(
                    "uses scratch of gpu {gpu} without packets, {other} with; keep to one of them"
                );
                return self.plan.error(*op, problem);
            }
        }
        for (op, _, made) in self.all_moves() {
            let mut last = NONE;
            for at in (made.src.at..made.src.at + made.count).filter(|_| made.reads_packets) {
                let from = writer[made.from as usize * scratch + at as usize];
                if from == NONE {
                    return self.plan.error(
                        op,
                        "waits for packets that are never written; put them there",
                    );
                }
                if from != last {
                    self.out.seen.push((from, op));
                    self.out.signals.push((self.out.owner[from as usize], op));
                }
                last = from;
            }
        }
        Ok(())
    }

    /// (operation, when it is done, move) of all moves.
    fn all_moves(&self) -> Vec<(u32, u32, super::plan::Move)> {
        let mut list = Vec::with_capacity(self.plan.moves.len());
        for (op, known) in (0..).zip(&self.plan.ops) {
            if let Action::Data(data) = known.action {
                let moves = (data.moves.0..data.moves.1).zip(self.plan.moves(data.moves));
                list.extend(moves.map(|(index, &made)| (op, self.out.done[index as usize], made)));
            }
        }
        list
    }

    /// Find an order in which all can happen.
    fn finish(mut self) -> Result<Events> {
        let (plan, nodes) = (self.plan, self.out.owner.len());
        let mut edges = std::mem::take(&mut self.out.later);
        let later = edges.len();
        edges.append(&mut self.out.seen);
        let key = |node: u32| match plan
            .ops
            .get(node as usize)
            .map(|op| (op.action, op.own, op.block))
        {
            Some((Action::Data(_), Some(own), _)) if plan.own => 1 + u64::from(own.op),
            Some((Action::Data(_), _, block)) => {
                1 + u64::from(node - plan.blocks[block as usize].ops.start)
            }
            _ => 0,
        };
        let found = sequence(nodes, &edges, key);
        self.out.seen = edges.split_off(later);
        self.out.later = edges;
        match found {
            Ok(sequence) => self.out.sequence = sequence,
            Err(circle) => return refuse(plan, &self.out.owner, &circle),
        }
        Ok(self.out)
    }
}

/// What has happened in a thread block so far.
#[derive(Default)]
struct Walk {
    last: Option<u32>,
    /// Where the threads last met, and what they have done since.
    met: Option<u32>,
    since: Vec<u32>,
    epoch: u32,
    /// Last signal, wait, ... of the first thread since then.
    single: Option<u32>,
    rounds: BTreeMap<u32, usize>,
    /// Puts that a port channel has carried since its last signal, and since its last flush.
    carried: BTreeMap<u32, Vec<u32>>,
    put: BTreeMap<u32, Vec<u32>>,
    /// When the last signal of a port channel that carried data arrived.
    arrived: BTreeMap<u32, u32>,
}

/// Units of scratch of a GPU.
pub(super) fn scratch_units(plan: &Plan) -> usize {
    let scratch = plan
        .moves
        .iter()
        .flat_map(|made| [(made.src, made.count), (made.dst, made.count)]);
    let ends = scratch.filter(|(place, _)| place.space == Space::Scratch);
    ends.map(|(place, count)| (place.at + count) as usize)
        .max()
        .unwrap_or(0)
}

/// Enter a use; two thread blocks that use the same would not know whose turn it is.
fn use_of(
    plan: &Plan,
    uses: &mut Uses,
    block: u32,
    op: u32,
    node: u32,
    relaxed: bool,
) -> Result<()> {
    let first = *uses.block.get_or_insert(block);
    if first != block {
        let other = plan.blocks[first as usize].id;
        return plan.error(
            op,
            format!(
                "threadblock {other} uses this channel or semaphore in the same way, and nothing says whose turn it is; \
                 give each its own"
            ),
        );
    }
    uses.list.push((node, relaxed));
    Ok(())
}

fn refuse<T>(plan: &Plan, owner: &[u32], circle: &[u32]) -> Result<T> {
    let mut ops: Vec<u32> = circle.iter().map(|&node| owner[node as usize]).collect();
    ops.dedup();
    let first = (0..ops.len()).min_by_key(|&index| ops[index]).unwrap_or(0);
    ops.rotate_left(first);
    ops.truncate(SHOWN);
    let more = if ops.len() == SHOWN { " -> ..." } else { "" };
    let shown: Vec<String> = ops
        .iter()
        .chain(&ops[..1])
        .map(|&op| plan.place(op))
        .collect();
    Err(PlanError::at(
        plan.place(ops[0]),
        format!(
            "waits for itself, so the plan never ends: {}{more}; move a signal before the wait that it answers",
            shown.join(" -> ")
        ),
    ))
}
