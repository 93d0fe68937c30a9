//! From a sequence of operations to a partial order: hazards become edges and notices.
//!
//! A [`Draft`] lists operations such that running them one after another is right. Only three
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

use crate::error::{Result, ScheduleError};
use crate::hoist::hoist;
use crate::ir::{
    Buffer, BufferId, Combine, Completion, Edge, Hint, Op, OpKind, Owner, Remembered, Schedule,
    MAX_OPS,
};
use crate::spec::Spec;
use std::collections::HashMap;

const NONE: u32 = u32::MAX;

/// Operations visited by one search for an implied edge.
const SEARCH_LIMIT: usize = 48;

/// A schedule before its hazards are found.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub spec: Spec,
    pub ranks: u32,
    pub memories: u32,
    pub elements: u64,
    pub element_bytes: u32,
    pub buffers: Vec<Buffer>,
    pub sets: Vec<Vec<u32>>,
    pub ops: Vec<Op>,
    pub ranges: Vec<(u32, u32, u32)>,
    pub work: Vec<u64>,
    /// Explicit waits (operation, waits for), by position in `ops`, sorted by operation.
    pub waits: Vec<(u32, u32)>,
}

/// What about an earlier operation has to be known before a later one may start.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Its source may be overwritten.
    SourceFree,
    /// Its data are at this participant.
    DeliveredAt(u32),
}

/// Last writer of a chunk and its readers since.
#[derive(Clone, Copy)]
struct Cell {
    writer: u32,
    readers: u32,
}

/// Cells of all chunks touched so far, grown on demand per (participant, buffer).
struct Cells {
    tables: Vec<Vec<Cell>>,
    buffers: usize,
    /// Linked lists of readers: (operation, next).
    readers: Vec<(u32, u32)>,
    free: u32,
}

impl Cells {
    fn new(participants: u32, buffers: usize) -> Self {
        let tables = vec![Vec::new(); participants as usize * buffers];
        Cells {
            tables,
            buffers,
            readers: Vec::new(),
            free: NONE,
        }
    }

    fn cell(&mut self, participant: u32, buffer: u8, chunk: u32) -> &mut Cell {
        let table = &mut self.tables[participant as usize * self.buffers + buffer as usize];
        let chunk = chunk as usize;
        if chunk >= table.len() {
            table.resize(
                chunk + 1,
                Cell {
                    writer: NONE,
                    readers: NONE,
                },
            );
        }
        &mut table[chunk]
    }

    fn add_reader(&mut self, participant: u32, buffer: u8, chunk: u32, op: u32) {
        let head = self.cell(participant, buffer, chunk).readers;
        let node = if self.free == NONE {
            self.readers.push((op, head));
            self.readers.len() as u32 - 1
        } else {
            let node = self.free;
            self.free = self.readers[node as usize].1;
            self.readers[node as usize] = (op, head);
            node
        };
        self.cell(participant, buffer, chunk).readers = node;
    }

    fn set_writer(&mut self, participant: u32, buffer: u8, chunk: u32, op: u32) {
        let cell = self.cell(participant, buffer, chunk);
        let mut node = std::mem::replace(&mut cell.readers, NONE);
        cell.writer = op;
        while node != NONE {
            let next = std::mem::replace(&mut self.readers[node as usize].1, self.free);
            self.free = node;
            node = next;
        }
    }
}

/// A barrier instance: its operations are `first..=last`.
struct BarrierSpan {
    first: u32,
    last: u32,
    set: u32,
}

struct Orderer {
    out: Schedule,
    cells: Cells,
    chain: Vec<u32>,
    place: Vec<u32>,
    /// Last operation of each chain.
    tail: Vec<u32>,
    last_notice: HashMap<(u32, u32), u32>,
    barriers: Vec<BarrierSpan>,
    /// Per rank: last fence or barrier, and what the rank issued since; empty without fences.
    fences: Vec<(u32, Vec<u32>)>,
    /// Scratch of the current operation.
    needs: Vec<(u32, Need)>,
    /// What is proven of earlier operations: by the edges chosen so far, and by needs that are met.
    proven: Vec<(u32, Completion)>,
    edges: Vec<Edge>,
    stack: Vec<(u32, Completion)>,
    seen: Vec<u32>,
}

