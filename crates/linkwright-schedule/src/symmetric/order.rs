//! From a program to a folded schedule: hazards become waits and notices, as in `crate::order`.
//!
//! The rules are those of the whole schedule, applied to instances (operation, offset of its rank). A
//! chunk of rank 0 is read by rank 0, and written by operation k of the rank at offset back(`to`). All
//! instances of one operation are entered at once: none depends on another, because conflicts within a
//! step went through scratch. So a hazard always leads to an earlier operation.
//!
//! A notice goes from a witness at offset w to rank 0, hence from rank 0 to the rank back(w).

use super::cells::Cells;
use super::folded::{Folded, Instance, Wait};
use super::program::Program;
use super::step::close_steps;
use super::Group;
use crate::accesses::NONE;
use crate::error::{Result, ScheduleError};
use crate::ir::{Completion, Op, OpKind, MAX_OPS};
use crate::order::Need;

/// Instances visited by one search for an implied wait; as in `crate::order`.
const SEARCH_LIMIT: usize = 48;

/// A chain of deliveries runs from rank to rank: rank 0's part of it in operation k began `began`
/// steps on.
#[derive(Clone, Copy)]
struct Link {
    chain: u32,
    place: u32,
    began: u32,
}

struct Orderer {
    group: Group,
    /// Operations stand in their places already, until the first notice comes between them.
    out: Folded,
    /// Those behind the first notice.
    behind: Option<std::vec::IntoIter<Op>>,
    cells: Cells,
    links: Vec<Link>,
    /// Last operation of each chain.
    tail: Vec<u32>,
    /// Last notice from each witness.
    last_notice: Vec<(u32, u32)>,
    /// What was issued since the last fence; only where there are fences.
    issued_since: Vec<u32>,
    /// What the last fence waited for, and its lane.
    fence_waits: (Vec<u32>, u8),
    fenced: bool,
    /// What has to be known about earlier instances; participants are offsets from the waiting rank.
    needs: Vec<(Instance, Need)>,
    proven: Vec<(Instance, Completion)>,
    waits: Vec<Wait>,
    stack: Vec<(Instance, Completion)>,
    seen: Vec<Instance>,
}

impl Program {
    /// The schedule of one rank, which represents all; `fused` where transfers may combine.
    pub fn fold(self, fused: bool) -> Result<Folded> {
        let program = close_steps(self, fused)?;
        let count = program.ops.len();
        let mut orderer = Orderer {
            group: program.group,
            cells: Cells::new(&program.buffers),
            fenced: program.ops.iter().any(|op| op.fenced),
            out: Folded {
                program,
                wait_start: Vec::with_capacity(count + 1),
                waits: Vec::with_capacity(count),
            },
            behind: None,
            links: Vec::with_capacity(count),
            tail: Vec::new(),
            last_notice: Vec::new(),
            issued_since: Vec::new(),
            fence_waits: (Vec::new(), 0),
            needs: Vec::new(),
            proven: Vec::new(),
            waits: Vec::new(),
            stack: Vec::new(),
            seen: Vec::new(),
        };
        orderer.out.wait_start.push(0);
        while let Some(op) = orderer.next() {
            orderer.add(op)?;
        }
        Ok(hoist(orderer.out))
    }
}

impl Orderer {
    /// The next operation that is to be ordered.
    fn next(&mut self) -> Option<Op> {
        match &mut self.behind {
            Some(behind) => behind.next(),
            None => self.out.program.ops.get(self.links.len()).copied(),
        }
    }

    /// Put `op` in its place, the next one.
    fn place(&mut self, op: Op) {
        let ops = &mut self.out.program.ops;
        if self.behind.is_none() {
            if op.kind != OpKind::Notice {
                return;
            }
            let mut behind = ops.split_off(self.links.len()).into_iter();
            // The operation that is being added follows its notice.
            behind.next();
            self.behind = Some(behind);
        }
        ops.push(op);
    }

    fn add(&mut self, op: Op) -> Result<()> {
        self.collect(&op);
        self.resolve(&op)?;
        let k = self.push(op)?;
        self.record(k, &op);
        Ok(())
    }

    fn op(&self, k: u32) -> &Op {
        &self.out.program.ops[k as usize]
    }

