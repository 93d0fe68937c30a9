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

use super::Phase;
use crate::builder::{Shape, Slot};
use crate::collectives::algorithm::Algorithm;
use crate::error::Result;
use crate::symmetric::{Group, Program};

/// The meetings of rank 0, and with it of everyone.
pub struct Cube {
    /// Distance, and whether the first axis is the one it goes along.
    steps: Vec<(u32, bool)>,
    axes: u32,
}

impl Cube {
    /// The cube over the grid of `shape`, or over its ranks in a line; waived unless powers of two.
    pub fn new(algorithm: &Algorithm, shape: &Shape) -> Result<Self> {
        shape.check()?;
        let (columns, rows) = shape.plane().unwrap_or((shape.ranks, 1));
        if !columns.is_power_of_two() || !rows.is_power_of_two() {
            let near = shape.ranks.next_power_of_two() / 2;
            return Err(algorithm.waive(format!(
                "surplus ranks beyond a power of two do less than the others; use {near} ranks, or \
                 simulate every rank"
            )));
        }
        let along_x = (0..columns.ilog2()).map(|i| (i, 1 << i, true));
        let along_y = (0..rows.ilog2()).map(|i| (i, columns << i, false));
        let mut steps: Vec<(u32, u32, bool)> = along_x.chain(along_y).collect();
        // The axes take turns; the sort keeps the first one first.
        steps.sort_by_key(|step| step.0);
        Ok(Cube {
            steps: steps
                .into_iter()
                .map(|(_, d, along_x)| (d, along_x))
                .collect(),
            axes: if rows > 1 { 2 } else { 1 },
        })
    }

    /// A program over the cube, with the steps that others need to fold in.
    pub fn program(algorithm: &Algorithm, shape: &Shape) -> Result<(Self, Program)> {
        let cube = Cube::new(algorithm, shape)?;
        let mut b = Program::new(algorithm.collective, shape, Group::xor(shape.ranks))?;
        (0..cube.axes).for_each(|_| b.step());
        Ok((cube, b))
    }

    /// Exchange the one chunk of `data`, combining.
    pub fn exchange(&self, b: &mut Program, data: Slot) {
        for s in 0..self.steps.len() {
            b.step();
            let written = b.put(data.at(0), self.steps[s].0, data.at(0)).reduce();
            match self.steps[s].1 {
                true => written.along_x(),
                false => written.along_y(),
            };
        }
    }

    /// Halve, so that block 0 of each rank ends complete, or double the blocks 0.
    pub fn pass(&self, b: &mut Program, data: Slot, phase: Phase) {
        let last = self.steps.len();
        for s in 0..last {
            match phase {
                Phase::ReduceScatter => self.send(b, data, s, phase),
                Phase::Allgather => self.send(b, data, last - 1 - s, phase),
            }
        }
    }

    /// Step `s` of halving, or of doubling.
    fn send(&self, b: &mut Program, data: Slot, s: usize, phase: Phase) {
        let (partner, along_x) = self.steps[s];
        let mut blocks = match phase {
            Phase::ReduceScatter => vec![partner],
            Phase::Allgather => vec![0],
        };
        for &(distance, _) in &self.steps[s + 1..] {
            let beyond: Vec<u32> = blocks.iter().map(|block| block ^ distance).collect();
            blocks.extend(beyond);
        }
        blocks.sort_unstable();
        b.step();
        let mut written = b.put_blocks(data, partner, data, &blocks);
        if phase == Phase::ReduceScatter {
            written = written.reduce();
        }
        match along_x {
            true => written.along_x(),
            false => written.along_y(),
        };
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
