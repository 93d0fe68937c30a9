//! The instructions of all ranks as flat tables, for an interpreter outside this crate.
//!
//! A GPU walks the same program as [`super`] does, from memory it can read: fixed-size records in a
//! few arrays, rank after rank, each instruction with the *ends* of its waits, pieces and raises.
//!
//! ```text
//!   rank r: instructions rank_first[r] .. rank_first[r + 1], in program order
//!   each:   wait for   waits [last instruction's end .. own end]    counter >= epoch * per_epoch + ordinal
//!           act on     pieces[...]                                  copy, combine, nothing, ...
//!           announce   raises[...]                                  counter = epoch * per_epoch + ordinal
//! ```
//!
//! Two things differ from the program of threads: no message travels as mail (a GPU gains nothing from a
//! cache line of the host), and an arrival at a barrier is a raise that *adds one*, because many ranks share
//! its counter.
//!
//! All memory is one array: participants one after the other, the buffers of each on borders of
//! [`ALIGN`] bytes. The gaps between buffers hold a pattern that must not change.

use super::program::{compile, Action, Count, Mail, Place, Program};
use crate::buffers::{Buffers, Contents, Data};
use crate::error::Result;
use crate::reference;
use linkwright_schedule::ir::Schedule;
use std::ops::Range;

/// Borders of buffers: as wide as the widest access and the longest line of a GPU.
pub const ALIGN: usize = 256;

/// Content of the gaps between buffers.
const BETWEEN: u8 = 0xa5;

/// The effect of an instruction, between its waits and its raises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Code {
    /// Only wait or raise.
    Nothing = 0,
    /// Overwrite the destinations.
    Copy = 1,
    /// Combine into the destinations.
    Combine = 2,
    /// Its raises add one, instead of storing.
    Arrive = 3,
    /// Its only piece has the work as its length.
    Compute = 4,
}

impl Code {
    /// Every code, with its name.
    pub const ALL: [(&'static str, Code); 5] = [
        ("nothing", Code::Nothing),
        ("copy", Code::Copy),
        ("combine", Code::Combine),
        ("arrive", Code::Arrive),
        ("compute", Code::Compute),
    ];
}

/// The program of all ranks.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// First instruction of each rank, and the end of the last one's.
    pub rank_first: Vec<u32>,
    /// Code, and ends in `waits`, `pieces`, `raises`.
    pub instructions: Vec<[u32; 4]>,
    /// Counter, ordinal, messages per epoch.
    pub waits: Vec<[u64; 3]>,
    /// Counter, ordinal, messages per epoch.
    pub raises: Vec<[u64; 3]>,
    /// Source and destination, both as participant and offset in its memory; bytes.
    pub pieces: Vec<[u64; 5]>,
    /// By counter: the rank that waits on it; `u32::MAX` for a barrier's. All are zero before the first epoch.
    pub readers: Vec<u32>,
    /// Where things lie.
    pub layout: Layout,
}

/// Where the memory of each participant, and in it each buffer, begins.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// First byte of each participant, and the end of the last one's memory.
    pub participant_first: Vec<u64>,
    /// By participant and buffer: offset in the participant's memory.
    pub buffer_first: Vec<u64>,
    /// By participant and buffer: its length.
    pub buffer_bytes: Vec<u64>,
    /// Buffers of each participant.
    pub buffers: usize,
}

impl Layout {
    /// The layout of all buffers of a schedule.
    pub fn of(contents: &Contents) -> Self {
        let mut layout = Layout {
            buffers: contents.schedule.buffers.len(),
            ..Layout::default()
        };
        let mut first = 0;
        for participant in 0..contents.participants() {
            layout.participant_first.push(first as u64);
            let mut offset = 0;
            for buffer in 0..layout.buffers {
                let bytes = contents.bytes(participant, buffer);
                layout.buffer_first.push(offset as u64);
                layout.buffer_bytes.push(bytes as u64);
                offset = (offset + bytes).next_multiple_of(ALIGN);
            }
            first += offset;
        }
        layout.participant_first.push(first as u64);
        layout
    }

    /// Offset in the memory of a participant of a byte of one of its buffers.
    pub fn offset(&self, participant: u32, buffer: u8, within: usize) -> u64 {
        self.buffer_first[self.slot(participant, buffer.into())] + within as u64
    }

    /// Bytes of a buffer in the memory of a participant.
    pub fn span(&self, participant: u32, buffer: usize) -> Range<usize> {
        let slot = self.slot(participant, buffer);
        let first = self.buffer_first[slot] as usize;
        first..first + self.buffer_bytes[slot] as usize
    }

    /// Length of the memory of a participant.
    pub fn bytes(&self, participant: u32) -> usize {
        let who = participant as usize;
        (self.participant_first[who + 1] - self.participant_first[who]) as usize
    }

    fn slot(&self, participant: u32, buffer: usize) -> usize {
        participant as usize * self.buffers + buffer
    }

    fn place(&self, place: Place, within: usize) -> [u64; 2] {
        let offset = self.offset(place.participant, place.buffer, within);
        [u64::from(place.participant), offset]
    }

    /// All bytes of a state in one array.
    fn flatten(&self, state: &Buffers) -> Vec<u8> {
        let end = *self.participant_first.last().expect("an end");
        let mut flat = vec![BETWEEN; end as usize];
        let slots = self.buffer_first.iter().zip(&self.buffer_bytes);
        for (slot, (&first, &bytes)) in slots.enumerate() {
            let (participant, buffer) = (slot / self.buffers, slot % self.buffers);
            let start = (self.participant_first[participant] + first) as usize;
            flat[start..start + bytes as usize]
                .copy_from_slice(state.buffer(participant as u32, buffer));
        }
        flat
    }
}

