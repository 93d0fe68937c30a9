//! Everything that an operation names exists, its two sides are equally long at every rank, and its
//! waits lead to operations before that rank 0 can see.

use super::Folded;
use crate::ir::{Buffer, BufferId, Op, OpKind};
use crate::spec::Collective;
use crate::verify::bounds::{apart, inside, listed};
use crate::verify::{check_shape, VerifyError};

pub(super) fn check(folded: &Folded) -> Result<(), VerifyError> {
    check_shape(&folded.frame())?;
    buffers(folded)?;
    let lengths: Vec<Option<u64>> = (folded.program.buffers.iter())
        .map(|buffer| even(buffer, folded.program.elements))
        .collect();
    for (k, op) in (0u32..).zip(folded.ops()) {
        operation(folded, &lengths, op).map_err(|problem| VerifyError::Bounds {
            step: op.step,
            op: folded.id((k, 0)),
            problem,
        })?;
        waits(folded, k, op)?;
    }
    Ok(())
}

/// The length of all chunks of a buffer, where they are equal.
fn even(buffer: &Buffer, elements: u64) -> Option<u64> {
    let (total, chunks) = (buffer.elements(elements), u64::from(buffer.chunks()));
    (total % chunks == 0).then_some(total / chunks)
}

/// Buffers are cut as the group turns them, and as the spec gives ranks their parts.
fn buffers(folded: &Folded) -> Result<(), VerifyError> {
    let (program, ranks) = (&folded.program, folded.ranks());
    let error = |problem| Err(VerifyError::Shape(problem));
    let collective = program.spec.collective;
    if collective.is_rooted() || collective == Collective::Pattern {
        return error(format!(
            "a {} has ranks that differ; simulate every rank",
            collective.name()
        ));
    }
    for (buffer, &relative) in program.buffers.iter().zip(&program.relative) {
        if relative && buffer.chunks() != ranks {
            return error(format!(
                "buffer {}: turns with {ranks} ranks but has {} chunks; cut it into one per rank",
                buffer.name,
                buffer.chunks()
            ));
        }
        // An allreduce gives everyone the same chunks, all others give each rank its own.
        let own = ["input", "output"].contains(&buffer.name.as_str());
        if own && !relative && collective != Collective::Allreduce {
            return error(format!(
                "buffer {}: each rank has its own block of it; make it relative",
                buffer.name
            ));
        }
    }
    Ok(())
}

fn operation(folded: &Folded, lengths: &[Option<u64>], op: &Op) -> Result<(), String> {
    let ranks = folded.ranks();
    if op.to >= ranks || op.from >= ranks {
        return Err(format!(
            "rank {} does not exist; there are {ranks}",
            op.to.max(op.from)
        ));
    }
    match op.kind {
        OpKind::Put | OpKind::Notice => {}
        OpKind::Local | OpKind::Fence if op.to == 0 => {}
        OpKind::Local | OpKind::Fence => {
            return Err("a local operation names another rank; put instead".to_string())
        }
        _ => return Err("cannot be folded; simulate every rank".to_string()),
    }
    match op.moves_data() {
        true => chunks(folded, lengths, op),
        false => Ok(()),
    }
}

fn chunks(folded: &Folded, lengths: &[Option<u64>], op: &Op) -> Result<(), String> {
    let program = &folded.program;
    listed(op, program.ranges.len())?;
    let side = |id: BufferId| {
        let missing = || format!("buffer {} does not exist", id.0);
        program.buffers.get(id.0 as usize).ok_or_else(missing)
    };
    let (src, dst) = (side(op.src_buffer)?, side(op.dst_buffer)?);
    let turned = |id: BufferId| program.relative[id.0 as usize];
    let alike = src.same_cut(dst) && turned(op.src_buffer) == turned(op.dst_buffer);
    let length = |id: BufferId| lengths[id.0 as usize];
    let even = length(op.src_buffer).is_some() && length(op.src_buffer) == length(op.dst_buffer);
    for (first, into, count) in program.ranges_of(op) {
        inside(src, first, count)?;
        inside(dst, into, count)?;
        let equally_long = even || alike && first == into;
        if !equally_long {
            return Err(format!(
                "{}[{first}] and {}[{into}] are not equally long at every rank; choose a size that \
                 cuts into equal chunks",
                src.name, dst.name
            ));
        }
    }
    overlap(folded, op)
}

fn overlap(folded: &Folded, op: &Op) -> Result<(), String> {
    let program = &folded.program;
    let inside = op.to == 0 && op.src_buffer == op.dst_buffer;
    if !op.scattered && !inside {
        return Ok(());
    }
    let mut written = Vec::new();
    program.written(op, |first, count| written.push((first, count)));
    let read = program.ranges_of(op).map(|(src, _, count)| (src, count));
    let name = &program.buffers[op.dst_buffer.0 as usize].name;
    apart(name, written, read.filter(|_| inside))
}

fn waits(folded: &Folded, k: u32, op: &Op) -> Result<(), VerifyError> {
    for &wait in folded.after(k) {
        let earlier = folded.id((wait.op().min(k), wait.rank()));
        let problem = if wait.op() >= k {
            format!(
                "waits for operation {} of each rank, which is not earlier",
                wait.op()
            )
        } else if folded.completion(wait).is_none() {
            format!("waits for t{earlier}, which rank 0 cannot see; send a notice")
        } else {
            continue;
        };
        return Err(VerifyError::Order {
            step: op.step,
            op: folded.id((k, 0)),
            rank: 0,
            problem,
        });
    }
    Ok(())
}
