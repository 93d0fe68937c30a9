//! The same trees the other way: an allgather becomes a reduce-scatter, a broadcast a reduce, and back.
//!
//! ```text
//!   broadcast   step 0   0 -> 1              reduce   step 0   2 -> 1 (+)
//!               step 1   1 -> 2                       step 1   1 -> 0 (+)
//! ```
//!
//! Where every chunk spreads from its owner along a tree, the same messages backwards combine towards the
//! owner, and the other way round. Whether the operations are trees is checked chunk by chunk:
//!
//! - spreading: each rank but the owner gets a chunk once, and passes it on only afterwards;
//! - combining: each rank but the owner gives a chunk away once, and gets nothing for it afterwards.
//!
//! Reversing the order of the operations turns one into the other. Multicasts would become aggregations, which
//! few machines have, so a schedule with multicasts is refused, as is one that relays through other buffers.
//!
//! Source: Chan, Heimlich, Purkayastha and van de Geijn, *Collective communication: theory, practice, and
//! experience*, CCPE 2007 (duals).

use crate::builder::rewrite;
use crate::error::{Result, ScheduleError};
use crate::ir::{ranges_of, Combine, Op, OpKind, Schedule};
use crate::own_scratch::direct;
use crate::spec::Collective;
use crate::transforms::loosen;

/// The collective that `collective` becomes, if it has a counterpart.
pub fn counterpart(collective: Collective) -> Option<Collective> {
    match collective {
        Collective::Allgather => Some(Collective::ReduceScatter),
        Collective::ReduceScatter => Some(Collective::Allgather),
        Collective::Broadcast => Some(Collective::Reduce),
        Collective::Reduce => Some(Collective::Broadcast),
        _ => None,
    }
}

/// The schedule backwards, as its [`counterpart`].
pub fn reverse(schedule: &Schedule) -> Result<Schedule> {
    let name = schedule.spec.collective.name();
    let Some(collective) = counterpart(schedule.spec.collective) else {
        return Err(refused(format!(
            "{name} has no counterpart; reverse an allgather, a reduce_scatter, a broadcast or a reduce"
        )));
    };
    let mut draft = loosen(schedule)?;
    direct(&mut draft);
    let spreads = collective.reduces();
    check(&draft, spreads)
        .map_err(|why| refused(format!("{name}: {why}; it cannot run backwards")))?;
    draft.spec.collective = collective;
    let last = draft.ops.last().map_or(0, |op| op.step);
    draft.ops.reverse();
    for op in &mut draft.ops {
        *op = backwards(op, last, spreads);
    }
    rewrite(draft, |_| ())
}

fn refused(text: String) -> ScheduleError {
    ScheduleError::Shape(text)
}

/// The message the other way, in its step counted from the end; the data go back along the same links.
fn backwards(op: &Op, last: u32, spreads: bool) -> Op {
    Op {
        from: op.to,
        to: op.from,
        step: last - op.step,
        hint: op.hint.opposite(),
        combine: match spreads {
            true => Combine::Reduce,
            false => Combine::Replace,
        },
        ..*op
    }
}

/// What has happened to a chunk at a rank.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// It came from another rank.
    arrived: bool,
    /// It was given to another rank.
    left: bool,
}

/// Why the operations are not trees from, or to, the owners of the chunks.
fn check(draft: &Schedule, spreads: bool) -> std::result::Result<(), String> {
    let Some(output) = draft.buffers.iter().position(|b| b.name == "output") else {
        return Err("it has no buffer `output`".into());
    };
    if draft.spec.out_of_place {
        return Err("its input and output are two buffers".into());
    }
    let buffer = &draft.buffers[output];
    let chunks = buffer.chunks() as usize;
    let mut seen = vec![Seen::default(); chunks * draft.ranks as usize];
    for op in &draft.ops {
        let of_output = [op.src_buffer, op.dst_buffer].map(|id| usize::from(id.0) == output);
        if !matches!(op.kind, OpKind::Put | OpKind::Get) || of_output != [true; 2] {
            return Err("not all it does are puts and gets from `output` to `output`".into());
        }
        if (op.combine == Combine::Reduce) == spreads {
            return Err("it both copies and combines".into());
        }
        for (src, dst, count) in ranges_of(op, &draft.ranges) {
            for k in 0..count {
                let problem = message(&mut seen, chunks, op, (src + k, dst + k), spreads);
                problem.map_or(Ok(()), |text| Err(format!("rank {text}")))?;
            }
        }
    }
    complete(draft, &seen, chunks, spreads)
}

