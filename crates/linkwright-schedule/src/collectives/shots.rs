//! One-shot and two-shot: everyone writes to everyone, once or twice.
//!
//! ```text
//!   one-shot   everyone sends its vector to everyone; everyone adds up all p
//!   two-shot   part q of everyone goes to rank q, which adds; then rank q sends the sum to everyone
//!              on a grid: among the columns of a row, then along each column, and back
//! ```
//!
//! One latency for p-1 times the bytes, or two for the least bytes: what libraries do for small and middling
//! vectors among GPUs that all reach each other. Each contribution lands in a place of its own with its flag, so
//! nobody waits for a barrier; `all_pairs` is the two-shot that reads, between barriers, and needs no places.
//! With a switch that combines and copies, `one_shot_multimem` and `nvls` do the same.

use crate::collectives::common::direct::{self, Cut, Group};
use crate::collectives::common::forest::Lanes;
use crate::collectives::prelude::*;

algorithm! {
    /// every rank sends its vector to every other rank and adds up what arrives
    ///
    /// One latency, however many ranks there are, for p-1 times the bytes: for the smallest vectors among GPUs that
    /// all reach each other. Takes p vectors of memory.
    pub ONE_SHOT = Allreduce "one_shot" {
        cost: "1 round of p-1 messages, S (p-1) bytes per rank",
        source: "NVIDIA, custom allreduce of FasterTransformer and TensorRT-LLM, where the name comes from",
        build: one_shot,
    }

    /// every part goes straight to its owner, which adds, and from it to every rank
    ///
    /// Two latencies and the least bytes, in many messages: for small and middling vectors among GPUs that all
    /// reach each other. With a grid, first inside its rows and then along its columns: nodes and rails. all_pairs
    /// is the same with reads and barriers.
    pub TWO_SHOT = Allreduce "two_shot" {
        cost: "2 rounds, 4 on a grid, of p-1 messages per rank, 2 S (p-1)/p bytes",
        source: "\"MSCCLang: Microsoft Collective Communication Language\" (ASPLOS 2023), All Pairs",
        build: two_shot,
    }
}

fn one_shot(shape: &Shape) -> Result<Schedule> {
    let p = shape.ranks;
    let mut b = Builder::new(Collective::Allreduce, shape);
    let vector = b.buffer(Buffer::vector("output", 1)).at(0);
    let places = b.buffer(Buffer {
        mul: p,
        ..Buffer::vector("vectors", p)
    });
    let mut lanes = Lanes::new(p);
    b.step();
    for ahead in 1..p {
        for r in 0..p {
            b.put(r, vector, (r + ahead) % p, places.at(r))
                .lane(lanes.next(r));
        }
    }
    for ahead in 1..p {
        b.step();
        for r in 0..p {
            b.local(r, places.at((r + p - ahead) % p), vector)
                .reduce()
                .lane(lanes.next(r));
        }
    }
    b.finish()
}

fn two_shot(shape: &Shape) -> Result<Schedule> {
    shape.check()?;
    let p = shape.ranks;
    let (columns, rows) = shape.plane().unwrap_or((p, 1));
    let mut b = Builder::new(Collective::Allreduce, shape);
    let cut = Cut {
        data: b.buffer(Buffer::vector("output", p)),
        chunks: p,
        even: shape.elements % u64::from(p) == 0,
    };
    let mut lanes = Lanes::new(p);
    let (rows_of, columns_of) = (inside(columns, rows), across(columns, rows));
    direct::reduce(&mut b, cut, "from_row", &rows_of, &mut lanes);
    if rows > 1 {
        direct::reduce(&mut b, cut, "from_column", &columns_of, &mut lanes);
        direct::spread(&mut b, cut, &columns_of, &mut lanes);
    }
    direct::spread(&mut b, cut, &rows_of, &mut lanes);
    b.finish()
}

/// The rows: a column owns as many chunks as there are rows.
fn inside(columns: u32, rows: u32) -> Vec<Group> {
    let group = |row: u32| Group {
        members: (0..columns).map(|column| row * columns + column).collect(),
        blocks: (0..columns)
            .map(|column| column * rows..(column + 1) * rows)
            .collect(),
    };
    (0..rows).map(group).collect()
}

/// The columns: each rank owns a chunk of its column.
fn across(columns: u32, rows: u32) -> Vec<Group> {
    let group = |column: u32| Group {
        members: (0..rows).map(|row| row * columns + column).collect(),
        blocks: (0..rows)
            .map(|row| column * rows + row..column * rows + row + 1)
            .collect(),
    };
    (0..columns).map(group).collect()
}
