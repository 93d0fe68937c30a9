//! The machine of the oracle: what has happened so far, what may happen next, and what is in the chunks.

use crate::ir::{Buffer, BufferId, Combine, Edge, Op, OpKind, Schedule};
use crate::spec::{Collective, Expected};
use std::collections::HashSet;
use std::rc::Rc;

/// Nothing wrong, or what is.
pub type Verdict = Result<(), String>;

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Start(usize),
    SourceFree(usize),
    /// At the target with this place in the list of targets; the end of what is no message.
    Delivered(usize, usize),
    Acknowledged(usize),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Status {
    started: bool,
    source_free: bool,
    pub delivered: Vec<bool>,
    acknowledged: bool,
    /// What was read at the start, chunk by chunk.
    carried: Vec<Vec<u64>>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    readers: u32,
    writers: u32,
    /// Contributions, each as often as it is counted.
    contents: Vec<u64>,
}

/// What does not change while a schedule runs.
pub(super) struct Plan {
    /// First cell of each (participant, buffer).
    base: Vec<usize>,
    /// Operation before each one in its lane.
    lane_before: Vec<Option<usize>>,
    /// Operations that arrive at the same barrier.
    together: Vec<Vec<usize>>,
    /// Cells that an operation reads, and that it writes at each target.
    reads: Vec<Vec<usize>>,
    writes: Vec<Vec<Vec<usize>>>,
}

#[derive(Clone)]
pub(super) struct Machine<'a> {
    schedule: &'a Schedule,
    plan: Rc<Plan>,
    pub status: Vec<Status>,
    cells: Vec<Cell>,
    /// Whether contents are followed, or only the use of the cells.
    pub with_contents: bool,
}

/// Everything that an operation names exists, and it does not conflict with itself.
pub(super) fn well_formed(s: &Schedule) -> Verdict {
    for (id, op) in s.ops().iter().enumerate() {
        if op.initiator() >= s.ranks {
            return Err(format!("t{id}: no rank issues it"));
        }
        if op.kind == OpKind::Barrier && !s.sets[op.to as usize].contains(&op.from) {
            return Err(format!("t{id}: not a member of its barrier"));
        }
        if matches!(op.kind, OpKind::Local | OpKind::Fence | OpKind::Compute) && op.from != op.to {
            return Err(format!("t{id}: not local"));
        }
        if op.kind == OpKind::Notice && op.to >= s.ranks {
            return Err(format!("t{id}: nobody can wait for it"));
        }
        if op.kind == OpKind::Multicast && s.targets(op).contains(&op.from) {
            return Err(format!("t{id}: multicast to itself"));
        }
        if op.kind == OpKind::Aggregate && s.targets(op)[0] != op.from {
            return Err(format!("t{id}: not initiated by its first target"));
        }
        let (src, dst) = (s.buffer(op.src_buffer), s.buffer(op.dst_buffer));
        let mut touched = HashSet::new();
        for (first, into, count) in s.chunk_ranges(op) {
            if first + count > src.chunks() || into + count > dst.chunks() {
                return Err(format!("t{id}: no such chunk"));
            }
            for k in 0..count {
                let length = |span: std::ops::Range<u64>| span.end - span.start;
                if length(src.span(s.elements, first + k..first + k + 1))
                    != length(dst.span(s.elements, into + k..into + k + 1))
                {
                    return Err(format!("t{id}: chunks of different length"));
                }
                if !touched.insert((op.dst_buffer, into + k)) {
                    return Err(format!("t{id}: writes a chunk twice"));
                }
            }
        }
        let in_place = |r: &(u32, u32, u32)| op.kind == OpKind::Aggregate && r.0 == r.1;
        let read = s.chunk_ranges(op).filter(|r| !in_place(r));
        let sources = read.flat_map(|r| r.0..r.0 + r.2);
        let both = |from: &u32| s.targets(op).contains(from);
        let inside = op.moves_data() && s.sources(op).iter().any(both);
        if inside
            && sources
                .into_iter()
                .any(|c| touched.contains(&(op.src_buffer, c)))
        {
            return Err(format!("t{id}: reads what it writes"));
        }
    }
    Ok(())
}

