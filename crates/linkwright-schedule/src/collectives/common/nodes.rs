//! Nodes of several GPUs: rows of a grid; its columns are rails, over which the GPUs of one place talk.

use crate::builder::Shape;
use crate::collectives::common::forest::Tree;

/// The grid as nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// GPUs of a node.
    pub columns: u32,
    /// Nodes.
    pub rows: u32,
}

/// The ranks of every node in the order of a chain; its first is the head.
pub type Chains = Vec<Vec<u32>>;

impl Nodes {
    /// The nodes of `shape`; ranks in a line are one node.
    pub fn one(shape: &Shape) -> Self {
        let (columns, rows) = shape.plane().unwrap_or((shape.ranks, 1));
        Nodes { columns, rows }
    }

    /// The nodes of `shape`; ranks in a line are a node each.
    pub fn each(shape: &Shape) -> Self {
        let (columns, rows) = shape.plane().unwrap_or((1, shape.ranks));
        Nodes { columns, rows }
    }

    /// The ranks of node `row`.
    pub fn node(&self, row: u32) -> Vec<u32> {
        (row * self.columns..(row + 1) * self.columns).collect()
    }

    /// The other ranks of the node of `rank`.
    pub fn others(&self, rank: u32) -> Vec<u32> {
        let mut node = self.node(rank / self.columns);
        node.retain(|&other| other != rank);
        node
    }

    /// The ranks of rail `column`.
    pub fn rail(&self, column: u32) -> Vec<u32> {
        (0..self.rows)
            .map(|row| row * self.columns + column)
            .collect()
    }

    /// Chains inside the nodes, one set of them for each rail: in the order of each ring of `shape`, or without any
    /// those that begin at GPU 0, 1, ... of every node; a single node has one.
    pub fn chains(&self, shape: &Shape) -> Vec<Chains> {
        if !shape.rings.is_empty() {
            return shape.rings.iter().map(|ring| self.along(ring)).collect();
        }
        let turned = |first: u32| {
            let turn = |mut node: Vec<u32>| {
                node.rotate_left(first as usize);
                node
            };
            (0..self.rows).map(|row| turn(self.node(row))).collect()
        };
        let count = if self.rows > 1 { self.columns } else { 1 };
        (0..count).map(turned).collect()
    }

    fn along(&self, ring: &[u32]) -> Chains {
        let mut chains = vec![Vec::new(); self.rows as usize];
        for &rank in ring {
            chains[(rank / self.columns) as usize].push(rank);
        }
        chains
    }
}

/// The tree of one chain, which carries `chunk`.
pub fn chain(ranks: &[u32], chunk: u32) -> Tree {
    Tree {
        ranks: ranks.to_vec(),
        parents: (0..ranks.len() as u32)
            .map(|k| k.saturating_sub(1))
            .collect(),
        chunk,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_begin_at_every_gpu_or_follow_rings() {
        let shape = Shape::new(6, 0).with_grid(3, 2);
        let nodes = Nodes::one(&shape);
        let chains = nodes.chains(&shape);
        assert_eq!(chains[1], [[1, 2, 0], [4, 5, 3]]);
        assert_eq!(chains.len(), 3);
        let given = shape.with_rings(vec![vec![2, 0, 4, 1, 5, 3]]);
        assert_eq!(nodes.chains(&given), [[[2, 0, 1], [4, 5, 3]]]);
        assert_eq!((nodes.others(4), nodes.rail(2)), (vec![3, 5], vec![2, 5]));
    }
}
