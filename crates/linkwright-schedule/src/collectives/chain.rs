//! Chain: the vector passes once round a ring, from the root to all or from all to the root.
//!
//! ```text
//!   broadcast   step s < p-1 :  place root+s   sends the vector to place root+s+1
//!   reduce      step s < p-1 :  place root+1+s sends its partial sum to place root+2+s, which adds it
//! ```
//!
//! The reduce is the broadcast reversed: the chain ends at the root instead of beginning there.
//! Whole, the vector takes p-1 transfers one after another. In k slices (transform `pipeline`) a
//! place sends on the first slice while the second arrives: p-2+k slices one after another, so
//! that for large vectors the time tends to S over the slowest hop, whatever p.

use crate::collectives::common::ring;
use crate::collectives::prelude::*;

algorithm! {
    /// the vector passes from the root once around a ring
    ///
    /// Every rank sends only to its successor. Cut into slices, it is a pipeline that moves each byte over each hop
    /// once: the choice for large vectors.
    pub BROADCAST = Broadcast "ring" {
        cost: "p-1 rounds, S bytes per rank; p-2+k slices in k slices",
        source:
            "Watts and van de Geijn, \"A pipelined broadcast for multidimensional meshes\" (Parallel Processing \
             Letters 1995)",
        build: |shape| build(shape, Collective::Broadcast),
    }

    /// partial sums pass once around a ring and end at the root
    ///
    /// Every rank sends only to its successor. Cut into slices, it is a pipeline that moves each byte over each hop
    /// once: the choice for large vectors.
    pub REDUCE = Reduce "ring" {
        cost: "p-1 rounds, S bytes per rank; p-2+k slices in k slices",
        source:
            "Watts and van de Geijn, \"A pipelined broadcast for multidimensional meshes\" (Parallel Processing \
             Letters 1995), reversed",
        build: |shape| build(shape, Collective::Reduce),
    }
}

/// Pass a chunk of the vector along each ring: p-1 messages one after another.
fn build(shape: &Shape, collective: Collective) -> Result<Schedule> {
    shape.check()?;
    let rings = ring::of(shape);
    let mut b = Builder::new(collective, shape);
    let data = b.buffer(Buffer::vector("output", rings.len() as u32));
    let (p, reduces) = (shape.ranks as usize, collective.reduces());
    for s in 0..p - 1 {
        b.step();
        for (index, ring) in rings.iter().enumerate() {
            let place = ring.place(shape.root) + usize::from(reduces) + s;
            let (from, to) = (ring.ranks[place % p], ring.ranks[(place + 1) % p]);
            let chunk = data.at(index as u32);
            let written = b.put(from, chunk, to, chunk).lane(index as u8);
            if reduces {
                written.reduce();
            }
        }
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_begins_or_ends_at_the_root() {
        let shape = Shape::new(64, 10).with_root(3);
        let broadcast = (BROADCAST.build)(&shape).unwrap();
        assert!(broadcast.ops().iter().all(|op| op.to != 3));
        let reduce = (REDUCE.build)(&shape).unwrap();
        assert!(reduce.ops().iter().all(|op| op.from != 3));
    }
}
