//! Schedules with one mistake: an operation deleted, retargeted or swapped, an edge lost.

use crate::ir::{Combine, Edge, Op, OpKind, Schedule};

/// One change of a schedule.
#[derive(Clone, Debug)]
pub enum Change {
    /// Operation removed, with all edges to it.
    Delete(usize),
    /// Operation replaced; its edges stay.
    Replace(usize, Op),
    /// Two operations change places, the edges stay where they are.
    Swap(usize, usize),
    /// Two operations change places together with their edges.
    Exchange(usize, usize),
    /// Edge removed, by its place in the table of edges.
    Unwait(usize),
    /// Edge waits for less: no longer for the acknowledgement.
    Hurry(usize),
}

/// All changes of one operation of a schedule.
pub fn changes(s: &Schedule) -> Vec<Change> {
    let mut all = Vec::new();
    for (id, op) in s.ops().iter().enumerate() {
        all.push(Change::Delete(id));
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
        if edge.is_acknowledged() {
            all.push(Change::Hurry(index));
        }
    }
    all
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
    let mut ops = s.ops.clone();
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
        Change::Unwait(index) | Change::Hurry(index) => {
            let id = s
                .edge_start
                .partition_point(|&start| start as usize <= index)
                - 1;
            let at = index - s.edge_start[id] as usize;
            match change {
                Change::Unwait(_) => drop(waits[id].remove(at)),
                _ => waits[id][at] = Edge::on(waits[id][at].op()),
            }
        }
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
        ..s.clone()
    }
}
