//! All-to-all on a torus by shifts: in each round everyone sends over the same way, and every other over its opposite.
//!
//! ```text
//!   8 x 8   lanes 0, 1   shifts that are longer along x: (1,0) and (-1,0), then (2,0) and (-2,0), (2,1) and (-2,-1), ...
//!           lanes 2, 3   those that are longer along y:  (0,1) and (0,-1), then (0,2) and (0,-2), (1,2) and (-1,-2), ...
//! ```
//!
//! When all ranks shift by (x, y), every link ahead along x carries x messages and every link along y carries y: none
//! is busier than another. A shift and its opposite use the links of both ways. On a torus of D dimensions, D pairs run
//! at a time, each longest along another dimension, so links of all dimensions work. Blocks go straight to their targets
//! and are stored nowhere; [`super::alltoall_by_axis`] bundles them instead.
//!
//! Rounds stay together while a lane has one message under way (issue policy `blocking`).

use crate::collectives::common::axis::{axes, distance, length, shifted, shifts, Axis, Shift};
use crate::collectives::prelude::*;

algorithm! {
    /// rounds of equal shifts and their opposites, each straight over a torus
    ///
    /// In every round all ranks send over the same way, so no link of an axis is busier than another. Blocks go
    /// straight and are stored nowhere: for large blocks on tori. Without a grid the ranks are one ring.
    pub ALGORITHM = Alltoall "by_shifts" {
        cost: "about (p-1)/2D rounds of 2D messages, S (p-1)/p bytes per rank",
        nodes: Rows,
        source:
            "Scott, \"Efficient all-to-all communication patterns in hypercube and mesh topologies\" (DMCC 1991); \
             Hinrichs, Kosak, O'Hallaron, Stricker and Take, \"An architecture for optimal all-to-all personalized \
             communication\" (SPAA 1994), whose phases use each link of a torus once",
        build: build,
    }
}

fn build(shape: &Shape) -> Result<Schedule> {
    shape.check()?;
    let axes = axes(shape);
    let mut b = Builder::new(Collective::Alltoall, shape);
    let input = b.buffer(Buffer::vector("input", shape.ranks));
    let output = b.buffer(Buffer::vector("output", shape.ranks));
    b.step();
    for rank in 0..shape.ranks {
        b.local(rank, input.at(rank), output.at(rank));
    }
    let groups = pairs(&axes);
    for round in 0..groups.iter().map(Vec::len).max().unwrap_or(0) {
        for (group, pairs) in groups.iter().enumerate() {
            let ways = pairs.get(round).into_iter().flatten().enumerate();
            for (way, shift) in ways {
                for rank in 0..shape.ranks {
                    let target = shifted(&axes, rank, shift);
                    b.put(rank, input.at(target), target, output.at(rank))
                        .lane((2 * group + way) as u8)
                        .hint([Hint::PlusX, Hint::MinusX][way]);
                }
            }
        }
    }
    b.finish()
}

/// Every shift with its opposite, where that is another, by the axis along which it is longest; the shortest first.
fn pairs(axes: &[Axis]) -> Vec<Vec<Vec<Shift>>> {
    let mut groups = vec![Vec::new(); axes.len()];
    for shift in shifts(axes) {
        let opposite: Shift = axes
            .iter()
            .zip(&shift)
            .map(|(axis, &s)| (axis.side - s) % axis.side)
            .collect();
        let ahead = |shift: &Shift| (turns(axes, shift), shift.clone());
        if ahead(&shift) > ahead(&opposite) {
            continue;
        }
        let group = longest(axes, &shift, groups.iter().map(Vec::len).collect());
        let mut pair = vec![shift, opposite];
        pair.dedup();
        groups[group].push(pair);
    }
    for (group, pairs) in groups.iter_mut().enumerate() {
        // The sort keeps the order of those that are as long.
        pairs.sort_by_key(|pair| {
            (
                length(&axes[group], pair[0][group]),
                distance(axes, &pair[0]),
            )
        });
    }
    groups
}

/// How far round the axes a shift goes ahead, in shares of the torus.
fn turns(axes: &[Axis], shift: &Shift) -> u64 {
    let places: u64 = axes.iter().map(|axis| u64::from(axis.side)).product();
    axes.iter()
        .zip(shift)
        .map(|(axis, &s)| u64::from(s) * (places / u64::from(axis.side)))
        .sum()
}

/// The axis along which a shift is longest; of equals, that with the fewest so far.
fn longest(axes: &[Axis], shift: &Shift, taken: Vec<usize>) -> usize {
    let lengths: Vec<u32> = axes
        .iter()
        .zip(shift)
        .map(|(axis, &s)| length(axis, s))
        .collect();
    let most = lengths.iter().max().copied().unwrap_or(0);
    let equals = (0..axes.len()).filter(|&axis| lengths[axis] == most);
    equals.min_by_key(|&axis| taken[axis]).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify;

    #[test]
    fn right_on_tori_of_any_sides() {
        for sides in [&[4, 4][..], &[2, 5], &[3, 1, 4], &[2, 3, 4], &[7]] {
            let p = sides.iter().product();
            let shape = Shape::new(p, u64::from(p) * 5).with_sides(sides);
            verify(&build(&shape).unwrap()).unwrap();
        }
    }

    /// 63 shifts; (4,0), (0,4) and (4,4) are their own opposites. The other 60 are 30 pairs.
    #[test]
    fn shifts_of_eight_by_eight() {
        let groups = pairs(&axes(&Shape::new(64, 64).with_grid(8, 8)));
        let alone = |pairs: &Vec<Vec<Shift>>| pairs.iter().filter(|pair| pair.len() == 1).count();
        assert_eq!(groups.iter().map(alone).sum::<usize>(), 3);
        assert_eq!(groups.iter().map(Vec::len).sum::<usize>(), 33);
        assert!(groups[0].len().abs_diff(groups[1].len()) <= 1);
        assert_eq!(groups[0][0], [[1, 0], [7, 0]]);
        assert_eq!(groups[1][0], [[0, 1], [0, 7]]);
    }
}