impl<'a> Machine<'a> {
    pub fn new(s: &'a Schedule) -> Result<Self, String> {
        let cell = |(who, id, chunk): (u32, usize, u32)| {
            let first = s.spec.initial(s.ranks, who, &s.buffers[id], chunk);
            Cell {
                contents: first
                    .map(|chunk| contribution(who, chunk))
                    .into_iter()
                    .collect(),
                ..Cell::default()
            }
        };
        let status = |op: &Op| Status {
            delivered: vec![
                false;
                if op.is_message() {
                    s.targets(op).len()
                } else {
                    1
                }
            ],
            ..Status::default()
        };
        Ok(Machine {
            schedule: s,
            plan: Rc::new(Plan::of(s)?),
            status: s.ops().iter().map(status).collect(),
            cells: places(s).map(cell).collect(),
            with_contents: true,
        })
    }

    pub fn events(&self) -> Vec<Event> {
        let of = |(op, status): (usize, &Status)| {
            let delivered = (0..status.delivered.len()).map(move |t| Event::Delivered(op, t));
            [
                Event::Start(op),
                Event::SourceFree(op),
                Event::Acknowledged(op),
            ]
            .into_iter()
            .chain(delivered)
        };
        self.status.iter().enumerate().flat_map(of).collect()
    }

    /// Whether the rank that issues a waiting operation can see that its wait is over.
    fn is_over(&self, edge: Edge, waiter: u32) -> bool {
        let Some(status) = self.status.get(edge.op() as usize) else {
            return false;
        };
        let op = &self.schedule.ops()[edge.op() as usize];
        let delivered = status.delivered.iter().all(|&d| d);
        match op.kind {
            OpKind::Local | OpKind::Compute | OpKind::Fence | OpKind::Barrier => {
                waiter == op.from && delivered
            }
            OpKind::Get => waiter == op.to && delivered,
            _ if edge.is_acknowledged() => waiter == op.from && status.acknowledged,
            OpKind::Multicast if waiter == op.from => status.source_free,
            OpKind::Multicast | OpKind::Aggregate => (self.schedule.targets(op).iter())
                .position(|&target| target == waiter)
                .is_some_and(|place| status.delivered[place]),
            OpKind::Put | OpKind::Notice if waiter == op.to => delivered,
            OpKind::Put | OpKind::Notice => waiter == op.from && status.source_free,
        }
    }

    pub fn may(&self, event: Event) -> bool {
        match event {
            Event::Start(id) => {
                let waiter = self.schedule.ops()[id].initiator();
                let edges = self.schedule.after(id as u32);
                !self.status[id].started
                    && self.plan.lane_before[id].is_none_or(|before| self.status[before].started)
                    && edges.iter().all(|&edge| self.is_over(edge, waiter))
            }
            Event::SourceFree(id) => self.status[id].started && !self.status[id].source_free,
            Event::Delivered(id, target) => {
                let status = &self.status[id];
                let kind = self.schedule.ops()[id].kind;
                let ready = match kind {
                    OpKind::Multicast => status.started,
                    OpKind::Barrier => {
                        (self.plan.together[id].iter()).all(|&o| self.status[o].started)
                    }
                    _ => status.source_free,
                };
                ready && !status.delivered[target]
            }
            Event::Acknowledged(id) => {
                let status = &self.status[id];
                let all = status.source_free && status.delivered.iter().all(|&d| d);
                all && !status.acknowledged
            }
        }
    }

    pub fn fire(&mut self, event: Event) -> Verdict {
        let plan = self.plan.clone();
        match event {
            Event::Start(id) => {
                self.status[id].started = true;
                let op = &self.schedule.ops()[id];
                let each = plan.reads[id].len() / self.schedule.sources(op).len();
                for (nth, &cell) in plan.reads[id].iter().enumerate() {
                    let cell = &mut self.cells[cell];
                    if cell.writers > 0 {
                        return Err(format!("t{id} reads what is being written"));
                    }
                    cell.readers += 1;
                    if self.with_contents {
                        if cell.contents.is_empty() {
                            return Err(format!("t{id} reads nothing"));
                        }
                        let carried = &mut self.status[id].carried;
                        match carried.get_mut(nth % each) {
                            Some(met) => met.extend(cell.contents.clone()),
                            None => carried.push(cell.contents.clone()),
                        }
                    }
                }
                for &cell in plan.writes[id].iter().flatten() {
                    // An aggregation may write what it reads itself: it delivers when all is read.
                    let own = op.kind == OpKind::Aggregate && plan.reads[id].contains(&cell);
                    if self.cells[cell].writers + self.cells[cell].readers > u32::from(own) {
                        return Err(format!("t{id} writes what is in use"));
                    }
                    self.cells[cell].writers += 1;
                }
            }
            Event::SourceFree(id) => {
                self.status[id].source_free = true;
                for &cell in &plan.reads[id] {
                    self.cells[cell].readers -= 1;
                }
            }
            Event::Delivered(id, place) => {
                self.status[id].delivered[place] = true;
                for (k, &cell) in plan.writes[id].get(place).into_iter().flatten().enumerate() {
                    self.cells[cell].writers -= 1;
                    if self.with_contents {
                        self.arrive(id, k, cell)?;
                    }
                }
            }
            Event::Acknowledged(id) => self.status[id].acknowledged = true,
        }
        Ok(())
    }