/// Find all hazards of `draft`, add edges and notices.
pub(crate) fn order(mut draft: Draft) -> Result<Schedule> {
    let ops = std::mem::take(&mut draft.ops);
    let waits = std::mem::take(&mut draft.waits);
    let fenced = ops
        .iter()
        .any(|op| matches!(op.kind, OpKind::Fence | OpKind::Barrier));
    let participants = draft.ranks + draft.memories;
    let mut orderer = Orderer {
        cells: Cells::new(participants, draft.buffers.len()),
        out: Schedule {
            spec: draft.spec,
            ranks: draft.ranks,
            memories: draft.memories,
            elements: draft.elements,
            element_bytes: draft.element_bytes,
            buffers: draft.buffers,
            sets: draft.sets,
            ops: Vec::with_capacity(ops.len()),
            edge_start: Vec::with_capacity(ops.len() + 1),
            edges: Vec::with_capacity(ops.len() * 2),
            ranges: draft.ranges,
            work: draft.work,
            own_waits: Remembered(Some(!waits.is_empty())),
        },
        chain: Vec::with_capacity(ops.len()),
        place: Vec::with_capacity(ops.len()),
        tail: Vec::new(),
        last_notice: HashMap::new(),
        barriers: Vec::new(),
        fences: if fenced {
            vec![(NONE, Vec::new()); participants as usize]
        } else {
            Vec::new()
        },
        needs: Vec::new(),
        proven: Vec::new(),
        edges: Vec::new(),
        stack: Vec::new(),
        seen: Vec::new(),
    };
    orderer.out.edge_start.push(0);
    // Ids move when notices are inserted; explicit waits name positions of the draft.
    let mut new_ids = if waits.is_empty() {
        Vec::new()
    } else {
        vec![NONE; ops.len()]
    };
    let mut waits = waits.into_iter().peekable();
    for (position, op) in ops.into_iter().enumerate() {
        let position = position as u32;
        orderer.needs.clear();
        while let Some(&(_, target)) = waits.peek().filter(|w| w.0 == position) {
            waits.next();
            let id = new_ids[target as usize];
            let need = orderer.full_completion(id);
            orderer.needs.push((id, need));
        }
        let id = orderer.add(op)?;
        if !new_ids.is_empty() {
            new_ids[position as usize] = id;
        }
    }
    Ok(hoist(orderer.out))
}

impl Orderer {
    fn full_completion(&self, id: u32) -> Need {
        let op = &self.out.ops[id as usize];
        match op.kind {
            OpKind::Multicast => Need::DeliveredAt(NONE),
            OpKind::Put | OpKind::Get | OpKind::Notice => Need::DeliveredAt(op.to),
            _ => Need::DeliveredAt(op.from),
        }
    }

    fn add(&mut self, op: Op) -> Result<u32> {
        self.collect_hazards(&op);
        self.collect_fences(&op);
        self.resolve(&op)?;
        let id = self.push(op)?;
        self.record(id);
        Ok(id)
    }

    /// Append `op` with the edges gathered in `self.edges`; continue or open its chain.
    fn push(&mut self, op: Op) -> Result<u32> {
        let id = self.out.ops.len() as u32;
        if self.out.ops.len() >= MAX_OPS {
            return Err(ScheduleError::TooLarge(MAX_OPS as u64));
        }
        let initiator = op.initiator();
        let continued = self.edges.iter().find_map(|edge| {
            let chain = self.chain[edge.op() as usize];
            let strong = self.completion(*edge, initiator) == Completion::Delivered;
            (strong && self.tail[chain as usize] == edge.op()).then_some((chain, edge.op()))
        });
        match continued {
            Some((chain, before)) => {
                self.chain.push(chain);
                self.place.push(self.place[before as usize] + 1);
                self.tail[chain as usize] = id;
            }
            None => {
                self.chain.push(self.tail.len() as u32);
                self.place.push(0);
                self.tail.push(id);
            }
        }
        self.out.ops.push(op);
        self.out.edges.append(&mut self.edges);
        self.out.edge_start.push(self.out.edges.len() as u32);
        Ok(id)
    }

    /// What satisfying `edge` tells `waiter`; the edges made here are all visible.
    fn completion(&self, edge: Edge, waiter: u32) -> Completion {
        let known = self.out.completion(edge, waiter);
        known.expect("an edge is visible to its waiter")
    }

    fn collect_hazards(&mut self, op: &Op) {
        if !op.moves_data() {
            return;
        }
        let single = [op.to];
        let targets = match op.kind {
            OpKind::Multicast => std::mem::take(&mut self.out.sets[op.to as usize]),
            _ => Vec::new(),
        };
        let all = if targets.is_empty() {
            &single[..]
        } else {
            &targets[..]
        };
        for index in 0..self.out.range_count(op) {
            let (src, dst, count) = self.out.range_at(op, index);
            for k in 0..count {
                let writer = self.cells.cell(op.from, op.src_buffer.0, src + k).writer;
                if writer != NONE {
                    self.needs.push((writer, Need::DeliveredAt(op.from)));
                }
                for &target in all {
                    let cell = *self.cells.cell(target, op.dst_buffer.0, dst + k);
                    if cell.writer != NONE {
                        self.needs.push((cell.writer, Need::DeliveredAt(target)));
                    }
                    let mut node = cell.readers;
                    while node != NONE {
                        let (reader, next) = self.cells.readers[node as usize];
                        self.needs.push((reader, Need::SourceFree));
                        node = next;
                    }
                }
            }
        }
        if op.kind == OpKind::Multicast {
            self.out.sets[op.to as usize] = targets;
        }
    }

