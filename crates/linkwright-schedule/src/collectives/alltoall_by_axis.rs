//! All-to-all along one axis of a torus after the other, on all axes at once.
//!
//! ```text
//!   4 x 4, part 0   along x   everyone gives each member of its row what is for that one's column
//!                   along y   each block goes on to its target: four blocks a message
//!          part 1   the same, y before x
//! ```
//!
//! The torus has D axes, and every block is cut in D parts, whose orders of the axes begin with another each, so
//! that the links of all axes work all the time. Messages go the shorter way round, the nearest targets first, and
//! those of each way have a lane: all ranks send over the same distance at a time, so all links of the axis carry the
//! same.
//!
//! ```text
//!   block x of a rank   x_i = place of the source along axes that are done, of the target along the others
//!   along axis k, from place i to place j: the blocks with x_k = j, which become those with x_k = i
//! ```
//!
//! A rank sends D (sum of the sides - D) messages instead of p-1 and each block travels the same way as directly, with
//! a stop at each turn. On rings of n places, links carry S n/8 in all: what the halves of the torus must exchange.

use crate::collectives::common::axis::{axes, Axis};
use crate::collectives::prelude::*;

algorithm! {
    /// blocks go along one axis of a torus after the other, on all axes at once
    ///
    /// Few messages, each with the blocks of many targets, and links that all carry the same: for blocks of any
    /// size on tori. Blocks are cut in as many parts as there are axes; each part begins with another axis. Without
    /// a grid the ranks are one ring and blocks go straight.
    pub ALGORITHM = Alltoall "by_axis" {
        cost: "D rounds of sum of all sides - D messages, about D S bytes per rank",
        nodes: Rows,
        source:
            "Suh and Shin, \"All-to-all personalized communication in multidimensional torus and mesh networks\" \
             (IEEE TPDS 2001); Bruck and others, \"Efficient algorithms for all-to-all communications in multiport \
             message-passing systems\" (IEEE TPDS 1997)",
        build: build,
    }
}

fn build(shape: &Shape) -> Result<Schedule> {
    shape.check()?;
    let mut axes = axes(shape);
    axes.retain(|axis| axis.side > 1);
    let parts = axes.len().max(1);
    let mut b = Builder::new(Collective::Alltoall, shape);
    let buffers: Vec<Slot> = (0..=parts)
        .map(|k| {
            let name = match k {
                0 => "input".to_string(),
                k if k == parts => "output".to_string(),
                k => format!("turn{k}"),
            };
            b.buffer(Buffer {
                slices: parts as u32,
                ..Buffer::vector(&name, shape.ranks)
            })
        })
        .collect();
    if axes.is_empty() {
        b.step();
        b.local(0, buffers[0].at(0), buffers[1].at(0));
    }
    for (turn, pair) in buffers.windows(2).enumerate().take(axes.len()) {
        b.step();
        let most = axes.iter().map(|axis| axis.side).max().unwrap_or(1);
        // Near targets of all parts before far ones, so that parts that share a lane take turns.
        for distance in (1..most).chain([0]) {
            for part in 0..parts {
                let axis = &axes[(part + turn) % parts];
                if distance < axis.side {
                    let part = (part as u32, parts as u32);
                    exchange(
                        &mut b,
                        shape.ranks,
                        (axis, distance),
                        part,
                        (pair[0], pair[1]),
                    );
                }
            }
        }
    }
    b.finish()
}

/// Everyone gives the member of its line `distance` places ahead along `axis` the blocks of that one's place.
fn exchange(
    b: &mut Builder,
    ranks: u32,
    (axis, distance): (&Axis, u32),
    (part, parts): (u32, u32),
    (src, dst): (Slot, Slot),
) {
    // The blocks for place 0 along the axis.
    let first: Vec<u32> = (0..ranks).filter(|&rank| axis.at(rank) == 0).collect();
    let chunk = |rank: u32, place: u32| axis.moved(rank, place) * parts + part;
    for rank in 0..ranks {
        let from = axis.at(rank);
        let to = (from + distance) % axis.side;
        let run = |&rank: &u32| (chunk(rank, to), chunk(rank, from), 1);
        let runs: Vec<(u32, u32, u32)> = first.iter().map(run).collect();
        if distance == 0 {
            b.local_runs(rank, src, dst, &runs);
            continue;
        }
        let ahead = goes_ahead(axis, from, distance);
        b.put_runs(rank, src, axis.moved(rank, to), dst, &runs)
            .lane(lane(part, ahead))
            .hint(Hint::along(axis.number, ahead));
    }
}

/// The shorter way; half way round, even places go ahead.
fn goes_ahead(axis: &Axis, from: u32, distance: u32) -> bool {
    2 * distance < axis.side || 2 * distance == axis.side && from % 2 == 0
}

fn lane(part: u32, ahead: bool) -> u8 {
    (2 * part + u32::from(!ahead)) as u8
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

    /// Of 8 places, 4 are ahead of even ones and 3 of odd ones, in each of two parts.
    #[test]
    fn each_way_has_its_lane() {
        let schedule = build(&Shape::new(64, 64 * 64).with_grid(8, 8)).unwrap();
        let of = |rank: u32, lane: u8| {
            let mine = |op: &&crate::ir::Op| op.is_message() && op.from == rank && op.lane == lane;
            schedule.ops().iter().filter(mine).count()
        };
        assert_eq!([0, 1, 2, 3].map(|lane| of(0, lane)), [8, 6, 8, 6]);
    }
}