    fn arrive(&mut self, id: usize, k: usize, cell: usize) -> Verdict {
        let carried = self.status[id].carried[k].clone();
        let contents = &mut self.cells[cell].contents;
        match self.schedule.ops()[id].combine {
            Combine::Replace => *contents = carried,
            Combine::Reduce if contents.is_empty() => {
                return Err(format!("t{id} combines with nothing"));
            }
            Combine::Reduce => contents.extend(carried),
        }
        Ok(())
    }

    pub fn fire_if_possible(&mut self, event: Event) -> Result<bool, String> {
        match self.may(event) {
            true => self.fire(event).map(|()| true),
            false => Ok(false),
        }
    }

    /// Every operation alone, one after another: each must be able to run when its turn comes.
    pub fn run_by_id(&mut self) -> Verdict {
        (0..self.status.len()).try_for_each(|id| self.run_next(id))
    }

    pub fn run_next(&mut self, id: usize) -> Verdict {
        if !self.fire_if_possible(Event::Start(id))? {
            return Err(format!("t{id} cannot start when all before it are over"));
        }
        self.finish(id, None)?;
        for other in self.plan.together[id].clone() {
            self.finish(other, None)?;
        }
        Ok(())
    }

    /// All completions of an operation that can happen now.
    fn finish(&mut self, id: usize, withheld: Option<Event>) -> Result<bool, String> {
        let mut happened = false;
        let places = self.status[id].delivered.len();
        let delivered = (0..places).map(|place| Event::Delivered(id, place));
        let all = [Event::SourceFree(id)].into_iter().chain(delivered);
        for event in all.chain([Event::Acknowledged(id)]) {
            if Some(event) != withheld {
                happened |= self.fire_if_possible(event)?;
            }
        }
        Ok(happened)
    }

    /// Everything from operation `id` on that can happen before `withheld` does, and barriers that
    /// earlier operations have reached.
    pub fn run_without(&mut self, id: usize, withheld: Event) -> Verdict {
        let unfinished = |status: &Status| status.started && !status.acknowledged;
        let id = self.status.iter().position(unfinished).unwrap_or(id);
        let mut happened = true;
        while happened {
            happened = false;
            for id in id..self.status.len() {
                happened |= self.fire_if_possible(Event::Start(id))?;
                happened |= self.finish(id, Some(withheld))?;
            }
        }
        Ok(())
    }

    pub fn check_result(&self) -> Verdict {
        let s = self.schedule;
        if !self.status.iter().all(|status| status.acknowledged) {
            return Err("stuck".to_string());
        }
        let has_output = |who: u32| {
            let mut outputs = s.buffers.iter().filter(|buffer| buffer.name == "output");
            outputs.any(|buffer| buffer.owner.includes(who, s.ranks))
        };
        // Who has nowhere to put its result has not got it.
        let lacks = match s.spec.collective {
            Collective::Barrier | Collective::Pattern => false,
            Collective::Gather | Collective::Reduce => !has_output(s.spec.root),
            _ => !(0..s.ranks).all(has_output),
        };
        if lacks {
            return Err("a rank that is due a result has no output".to_string());
        }
        for (who, id, chunk) in places(s) {
            let buffer = &s.buffers[id];
            let expected = match s.spec.expected(s.ranks, who, buffer, chunk) {
                Expected::Any => continue,
                Expected::Held { chunk } => {
                    let holders = s.holders();
                    let ranks = holders.at(chunk / buffer.slices).iter();
                    ranks.map(|&rank| contribution(rank, chunk)).collect()
                }
                Expected::One { rank, chunk } => vec![contribution(rank, chunk)],
                Expected::All { chunk } => {
                    (0..s.ranks).map(|rank| contribution(rank, chunk)).collect()
                }
            };
            let cell = self.plan.cell(s, who, id as u8, chunk)?;
            let mut found = self.cells[cell].contents.clone();
            found.sort_unstable();
            if found != expected {
                return Err(format!("{who}: {}[{chunk}] is wrong", buffer.name));
            }
        }
        Ok(())
    }
}

