//! Interval by id, every chunk of rank 0 ends with exactly the contributions that the spec demands.

use super::contents::{Contents, Interval, Turn};
use super::Folded;
use crate::ir::{BufferId, Combine, Op, Schedule};
use crate::spec::Expected;
use crate::verify::difference::{difference, Counted, Due};
use crate::verify::VerifyError;

/// Follow the contents of all chunks; how many were moved.
pub(super) fn check(folded: &Folded) -> Result<u64, VerifyError> {
    let frame = folded.frame();
    let mut replay = Replay {
        folded,
        frame: &frame,
        turn: Turn {
            group: folded.group(),
            chunks: contributions_turn(folded, &frame),
        },
        values: (0u8..=255)
            .zip(&frame.buffers)
            .map(|(id, buffer)| {
                let first = |chunk| initial(&frame, BufferId(id), chunk);
                (0..buffer.chunks()).map(first).collect()
            })
            .collect(),
    };
    let mut moves = 0;
    for op in folded.ops() {
        for (src, dst, count) in folded.program.ranges_of(op) {
            moves += u64::from(count);
            for k in 0..count {
                replay.bring(op, src + k, dst + k)?;
            }
        }
    }
    replay.compare()?;
    Ok(moves)
}

/// Whether the chunks of the one buffer that holds data at the start turn with the ranks.
fn contributions_turn(folded: &Folded, frame: &Schedule) -> bool {
    let starts = ["input", "output"].map(|name| frame.buffer_named(name));
    starts.into_iter().flatten().any(|id| {
        let holds = |chunk| initial(frame, id, chunk) != Contents::Nothing;
        folded.program.relative[id.0 as usize] && (0..frame.buffer(id).chunks()).any(holds)
    })
}

fn initial(frame: &Schedule, id: BufferId, chunk: u32) -> Contents {
    let first = frame.spec.initial(frame.ranks, 0, frame.buffer(id), chunk);
    first.map_or(Contents::Nothing, |chunk| Turn::one(chunk, 0))
}

/// The chunks of rank 0 while its operations run by id.
struct Replay<'a> {
    folded: &'a Folded,
    frame: &'a Schedule,
    turn: Turn,
    values: Vec<Vec<Contents>>,
}

impl Replay<'_> {
    /// Rank 0 gets a chunk by `op`, from the rank that is as far behind it as the target is ahead.
    #[inline]
    fn bring(&mut self, op: &Op, src: u32, dst: u32) -> Result<(), VerifyError> {
        let value = &self.values[op.src_buffer.0 as usize][src as usize];
        if *value == Contents::Nothing {
            let problem = "is read before anything is in it; fill it in an earlier step, \
                           or send a chunk that has data";
            return Err(self.wrong(Some(op.step), op.src_buffer, src, problem));
        }
        let back = self.turn.group.back(op.to);
        let value = self.turn.turned(value, back);
        let into = self.folded.program.chunk_at(op.dst_buffer, dst, back);
        let there = &mut self.values[op.dst_buffer.0 as usize][into as usize];
        match (op.combine, &*there) {
            (Combine::Replace, _) => *there = value,
            (Combine::Reduce, Contents::Nothing) => {
                let problem = "is combined into before anything is in it; replace instead \
                               of reduce, or fill it in an earlier step";
                return Err(self.wrong(Some(op.step), op.dst_buffer, into, problem));
            }
            (Combine::Reduce, _) => *there = self.turn.sum(there, &value),
        }
        Ok(())
    }

    fn compare(&self) -> Result<(), VerifyError> {
        let frame = self.frame;
        for (id, buffer) in (0u8..=255).map(BufferId).zip(&frame.buffers) {
            for chunk in 0..buffer.chunks() {
                let due = match frame.spec.expected(frame.ranks, 0, buffer, chunk) {
                    Expected::Any => continue,
                    Expected::One { rank, chunk } => Turn::one(chunk, rank),
                    Expected::All { chunk } => self.turn.all(chunk),
                };
                let found = &self.values[id.0 as usize][chunk as usize];
                if *found != due {
                    let problem = explain(self.turn, found, &due);
                    return Err(self.wrong(self.last_write(id, chunk), id, chunk, &problem));
                }
            }
        }
        Ok(())
    }

    /// The step that wrote a chunk last.
    fn last_write(&self, buffer: BufferId, chunk: u32) -> Option<u32> {
        let writes = |op: &&Op| {
            let mut hit = false;
            self.folded.program.written(op, |first, count| {
                hit |= op.dst_buffer == buffer && (first..first + count).contains(&chunk);
            });
            hit
        };
        self.folded
            .ops()
            .iter()
            .rev()
            .find(writes)
            .map(|op| op.step)
    }

    #[cold]
    fn wrong(&self, step: Option<u32>, buffer: BufferId, chunk: u32, problem: &str) -> VerifyError {
        VerifyError::Semantics {
            step,
            participant: 0,
            place: "rank 0".to_string(),
            buffer: self.frame.buffer(buffer).name.clone(),
            chunk,
            problem: problem.to_string(),
        }
    }
}

/// In words; `due` is one interval of ranks.
fn explain(turn: Turn, found: &Contents, due: &Contents) -> String {
    let Contents::One(Interval { chunk, first, len }) = *due else {
        unreachable!("a spec demands one contribution or everyone's");
    };
    let each = |(chunk, first, len, often)| Counted {
        chunk,
        first,
        len,
        often: u64::from(often),
    };
    let found: Vec<Counted> = turn.counted(found).into_iter().map(each).collect();
    let due = Due {
        chunk,
        ranks: first..first + len,
        often: 1,
    };
    difference(&found, &due).0
}
