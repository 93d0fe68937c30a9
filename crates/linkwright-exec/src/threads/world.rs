//! The state shared by the ranks of one launch, and how one rank runs one epoch.
//!
//! Fast path: no lock, no allocation, no indirection beyond the instruction list. Pieces are
//! addresses by then; counters and mailboxes were made before the first epoch.

use super::arena::Arena;
use super::copy::Copier;
use super::flags::{Barrier, Flag, Mailbox};
use super::program::{Action, Count, Piece, Program, RankProgram};
use super::sync::{fence, Ordering};
use super::waiting::{Poisoned, Waiters};
use crate::buffers::Contents;
use crate::dtype::{kernel, Kernel};
use crate::timer::{Clock, Ticks};
use std::cell::UnsafeCell;
use std::sync::Mutex;

/// Sets of buffers: back-to-back epochs alternate between two.
pub(super) const SETS: usize = 2;

/// A value that one rank writes and the others read, with a barrier in between.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Shared<T>(UnsafeCell<T>);

// SAFETY: users keep to "one writer, a barrier, then readers".
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub(super) fn new(value: T) -> Self {
        Shared(UnsafeCell::new(value))
    }

    /// # Safety
    /// No one else accesses it before the next barrier.
    #[allow(clippy::mut_from_ref)] // The whole point; see the safety condition.
    pub(super) unsafe fn write(&self) -> &mut T {
        // SAFETY: as promised by the caller.
        unsafe { &mut *self.0.get() }
    }

    /// # Safety
    /// The last write happened before the last barrier.
    pub(super) unsafe fn read(&self) -> &T {
        // SAFETY: as promised by the caller.
        unsafe { &*self.0.get() }
    }
}

/// Everything the ranks share.
pub(super) struct World<'a> {
    pub contents: &'a Contents<'a>,
    pub program: &'a Program,
    pub waiters: Waiters,
    pub barrier: Barrier,
    /// Buffer sets in use, 1 or 2.
    pub sets: usize,
    counters: Vec<Flag>,
    mails: [Vec<Mailbox>; SETS],
    /// Arenas by set and participant; they outlive all threads.
    arenas: Vec<Shared<Option<Arena>>>,
    copier: Copier,
    kernel: Kernel,
    element: usize,
    /// The error that ended the launch.
    pub failure: Mutex<Option<crate::error::ExecError>>,
}

/// A [`Piece`] with its addresses.
#[derive(Clone, Copy)]
struct Linked {
    from: *const u8,
    to: *mut u8,
    bytes: usize,
}

/// The instructions of one rank, ready to run.
pub(super) struct RankCode<'w> {
    world: &'w World<'w>,
    program: &'w RankProgram,
    rank: usize,
    pieces: [Vec<Linked>; SETS],
}

impl<'a> World<'a> {
    pub(super) fn new(
        contents: &'a Contents<'a>,
        program: &'a Program,
        copier: Copier,
        parks: bool,
        sets: usize,
    ) -> Self {
        let ranks = contents.schedule.ranks as usize;
        let arenas = contents.participants() as usize * sets;
        let mailboxes = || (0..program.mails).map(|_| Mailbox::default()).collect();
        World {
            contents,
            program,
            waiters: Waiters::new(ranks, parks),
            barrier: Barrier::default(),
            sets,
            counters: program.readers.iter().map(|_| Flag::default()).collect(),
            mails: [mailboxes(), mailboxes()],
            arenas: (0..arenas).map(|_| Shared::new(None)).collect(),
            copier,
            kernel: kernel(contents.data.dtype, contents.data.op),
            element: contents.data.dtype.size(),
            failure: Mutex::new(None),
        }
    }

    fn arena_slot(&self, set: usize, participant: u32) -> &Shared<Option<Arena>> {
        &self.arenas[set * self.contents.participants() as usize + participant as usize]
    }

    /// The arena of a participant; made before the first barrier.
    pub(super) fn arena(&self, set: usize, participant: u32) -> &Arena {
        // SAFETY: written by `allocate` only, before a barrier.
        let arena = unsafe { self.arena_slot(set, participant).read() };
        arena.as_ref().expect("allocated before the first barrier")
    }

    /// Participants whose memory `rank` owns: its own, and for rank 0 also the memories.
    pub(super) fn owned(&self, rank: usize) -> impl Iterator<Item = u32> {
        let (ranks, all) = (self.contents.schedule.ranks, self.contents.participants());
        let memories = if rank == 0 { ranks..all } else { 0..0 };
        std::iter::once(rank as u32).chain(memories)
    }

    /// Called by each rank's thread before the first barrier.
    pub(super) fn allocate(&self, rank: usize) {
        for participant in self.owned(rank) {
            for set in 0..self.sets {
                let arena = Arena::new(self.contents, participant);
                // SAFETY: nobody looks before the first barrier.
                unsafe { *self.arena_slot(set, participant).write() = Some(arena) };
            }
        }
    }