/// Every (participant, buffer, chunk) that there is, one for each cell.
fn places(s: &Schedule) -> impl Iterator<Item = (u32, usize, u32)> + '_ {
    (0..s.ranks + s.memories).flat_map(move |who| {
        let owned = move |(_, buffer): &(usize, &Buffer)| buffer.owner.includes(who, s.ranks);
        let buffers = s.buffers.iter().enumerate().filter(owned);
        buffers
            .flat_map(move |(id, buffer)| (0..buffer.chunks()).map(move |chunk| (who, id, chunk)))
    })
}

impl Plan {
    fn of(s: &Schedule) -> Result<Self, String> {
        let ops = s.ops();
        let lane = |id: usize| (ops[id].initiator(), ops[id].lane);
        let lane_before = |id| (0..id).rev().find(|&before| lane(before) == lane(id));
        let mut base = vec![usize::MAX; (s.ranks + s.memories) as usize * s.buffers.len()];
        for (cell, (who, id, _)) in places(s).enumerate() {
            let base = &mut base[who as usize * s.buffers.len() + id];
            *base = cell.min(*base);
        }
        let mut plan = Plan {
            base,
            lane_before: (0..ops.len()).map(lane_before).collect(),
            together: barriers(s)?,
            reads: Vec::new(),
            writes: Vec::new(),
        };
        for op in ops {
            let from: Vec<u32> = s.chunk_ranges(op).flat_map(|r| r.0..r.0 + r.2).collect();
            let into = || s.chunk_ranges(op).flat_map(|r| r.1..r.1 + r.2);
            let targets = if op.moves_data() { s.targets(op) } else { &[] };
            let at_target = |&target| plan.cells(s, target, op.dst_buffer, into());
            let mut reads = Vec::new();
            for &source in s.sources(op) {
                reads.extend(plan.cells(s, source, op.src_buffer, from.clone())?);
            }
            let writes = targets.iter().map(at_target).collect::<Result<_, _>>()?;
            plan.reads.push(reads);
            plan.writes.push(writes);
        }
        Ok(plan)
    }

    fn cells(
        &self,
        s: &Schedule,
        who: u32,
        buffer: BufferId,
        chunks: impl IntoIterator<Item = u32>,
    ) -> Result<Vec<usize>, String> {
        chunks
            .into_iter()
            .map(|chunk| self.cell(s, who, buffer.0, chunk))
            .collect()
    }

    fn cell(&self, s: &Schedule, who: u32, buffer: u8, chunk: u32) -> Result<usize, String> {
        match self.base[who as usize * s.buffers.len() + buffer as usize] {
            usize::MAX => Err(format!("{who} has no such buffer")),
            base => Ok(base + chunk as usize),
        }
    }
}

fn contribution(rank: u32, chunk: u32) -> u64 {
    u64::from(rank) << 32 | u64::from(chunk)
}

/// For every arrival at a barrier all arrivals at the same one: the k-th of each rank.
fn barriers(s: &Schedule) -> Result<Vec<Vec<usize>>, String> {
    let ops = s.ops();
    let arrivals: Vec<usize> = (0..ops.len())
        .filter(|&id| ops[id].kind == OpKind::Barrier)
        .collect();
    let turn = |id: usize| {
        let same = |&other: &usize| {
            other < id && (ops[other].from, ops[other].to) == (ops[id].from, ops[id].to)
        };
        arrivals.iter().filter(|other| same(other)).count()
    };
    let mut together = vec![Vec::new(); ops.len()];
    for &id in &arrivals {
        together[id] = (arrivals.iter().copied())
            .filter(|&other| ops[other].to == ops[id].to && turn(other) == turn(id))
            .collect();
        if together[id].len() != s.sets[ops[id].to as usize].len() {
            return Err(format!("t{id} waits for ranks that never arrive"));
        }
    }
    Ok(together)
}
