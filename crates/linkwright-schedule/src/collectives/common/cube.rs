//! Cubes: the butterfly of doubling distances, where every axis has a power of two.
//!
//! ```text
//!   step s       rank r meets r xor d(s),   d = 1, 2, 4, ...  or on a grid 1, columns, 2, 2 columns, ...
//!   reach(s)     what rank 0 meets from step s on: all sums of d(s), d(s+1), ...
//!   halve        in step s send the blocks d(s) xor reach(s+1): those of the partner's half
//!   double       backwards, in step s send the blocks reach(s+1): those one has
//! ```
//!
//! All ranks do the same, so each schedule of [`super::butterfly_schedules`] is one program here. Ranks
//! beyond a power of two fold into others and do less: the butterfly serves those shapes.

use super::butterfly::{Butterfly, Partners};
use super::Phase;
use crate::collectives::prelude::*;

/// The meetings of rank 0, and with it of everyone: distance and direction.
pub struct Cube(Vec<(u32, Hint)>);

impl Cube {
    /// A program over the cube, over the grid of `shape` or its ranks in a line, with the steps that others need to
    /// fold in; waived unless powers of two.
    pub fn program(algorithm: &Algorithm, shape: &Shape) -> Result<(Self, Program)> {
        let butterfly = Butterfly::new(shape, Partners::Doubling)?;
        if butterfly.core().len() < shape.ranks as usize {
            let near = shape.ranks.next_power_of_two() / 2;
            return Err(algorithm.waive(format!(
                "surplus ranks beyond a power of two do less than the others; use {near} ranks, or another power of two"
            )));
        }
        let mut b = Program::new(algorithm.collective, shape, Group::xor(shape.ranks))?;
        (0..butterfly.folds()).for_each(|_| b.step());
        let meetings = (0..butterfly.steps()).map(|s| butterfly.meet(0, s));
        Ok((Cube(meetings.collect()), b))
    }

    /// Exchange the one chunk of `data`, combining.
    pub fn exchange(&self, b: &mut Program, data: Slot) {
        for &(partner, way) in &self.0 {
            b.step();
            b.put(data.at(0), partner, data.at(0)).reduce().hint(way);
        }
    }

    /// Halve, so that block 0 of each rank ends complete, or double the blocks 0.
    pub fn pass(&self, b: &mut Program, data: Slot, phase: Phase) {
        let last = self.0.len();
        for s in 0..last {
            match phase {
                Phase::ReduceScatter => self.send(b, data, s, phase),
                Phase::Allgather => self.send(b, data, last - 1 - s, phase),
            }
        }
    }

    /// Step `s` of halving, or of doubling.
    fn send(&self, b: &mut Program, data: Slot, s: usize, phase: Phase) {
        let (partner, way) = self.0[s];
        let mut blocks = match phase {
            Phase::ReduceScatter => vec![partner],
            Phase::Allgather => vec![0],
        };
        for &(distance, _) in &self.0[s + 1..] {
            let beyond: Vec<u32> = blocks.iter().map(|block| block ^ distance).collect();
            blocks.extend(beyond);
        }
        blocks.sort_unstable();
        b.step();
        let mut written = b.put_blocks(data, partner, data, &blocks);
        if phase == Phase::ReduceScatter {
            written = written.reduce();
        }
        written.hint(way);
    }
}

#[cfg(test)]
mod tests {
    use super::super::butterfly::Partners;
    use super::super::butterfly_schedules as butterfly;
    use super::*;
    use crate::collectives::find;
    use crate::ir::Schedule;
    use crate::text::print;

    type Build = fn(&Shape, Partners) -> Result<Schedule>;

    #[test]
    fn a_cube_is_a_butterfly() {
        let all: [(&str, Build); 4] = [
            (
                "allreduce/recursive_doubling_latency",
                butterfly::allreduce_latency,
            ),
            (
                "allreduce/recursive_doubling_bandwidth",
                butterfly::allreduce_bandwidth,
            ),
            (
                "reduce_scatter/recursive_halving",
                butterfly::reduce_scatter,
            ),
            ("allgather/recursive_doubling", butterfly::allgather),
        ];
        for (key, build) in all {
            let program = find(key).unwrap().program.unwrap();
            for (columns, rows) in [
                (1, 1),
                (2, 1),
                (8, 1),
                (32, 1),
                (4, 4),
                (8, 2),
                (2, 8),
                (1, 4),
            ] {
                let ranks = columns * rows;
                let shape = Shape::new(ranks, 64).with_grid(columns, rows);
                let found = program(&shape).unwrap().expand().unwrap();
                let due = build(&shape, Partners::Doubling).unwrap();
                assert_eq!(print(&found), print(&due), "{key} on {columns}x{rows}");
            }
        }
    }
}
