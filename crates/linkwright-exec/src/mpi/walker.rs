//! One rank's memory and requests, and the walk through its steps.
//!
//! The fast path is a loop over a list: no lock, no allocation, no search. Addresses are resolved
//! before the first repetition, and every message has its own request cells.

use super::library::{done, Group, Library, STATUS_BYTES};
use super::numbering::host;
use super::steps::{Message, Place, RankProgram, Spot, Step};
use crate::buffers::Contents;
use crate::dtype::{kernel, Kernel};
use crate::error::Result;
use crate::threads::arena::Arena;
use crate::timer::{Clock, Ticks};
use std::ffi::c_int;

/// What is repeated and timed: a schedule, or a collective of the library.
pub(super) trait Work {
    /// Fresh data.
    fn fill(&mut self);
    /// One repetition.
    fn run(&mut self) -> Result<()>;
    /// One repetition, and the latency of each message that this rank issues, in ns.
    fn run_watched(&mut self, latencies_ns: &mut Vec<f64>) -> Result<()>;
    /// Compares this rank's data with the postcondition. Returns the number of elements compared.
    fn check(&self) -> Result<u64>;
}

/// What a repetition tells of the messages that this rank sends.
trait Watch {
    /// It is about to begin.
    fn begins(&mut self, _message: u32) {}
    /// This rank knows that it is complete.
    fn completed(&mut self, _message: u32) {}
}

/// Looks at nothing, and costs nothing.
struct Unwatched;

impl Watch for Unwatched {}

/// Times each message from its Isend until this rank knows that it is complete.
struct Stopwatch<'a> {
    clock: &'static Clock,
    /// By message; those that have bytes, from when they begin.
    begun: Vec<Option<Ticks>>,
    latencies_ns: &'a mut Vec<f64>,
}

impl Watch for Stopwatch<'_> {
    fn begins(&mut self, message: u32) {
        self.begun[message as usize] = Some(self.clock.now());
    }

    fn completed(&mut self, message: u32) {
        if let Some(begun) = self.begun[message as usize].take() {
            let latency = self.clock.latency_ns(begun, self.clock.now());
            self.latencies_ns.push(latency);
        }
    }
}

/// Fruitless looks at requests after which another process of this core may go on.
const LOOKS: u32 = 64;

/// A schedule on this rank, ready to run.
pub(super) struct Walker<'a> {
    library: &'a Library,
    group: &'a Group,
    contents: &'a Contents<'a>,
    program: &'a RankProgram,
    /// Arenas of the participants that live here.
    arenas: Vec<(u32, Arena)>,
    /// Only its addresses are used; it lives as long as they do.
    _staging: Arena,
    messages: Vec<Linked>,
    pieces: Vec<LinkedPiece>,
    requests: Vec<u64>,
    /// Messages under way, by lane, where the issue policy bounds them.
    under_way: Vec<Vec<u32>>,
    status: [u64; STATUS_BYTES / 8],
    kernel: Kernel,
    element: usize,
}

/// A message with its address.
#[derive(Clone, Copy)]
struct Linked {
    address: *mut u8,
    bytes: usize,
    peer: c_int,
    tag: u32,
    request: usize,
    parts: usize,
}

#[derive(Clone, Copy)]
struct LinkedPiece {
    from: *const u8,
    to: *mut u8,
    bytes: usize,
}

impl<'a> Walker<'a> {
    pub(super) fn new(
        library: &'a Library,
        group: &'a Group,
        contents: &'a Contents<'a>,
        program: &'a RankProgram,
    ) -> Self {
        let arenas: Vec<(u32, Arena)> = (0..contents.participants())
            .filter(|&participant| host(contents, participant) == group.rank)
            .map(|participant| (participant, Arena::new(contents, participant)))
            .collect();
        let staging = Arena::of_sizes(std::iter::once(program.staging_bytes));
        let base = staging.address(0);
        let address = |spot: Spot| -> *mut u8 {
            let start = match spot.place {
                Place::Staging => base,
                Place::Buffer {
                    participant,
                    buffer,
                } => {
                    let arena = arenas.iter().find(|(owner, _)| *owner == participant);
                    arena.expect("it lives here").1.address(buffer.into())
                }
            };
            // SAFETY: offsets lie within their buffer, or within the staging memory.
            unsafe { start.add(spot.offset) }
        };
        let link = |message: &Message| Linked {
            address: address(message.spot),
            bytes: message.bytes,
            peer: message.peer as c_int,
            tag: message.tag,
            request: message.request as usize,
            parts: message.bytes.div_ceil(program.part_bytes).max(1),
        };
        let pieces = program.pieces.iter().map(|piece| LinkedPiece {
            from: address(piece.from),
            to: address(piece.to),
            bytes: piece.bytes,
        });
        Walker {
            library,
            group,
            contents,
            program,
            messages: program.messages.iter().map(link).collect(),
            pieces: pieces.collect(),
            requests: vec![0; program.requests as usize],
            under_way: vec![Vec::new(); 1 + usize::from(u8::MAX)],
            status: [0; STATUS_BYTES / 8],
            kernel: kernel(contents.data.dtype, contents.data.op),
            element: contents.data.dtype.size(),
            _staging: staging,
            arenas,
        }
    }

    /// The buffers that live here: participant, buffer, bytes.
    pub(super) fn buffers(&self) -> impl Iterator<Item = (u32, usize, &[u8])> {
        let count = self.contents.schedule.buffers.len();
        self.arenas.iter().flat_map(move |(owner, arena)| {
            (0..count).map(move |buffer| {
                // SAFETY: within the arena; nothing is under way between repetitions.
                (*owner, buffer, unsafe { arena.get(buffer) })
            })
        })
    }

