//! One collective after another, as a third: a reduce-scatter and an allgather are an allreduce.
//!
//! | first | second | together |
//! |---|---|---|
//! | reduce_scatter | allgather | allreduce |
//! | reduce | broadcast | allreduce |
//! | scatter | allgather | broadcast |
//! | reduce_scatter | gather | reduce |
//! | gather | broadcast | allgather |
//!
//! There is no barrier between the two: a rank begins the second as soon as the data it needs are there. Both work
//! on one `output`; the input and output blocks of scatter and gather become its blocks:
//!
//! ```text
//!   input or output of rank r, slice s   ->   output, block r, slice s
//! ```
//!
//! Vectors are cut as finely as either part cuts them.
//!
//! Source: Chan, Heimlich, Purkayastha and van de Geijn, *Collective communication: theory, practice, and
//! experience*, CCPE 2007.

use crate::error::{Result, ScheduleError};
use crate::ir::{ranges_of, Buffer, BufferId, Combine, Op, OpKind, Schedule, MAX_BUFFERS};
use crate::order::order;
use crate::spec::Collective;
use crate::transforms::{push, refined};

/// First, second, together.
pub const JOINS: [(Collective, Collective, Collective); 5] = [
    (
        Collective::ReduceScatter,
        Collective::Allgather,
        Collective::Allreduce,
    ),
    (
        Collective::Reduce,
        Collective::Broadcast,
        Collective::Allreduce,
    ),
    (
        Collective::Scatter,
        Collective::Allgather,
        Collective::Broadcast,
    ),
    (
        Collective::ReduceScatter,
        Collective::Gather,
        Collective::Reduce,
    ),
    (
        Collective::Gather,
        Collective::Broadcast,
        Collective::Allgather,
    ),
];

/// `first`, then `second`, on the same data.
pub fn concatenate(first: &Schedule, second: &Schedule) -> Result<Schedule> {
    let collective = together(first, second)?;
    let cuts = [vector(first)?, vector(second)?];
    if cuts[0].0 != cuts[1].0 {
        return Err(refused(format!(
            "{} and {} blocks; concatenate schedules that cut the vector into the same blocks",
            cuts[0].0, cuts[1].0
        )));
    }
    let slices = lcm(cuts[0].1, cuts[1].1);
    let parts = [
        refined(first, slices / cuts[0].1)?,
        refined(second, slices / cuts[1].1)?,
    ];
    let rooted = [first, second]
        .into_iter()
        .find(|s| s.spec.collective.is_rooted());
    let mut joined = Schedule {
        buffers: vec![Buffer {
            slices,
            ..Buffer::vector("output", cuts[0].0)
        }],
        ..Schedule::empty(first.spec, first.ranks, first.elements, first.element_bytes)
    };
    joined.spec.collective = collective;
    joined.spec.root = match collective.is_rooted() {
        true => rooted.map_or(0, |schedule| schedule.spec.root),
        false => 0,
    };
    for part in &parts {
        append(&mut joined, part)?;
    }
    order(joined)
}

fn refused(text: String) -> ScheduleError {
    ScheduleError::Shape(text)
}

/// What the two are together, if they go together.
fn together(first: &Schedule, second: &Schedule) -> Result<Collective> {
    let [a, b] = [first, second].map(|schedule| schedule.spec.collective);
    let Some(&(.., collective)) = JOINS.iter().find(|join| (join.0, join.1) == (a, b)) else {
        return Err(refused(format!(
            "{} and then {} are no collective; concatenate a reduce_scatter and an allgather, for example",
            a.name(),
            b.name()
        )));
    };
    let shape = |s: &Schedule| (s.ranks, s.elements, s.element_bytes);
    let roots = a.is_rooted() && b.is_rooted() && first.spec.root != second.spec.root;
    let alike = shape(first) == shape(second) && !roots;
    let plain = |s: &Schedule| s.memories == 0 && s.spec.repeats == 1 && !s.spec.out_of_place;
    match alike && plain(first) && plain(second) {
        true => Ok(collective),
        false => Err(refused(
            "concatenate schedules of the same ranks, elements and root, in place, once, and without memories".into(),
        )),
    }
}

