//! Notices go first: a partner should not wait for what has long been known.
//!
//! The ordering pass finds that a notice is needed when it comes to the operation that waits for
//! it, and puts it there. In an exchange that is after the sender's own transfer of the same step:
//!
//! ```text
//!   found:    A->B transfer,  A->B "my buffer is free",  B->A transfer      B waits for A's bytes
//!   hoisted:  A->B "my buffer is free",  A->B transfer,  B->A transfer      both at once
//! ```
//!
//! A notice that waits only for operations of earlier steps moves to the front of its step. Its
//! waits stay smaller than itself, and operations that are no notices keep their order in their
//! lanes, so ids remain a topological order.

use crate::ir::{Edge, Op, OpKind, Schedule};
use std::ops::Range;

/// Move notices to the front of their steps where what they wait for allows it.
pub(crate) fn hoist(schedule: &mut Schedule) {
    let mut moves = Moves {
        schedule,
        new_ids: Vec::new(),
        ops: Vec::new(),
        edges: Vec::new(),
        counts: Vec::new(),
    };
    let mut first = 0;
    while let Some(op) = moves.schedule.ops.get(first as usize) {
        let (step, rest) = (op.step, &moves.schedule.ops[first as usize..]);
        let length = rest.iter().position(|op| op.step != step);
        let ids = first..first + length.unwrap_or(rest.len()) as u32;
        first = ids.end;
        let order = moves.hoisted(&ids);
        if !order.is_empty() {
            moves.reorder(&ids, &order);
        }
        moves.follow(&ids);
    }
}

/// Steps are put in order one after another, in place.
struct Moves<'a> {
    schedule: &'a mut Schedule,
    /// New id of every operation; empty as long as nothing has moved.
    new_ids: Vec<u32>,
    /// A step in its new order.
    ops: Vec<Op>,
    edges: Vec<Edge>,
    counts: Vec<u32>,
}

impl Moves<'_> {
    /// The operations `ids` of a step in their new order; empty where nothing moves.
    fn hoisted(&self, ids: &Range<u32>) -> Vec<u32> {
        let is_notice = |id: u32| self.schedule.ops[id as usize].kind == OpKind::Notice;
        // New ids of operations before the step are still ids before the step.
        let ready = |id: u32| self.schedule.after(id).iter().all(|e| e.op() < ids.start);
        let early = |id: &u32| is_notice(*id) && ready(*id);
        let mut order: Vec<u32> = ids.clone().filter(early).collect();
        if order
            .iter()
            .zip(ids.start..)
            .all(|(&id, place)| id == place)
        {
            return Vec::new();
        }
        let mut moved = order.clone().into_iter().peekable();
        order.extend(ids.clone().filter(|id| moved.next_if_eq(id).is_none()));
        order
    }

    fn reorder(&mut self, ids: &Range<u32>, order: &[u32]) {
        let s = &mut *self.schedule;
        if self.new_ids.is_empty() {
            self.new_ids = (0..s.ops.len() as u32).collect();
        }
        self.ops.clear();
        self.edges.clear();
        self.counts.clear();
        for (place, &old) in (ids.start..).zip(order) {
            self.new_ids[old as usize] = place;
            self.ops.push(s.ops[old as usize]);
            self.edges.extend_from_slice(s.after(old));
            self.counts.push(s.after(old).len() as u32);
        }
        let (start, end) = (ids.start as usize, ids.end as usize);
        s.ops[start..end].copy_from_slice(&self.ops);
        let mut at = s.edge_start[start];
        let last = s.edge_start[end];
        s.edges[at as usize..last as usize].copy_from_slice(&self.edges);
        for (edge_start, count) in s.edge_start[start..end].iter_mut().zip(&self.counts) {
            *edge_start = at;
            at += count;
        }
    }

    /// Let the edges of the operations `ids` lead to the new ids.
    fn follow(&mut self, ids: &Range<u32>) {
        if self.new_ids.is_empty() {
            return;
        }
        let s = &mut *self.schedule;
        let edges = s.edge_start[ids.start as usize]..s.edge_start[ids.end as usize];
        for edge in &mut s.edges[edges.start as usize..edges.end as usize] {
            *edge = edge.with_op(self.new_ids[edge.op() as usize]);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::builder::Shape;
    use crate::collectives::find;
    use crate::ir::OpKind;

    #[test]
    fn ready_notices_precede_the_transfers_of_their_step() {
        let exchange = find("allreduce/recursive_doubling_latency").unwrap();
        let schedule = (exchange.build)(&Shape::new(4, 8)).unwrap();
        let kinds: Vec<OpKind> = schedule.ops().iter().map(|op| op.kind).collect();
        let (put, local, notice) = (OpKind::Put, OpKind::Local, OpKind::Notice);
        let steps = [[put; 4], [local; 4], [notice; 4], [put; 4], [local; 4]];
        assert_eq!(kinds, steps.concat());
        crate::verify::verify(&schedule).unwrap();
    }
}
