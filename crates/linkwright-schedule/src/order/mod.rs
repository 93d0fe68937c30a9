//! From a sequence of operations to a partial order: hazards become edges and notices.
//!
//! A draft is a schedule without edges and notices. Running its operations one after another is right. Only three
//! kinds of pairs must keep their order (*hazards*, per chunk):
//!
//! ```text
//!   read after write    the reader waits until the data are delivered
//!   write after read    the writer waits until the source is free
//!   write after write   the later writer waits until the earlier data are delivered
//! ```
//!
//! A wait happens at the initiator of the later operation. What it cannot see by itself comes as
//! a notice from a participant that can. Edges that others imply are dropped, otherwise a ring
//! would carry twice the messages. Whether an edge is implied is decided by a bounded search
//! backwards plus *chains*: every operation extends the chain of a predecessor whose delivery it
//! waits for, so "same chain, not earlier" proves in one comparison that a chunk which travelled
//! round the ring has been read where it started. The test is sound and not complete: a missed
//! implication costs a superfluous edge, never a race.
//!
//! Operations are ordered where they stand, step by step as they are written, so that nothing is kept
//! twice; only where a notice comes between does the rest of the step move.

mod cells;
mod check;
mod fences;
mod last_notices;
mod need;
mod notices;
mod past;

use crate::accesses::NONE;
use crate::error::{Result, ScheduleError};
use crate::hoist::hoist;
use crate::ir::{most_ops, BufferId, Combine, Completion, Edge, Op, OpKind, Remembered, Schedule};
use crate::patience;
use cells::Cells;
use fences::Fences;
use last_notices::LastNotices;
use need::full_completion;
use past::{Chains, Search};

pub(crate) use check::check;
pub(crate) use need::Need;

/// Set in [`Orderer::touched`] where the chunk is written.
const WRITTEN: u32 = 1 << 31;

/// Orders the operations of a schedule while it is written.
pub(crate) struct Orderer {
    /// The schedule: operations in order with their edges, then those still to be ordered.
    pub out: Schedule,
    cells: Cells,
    chains: Chains,
    search: Search,
    fences: Fences,
    /// The last notice from one rank to another.
    last_notice: LastNotices,
    /// Operations that a notice has pushed from their places, last first.
    displaced: Vec<Op>,
    /// Number of the next operation, not counting the notices made here.
    position: u32,
    /// Explicit waits (position, position waited for) still to come, last first.
    waits: Vec<(u32, u32)>,
    /// Ids by position, ascending, of the operations that explicit waits may name.
    ids: Vec<(u32, u32)>,
    /// Of the current operation: chunks read and written, as numbers of cells.
    touched: Vec<u32>,
    needs: Vec<(u32, Need)>,
    remote: Vec<(u32, Need)>,
    edges: Vec<Edge>,
}

/// Find all hazards of `draft`, add edges and notices.
pub(crate) fn order(draft: Schedule) -> Result<Schedule> {
    order_with(draft, Vec::new())
}

/// The same with explicit waits (operation, waits for), by position, sorted by operation.
pub(crate) fn order_with(mut draft: Schedule, waits: Vec<(u32, u32)>) -> Result<Schedule> {
    let ops = std::mem::take(&mut draft.ops);
    let mut orderer = Orderer::new(draft);
    for op in &ops {
        check(&orderer.out, op)?;
    }
    orderer.out.edge_start.reserve_exact(ops.len());
    orderer.out.ops = ops;
    let mut named: Vec<u32> = waits.iter().map(|wait| wait.1).collect();
    named.sort_unstable();
    named.dedup();
    orderer.name(named);
    orderer.wait(waits);
    orderer.order_pending()?;
    Ok(orderer.finish())
}

impl Orderer {
    /// Nothing is ordered yet; `header` has no operations.
    pub fn new(header: Schedule) -> Self {
        Orderer {
            out: Schedule {
                edge_start: vec![0],
                edges: Vec::new(),
                own_waits: Remembered(Some(false)),
                ..header
            },
            cells: Cells::new(),
            chains: Chains::default(),
            search: Search::default(),
            fences: Fences::default(),
            last_notice: LastNotices::default(),
            displaced: Vec::new(),
            position: 0,
            waits: Vec::new(),
            ids: Vec::new(),
            touched: Vec::new(),
            needs: Vec::new(),
            remote: Vec::new(),
            edges: Vec::new(),
        }
    }

    /// Number of operations in order.
    pub fn ordered(&self) -> usize {
        self.out.edge_start.len() - 1
    }

    /// Position of the first operation still to be ordered; those behind it follow.
    pub fn position(&self) -> u32 {
        self.position
    }

    /// Explicit waits may name the operations at these positions, which are still to be ordered.
    pub fn name(&mut self, mut positions: Vec<u32>) {
        positions.sort_unstable();
        self.ids.extend(positions.into_iter().map(|p| (p, NONE)));
    }

    /// Explicit waits (position, position waited for) of operations still to be ordered.
    pub fn wait(&mut self, mut waits: Vec<(u32, u32)>) {
        self.out.own_waits.0 = Some(self.out.own_waits.0 == Some(true) || !waits.is_empty());
        waits.sort_unstable_by(|a, b| b.cmp(a));
        self.waits = waits;
    }