/// Blocks and slices of the vector that a part works on.
fn vector(schedule: &Schedule) -> Result<(u32, u32)> {
    let named = |name: &str| {
        let whole = |b: &&Buffer| b.name == name && (b.mul, b.div) == (1, 1);
        schedule.buffers.iter().find(whole)
    };
    let uneven = schedule.elements % u64::from(schedule.ranks) != 0;
    match named("output").or_else(|| named("input")) {
        Some(_) if uneven && schedule.buffers.iter().any(|b| is_block(b, schedule.ranks)) => {
            Err(refused(format!(
                "{} elements are not {} equal blocks; use a multiple",
                schedule.elements, schedule.ranks
            )))
        }
        Some(buffer) => Ok((buffer.blocks, buffer.slices)),
        None => Err(refused("no buffer holds the whole vector".into())),
    }
}

/// Whether a rank's chunks of the buffer are its block of the vector.
fn is_block(buffer: &Buffer, ranks: u32) -> bool {
    let data = matches!(buffer.name.as_str(), "input" | "output");
    data && ranks > 1 && (buffer.mul, buffer.div, buffer.blocks) == (1, ranks, 1)
}

/// Where the chunks of a buffer of a part are in the joined schedule.
#[derive(Clone, Copy)]
struct Home {
    buffer: BufferId,
    /// Chunks between the blocks of neighbouring ranks.
    stride: u32,
}

/// Add the operations of `part` behind those of `joined`.
fn append(joined: &mut Schedule, part: &Schedule) -> Result<()> {
    let homes = homes(joined, part)?;
    let base = joined.ops.last().map_or(0, |op| op.step + 1);
    let (sets, pairs, work) = (
        joined.sets.len(),
        joined.aggregations.len(),
        joined.work.len(),
    );
    let (sets, pairs, work) = (sets as u32, pairs as u32, work as u32);
    joined.sets.extend_from_slice(&part.sets);
    let both = part.aggregations.iter();
    joined
        .aggregations
        .extend(both.map(|&(from, to)| (from + sets, to + sets)));
    joined.work.extend_from_slice(&part.work);
    for op in &part.ops {
        let mut new = Op {
            step: op.step + base,
            ..*op
        };
        match op.kind {
            OpKind::Multicast | OpKind::Barrier => new.to += sets,
            OpKind::Aggregate => new.to += pairs,
            OpKind::Compute => new.count += work,
            _ => {}
        }
        if !op.moves_data() {
            joined.ops.push(new);
            continue;
        }
        let [src, dst] = [op.src_buffer, op.dst_buffer].map(|id| homes[usize::from(id.0)]);
        if matches!(op.kind, OpKind::Multicast | OpKind::Aggregate) && src.stride + dst.stride > 0 {
            return Err(refused(
                "a multicast into blocks of their own cannot be one into a vector".into(),
            ));
        }
        let moved = |(a, b, n)| (a + src.stride * op.from, b + dst.stride * op.to, n);
        let ranges: Vec<_> = ranges_of(op, &part.ranges).map(moved).collect();
        (new.src_buffer, new.dst_buffer) = (src.buffer, dst.buffer);
        if !stays(&new, &ranges) {
            push(joined, new, ranges);
        }
    }
    Ok(())
}

/// Whether the operation copies chunks onto themselves.
fn stays(op: &Op, ranges: &[(u32, u32, u32)]) -> bool {
    op.kind == OpKind::Local
        && op.combine == Combine::Replace
        && op.src_buffer == op.dst_buffer
        && ranges.iter().all(|range| range.0 == range.1)
}

/// The buffers of `part` in `joined`: the vector, scratch that is there already, or new scratch.
fn homes(joined: &mut Schedule, part: &Schedule) -> Result<Vec<Home>> {
    let (mut homes, before) = (Vec::new(), joined.buffers.len());
    for buffer in &part.buffers {
        let slices = joined.buffers[0].slices;
        let vector = matches!(buffer.name.as_str(), "input" | "output");
        if is_block(buffer, part.ranks) || vector {
            let stride = if is_block(buffer, part.ranks) {
                slices
            } else {
                0
            };
            homes.push(Home {
                buffer: BufferId(0),
                stride,
            });
            continue;
        }
        let known = joined.buffers[..before].iter().position(|b| b == buffer);
        let id = match known {
            Some(known) => BufferId(known as u8),
            None => add(&mut joined.buffers, buffer)?,
        };
        homes.push(Home {
            buffer: id,
            stride: 0,
        });
    }
    Ok(homes)
}

