//! What each participant does, in flat tables, for executors outside this project.
//!
//! One row for each operation, in the order of ids, with chunks resolved to bytes and edges to the moment
//! that the waiter can observe by itself:
//!
//! ```text
//!   operation   kind, initiator, source, combine, lane, work
//!   targets     participants that the operation reaches
//!   pieces      offset at the source, target, offset there, bytes
//!   waits       operation, moment: its source is free | its data have arrived here | it is done everywhere
//! ```
//!
//! The memory of a participant is one array, with its buffers on borders of [`ALIGN`](crate::threads::stream::ALIGN)
//! bytes. Barriers have become notices, so every wait is on one operation, and the schedule was verified
//! again.
//!
//! **No deadlock.** Whoever issues the operations of each rank by id, and meanwhile receives and serves, always
//! proceeds: ids are a topological order.

use crate::buffers::{Contents, Data};
use crate::error::{ExecError, Result};
use crate::lowered::in_messages;
use crate::threads::stream::Layout;
use linkwright_schedule::ir::{Combine, Completion, OpKind, Schedule};

/// The executor that errors name.
const EXECUTOR: &str = "the executor";

linkwright_core::words! {
    /// What a rank waits for, as it sees it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u8)]
    pub enum Moment {
        /// The waiter issued the operation, and may overwrite what it sent.
        Free = "free",
        /// The data, or the notice, have arrived at the waiter.
        Arrived = "arrived",
        /// The waiter issued the operation, and it is complete at every target.
        Done = "done",
    }
}

/// The operations of all ranks.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// By operation.
    pub kinds: Vec<OpKind>,
    /// Rank that issues the operation.
    pub initiator: Vec<u32>,
    /// Participant whose data move.
    pub source: Vec<u32>,
    /// Whether data are combined into the destination.
    pub combine: Vec<bool>,
    /// Lane of the initiator.
    pub lane: Vec<u8>,
    /// Of a compute, in operations.
    pub work: Vec<u64>,
    /// Where the targets of each operation end.
    pub target_end: Vec<u32>,
    /// Participants.
    pub targets: Vec<u32>,
    /// Where the pieces of each operation end.
    pub piece_end: Vec<u32>,
    /// Offset in the memory of the source, target, offset in its memory, bytes.
    pub pieces: Vec<[u64; 4]>,
    /// Where the waits of each operation end.
    pub wait_end: Vec<u32>,
    /// Operation, [`Moment`].
    pub waits: Vec<[u32; 2]>,
    /// Where things lie.
    pub layout: Layout,
}

/// Compiles a schedule for all ranks.
pub fn program(schedule: &Schedule, data: Data) -> Result<Program> {
    let schedule = in_messages(schedule, "program")?;
    let contents = Contents::new(&schedule, data)?;
    let mut program = Program {
        layout: Layout::of(&contents),
        ..Program::default()
    };
    for id in 0..schedule.ops().len() as u32 {
        program.add(&contents, id)?;
    }
    Ok(program)
}

impl Program {
    fn add(&mut self, contents: &Contents, id: u32) -> Result<()> {
        let schedule = contents.schedule;
        let op = &schedule.ops()[id as usize];
        self.kinds.push(op.kind);
        self.initiator.push(op.initiator());
        self.source.push(op.from);
        self.combine.push(op.combine == Combine::Reduce);
        self.lane.push(op.lane);
        self.work.push(schedule.op_work(op));
        if op.is_message() || op.moves_data() {
            self.targets.extend(schedule.targets(op));
        }
        self.target_end.push(self.targets.len() as u32);
        if op.moves_data() {
            for &target in schedule.targets(op) {
                for extent in contents.moves(EXECUTOR, id, op, target)? {
                    let place = |who, buffer: u8, offset| self.layout.offset(who, buffer, offset);
                    let from = place(op.from, op.src_buffer.0, extent.src);
                    let to = place(target, op.dst_buffer.0, extent.dst);
                    let bytes = extent.bytes as u64;
                    self.pieces.push([from, target.into(), to, bytes]);
                }
            }
        }
        self.piece_end.push(self.pieces.len() as u32);
        self.add_waits(schedule, id)?;
        self.wait_end.push(self.waits.len() as u32);
        Ok(())
    }

