//! Allreduce through a memory that every rank can reach, without messages between ranks.
//!
//! ```text
//!   1  rank r writes its vector to memory                 barrier
//!   2  rank r reads part r of all p vectors, one after another, and sums them
//!   3  rank r writes its sum as part r of the result      barrier
//!   4  rank r reads the whole result
//! ```
//!
//! Through the port of the memory go p S bytes in, p S out, S in and p S out again: about 3 p S
//! where the other algorithms move 2 S per rank in parallel. A program without communication would
//! do this, so it shows what communication gains.

use crate::collectives::prelude::*;

algorithm! {
    /// every rank writes to a common memory, sums its part of all vectors, reads the result
    ///
    /// Uses one passive memory and two barriers instead of messages between ranks. The port of the memory is the
    /// bottleneck.
    pub ALGORITHM = Allreduce "shared_memory" {
        cost: "2 barriers; 3 p S + S bytes through the memory, p reads one after another per rank",
        needs: "one memory besides the ranks",
        source:
            "Implementation of Allreduce algorithms on the Tenstorrent Wormhole n150, Sapienza University of Rome, \
             2025",
        build: build,
    }
}

fn build(shape: &Shape) -> Result<Schedule> {
    let p = shape.ranks;
    let everyone: Vec<u32> = (0..p).collect();
    let mut b = Builder::new(Collective::Allreduce, shape);
    let memory = b.memory();
    let data = b.buffer(Buffer::vector("output", p));
    let vectors = b.buffer(Buffer {
        mul: p,
        slices: p,
        ..Buffer::vector("vectors", p).only_at(memory)
    });
    let result = b.buffer(Buffer::vector("result", p).only_at(memory));
    // Writes prefer one way and reads the other, so that they need not meet.
    let (reading, writing) = (Hint::PlusX, Hint::MinusX);
    b.step();
    for r in 0..p {
        let own = vectors.range(r * p..(r + 1) * p);
        b.put(r, data.range(0..p), memory, own).hint(writing);
    }
    b.barrier(&everyone);
    for q in 0..p {
        b.step();
        for r in 0..p {
            let part = b.get(memory, vectors.at(q * p + r), r, data.at(r));
            let part = part.hint(reading);
            // The first read overwrites: the rank's own part is among the p that it sums.
            if q > 0 {
                part.reduce();
            }
        }
    }
    b.step();
    for r in 0..p {
        b.put(r, data.at(r), memory, result.at(r)).hint(writing);
    }
    b.barrier(&everyone);
    for r in 0..p {
        b.get(memory, result.range(0..p), r, data.range(0..p))
            .hint(reading);
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::OpKind;

    #[test]
    fn bytes_through_the_memory() {
        let p = 64;
        let schedule = build(&Shape::new(p, 640)).unwrap();
        let bytes = |kind: OpKind| -> u64 {
            let ops = schedule.ops().iter().filter(|op| op.kind == kind);
            ops.map(|op| schedule.op_bytes(op)).sum()
        };
        assert_eq!(bytes(OpKind::Put), 64 * 2560 + 2560);
        assert_eq!(bytes(OpKind::Get), 64 * 2560 + 64 * 2560);
    }
}