    /// Append `op` with the waits gathered; continue or open its chain.
    fn push(&mut self, op: Op) -> Result<u32> {
        let k = self.links.len() as u32;
        if k as usize >= MAX_OPS {
            return Err(ScheduleError::TooLarge(MAX_OPS as u64));
        }
        let continued = self.waits.iter().find_map(|wait| {
            let link = self.links[wait.op() as usize];
            let strong = self.completion(*wait) == Completion::Delivered;
            let last = self.tail[link.chain as usize] == wait.op();
            (strong && last).then_some((wait.rank(), link))
        });
        let link = match continued {
            Some((rank, link)) => {
                self.tail[link.chain as usize] = k;
                Link {
                    place: link.place + 1,
                    began: self.group.act(rank, link.began),
                    ..link
                }
            }
            None => {
                self.tail.push(k);
                Link {
                    chain: self.tail.len() as u32 - 1,
                    place: 0,
                    began: 0,
                }
            }
        };
        self.place(op);
        self.links.push(link);
        self.out.waits.append(&mut self.waits);
        self.out.wait_start.push(self.out.waits.len() as u32);
        Ok(k)
    }

    /// What satisfying `wait` tells the waiter; the waits made here are all visible.
    #[inline]
    fn completion(&self, wait: Wait) -> Completion {
        let known = self.out.completion(wait);
        known.expect("a wait is visible to its waiter")
    }

    /// Gather what `op` of rank 0 needs.
    fn collect(&mut self, op: &Op) {
        self.needs.clear();
        let (program, group) = (&self.out.program, self.group);
        // Who wrote a chunk of the rank `at` by operation `writer`, seen from rank 0.
        let wrote = |writer: u32, at: u32| {
            let sender = group.back(program.ops[writer as usize].to);
            (writer, group.act(at, sender))
        };
        let (needs, cells) = (&mut self.needs, &self.cells);
        for (src, _, count) in program.ranges_of(op) {
            for chunk in src..src + count {
                let writer = cells.accesses.writer(cells.at(op.src_buffer, chunk));
                if writer != NONE {
                    needs.push((wrote(writer, 0), Need::DeliveredAt(0)));
                }
            }
        }
        for (_, dst, count) in program.ranges_of(op) {
            for chunk in dst..dst + count {
                let cell = cells.at(op.dst_buffer, chunk);
                let writer = cells.accesses.writer(cell);
                if writer != NONE {
                    needs.push((wrote(writer, op.to), Need::DeliveredAt(op.to)));
                }
                let reader = |reader| needs.push(((reader, op.to), Need::SourceFree));
                cells.accesses.each_reader(cell, reader);
            }
        }
        if op.fenced {
            self.fence_waits = (std::mem::take(&mut self.issued_since), op.lane);
        }
        if op.fenced || op.lane != self.fence_waits.1 {
            let complete = |&k: &u32| ((k, 0), Need::DeliveredAt(program.ops[k as usize].to));
            needs.extend(self.fence_waits.0.iter().map(complete));
        }
    }

    /// Turn the needs into the fewest waits known to suffice, adding notices where necessary.
    fn resolve(&mut self, op: &Op) -> Result<()> {
        self.waits.clear();
        self.proven.clear();
        let mut needs = std::mem::take(&mut self.needs);
        // Latest first: a late operation implies most of the earlier ones.
        needs.sort_by_key(|need| std::cmp::Reverse(need.0));
        needs.dedup();
        let mut remote = Vec::new();
        for &(id, need) in &needs {
            match self.visible(id, need, 0) {
                Some(wait) if !self.implied(id, need) => self.wait_for(wait),
                Some(_) => self.prove(id, need),
                None => remote.push((id, need)),
            }
        }
        self.needs = needs;
        for (id, need) in remote {
            if !self.implied(id, need) {
                self.notify(op, id, need)?;
            }
            self.prove(id, need);
        }
        Ok(())
    }

    fn prove(&mut self, id: Instance, need: Need) {
        let known = match need {
            Need::SourceFree => Completion::SourceFree,
            Need::DeliveredAt(_) => Completion::Delivered,
        };
        self.proven.push((id, known));
    }

    fn wait_for(&mut self, wait: Wait) {
        let known = self.completion(wait);
        self.proven.push(((wait.op(), wait.rank()), known));
        let same = |w: &&mut Wait| (w.op(), w.rank()) == (wait.op(), wait.rank());
        match self.waits.iter_mut().find(same) {
            Some(known) if wait.is_acknowledged() => *known = wait,
            Some(_) => {}
            None => self.waits.push(wait),
        }
    }

    /// The wait by which the rank at offset `at` can see that instance `id` meets `need`.
    fn visible(&self, id: Instance, need: Need, at: u32) -> Option<Wait> {
        let (op, group) = (self.op(id.0), self.group);
        let seen = group.act(group.back(at), id.1);
        if op.is_message() && group.act(id.1, op.to) == at {
            return Some(Wait::on(id.0, seen));
        }
        match (seen == 0, op.is_message(), need) {
            (false, ..) => None,
            (true, true, Need::DeliveredAt(_)) => Some(Wait::acknowledged(id.0)),
            (true, ..) => Some(Wait::on(id.0, 0)),
        }
    }