    /// The bytes of one buffer.
    ///
    /// # Safety
    /// No operation and no other reference touches the buffer at the same time.
    #[allow(clippy::mut_from_ref)] // Memory behind raw addresses; see the safety condition.
    pub(super) unsafe fn buffer(&self, set: usize, participant: u32, buffer: usize) -> &mut [u8] {
        let arena = self.arena(set, participant);
        // SAFETY: within the arena; exclusive as promised by the caller.
        unsafe { std::slice::from_raw_parts_mut(arena.address(buffer), arena.bytes(buffer)) }
    }

    /// Resolves the addresses of a rank's pieces; after the first barrier.
    pub(super) fn link(&self, rank: usize) -> RankCode<'_> {
        let program = &self.program.ranks[rank];
        let link = |set: usize| {
            let resolve = |piece: &Piece| {
                let (from, to) = (piece.from, piece.to);
                let source = self
                    .arena(set, from.participant)
                    .address(from.buffer.into());
                let target = self.arena(set, to.participant).address(to.buffer.into());
                Linked {
                    // SAFETY: extents lie within their buffers.
                    from: unsafe { source.add(piece.extent.src) },
                    // SAFETY: as above.
                    to: unsafe { target.add(piece.extent.dst) },
                    bytes: piece.extent.bytes,
                }
            };
            program.pieces.iter().map(resolve).collect()
        };
        RankCode {
            world: self,
            program,
            rank,
            pieces: [link(0), if self.sets > 1 { link(1) } else { Vec::new() }],
        }
    }
}

/// What an epoch tells of its messages.
trait Watch {
    /// The rank takes up a message.
    fn begins(&mut self) {}
    /// Its bytes are written and announced.
    fn written(&mut self) {}
    /// All messages that were written are complete.
    fn completed(&mut self) {}
}

/// Looks at nothing, and costs nothing.
struct Unwatched;

impl Watch for Unwatched {}

/// When messages begin and complete, by the clock of their sender.
struct Stopwatch<'a> {
    clock: &'static Clock,
    begun: Ticks,
    /// Those that are written, and not known to be complete.
    under_way: Vec<Ticks>,
    /// Whether a message is complete only after a fence.
    bounded: bool,
    latencies_ns: &'a mut Vec<f64>,
}

impl Stopwatch<'_> {
    fn ends(&mut self, begun: Ticks, now: Ticks) {
        self.latencies_ns.push(self.clock.latency_ns(begun, now));
    }
}

impl Watch for Stopwatch<'_> {
    fn begins(&mut self) {
        self.begun = self.clock.now();
    }

    fn written(&mut self) {
        match self.bounded {
            true => self.under_way.push(self.begun),
            false => self.ends(self.begun, self.clock.now()),
        }
    }

    fn completed(&mut self) {
        let now = self.clock.now();
        for begun in std::mem::take(&mut self.under_way) {
            self.ends(begun, now);
        }
    }
}

