//! Schedules with one mistake, of every kind that the judge of verify knows:
//!
//! ```text
//!   delete, duplicate       an operation is missing, or stands there twice
//!   retarget                another source, destination or set
//!   shift, range            another chunk, or one chunk fewer
//!   combine, lane           replaced instead of combined, issued in another lane
//!   swap, exchange          two operations change places, without or with their edges
//!   unwait, move            an edge is missing, or leads to the operation before or after
//!   hurry, acknowledgement  an edge no longer waits for the acknowledgement, or waits for it too
//!   merge                   two steps become one: nothing of the second waits for the first
//!   root                    another rank is the root of the spec
//! ```

use crate::ir::{Combine, Edge, Op, OpKind, Schedule};

/// One change of a schedule.
#[derive(Clone, Debug)]
pub enum Change {
    /// Operation removed, with all edges to it.
    Delete(usize),
    /// Operation done twice, the second time right after the first, with the same edges.
    Duplicate(usize),
    /// Operation replaced; its edges stay.
    Replace(usize, Op),
    /// Two operations change places, the edges stay where they are.
    Swap(usize, usize),
    /// Two operations change places together with their edges.
    Exchange(usize, usize),
    /// Edge removed, by its place in the table of edges.
    Unwait(usize),
    /// Edge leads to another operation.
    Move(usize, u32),
    /// Edge waits for less: no longer for the acknowledgement.
    Hurry(usize),
    /// Edge waits for the acknowledgement.
    Acknowledge(usize),
    /// This step and the next one become one, without edges between the two.
    Merge(u32),
    /// Another rank is the root.
    Root(u32),
}

impl Change {
    /// Its name without its place.
    pub fn kind(&self) -> String {
        format!("{self:?}").split('(').next().unwrap().to_string()
    }
}

/// All changes of one operation of a schedule.
pub fn changes(s: &Schedule) -> Vec<Change> {
    let mut all = Vec::new();
    for (id, op) in s.ops().iter().enumerate() {
        all.extend([Change::Delete(id), Change::Duplicate(id)]);
        all.extend(
            retargeted(s, op)
                .into_iter()
                .map(|op| Change::Replace(id, op)),
        );
        for other in id + 1..s.ops().len() {
            all.push(Change::Swap(id, other));
            all.push(Change::Exchange(id, other));
        }
    }
    for (index, edge) in s.edges.iter().enumerate() {
        all.push(Change::Unwait(index));
        all.push(match edge.is_acknowledged() {
            true => Change::Hurry(index),
            false => Change::Acknowledge(index),
        });
        let waiter = waiter(s, index) as u32;
        let near = [edge.op().wrapping_sub(1), edge.op() + 1];
        let earlier = near.into_iter().filter(|&op| op < waiter);
        all.extend(earlier.map(|op| Change::Move(index, op)));
    }
    let last = s.ops().last().map_or(0, |op| op.step);
    all.extend((0..last).map(Change::Merge));
    if s.spec.collective.is_rooted() {
        let others = (0..s.ranks).filter(|&rank| rank != s.spec.root);
        all.extend(others.map(Change::Root));
    }
    all
}

/// The operation to which the edge at a place in the table belongs.
fn waiter(s: &Schedule, index: usize) -> usize {
    s.edge_start
        .partition_point(|&start| start as usize <= index)
        - 1
}

