//! Reduce by rows: the rows of a grid are collected side by side.
//!
//! ```text
//!   row 0  r r r r --> root
//!   row 1  r r r r --> root + 1
//!   row 2  r r r r --> root + 2
//!   then  root+1, root+2 --> root
//! ```
//!
//! A row is a chip: all rows send at once, each to its own rank next to the root, so no port takes more than
//! one row.

use crate::builder::{Builder, Chunks, Shape, Slot};
use crate::collectives::prelude::*;

algorithm! {
    /// the rows of a grid are collected in parallel
    ///
    /// Every row sends to its own rank next to the root, which adds; the root adds these sums.
    pub ALGORITHM = Reduce "by_rows" {
        cost: "2 rounds; S columns bytes into each of `rows` ranks",
        needs: "a grid with as many columns as rows, or more",
        source:
            "Jia, Tillman, Maggioni and Scarpazza, \"Dissecting the Graphcore IPU architecture via \
             microbenchmarking\" (2019), section 4.6, from the times that it prints",
        build: build,
    }
}

fn build(shape: &Shape) -> Result<Schedule> {
    shape.check()?;
    let Some((columns, rows)) = shape.plane() else {
        return Err(ALGORITHM.waive("ranks in a line have no rows; use a grid, such as 8x4"));
    };
    let (root_column, root_row) = (shape.root % columns, shape.root / columns);
    if rows > columns {
        let reason = format!("rows arrive at a column each; use a grid of {rows} columns or more");
        return Err(ALGORITHM.waive(reason));
    }
    let mut b = Builder::new(Collective::Reduce, shape);
    let own = b.buffer(Buffer::vector("output", 1)).at(0);
    collect(&mut b, own, (columns, rows), (root_column, root_row));
    b.finish()
}

/// A rank near the root that collects a row, and how many of its vectors have a place there.
struct Collector {
    row: u32,
    rank: u32,
    slot: Slot,
    filled: u32,
}

/// Each row is reduced to a rank other than the root, and those ranks are reduced to the root.
fn collect(b: &mut Builder, own: Chunks, grid: (u32, u32), root: (u32, u32)) {
    let ((columns, rows), (root_column, root_row)) = (grid, root);
    // The root collects its own row, the ranks after it the others.
    let others = (0..rows).filter(|&row| row != root_row);
    let mut collectors: Vec<Collector> = (0..)
        .zip(std::iter::once(root_row).chain(others))
        .map(|(index, row)| {
            let rank = root_row * columns + (root_column + index) % columns;
            let buffer = places(&format!("row_{row}"), columns).only_at(rank);
            Collector {
                row,
                rank,
                slot: b.buffer(buffer),
                filled: 0,
            }
        })
        .collect();
    b.step();
    for collector in &mut collectors {
        collector.gather(b, own, columns);
    }
    // A collector's own value travels with the root's row, so another row's sum is kept apart.
    let sums = b.buffer(places("sum", 1)).at(0);
    for place in 0..columns {
        b.step();
        for (index, collector) in collectors.iter().enumerate() {
            if place < collector.filled {
                let target = if index == 0 { own } else { sums };
                let written = b.local(collector.rank, collector.slot.at(place), target);
                if index == 0 || place > 0 {
                    written.reduce();
                }
            }
        }
    }
    if let [at_root, others @ ..] = &collectors[..] {
        add_sums(b, own, at_root.rank, sums, others);
    }
}

impl Collector {
    /// Everybody else in the row sends.
    fn gather(&mut self, b: &mut Builder, own: Chunks, columns: u32) {
        let senders = (0..columns).map(|column| self.row * columns + column);
        for sender in senders.filter(|&sender| sender != self.rank) {
            b.put(sender, own, self.rank, self.slot.at(self.filled));
            self.filled += 1;
        }
    }
}

/// What the other collectors have added, to the root.
fn add_sums(b: &mut Builder, own: Chunks, root: u32, sums: Chunks, others: &[Collector]) {
    if others.is_empty() {
        return;
    }
    let arrived = others.len() as u32;
    let last = b.buffer(places("sums", arrived).only_at(root));
    b.step();
    for (place, collector) in (0..).zip(others) {
        b.put(collector.rank, sums, root, last.at(place));
    }
    for place in 0..arrived {
        b.step();
        b.local(root, last.at(place), own).reduce();
    }
}

/// A buffer with room for `count` vectors.
fn places(name: &str, count: u32) -> Buffer {
    Buffer {
        mul: count,
        ..Buffer::vector(name, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify;

    #[test]
    fn every_row_needs_a_column() {
        let error = build(&Shape::new(8, 5).with_grid(2, 4)).unwrap_err();
        assert!(error.to_string().contains("a grid of 4 columns or more"));
    }

    #[test]
    fn any_root_of_a_small_grid() {
        for root in 0..12 {
            let schedule = build(&Shape::new(12, 3).with_grid(4, 3).with_root(root)).unwrap();
            verify(&schedule).unwrap();
        }
    }
}