    fn collect_fences(&mut self, op: &Op) {
        if self.fences.is_empty() {
            return;
        }
        let (last, since) = &mut self.fences[op.initiator() as usize];
        if *last != NONE {
            self.needs.push((*last, Need::DeliveredAt(op.from)));
        }
        if matches!(op.kind, OpKind::Fence | OpKind::Barrier) {
            for id in std::mem::take(since) {
                let need = self.full_completion(id);
                self.needs.push((id, need));
            }
        }
    }

    /// Turn `self.needs` into the fewest edges known to suffice, adding notices where necessary.
    fn resolve(&mut self, op: &Op) -> Result<()> {
        self.edges.clear();
        self.proven.clear();
        let mut needs = std::mem::take(&mut self.needs);
        // Latest first: a late operation implies most of the earlier ones. The stable sort keeps
        // deliveries of the data read before other hazards of the same operation.
        needs.sort_by_key(|need| std::cmp::Reverse(need.0));
        needs.dedup();
        let initiator = op.initiator();
        let mut remote = Vec::new();
        for &(id, need) in &needs {
            match self.visible(id, need, initiator) {
                Some(edge) if !self.implied(id, need) => self.add_edge(edge, initiator),
                Some(_) => self.prove(id, need),
                None => remote.push((id, need)),
            }
        }
        self.needs = needs;
        for (id, need) in remote {
            if !self.implied(id, need) && !self.behind_barrier(id, initiator) {
                self.notify(op, id, need)?;
            }
            self.prove(id, need);
        }
        Ok(())
    }

    /// Enter a need that is met as a start of later searches: what it waited for is met, too.
    fn prove(&mut self, id: u32, need: Need) {
        let multicast = self.out.ops[id as usize].kind == OpKind::Multicast;
        let known = match need {
            Need::SourceFree => Completion::SourceFree,
            Need::DeliveredAt(_) if multicast => Completion::DeliveredHere,
            Need::DeliveredAt(_) => Completion::Delivered,
        };
        self.proven.push((id, known));
    }

    fn add_edge(&mut self, edge: Edge, waiter: u32) {
        self.proven.push((edge.op(), self.completion(edge, waiter)));
        match self.edges.iter_mut().find(|e| e.op() == edge.op()) {
            Some(known) if edge.is_acknowledged() => *known = edge,
            Some(_) => {}
            None => self.edges.push(edge),
        }
    }

    /// The edge by which `rank` itself can see that operation `id` meets `need`.
    fn visible(&self, id: u32, need: Need, rank: u32) -> Option<Edge> {
        let op = &self.out.ops[id as usize];
        match op.kind {
            OpKind::Put | OpKind::Notice if op.to == rank => Some(Edge::on(id)),
            // A source that is among its own targets waits as the source. Another target cannot
            // know that the others have the data, nor that the source is free.
            OpKind::Multicast if op.from != rank && need == Need::DeliveredAt(rank) => {
                Some(Edge::on(id))
            }
            OpKind::Put | OpKind::Multicast | OpKind::Notice if op.from == rank => match need {
                Need::SourceFree => Some(Edge::on(id)),
                Need::DeliveredAt(_) => Some(Edge::acknowledged(id)),
            },
            OpKind::Get if op.to == rank => Some(Edge::on(id)),
            OpKind::Local | OpKind::Compute | OpKind::Fence | OpKind::Barrier
                if op.from == rank =>
            {
                Some(Edge::on(id))
            }
            _ => None,
        }
    }

    /// Whether what is proven so far implies that operation `id` meets `need`.
    fn implied(&mut self, id: u32, need: Need) -> bool {
        let proven = std::mem::take(&mut self.proven);
        let found = self.follows(&proven, id, need);
        self.proven = proven;
        found
    }