    /// A dense number of a chunk that exists.
    pub fn cell(&mut self, participant: u32, buffer: BufferId, chunk: u32) -> usize {
        self.cells.at(participant, buffer, chunk)
    }

    /// Whether two of the operations still to be ordered use a chunk that one of them writes, or one both
    /// reads and writes a chunk.
    pub fn pending_meet(&mut self) -> bool {
        self.cells.extend(&self.out);
        self.cells.begin_step();
        let (out, cells) = (&self.out, &mut self.cells);
        for op in &out.ops[out.edge_start.len() - 1..] {
            if op.is_single() {
                let read = cells.at(op.from, op.src_buffer, op.src);
                let written = cells.at(op.to, op.dst_buffer, op.dst);
                if cells.reads(read) || cells.writes(written) {
                    return true;
                }
                continue;
            }
            for (src, dst, count) in out.chunk_ranges(op) {
                for k in 0..count {
                    for &source in out.sources(op) {
                        let read = cells.at(source, op.src_buffer, src + k);
                        if cells.reads(read) {
                            return true;
                        }
                    }
                    for &target in out.targets(op) {
                        let written = cells.at(target, op.dst_buffer, dst + k);
                        if cells.writes(written) {
                            return true;
                        }
                    }
                }
            }
        }
        false
    }

    /// Whether `op` would have to wait for another rank's contribution to a chunk that it combines into.
    pub fn follows(&self, op: &Op, cell: usize) -> bool {
        let writer = self.cells.accesses.writer(cell);
        let combines = op.is_message() && op.combine == Combine::Reduce;
        combines && writer != NONE && self.out.ops[writer as usize].initiator() != op.initiator()
    }

    /// Whether any of the operations still to be ordered would have to wait so.
    pub fn pending_follow(&mut self) -> bool {
        self.cells.extend(&self.out);
        (self.ordered()..self.out.ops.len()).any(|id| {
            let op = self.out.ops[id];
            (0..self.out.range_count(&op)).any(|index| {
                let (_, dst, count) = self.out.range_at(&op, index);
                (dst..dst + count).any(|chunk| {
                    (0..self.out.targets(&op).len()).any(|t| {
                        let target = self.out.targets(&op)[t];
                        let cell = self.cells.at(target, op.dst_buffer, chunk);
                        self.follows(&op, cell)
                    })
                })
            })
        })
    }

    /// Announce the operations to come, `ops`; required where notices may be among them.
    pub fn expect_fences(&mut self, ops: &[Op]) {
        if ops.iter().any(fences::is_fenced) {
            self.fences.begin(&self.out);
        }
    }

    /// Order all operations that stand behind the ordered ones.
    pub fn order_pending(&mut self) -> Result<()> {
        self.cells.extend(&self.out);
        let pending = &self.out.ops[self.out.edge_start.len() - 1..];
        if pending.iter().any(fences::is_fenced) {
            self.fences.begin(&self.out);
        }
        while let Some(op) = self.next() {
            self.needs.clear();
            while let Some(&(_, named)) = self.waits.last().filter(|w| w.0 == self.position) {
                self.waits.pop();
                let at = self.ids.binary_search_by_key(&named, |id| id.0);
                let id = self.ids[at.expect("explicit waits name what was asked for")].1;
                self.needs.push((id, full_completion(&self.out, id)));
            }
            let id = self.add(op)?;
            if !self.ids.is_empty() {
                let at = self.ids.binary_search_by_key(&self.position, |id| id.0);
                at.into_iter().for_each(|at| self.ids[at].1 = id);
            }
            self.position += 1;
        }
        Ok(())
    }

    /// The schedule, once everything is in order.
    pub fn finish(self) -> Schedule {
        let Orderer {
            mut out,
            last_notice,
            ..
        } = self;
        if !last_notice.is_empty() {
            hoist(&mut out);
        }
        out
    }

    /// The next operation to be ordered.
    fn next(&mut self) -> Option<Op> {
        match self.out.ops.get(self.ordered()) {
            Some(&op) => Some(op),
            None => self.displaced.pop(),
        }
    }

    fn add(&mut self, op: Op) -> Result<u32> {
        self.collect_hazards(&op);
        self.fences.collect(&op, &self.out, &mut self.needs);
        self.resolve(&op)?;
        let id = self.push(op)?;
        self.record(id, &op);
        Ok(id)
    }

    /// Take in `op`, which stands in its place or comes at the end, with the edges gathered in
    /// `self.edges`; continue or open its chain.
    fn push(&mut self, op: Op) -> Result<u32> {
        let id = self.ordered() as u32;
        patience::check(id as usize)?;
        if id as usize >= most_ops() {
            return Err(ScheduleError::TooLarge(most_ops() as u64));
        }
        let initiator = op.initiator();
        let continued = self.edges.iter().find(|edge| {
            self.chains.ends_with(edge.op())
                && self.completion(**edge, initiator) == Completion::Delivered
        });
        self.chains.push(continued.map(|edge| edge.op()));
        if id as usize == self.out.ops.len() {
            self.out.ops.push(op);
        }
        self.out.edges.append(&mut self.edges);
        self.out.end_edges()?;
        Ok(id)
    }