/// Enter one chunk of a message; what contradicts a tree, if anything does.
fn message(
    seen: &mut [Seen],
    chunks: usize,
    op: &Op,
    (src, dst): (u32, u32),
    spreads: bool,
) -> Option<String> {
    let at = |rank: u32, chunk: u32| rank as usize * chunks + chunk as usize;
    let (from, to) = (at(op.from, src), at(op.to, dst));
    if src != dst {
        return Some(format!("{} sends chunk {src} to place {dst}", op.from));
    }
    if spreads && (seen[to].arrived || seen[to].left) {
        return Some(format!("{} gets chunk {dst} when it has it", op.to));
    }
    if !spreads && (seen[from].left || seen[to].left) {
        return Some(format!("{} or {} is done with chunk {src}", op.from, op.to));
    }
    (seen[to].arrived, seen[from].left) = (true, true);
    None
}

/// Whether every chunk has been everywhere it must: an owner gets nothing, or gives nothing, and all others do.
fn complete(
    draft: &Schedule,
    seen: &[Seen],
    chunks: usize,
    spreads: bool,
) -> std::result::Result<(), String> {
    let buffer = draft.buffers.iter().find(|b| b.name == "output");
    let slices = buffer.map_or(1, |buffer| buffer.slices);
    for rank in 0..draft.ranks {
        for chunk in 0..chunks as u32 {
            let owner = match draft.spec.collective.is_rooted() {
                true => draft.spec.root,
                false => chunk / slices,
            };
            let state = seen[rank as usize * chunks + chunk as usize];
            let moved = if spreads { state.arrived } else { state.left };
            if moved == (rank == owner) {
                return Err(format!(
                    "chunk {chunk} does not move as a tree at rank {rank}"
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Shape;
    use crate::collectives::{build, REGISTRY};
    use crate::verify::verify;
    use std::collections::BTreeSet;

    /// Every algorithm of the four collectives on many shapes: a reversal that is made is right.
    #[test]
    fn what_is_reversed_is_right() {
        let mut reversed = BTreeSet::new();
        let pairs = REGISTRY
            .iter()
            .filter(|a| counterpart(a.collective).is_some());
        for algorithm in pairs {
            for (p, grid) in [
                (1, None),
                (2, None),
                (5, None),
                (8, None),
                (12, Some((4, 3))),
                (16, Some((4, 4))),
            ] {
                for (elements, root) in [(0, 0), (3, p - 1), (240, p / 2)] {
                    let line = Shape::new(p, elements).with_root(root);
                    let shape = grid.map_or(line.clone(), |(x, y)| line.with_grid(x, y));
                    let Ok(before) = (algorithm.build)(&shape) else {
                        continue;
                    };
                    let Ok(after) = reverse(&before) else {
                        continue;
                    };
                    let key = algorithm.key();
                    verify(&after).unwrap_or_else(|e| panic!("{key} {shape:?}: {e}"));
                    assert_eq!(
                        Some(after.spec.collective),
                        counterpart(before.spec.collective)
                    );
                    let bytes = |s: &Schedule| s.sent_bytes().iter().sum::<u64>();
                    assert_eq!(bytes(&after), bytes(&before), "{key} {shape:?}");
                    if p > 2 {
                        reversed.insert(key);
                    }
                }
            }
        }
        for key in [
            "allgather/ring",
            "allgather/pat",
            "broadcast/binomial",
            "reduce/ring",
            "reduce_scatter/ring",
        ] {
            assert!(reversed.contains(key), "{key} is not among {reversed:?}");
        }
    }

    /// Twice backwards is forwards: the same messages in the same steps.
    #[test]
    fn twice_backwards_is_forwards() {
        for key in [
            "allgather/ring",
            "allgather/recursive_doubling",
            "broadcast/binomial",
        ] {
            let once = build(key, &Shape::new(8, 64)).unwrap();
            let twice = reverse(&reverse(&once).unwrap()).unwrap();
            let moves = |s: &Schedule| {
                let first = s.ops().first().map_or(0, |op| op.step);
                let puts = s.ops().iter().filter(|op| op.moves_data());
                puts.map(|op| (op.step - first, op.from, op.to, s.op_bytes(op)))
                    .collect::<BTreeSet<_>>()
            };
            assert_eq!(moves(&twice), moves(&once), "{key}");
        }
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        let shape = Shape::new(8, 64);
        for (key, why) in [
            ("allreduce/ring", "has no counterpart"),
            ("broadcast/multicast", "puts and gets"),
            ("broadcast/scatter_allgather", "when it has it"),
        ] {
            let error = reverse(&build(key, &shape).unwrap())
                .unwrap_err()
                .to_string();
            assert!(error.contains(why), "{key}: {error}");
        }
    }
}