    /// Whether operation `id` meets `need` once all of `from` has happened.
    fn follows(&mut self, from: &[(u32, Completion)], id: u32, need: Need) -> bool {
        self.seen.clear();
        self.stack.clear();
        self.stack.extend_from_slice(from);
        while let Some((at, known)) = self.stack.pop() {
            let delivered = known == Completion::Delivered;
            let source_free = delivered || known == Completion::SourceFree;
            if at == id && (delivered || (source_free && need == Need::SourceFree)) {
                return true;
            }
            let (a, b) = (at as usize, id as usize);
            if delivered && self.chain[a] == self.chain[b] && self.place[a] >= self.place[b] {
                return true;
            }
            // Edges lead to smaller ids, so nothing below `id` can lead to it.
            if at < id || self.seen.len() >= SEARCH_LIMIT || self.seen.contains(&at) {
                continue;
            }
            self.seen.push(at);
            let initiator = self.out.ops[a].initiator();
            for index in self.out.edge_start[a]..self.out.edge_start[a + 1] {
                let edge = self.out.edges[index as usize];
                let known = self.completion(edge, initiator);
                self.stack.push((edge.op(), known));
            }
        }
        false
    }

    /// Whether `waiter` has passed a barrier that the initiator of `id` entered after `id`.
    fn behind_barrier(&self, id: u32, waiter: u32) -> bool {
        let Some((last, _)) = self.fences.get(waiter as usize) else {
            return false;
        };
        let initiator = self.out.ops[id as usize].initiator();
        self.barriers.iter().rev().any(|barrier| {
            *last != NONE
                && *last >= barrier.first
                && id < barrier.first
                && self.out.sets[barrier.set as usize].contains(&initiator)
                && self.out.sets[barrier.set as usize].contains(&waiter)
        })
    }

    /// Let a participant that can see it tell the initiator of `op` that `id` meets `need`.
    fn notify(&mut self, op: &Op, id: u32, need: Need) -> Result<()> {
        let initiator = op.initiator();
        let witness = self.witness(id, need);
        if let Some(&notice) = self.last_notice.get(&(witness, initiator)) {
            if self.follows(&[(notice, Completion::Delivered)], id, need) {
                self.add_edge(Edge::on(notice), initiator);
                return Ok(());
            }
        }
        let seen = self
            .visible(id, need, witness)
            .expect("a witness sees the operation");
        let edges = std::mem::replace(&mut self.edges, vec![seen]);
        let notice = self.push(Op {
            from: witness,
            to: initiator,
            src: 0,
            dst: 0,
            count: 0,
            kind: OpKind::Notice,
            combine: Combine::Replace,
            src_buffer: BufferId(0),
            dst_buffer: BufferId(0),
            hint: Hint::None,
            scattered: false,
            ..*op
        })?;
        self.edges = edges;
        self.add_edge(Edge::on(notice), initiator);
        self.last_notice.insert((witness, initiator), notice);
        Ok(())
    }

    /// A rank that can see that operation `id` meets `need`: nearest to the chunk concerned.
    fn witness(&self, id: u32, need: Need) -> u32 {
        let op = &self.out.ops[id as usize];
        let near = match need {
            Need::SourceFree => op.from,
            Need::DeliveredAt(place) => place,
        };
        match near < self.out.ranks && self.visible(id, need, near).is_some() {
            true => near,
            false => op.initiator(),
        }
    }

    /// Enter operation `id` as reader and writer of its chunks, and into the fences.
    fn record(&mut self, id: u32) {
        let op = self.out.ops[id as usize];
        if op.moves_data() {
            for index in 0..self.out.range_count(&op) {
                let (src, dst, count) = self.out.range_at(&op, index);
                for k in 0..count {
                    self.cells.add_reader(op.from, op.src_buffer.0, src + k, id);
                    for t in 0..self.out.targets(&op).len() {
                        let target = self.out.targets(&op)[t];
                        self.cells.set_writer(target, op.dst_buffer.0, dst + k, id);
                    }
                }
            }
        }
        if self.fences.is_empty() {
            return;
        }
        let fence = &mut self.fences[op.initiator() as usize];
        match op.kind {
            OpKind::Fence | OpKind::Barrier => fence.0 = id,
            _ => fence.1.push(id),
        }
        if op.kind == OpKind::Barrier {
            let size = self.out.sets[op.to as usize].len() as u32;
            match self.barriers.last_mut() {
                Some(open) if open.set == op.to && id - open.first < size => open.last = id,
                _ => self.barriers.push(BarrierSpan {
                    first: id,
                    last: id,
                    set: op.to,
                }),
            }
        }
    }
}

/// Whether `participant` has buffers owned like `owner`.
pub(crate) fn owns(owner: Owner, participant: u32, ranks: u32) -> bool {
    match owner {
        Owner::Ranks => participant < ranks,
        Owner::One(one) => one.0 == participant,
    }
}