    /// Starts all parts of a message.
    #[inline(always)]
    fn begin(&mut self, index: u32, incoming: bool) -> Result<()> {
        let message = self.messages[index as usize];
        let (f, h) = (&self.library.functions, &self.library.handles);
        for part in 0..message.parts {
            let offset = part * self.program.part_bytes;
            let bytes = (message.bytes - offset).min(self.program.part_bytes) as c_int;
            let tag = ((message.tag as usize + part) % h.tag_limit as usize) as c_int;
            let request = &mut self.requests[message.request + part];
            // SAFETY: verified chunks, that nothing else touches until the message has ended.
            unsafe {
                let address = message.address.add(offset);
                let (peer, comm) = (message.peer, self.group.data);
                match incoming {
                    true => {
                        let code = (f.irecv)(address, bytes, h.byte, peer, tag, comm, request);
                        done("Irecv", code)?;
                    }
                    false => {
                        let code = (f.isend)(address, bytes, h.byte, peer, tag, comm, request);
                        done("Isend", code)?;
                    }
                }
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn wait(&mut self, index: u32) -> Result<()> {
        let message = self.messages[index as usize];
        for request in &mut self.requests[message.request..message.request + message.parts] {
            // SAFETY: begun before; the status has room.
            let code = unsafe { (self.library.functions.wait)(request, self.status.as_mut_ptr()) };
            done("Wait", code)?;
        }
        Ok(())
    }

    /// Whether all parts of a message are complete.
    #[inline(always)]
    fn test(&mut self, index: u32) -> Result<bool> {
        let message = self.messages[index as usize];
        let mut complete = true;
        for request in &mut self.requests[message.request..message.request + message.parts] {
            let mut flag = 0;
            // SAFETY: begun before, or complete and thus null; the status has room.
            let code = unsafe {
                (self.library.functions.test)(request, &mut flag, self.status.as_mut_ptr())
            };
            done("Test", code)?;
            complete &= flag != 0;
        }
        Ok(complete)
    }

    /// Waits until at most this many messages of the lane are under way.
    #[inline(always)]
    fn make_room(&mut self, lane: u8, most: u32, watch: &mut impl Watch) -> Result<()> {
        let mut under_way = std::mem::take(&mut self.under_way[usize::from(lane)]);
        if most == 0 {
            for message in under_way.drain(..) {
                self.wait(message)?;
                watch.completed(message);
            }
        }
        let mut looks = 0;
        while under_way.len() > most as usize {
            let mut place = 0;
            while place < under_way.len() {
                let message = under_way[place];
                if self.test(message)? {
                    watch.completed(message);
                    under_way.remove(place);
                } else {
                    place += 1;
                }
            }
            looks += 1;
            if looks % LOOKS == 0 {
                std::thread::yield_now();
            }
        }
        self.under_way[usize::from(lane)] = under_way;
        Ok(())
    }

    #[inline(always)]
    fn walk(&mut self, watch: &mut impl Watch) -> Result<()> {
        let program = self.program;
        for step in &program.steps {
            match step {
                Step::Post(message) => self.begin(*message, true)?,
                Step::Send(message) => {
                    watch.begins(*message);
                    self.begin(*message, false)?;
                }
                Step::Wait(message) => {
                    self.wait(*message)?;
                    watch.completed(*message);
                }
                Step::Room { lane, most } => self.make_room(*lane, *most, watch)?,
                Step::Take { lane, message } => self.under_way[usize::from(*lane)].push(*message),
                Step::Copy(pieces) => {
                    for piece in &self.pieces[pieces.start as usize..pieces.end as usize] {
                        // SAFETY: verified chunks; the compiler refused those that overlap.
                        unsafe { std::ptr::copy(piece.from, piece.to, piece.bytes) };
                    }
                }
                Step::Reduce(pieces) => {
                    for piece in &self.pieces[pieces.start as usize..pieces.end as usize] {
                        let elements = piece.bytes / self.element;
                        // SAFETY: verified chunks of whole elements.
                        unsafe { (self.kernel)(piece.to, piece.to, piece.from, elements) };
                    }
                }
                Step::Compute(work) => {
                    for done in 0..*work {
                        std::hint::black_box(done);
                    }
                }
            }
        }
        // The program ends with a wait for every message.
        self.under_way.iter_mut().for_each(Vec::clear);
        Ok(())
    }
}

impl Work for Walker<'_> {
    fn fill(&mut self) {
        for (participant, arena) in &mut self.arenas {
            for buffer in 0..self.contents.schedule.buffers.len() {
                let memory = arena.get_mut(buffer);
                self.contents.initialise(*participant, buffer, memory);
            }
        }
    }

    #[inline(never)]
    fn run(&mut self) -> Result<()> {
        self.walk(&mut Unwatched)
    }

    #[inline(never)]
    fn run_watched(&mut self, latencies_ns: &mut Vec<f64>) -> Result<()> {
        let mut watch = Stopwatch {
            clock: Clock::get(),
            begun: vec![None; self.messages.len()],
            latencies_ns,
        };
        self.walk(&mut watch)
    }

    fn check(&self) -> Result<u64> {
        let mut checked = 0;
        for (participant, buffer, memory) in self.buffers() {
            if !memory.is_empty() {
                checked += self.contents.check("mpi", participant, buffer, memory)?;
            }
        }
        Ok(checked)
    }
}