/// The operation with another source, destination, chunk, combination or lane.
fn retargeted(s: &Schedule, op: &Op) -> Vec<Op> {
    let mut all = Vec::new();
    let uses_set = matches!(op.kind, OpKind::Multicast | OpKind::Barrier);
    for rank in 0..s.ranks {
        match op.kind {
            OpKind::Aggregate => all.push(Op { from: rank, ..*op }),
            OpKind::Local | OpKind::Compute | OpKind::Fence => all.push(Op {
                from: rank,
                to: rank,
                ..*op
            }),
            _ => {
                all.push(Op { from: rank, ..*op });
                if !uses_set {
                    all.push(Op { to: rank, ..*op });
                }
            }
        }
    }
    if uses_set {
        all.extend((0..s.sets.len() as u32).map(|to| Op { to, ..*op }));
    }
    if op.kind == OpKind::Aggregate {
        let initiator = |&(_, targets): &(u32, u32)| s.sets[targets as usize][0];
        let pairs = (0u32..).zip(s.aggregations.iter().map(initiator));
        all.extend(pairs.map(|(to, from)| Op { from, to, ..*op }));
    }
    if op.moves_data() && !op.scattered {
        let last = |buffer| s.buffer(buffer).chunks() - op.count;
        all.extend((0..=last(op.src_buffer)).map(|src| Op { src, ..*op }));
        all.extend((0..=last(op.dst_buffer)).map(|dst| Op { dst, ..*op }));
        all.push(Op {
            count: op.count - 1,
            ..*op
        });
    }
    if op.moves_data() {
        all.extend([Combine::Replace, Combine::Reduce].map(|combine| Op { combine, ..*op }));
    }
    all.push(Op {
        lane: op.lane ^ 1,
        ..*op
    });
    all.retain(|other| other != op);
    all
}

/// The schedule with one change.
pub fn apply(s: &Schedule, change: &Change) -> Schedule {
    let (mut ops, mut spec) = (s.ops.clone(), s.spec);
    let mut waits: Vec<Vec<Edge>> = (0..ops.len())
        .map(|id| s.after(id as u32).to_vec())
        .collect();
    match *change {
        Change::Delete(gone) => {
            ops.remove(gone);
            waits.remove(gone);
            for edges in &mut waits {
                edges.retain(|edge| edge.op() as usize != gone);
                for edge in edges {
                    let down = u32::from(edge.op() as usize > gone);
                    *edge = edge.with_op(edge.op() - down);
                }
            }
        }
        Change::Duplicate(id) => {
            for edge in waits.iter_mut().flatten() {
                let up = u32::from(edge.op() as usize > id);
                *edge = edge.with_op(edge.op() + up);
            }
            ops.insert(id, ops[id]);
            waits.insert(id, waits[id].clone());
        }
        Change::Replace(id, op) => ops[id] = op,
        Change::Swap(a, b) => ops.swap(a, b),
        Change::Exchange(a, b) => {
            ops.swap(a, b);
            waits.swap(a, b);
            for edge in waits.iter_mut().flatten() {
                let to = match edge.op() as usize {
                    id if id == a => b,
                    id if id == b => a,
                    id => id,
                };
                *edge = edge.with_op(to as u32);
            }
        }
        Change::Unwait(index)
        | Change::Hurry(index)
        | Change::Acknowledge(index)
        | Change::Move(index, _) => {
            let id = waiter(s, index);
            let at = index - s.edge_start[id] as usize;
            let edge = waits[id][at];
            match *change {
                Change::Hurry(_) => waits[id][at] = Edge::on(edge.op()),
                Change::Acknowledge(_) => waits[id][at] = Edge::acknowledged(edge.op()),
                Change::Move(_, op) => waits[id][at] = edge.with_op(op),
                _ => drop(waits[id].remove(at)),
            }
        }
        Change::Merge(step) => {
            for (op, edges) in s.ops().iter().zip(&mut waits) {
                let from = |edge: &Edge| s.ops[edge.op() as usize].step;
                edges.retain(|edge| op.step != step + 1 || from(edge) != step);
            }
            for op in ops.iter_mut().filter(|op| op.step == step + 1) {
                op.step = step;
            }
        }
        Change::Root(rank) => spec.root = rank,
    }
    let mut edge_start = vec![0];
    for edges in &waits {
        edge_start.push(edge_start[edge_start.len() - 1] + edges.len() as u32);
    }
    Schedule {
        ops,
        edge_start,
        edges: waits.concat(),
        own_waits: Default::default(),
        spec,
        ..s.clone()
    }
}
