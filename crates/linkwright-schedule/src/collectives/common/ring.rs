//! Going round a ring: everyone sends to its successor only.
//!
//! ```text
//!   reduce-scatter, step s < p-1:  place k sends block k-1-s, which place k+1 adds
//!   allgather,      step s < p-1:  place k sends block k-s,   which place k+1 keeps
//! ```
//!
//! After the first phase place k holds block k complete, after the second everyone has all. Each
//! phase moves S (p-1)/p bytes per rank, the least possible, in p-1 rounds. Several rings over the
//! same ranks may run side by side, each with its part of the vector.
//!
//! Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
//! workstations" (JPDC 2009).

use super::Phase;
use crate::collectives::prelude::*;

/// A cycle through all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Rank at each place.
    pub ranks: Vec<u32>,
    /// Way from each place to the next.
    pub hints: Vec<Hint>,
}

impl Ring {
    /// Rank k at place k.
    pub fn plain(p: u32) -> Self {
        Ring {
            ranks: (0..p).collect(),
            hints: vec![Hint::None; p as usize],
        }
    }

    /// Place of `rank`.
    pub fn place(&self, rank: u32) -> usize {
        let found = self.ranks.iter().position(|&r| r == rank);
        found.expect("a ring visits every rank")
    }

    /// The same cycle the other way round.
    pub fn reversed(&self) -> Self {
        // The way from place k+1 to k becomes the way out of k+1.
        let mut hints: Vec<Hint> = self
            .hints
            .iter()
            .rev()
            .map(|hint| hint.opposite())
            .collect();
        hints.rotate_left(1.min(self.hints.len()));
        Ring {
            ranks: self.ranks.iter().rev().copied().collect(),
            hints,
        }
    }
}

/// The rings that `shape` asks for; rank order where it asks for none.
pub fn of(shape: &Shape) -> Vec<Ring> {
    if shape.rings.is_empty() {
        return vec![Ring::plain(shape.ranks)];
    }
    let ring = |order: &Vec<u32>| Ring {
        hints: vec![Hint::None; order.len()],
        ranks: order.clone(),
    };
    shape.rings.iter().map(ring).collect()
}

/// Which chunk of the vector is the block of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// Ring i works on chunks i p .. (i+1) p.
    ByRing,
    /// Every rank's block is cut into as many chunks as there are rings, and stays that rank's.
    ByRank,
}

/// A program for ranks in a ring; waived where `shape` names other rings.
pub fn program(algorithm: &Algorithm, shape: &Shape) -> Result<Program> {
    if !shape.rings.is_empty() {
        return Err(algorithm.waive(
            "in rings of a given order ranks are not alike; use rank order, or fewer ranks",
        ));
    }
    Program::new(algorithm.collective, shape, Group::cyclic(shape.ranks))
}

/// Once round the ring of all ranks, as each of them does it.
pub fn once_round(b: &mut Program, data: Slot, phase: Phase) {
    for s in 0..b.ranks() - 1 {
        let block = data.at(sent(b.ranks(), s, phase));
        b.step();
        let written = b.put(block, 1, block);
        if phase == Phase::ReduceScatter {
            written.reduce();
        }
    }
}

/// The block that place 0 of `p` sends in step `s`.
pub fn sent(p: u32, s: u32, phase: Phase) -> u32 {
    (p - s - u32::from(phase == Phase::ReduceScatter)) % p
}

/// Once round all `rings` at once.
pub fn rounds(b: &mut Builder, data: Slot, rings: &[Ring], blocks: Blocks, phase: Phase) {
    let p = rings.first().map_or(0, |ring| ring.ranks.len());
    for s in 0..p.saturating_sub(1) {
        b.step();
        for (index, ring) in rings.iter().enumerate() {
            for k in 0..p {
                let block = (k + sent(p as u32, s as u32, phase) as usize) % p;
                let chunk = data.at(match blocks {
                    Blocks::ByRing => (index * p + block) as u32,
                    Blocks::ByRank => ring.ranks[block] * rings.len() as u32 + index as u32,
                });
                let (from, to) = (ring.ranks[k], ring.ranks[(k + 1) % p]);
                let written = b
                    .put(from, chunk, to, chunk)
                    .lane(index as u8)
                    .hint(ring.hints[k]);
                if phase == Phase::ReduceScatter {
                    written.reduce();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reversed_ring_takes_the_same_ways_back() {
        let ring = Ring {
            ranks: vec![0, 1, 3, 2],
            hints: vec![Hint::PlusX, Hint::PlusY, Hint::MinusX, Hint::MinusY],
        };
        let back = ring.reversed();
        assert_eq!(back.ranks, [2, 3, 1, 0]);
        // 2 to 3 undoes "3 to 2 by -x", ..., 0 to 2 undoes "2 to 0 by -y".
        assert_eq!(
            back.hints,
            [Hint::PlusX, Hint::MinusY, Hint::MinusX, Hint::PlusY]
        );
        assert_eq!(back.reversed(), ring);
    }
}