impl RankCode<'_> {
    /// Runs one epoch on the buffers of `set`.
    #[inline(never)]
    pub(super) fn run(&self, epoch: u64, set: usize) -> Result<(), Poisoned> {
        self.walk(epoch, set, &mut Unwatched)
    }

    /// Runs one epoch and appends the latency of each of its messages, see [`super`].
    #[inline(never)]
    pub(super) fn run_watched(
        &self,
        epoch: u64,
        set: usize,
        latencies_ns: &mut Vec<f64>,
    ) -> Result<(), Poisoned> {
        let clock = Clock::get();
        let mut watch = Stopwatch {
            clock,
            begun: clock.now(),
            under_way: Vec::new(),
            bounded: self.world.program.bounded,
            latencies_ns,
        };
        self.walk(epoch, set, &mut watch)
    }

    #[inline(always)]
    fn walk(&self, epoch: u64, set: usize, watch: &mut impl Watch) -> Result<(), Poisoned> {
        let world = self.world;
        let mut waits = self.program.waits.iter();
        let mut raises = self.program.raises.iter();
        let mut pieces = self.pieces[set].iter();
        let (mut waited, mut moved, mut raised) = (0, 0, 0);
        for instruction in &self.program.code {
            for wait in waits.by_ref().take((instruction.waits - waited) as usize) {
                let counter = &world.counters[wait.counter as usize];
                counter.wait(target(wait, epoch), &world.waiters, self.rank)?;
            }
            waited = instruction.waits;
            let own = pieces.by_ref().take((instruction.pieces - moved) as usize);
            if instruction.message {
                watch.begins();
            }
            self.act(instruction.action, own, epoch, set)?;
            moved = instruction.pieces;
            for raise in raises.by_ref().take((instruction.raises - raised) as usize) {
                let counter = &world.counters[raise.counter as usize];
                let reader = world.program.readers[raise.counter as usize] as usize;
                counter.raise(target(raise, epoch), &world.waiters, reader);
            }
            raised = instruction.raises;
            if instruction.message {
                watch.written();
            } else if instruction.action == Action::Complete {
                watch.completed();
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn act<'p>(
        &self,
        action: Action,
        pieces: impl Iterator<Item = &'p Linked>,
        epoch: u64,
        set: usize,
    ) -> Result<(), Poisoned> {
        let world = self.world;
        match action {
            Action::Nothing => {}
            Action::Copy => {
                for piece in pieces {
                    // SAFETY: verified chunks; nobody else touches them now.
                    unsafe { world.copier.copy(piece.from, piece.to, piece.bytes) };
                }
            }
            Action::Reduce => {
                for piece in pieces {
                    // SAFETY: as above, and aligned to whole elements.
                    unsafe { self.reduce(piece.from, piece) };
                }
            }
            Action::Post { mail, reader } => self.post(mail, reader, pieces, epoch, set),
            Action::TakeCopy { mail } => self.take(mail, epoch, set, |payload| {
                take_each(payload, pieces, |from, piece| {
                    // SAFETY: as many bytes as were posted.
                    unsafe { copy_small(from, piece.to, piece.bytes) }
                });
            })?,
            Action::TakeReduce { mail } => self.take(mail, epoch, set, |payload| {
                take_each(payload, pieces, |from, piece| {
                    // SAFETY: as many bytes as were posted, whole elements from an aligned start.
                    unsafe { self.reduce(from, piece) }
                });
            })?,
            Action::Complete => fence(Ordering::SeqCst),
            Action::Arrive { barrier, ordinal } => self.arrive(barrier, ordinal, epoch),
            Action::Compute { work } => {
                for done in 0..work {
                    std::hint::black_box(done);
                }
            }
        }
        Ok(())
    }

    #[inline(always)]
    unsafe fn reduce(&self, from: *const u8, piece: &Linked) {
        let elements = piece.bytes / self.world.element;
        // SAFETY: as promised by the caller.
        unsafe { (self.world.kernel)(piece.to, piece.to, from, elements) }
    }

    #[inline(always)]
    fn post<'p>(
        &self,
        mail: u32,
        reader: u32,
        pieces: impl Iterator<Item = &'p Linked>,
        epoch: u64,
        set: usize,
    ) {
        let world = self.world;
        let mailbox = &world.mails[set][mail as usize];
        let write = |mut payload: *mut u8| {
            for piece in pieces {
                // SAFETY: all pieces together fit into a mailbox.
                payload = unsafe {
                    copy_small(piece.from, payload, piece.bytes);
                    payload.add(piece.bytes)
                };
            }
        };
        // SAFETY: the last message in this box was taken in an earlier epoch.
        unsafe { mailbox.post(epoch + 1, &world.waiters, reader as usize, write) };
    }

    #[inline(always)]
    fn arrive(&self, barrier: u32, ordinal: u64, epoch: u64) {
        let world = self.world;
        let barrier = &world.program.barriers[barrier as usize];
        let full = epoch * barrier.per_epoch + ordinal;
        let readers = barrier.members.iter().map(|&rank| rank as usize);
        world.counters[barrier.counter as usize].arrive(full, &world.waiters, readers);
    }

    #[inline(always)]
    fn take(
        &self,
        mail: u32,
        epoch: u64,
        set: usize,
        read: impl FnOnce(*const u8),
    ) -> Result<(), Poisoned> {
        let mailbox = &self.world.mails[set][mail as usize];
        mailbox.take(epoch + 1, &self.world.waiters, self.rank, read)
    }
}

#[inline(always)]
fn target(count: &Count, epoch: u64) -> u64 {
    epoch * count.per_epoch + count.ordinal
}

#[inline(always)]
fn take_each<'p>(
    mut payload: *const u8,
    pieces: impl Iterator<Item = &'p Linked>,
    mut take: impl FnMut(*const u8, &Linked),
) {
    for piece in pieces {
        take(payload, piece);
        // SAFETY: all pieces together fit into a mailbox.
        payload = unsafe { payload.add(piece.bytes) };
    }
}

/// Copies at most a mailbox: one or two words need no call.
#[inline(always)]
unsafe fn copy_small(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: as promised by the caller.
    unsafe {
        match bytes {
            4 => to
                .cast::<u32>()
                .write_unaligned(from.cast::<u32>().read_unaligned()),
            8 => to
                .cast::<u64>()
                .write_unaligned(from.cast::<u64>().read_unaligned()),
            16 => to
                .cast::<u128>()
                .write_unaligned(from.cast::<u128>().read_unaligned()),
            _ => std::ptr::copy_nonoverlapping(from, to, bytes),
        }
    }
}
