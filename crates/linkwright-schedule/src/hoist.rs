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

use crate::ir::{Edge, OpKind, Schedule};

/// Move notices to the front of their steps where what they wait for allows it.
pub(crate) fn hoist(schedule: Schedule) -> Schedule {
    let Some(order) = hoisted(&schedule) else {
        return schedule;
    };
    let mut new_id = vec![0; order.len()];
    for (id, &old) in order.iter().enumerate() {
        new_id[old as usize] = id as u32;
    }
    let mut ops = Vec::with_capacity(order.len());
    let mut edges: Vec<Edge> = Vec::with_capacity(schedule.edges.len());
    let mut edge_start = Vec::with_capacity(schedule.edge_start.len());
    edge_start.push(0);
    for &old in &order {
        ops.push(schedule.ops[old as usize]);
        let moved = schedule.after(old).iter();
        edges.extend(moved.map(|edge| edge.with_op(new_id[edge.op() as usize])));
        edge_start.push(edges.len() as u32);
    }
    Schedule {
        ops,
        edges,
        edge_start,
        ..schedule
    }
}

/// Old ids in their new order; `None` where nothing moves.
fn hoisted(schedule: &Schedule) -> Option<Vec<u32>> {
    let ops = &schedule.ops;
    let mut order = Vec::new();
    let mut moves = false;
    let mut first = 0;
    for step in ops.chunk_by(|a, b| a.step == b.step) {
        let ids = first as u32..(first + step.len()) as u32;
        let early = |id: &u32| {
            ops[*id as usize].kind == OpKind::Notice
                && schedule.after(*id).iter().all(|edge| edge.op() < ids.start)
        };
        let before = order.len();
        order.extend(ids.clone().filter(early));
        moves |= (order[before..].iter().enumerate()).any(|(i, &id)| id != ids.start + i as u32);
        order.extend(ids.clone().filter(|id| !early(id)));
        first += step.len();
    }
    moves.then_some(order)
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