    /// What satisfying `edge` tells `waiter`; the edges made here are all visible.
    fn completion(&self, edge: Edge, waiter: u32) -> Completion {
        let known = self.out.completion(edge, waiter);
        known.expect("an edge is visible to its waiter")
    }

    fn collect_hazards(&mut self, op: &Op) {
        self.touched.clear();
        if op.is_single() {
            self.read_hazards(op.from, op.src_buffer, op.src);
            self.write_hazards(op.to, op.dst_buffer, op.dst);
            return;
        }
        for index in 0..self.out.range_count(op) {
            let (src, dst, count) = self.out.range_at(op, index);
            for k in 0..count {
                for s in 0..self.out.sources(op).len() {
                    let source = self.out.sources(op)[s];
                    self.read_hazards(source, op.src_buffer, src + k);
                }
                for t in 0..self.out.targets(op).len() {
                    let target = self.out.targets(op)[t];
                    self.write_hazards(target, op.dst_buffer, dst + k);
                }
            }
        }
    }

    #[inline]
    fn read_hazards(&mut self, from: u32, buffer: BufferId, chunk: u32) {
        let cell = self.cells.at(from, buffer, chunk);
        self.touched.push(cell as u32);
        let writer = self.cells.accesses.writer(cell);
        if writer != NONE {
            self.needs.push((writer, Need::DeliveredAt(from)));
        }
    }

    #[inline]
    fn write_hazards(&mut self, target: u32, buffer: BufferId, chunk: u32) {
        let cell = self.cells.at(target, buffer, chunk);
        self.touched.push(cell as u32 | WRITTEN);
        let writer = self.cells.accesses.writer(cell);
        if writer != NONE {
            self.needs.push((writer, Need::DeliveredAt(target)));
        }
        let needs = &mut self.needs;
        (self.cells.accesses).each_reader(cell, |reader| needs.push((reader, Need::SourceFree)));
    }

    /// Turn `self.needs` into the fewest edges known to suffice, adding notices where necessary.
    fn resolve(&mut self, op: &Op) -> Result<()> {
        self.edges.clear();
        self.search.proven.clear();
        let mut needs = std::mem::take(&mut self.needs);
        // Latest first: a late operation implies most of the earlier ones. The stable sort keeps
        // deliveries of the data read before other hazards of the same operation.
        match needs[..] {
            [] | [_] => {}
            [a, b] if a.0 > b.0 => {}
            [a, b] if a.0 < b.0 => needs.swap(0, 1),
            _ => {
                needs.sort_by_key(|need| std::cmp::Reverse(need.0));
                needs.dedup();
            }
        }
        let initiator = op.initiator();
        let mut remote = std::mem::take(&mut self.remote);
        for &(id, need) in &needs {
            match self.visible(id, need, initiator) {
                Some(edge) if !self.implied(id, need) => self.add_edge(edge, initiator),
                Some(_) => self.prove(id, need),
                None => remote.push((id, need)),
            }
        }
        self.needs = needs;
        for (id, need) in remote.drain(..) {
            if !self.implied(id, need) && !self.fences.behind(&self.out, id, initiator) {
                self.notify(op, id, need)?;
            }
            self.prove(id, need);
        }
        self.remote = remote;
        Ok(())
    }

    /// Enter a need that is met as a start of later searches: what it waited for is met, too.
    fn prove(&mut self, id: u32, need: Need) {
        let op = &self.out.ops[id as usize];
        let known = match need {
            Need::SourceFree => Completion::SourceFree,
            Need::DeliveredAt(_) if op.kind == OpKind::Multicast => Completion::DeliveredHere,
            Need::DeliveredAt(_) if self.out.targets(op).len() > 1 => Completion::CombinedHere,
            Need::DeliveredAt(_) => Completion::Delivered,
        };
        self.search.proven.push((id, known));
    }

    fn add_edge(&mut self, edge: Edge, waiter: u32) {
        let known = self.completion(edge, waiter);
        self.search.proven.push((edge.op(), known));
        match self.edges.iter_mut().find(|e| e.op() == edge.op()) {
            Some(known) if edge.is_acknowledged() => *known = edge,
            Some(_) => {}
            None => self.edges.push(edge),
        }
    }

    /// Whether what is proven so far implies that operation `id` meets `need`.
    fn implied(&mut self, id: u32, need: Need) -> bool {
        self.search.proves(&self.out, &self.chains, id, need)
    }

    /// Enter operation `id` as reader and writer of its chunks, and into the fences.
    fn record(&mut self, id: u32, op: &Op) {
        for &cell in &self.touched {
            match cell & WRITTEN {
                0 => self.cells.accesses.add_reader(cell as usize, id),
                _ => (self.cells.accesses).write((cell & !WRITTEN) as usize, id, |_| {}),
            }
        }
        self.fences.record(id, op, &self.out);
    }
}