/// Compiles a schedule into a stream.
pub fn encode(schedule: &Schedule, data: Data) -> Result<Stream> {
    let contents = Contents::new(schedule, data)?;
    contents.check_memory(1)?;
    let program = compile(&contents, Mail::Never)?;
    let mut stream = Stream {
        readers: program.readers.clone(),
        layout: Layout::of(&contents),
        ..Stream::default()
    };
    for rank in 0..schedule.ranks as usize {
        stream.rank_first.push(stream.instructions.len() as u32);
        stream.add_rank(&program, rank);
    }
    stream.rank_first.push(stream.instructions.len() as u32);
    Ok(stream)
}

/// All memory before the first operation.
pub fn initial_memory(schedule: &Schedule, data: Data) -> Result<Vec<u8>> {
    let contents = Contents::new(schedule, data)?;
    contents.check_memory(2)?;
    Ok(Layout::of(&contents).flatten(&Buffers::initial(&contents)))
}

/// All memory as `reference` leaves it, and how many elements of it the postcondition names.
pub fn reference_memory(schedule: &Schedule, data: Data) -> Result<(Vec<u8>, u64)> {
    let contents = Contents::new(schedule, data)?;
    contents.check_memory(2)?;
    let state = reference::execute(&contents)?;
    let checked = state.check(&contents, "reference")?;
    Ok((Layout::of(&contents).flatten(&state), checked))
}

impl Stream {
    fn add_rank(&mut self, program: &Program, rank: usize) {
        let own = &program.ranks[rank];
        let (mut waits, mut pieces, mut raises) = (0, 0, 0);
        for instruction in &own.code {
            let until =
                |end: u32, done: &mut usize| std::mem::replace(done, end as usize)..end as usize;
            let new_waits = &own.waits[until(instruction.waits, &mut waits)];
            self.waits.extend(new_waits.iter().map(record));
            for piece in &own.pieces[until(instruction.pieces, &mut pieces)] {
                let [from, source] = self.layout.place(piece.from, piece.extent.src);
                let [to, target] = self.layout.place(piece.to, piece.extent.dst);
                let bytes = piece.extent.bytes as u64;
                self.pieces.push([from, source, to, target, bytes]);
            }
            let new_raises = &own.raises[until(instruction.raises, &mut raises)];
            self.raises.extend(new_raises.iter().map(record));
            let code = self.code(program, instruction.action);
            self.instructions.push([
                code as u32,
                self.waits.len() as u32,
                self.pieces.len() as u32,
                self.raises.len() as u32,
            ]);
        }
    }

    /// The code of an action; what the action carries goes into the tables.
    fn code(&mut self, program: &Program, action: Action) -> Code {
        match action {
            Action::Nothing => Code::Nothing,
            Action::Copy => Code::Copy,
            Action::Reduce => Code::Combine,
            Action::Arrive { barrier, ordinal } => {
                let set = &program.barriers[barrier as usize];
                self.raises
                    .push([u64::from(set.counter), ordinal, set.per_epoch]);
                Code::Arrive
            }
            Action::Compute { work } => {
                self.pieces.push([0, 0, 0, 0, work]);
                Code::Compute
            }
            Action::Post { .. } | Action::TakeCopy { .. } | Action::TakeReduce { .. } => {
                unreachable!("compiled without mail")
            }
        }
    }
}

fn record(count: &Count) -> [u64; 3] {
    [u64::from(count.counter), count.ordinal, count.per_epoch]
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use linkwright_schedule::builder::Shape;
    use linkwright_schedule::collectives;

    const DATA: Data = Data::sums(DType::F32, 3);

    #[test]
    fn tiny_messages_are_copied_and_announced_not_mailed() {
        let ring = collectives::find("allreduce/ring").unwrap();
        let schedule = (ring.build)(&Shape::new(2, 4)).unwrap();
        let stream = encode(&schedule, DATA).unwrap();
        // Two ranks, each 8 bytes to the other twice: combined, then copied.
        assert_eq!(stream.pieces.len(), 4);
        assert!(stream.pieces.iter().all(|piece| piece[4] == 8));
        assert_eq!(stream.rank_first.len(), 3);
        let last = stream.instructions.last().unwrap();
        let ends = [
            &stream.waits.len(),
            &stream.pieces.len(),
            &stream.raises.len(),
        ];
        assert!(ends.iter().zip(&last[1..]).all(|(a, b)| **a == *b as usize));
    }

    #[test]
    fn what_lies_between_buffers_is_in_both_memories() {
        let ring = collectives::find("allgather/ring").unwrap();
        let schedule = (ring.build)(&Shape::new(3, 9)).unwrap();
        let initial = initial_memory(&schedule, DATA).unwrap();
        let (reference, checked) = reference_memory(&schedule, DATA).unwrap();
        let stream = encode(&schedule, DATA).unwrap();
        assert_eq!(initial.len(), reference.len());
        assert_eq!(
            initial.len() as u64,
            *stream.layout.participant_first.last().unwrap()
        );
        assert!(checked >= 27);
        let first_end = stream.layout.buffer_bytes[0] as usize;
        assert_eq!(initial[first_end], BETWEEN);
        assert_eq!(reference[first_end], BETWEEN);
    }
}