    fn implied(&mut self, id: Instance, need: Need) -> bool {
        self.stack.clear();
        self.stack.extend_from_slice(&self.proven);
        self.follows(id, need)
    }

    /// Whether instance `id` meets `need` once all on the stack has happened.
    fn follows(&mut self, id: Instance, need: Need) -> bool {
        let Orderer {
            group,
            out,
            links,
            stack,
            seen,
            ..
        } = self;
        seen.clear();
        let goal = links[id.0 as usize];
        let begins = group.act(id.1, goal.began);
        while let Some((at, known)) = stack.pop() {
            let delivered = known == Completion::Delivered;
            let source_free = delivered || known == Completion::SourceFree;
            if at == id && (delivered || (source_free && need == Need::SourceFree)) {
                return true;
            }
            let link = links[at.0 as usize];
            let same_chain = link.chain == goal.chain && group.act(at.1, link.began) == begins;
            if delivered && same_chain && link.place >= goal.place {
                return true;
            }
            // Waits lead to operations before.
            if at.0 <= id.0 || seen.len() >= SEARCH_LIMIT || seen.contains(&at) {
                continue;
            }
            seen.push(at);
            for &wait in out.after(at.0) {
                let known = out.completion(wait).expect("visible");
                stack.push(((wait.op(), group.act(at.1, wait.rank())), known));
            }
        }
        false
    }

    /// Let a rank that can see it tell rank 0 that instance `id` meets `need`.
    fn notify(&mut self, op: &Op, id: Instance, need: Need) -> Result<()> {
        let witness = self.witness(id, need);
        let last = self.last_notice.iter().position(|l| l.0 == witness);
        if let Some(at) = last {
            let notice = (self.last_notice[at].1, witness);
            self.stack.clear();
            self.stack.push((notice, Completion::Delivered));
            if self.follows(id, need) {
                self.wait_for(Wait::on(notice.0, notice.1));
                return Ok(());
            }
        }
        let seen = self.visible(id, need, witness);
        let seen = seen.expect("a witness sees the operation");
        let waits = std::mem::replace(&mut self.waits, vec![seen]);
        // The witness of what rank 0 waits for comes first.
        let notice = self.push(op.notice(witness, self.group.back(witness)))?;
        self.waits = waits;
        self.wait_for(Wait::on(notice, witness));
        match last {
            Some(at) => self.last_notice[at].1 = notice,
            None => self.last_notice.push((witness, notice)),
        }
        Ok(())
    }

    /// A rank that can see that `id` meets `need`: nearest to the chunk concerned.
    fn witness(&self, id: Instance, need: Need) -> u32 {
        let near = match need {
            Need::SourceFree => id.1,
            Need::DeliveredAt(place) => place,
        };
        match self.visible(id, need, near) {
            Some(_) => near,
            None => id.1,
        }
    }

    /// Enter operation `k` as reader and writer of its chunks, and into the fences.
    fn record(&mut self, k: u32, op: &Op) {
        let (program, cells) = (&self.out.program, &mut self.cells);
        for (src, _, count) in program.ranges_of(op) {
            for chunk in src..src + count {
                cells.accesses.add_reader(cells.at(op.src_buffer, chunk), k);
            }
        }
        for (_, dst, count) in program.ranges_of(op) {
            for chunk in dst..dst + count {
                let cell = cells.at(op.dst_buffer, chunk);
                cells.accesses.write(cell, k, |_| {});
            }
        }
        if self.fenced {
            self.issued_since.push(k);
        }
    }
}

/// Move notices to the front of their steps, see `crate::hoist`; none waits for its own step.
fn hoist(mut folded: Folded) -> Folded {
    let ops = folded.ops();
    if !ops.iter().any(|op| op.kind == OpKind::Notice) {
        return folded;
    }
    let mut order: Vec<u32> = (0..ops.len() as u32).collect();
    let is_late = |&k: &u32| (ops[k as usize].step, ops[k as usize].kind != OpKind::Notice);
    order.sort_by_key(is_late);
    let mut new_id = vec![0; order.len()];
    for (id, &old) in (0u32..).zip(&order) {
        new_id[old as usize] = id;
    }
    let (mut waits, mut wait_start) = (Vec::with_capacity(folded.waits.len()), vec![0]);
    for &old in &order {
        let moved = folded.after(old).iter();
        waits.extend(moved.map(|wait| wait.with_op(new_id[wait.op() as usize])));
        wait_start.push(waits.len() as u32);
    }
    folded.program.ops = order
        .iter()
        .map(|&old| folded.ops()[old as usize])
        .collect();
    Folded {
        waits,
        wait_start,
        ..folded
    }
}
