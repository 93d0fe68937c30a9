//! Sort a partial order of events: a sequence in which they can happen, or a cycle of events that wait for each other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Neighbours of each node, in compressed rows.
pub(crate) struct Rows {
    start: Vec<u32>,
    to: Vec<u32>,
}

impl Rows {
    /// List the second element of each pair under the first.
    pub fn of(nodes: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut start = vec![0; nodes + 1];
        pairs
            .clone()
            .for_each(|(from, _)| start[from as usize + 1] += 1);
        for node in 0..nodes {
            start[node + 1] += start[node];
        }
        let mut next = start.clone();
        let mut to = vec![0; start[nodes] as usize];
        for (from, other) in pairs {
            to[next[from as usize] as usize] = other;
            next[from as usize] += 1;
        }
        Rows { start, to }
    }

    /// Neighbours of `node`.
    pub fn at(&self, node: u32) -> &[u32] {
        let (first, end) = (self.start[node as usize], self.start[node as usize + 1]);
        &self.to[first as usize..end as usize]
    }
}

/// A sequence in which every node comes after its predecessors, the smallest key first if several can be next; or the
/// nodes of a cycle, each of which waits for the next.
pub(super) fn sequence(
    nodes: usize,
    edges: impl Iterator<Item = (u32, u32)> + Clone,
    key: impl Fn(u32) -> u64,
) -> Result<Vec<u32>, Vec<u32>> {
    let after = Rows::of(nodes, edges.clone());
    let mut missing = vec![0u32; nodes];
    (edges.clone()).for_each(|edge| missing[edge.1 as usize] += 1);
    let free = (0..nodes as u32).filter(|&node| missing[node as usize] == 0);
    let mut ready: BinaryHeap<_> = free.map(|node| Reverse((key(node), node))).collect();
    let mut sequence = Vec::with_capacity(nodes);
    while let Some(Reverse((_, node))) = ready.pop() {
        sequence.push(node);
        for &next in after.at(node) {
            missing[next as usize] -= 1;
            if missing[next as usize] == 0 {
                ready.push(Reverse((key(next), next)));
            }
        }
    }
    match sequence.len() == nodes {
        true => Ok(sequence),
        false => Err(circle(nodes, edges, |node| missing[node as usize] > 0)),
    }
}

/// The steps of a cycle of events without consecutive repeats, rotated so that the lowest step comes first.
pub(super) fn steps_of(circle: &[u32], step: impl Fn(u32) -> u32) -> Vec<u32> {
    let mut steps: Vec<u32> = circle.iter().map(|&event| step(event)).collect();
    steps.dedup();
    if steps.len() > 1 && steps.first() == steps.last() {
        steps.pop();
    }
    let first = (0..steps.len()).min_by_key(|&at| steps[at]);
    steps.rotate_left(first.unwrap_or(0));
    steps
}

/// A cycle among the nodes that are stuck because a predecessor is missing; each waits for the next.
pub(super) fn circle(
    nodes: usize,
    edges: impl Iterator<Item = (u32, u32)> + Clone,
    stuck: impl Fn(u32) -> bool + Copy,
) -> Vec<u32> {
    let open = edges.filter(|edge| stuck(edge.0));
    let before = Rows::of(nodes, open.map(|edge| (edge.1, edge.0)));
    let mut node = (0..nodes as u32).find(|&node| stuck(node)).unwrap_or(0);
    let mut seen = vec![false; nodes];
    // Each stuck node waits for another stuck one, so walking back ends in a cycle.
    while !seen[node as usize] {
        seen[node as usize] = true;
        node = before.at(node)[0];
    }
    let (first, mut circle) = (node, vec![node]);
    loop {
        node = before.at(node)[0];
        if node == first {
            return circle;
        }
        circle.push(node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_key_is_first_where_the_order_allows_it() {
        // 2 must wait for 3, the last by key.
        let edges = [(3, 2), (0, 1)];
        assert_eq!(
            sequence(4, edges.into_iter(), u64::from),
            Ok(vec![0, 1, 3, 2])
        );
    }

    #[test]
    fn a_circle_is_shown_without_what_leads_to_it() {
        // 0 -> 1 -> 2 -> 1, and 3 waits for 2.
        let edges = [(0, 1), (1, 2), (2, 1), (2, 3)];
        let mut circle = sequence(4, edges.into_iter(), u64::from).unwrap_err();
        circle.sort_unstable();
        assert_eq!(circle, [1, 2]);
    }
}
