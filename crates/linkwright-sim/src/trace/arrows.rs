//! Arrows between the slices of operations.

use linkwright_schedule::ir::Schedule;
use std::ops::Range;

/// Numbers of arrows: one for each edge of a schedule, then one for each operation.
pub(super) struct Arrows {
    /// First arrow that ends at each operation, and behind the last of all.
    first: Vec<u64>,
    /// Where the arrows that begin at each operation stand.
    from: Vec<u32>,
    leaving: Vec<u64>,
}

impl Arrows {
    pub fn new(schedule: &Schedule) -> Self {
        let count = schedule.ops().len();
        let mut first = Vec::with_capacity(count + 1);
        let mut from = vec![0_u32; count + 2];
        let mut next = 1;
        for (_, _, edges) in schedule.ops_with_edges() {
            first.push(next);
            next += edges.len() as u64;
            edges
                .iter()
                .for_each(|edge| from[edge.op() as usize + 2] += 1);
        }
        first.push(next);
        for at in 2..from.len() {
            from[at] += from[at - 1];
        }
        let mut leaving = vec![0; next as usize - 1];
        let edges = schedule.ops_with_edges().flat_map(|(_, _, edges)| edges);
        for (arrow, edge) in (1_u64..).zip(edges) {
            let place = &mut from[edge.op() as usize + 1];
            leaving[*place as usize] = arrow;
            *place += 1;
        }
        Arrows {
            first,
            from,
            leaving,
        }
    }

    /// Arrows that end at operation `id`.
    pub fn arriving_at(&self, id: u32) -> Range<u64> {
        self.first[id as usize]..self.first[id as usize + 1]
    }

    /// Arrows that begin there.
    pub fn leaving(&self, id: u32) -> &[u64] {
        let at = id as usize;
        &self.leaving[self.from[at] as usize..self.from[at + 1] as usize]
    }

    /// From the issue of the operation to its transfer.
    pub fn own(&self, id: u32) -> u64 {
        self.first[self.first.len() - 1] + u64::from(id)
    }
}