/// Add `buffer`, under its own name where that is free.
pub(crate) fn add(buffers: &mut Vec<Buffer>, buffer: &Buffer) -> Result<BufferId> {
    if buffers.len() >= MAX_BUFFERS {
        return Err(ScheduleError::TooLarge(MAX_BUFFERS as u64));
    }
    let new = match buffers.iter().any(|b| b.name == buffer.name) {
        true => buffer.scratch(buffers),
        false => buffer.clone(),
    };
    buffers.push(new);
    Ok(BufferId(buffers.len() as u8 - 1))
}

fn lcm(a: u32, b: u32) -> u32 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Shape;
    use crate::collectives::{build, of};
    use crate::verify::verify;
    use std::collections::BTreeMap;

    /// Every pair of algorithms that go together, on lines and grids: what is made is right.
    #[test]
    fn every_pair_is_right() {
        let mut made: BTreeMap<&str, usize> = BTreeMap::new();
        for (p, grid) in [
            (1, None),
            (2, None),
            (6, None),
            (8, Some((4, 2))),
            (16, Some((4, 4))),
        ] {
            let line = Shape::new(p, u64::from(p) * 6).with_root(p / 2);
            let shape = grid.map_or(line.clone(), |(x, y)| line.with_grid(x, y));
            for (first, second, together) in JOINS {
                for (a, b) in of(first).flat_map(|a| of(second).map(move |b| (a, b))) {
                    let (Ok(one), Ok(two)) = ((a.build)(&shape), (b.build)(&shape)) else {
                        continue;
                    };
                    let Ok(joined) = concatenate(&one, &two) else {
                        continue;
                    };
                    let keys = format!("{} + {} {shape:?}", a.key(), b.key());
                    verify(&joined).unwrap_or_else(|e| panic!("{keys}: {e}"));
                    assert_eq!(joined.spec.collective, together, "{keys}");
                    *made.entry(together.name()).or_default() += 1;
                }
            }
        }
        let names: Vec<&str> = made.keys().copied().collect();
        assert_eq!(
            names,
            ["allgather", "allreduce", "broadcast", "reduce"],
            "{made:?}"
        );
        assert!(made["allreduce"] > 100, "{made:?}");
    }

    /// A ring's reduce-scatter and a ring's allgather are the ring's allreduce: the same messages.
    #[test]
    fn two_halves_of_a_ring_are_a_ring() {
        let shape = Shape::new(6, 60);
        let part = |key| build(key, &shape).unwrap();
        let joined = concatenate(&part("reduce_scatter/ring"), &part("allgather/ring")).unwrap();
        let whole = part("allreduce/ring");
        assert_eq!(joined.sent_bytes(), whole.sent_bytes());
        assert_eq!(joined.message_count(), whole.message_count());
    }

    /// Two slices of each block and three: six.
    #[test]
    fn the_cut_serves_both() {
        let shape = Shape::new(4, 48);
        let cut = |key, slices| crate::transforms::pipeline(&build(key, &shape).unwrap(), slices);
        let first = cut("reduce_scatter/ring", 2).unwrap();
        let second = cut("allgather/ring", 3).unwrap();
        let joined = concatenate(&first, &second).unwrap();
        verify(&joined).unwrap();
        assert_eq!(joined.buffers[0].slices, 6);
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let part = |key, ranks| build(key, &Shape::new(ranks, 48)).unwrap();
        for (first, second, why) in [
            (
                part("allgather/ring", 4),
                part("reduce_scatter/ring", 4),
                "are no collective",
            ),
            (
                part("reduce_scatter/ring", 4),
                part("allgather/ring", 6),
                "the same ranks",
            ),
        ] {
            let error = concatenate(&first, &second).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