    fn add_waits(&mut self, schedule: &Schedule, id: u32) -> Result<()> {
        let rank = schedule.ops()[id as usize].initiator();
        for &edge in schedule.after(id) {
            let awaited = &schedule.ops()[edge.op() as usize];
            let mine = awaited.initiator() == rank;
            let moment = match schedule.completion(edge, rank) {
                Some(Completion::SourceFree) => Moment::Free,
                Some(Completion::Delivered) if mine => Moment::Done,
                Some(_) => Moment::Arrived,
                None => return Err(ExecError::BlindEdge { op: id, rank }),
            };
            self.waits.push([edge.op(), moment as u32]);
        }
        Ok(())
    }
}

/// The memory of a participant before the first operation.
pub fn initial(schedule: &Schedule, data: Data, participant: u32) -> Result<Vec<u8>> {
    let contents = Contents::new(schedule, data)?;
    contents.check_memory(1)?;
    let layout = Layout::of(&contents);
    let mut memory = vec![0; layout.bytes(participant)];
    for buffer in 0..schedule.buffers.len() {
        let span = layout.span(participant, buffer);
        contents.initialise(participant, buffer, &mut memory[span]);
    }
    Ok(memory)
}

/// Compares the memory of a participant with what the schedule must leave there. Returns the number of elements
/// compared: 0 where nothing is known of any.
pub fn check(schedule: &Schedule, data: Data, participant: u32, memory: &[u8]) -> Result<u64> {
    let contents = Contents::new(schedule, data)?;
    let layout = Layout::of(&contents);
    let mut checked = 0;
    for buffer in 0..schedule.buffers.len() {
        let span = layout.span(participant, buffer);
        if !span.is_empty() {
            checked += contents.check(EXECUTOR, participant, buffer, &memory[span])?;
        }
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{combine, DType};
    use linkwright_schedule::builder::{Builder, Shape};
    use linkwright_schedule::collectives::REGISTRY;
    use linkwright_schedule::ir::Buffer;
    use linkwright_schedule::spec::Collective;

    const DATA: Data = Data::sums(DType::F32, 3);

    /// Runs the tables by id, as any executor may.
    fn run(schedule: &Schedule) -> Result<u64> {
        let program = program(schedule, DATA)?;
        let everyone = 0..schedule.ranks + schedule.memories;
        let mut memory = everyone
            .clone()
            .map(|participant| initial(schedule, DATA, participant))
            .collect::<Result<Vec<_>>>()?;
        let mut first = 0;
        for (id, &end) in program.piece_end.iter().enumerate() {
            let source = memory[program.source[id] as usize].clone();
            for &[from, target, to, bytes] in &program.pieces[first..end as usize] {
                let (from, to, bytes) = (from as usize, to as usize, bytes as usize);
                let into = &mut memory[target as usize][to..to + bytes];
                match program.combine[id] {
                    true => combine(DATA.dtype, DATA.op, into, &source[from..from + bytes]),
                    false => into.copy_from_slice(&source[from..from + bytes]),
                }
            }
            first = end as usize;
        }
        let checks = everyone.map(|who| check(schedule, DATA, who, &memory[who as usize]));
        checks.sum()
    }

    #[test]
    fn every_algorithm_is_right_by_its_tables() {
        for algorithm in REGISTRY {
            for ranks in [2, 3, 5, 8] {
                if let Ok(schedule) = (algorithm.build)(&Shape::new(ranks, 41)) {
                    let checked = run(&schedule).unwrap();
                    let tokens = algorithm.collective == Collective::Barrier;
                    assert!(checked > 0 || tokens, "{}", algorithm.key());
                }
            }
        }
    }

    /// Rank 0 sends a vector to 1, which passes it on; nothing else waits.
    #[test]
    fn a_relay_waits_for_what_has_arrived() {
        let mut b = Builder::new(Collective::Broadcast, &Shape::new(3, 6));
        let data = b.buffer(Buffer::vector("output", 1));
        b.step();
        b.put(0, data.at(0), 1, data.at(0));
        b.step();
        b.put(1, data.at(0), 2, data.at(0));
        let found = program(&b.finish().unwrap(), DATA).unwrap();
        assert_eq!(found.initiator, [0, 1]);
        assert_eq!(found.targets, [1, 2]);
        assert_eq!(found.pieces, [[0, 1, 0, 24], [0, 2, 0, 24]]);
        assert_eq!(found.wait_end, [0, 1]);
        assert_eq!(found.waits, [[0, Moment::Arrived as u32]]);
    }

    #[test]
    fn a_wrong_byte_is_found() {
        let schedule = (REGISTRY[0].build)(&Shape::new(2, 6)).unwrap();
        let memory = initial(&schedule, DATA, 0).unwrap();
        let error = check(&schedule, DATA, 0, &memory).unwrap_err();
        assert!(matches!(error, ExecError::WrongResult { .. }), "{error}");
    }
}
