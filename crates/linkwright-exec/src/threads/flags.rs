//! Messages between ranks: counters that only grow, each in its own cache lines.
//!
//! A [`Flag`] belongs to one (source, destination) pair. The source counts its completed messages
//! to that destination; a rank that needs the n-th message of epoch e waits for
//!
//! ```text
//!   count >= e * (messages per epoch) + n
//! ```
//!
//! The store releases and the load acquires, so everything that the source wrote before is visible. As
//! nothing is ever reset, a late waiter cannot miss a value, and repeated executions need no clean-up
//! between them.
//!
//! A [`Mailbox`] is a flag with room for a small payload in the same cache line: a message of at
//! most 48 bytes costs one line transfer instead of two. It holds one message; before the
//! next is posted, the last must have been taken (by the schedule's own dependencies, or the barrier
//! between epochs). A [`Barrier`] is a counter on which all ranks wait for each other.

use super::sync::{AtomicU64, Ordering, UnsafeCell};
use super::waiting::{Poisoned, Waiters};

/// A monotonic counter: raised by one writer, or counted up by many.
#[derive(Debug)]
#[repr(align(128))]
pub struct Flag(AtomicU64);

impl Default for Flag {
    fn default() -> Self {
        Flag(AtomicU64::new(0))
    }
}

impl Flag {
    /// The counter reaches `count`: everything the caller did before is visible to the waiter.
    #[inline(always)]
    pub fn raise(&self, count: u64, waiters: &Waiters, reader: usize) {
        self.0.store(count, Ordering::Release);
        waiters.wake(reader);
    }

    /// Adds one; several ranks may. The one that makes the counter reach `count` wakes the readers.
    #[inline(always)]
    pub fn arrive(&self, count: u64, waiters: &Waiters, readers: impl IntoIterator<Item = usize>) {
        if self.0.fetch_add(1, Ordering::AcqRel) + 1 == count {
            readers.into_iter().for_each(|reader| waiters.wake(reader));
        }
    }

    /// Returns when the counter has reached `count`.
    #[inline(always)]
    pub fn wait(&self, count: u64, waiters: &Waiters, reader: usize) -> Result<(), Poisoned> {
        waiters.wait(reader, || self.0.load(Ordering::Acquire) >= count)
    }
}

/// Bytes that fit into a mailbox.
pub const MAIL_BYTES: usize = 48;

/// A sequence number and a small payload in one cache line.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Mailbox {
    number: AtomicU64,
    payload: UnsafeCell<[u64; MAIL_BYTES / 8]>,
}

// SAFETY: the payload is written before `number` is released and read after it is acquired, and
// written again only after the reader's taking happened before (contract of `post`).
unsafe impl Sync for Mailbox {}

impl Default for Mailbox {
    fn default() -> Self {
        Mailbox {
            number: AtomicU64::new(0),
            payload: UnsafeCell::new([0; MAIL_BYTES / 8]),
        }
    }
}

impl Mailbox {
    /// Puts message `number` (greater than any before); `write` is given room for [`MAIL_BYTES`].
    ///
    /// # Safety
    /// One poster at a time, and the taking of the last message happened before this call.
    #[inline(always)]
    pub unsafe fn post(
        &self,
        number: u64,
        waiters: &Waiters,
        reader: usize,
        write: impl FnOnce(*mut u8),
    ) {
        self.payload.with_mut(|payload| write(payload.cast()));
        self.number.store(number, Ordering::Release);
        waiters.wake(reader);
    }

    /// Waits for message `number` and hands its payload to `read`.
    #[inline(always)]
    pub fn take<R>(
        &self,
        number: u64,
        waiters: &Waiters,
        reader: usize,
        read: impl FnOnce(*const u8) -> R,
    ) -> Result<R, Poisoned> {
        waiters.wait(reader, || self.number.load(Ordering::Acquire) >= number)?;
        Ok(self.payload.with(|payload| read(payload.cast())))
    }
}

/// All ranks wait for each other.
#[derive(Debug, Default)]
pub struct Barrier(Flag);

impl Barrier {
    /// The `number`-th barrier (from 1) of all waiting ranks.
    #[inline(always)]
    pub fn wait(&self, number: u64, waiters: &Waiters, rank: usize) -> Result<(), Poisoned> {
        let all = number * waiters.ranks() as u64;
        self.0.arrive(all, waiters, 0..waiters.ranks());
        self.0.wait(all, waiters, rank)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn each_counter_has_lines_of_its_own() {
        assert_eq!(std::mem::size_of::<Flag>(), 128);
        assert_eq!(std::mem::size_of::<Mailbox>(), 128);
        assert!(std::mem::offset_of!(Mailbox, payload) + MAIL_BYTES <= 64);
    }

    /// Eight ranks pass a counter around a ring many times, parking.
    #[test]
    fn more_ranks_than_cores_make_progress() {
        let (ranks, rounds) = (8, 200);
        let waiters = Waiters::new(ranks, true);
        let flags: Vec<Flag> = (0..ranks).map(|_| Flag::default()).collect();
        thread::scope(|scope| {
            for rank in 0..ranks {
                let (waiters, flags) = (&waiters, &flags);
                scope.spawn(move || {
                    waiters.enter(rank);
                    let next = (rank + 1) % ranks;
                    for round in 1..=rounds {
                        // Rank 0 begins each round; flags[r] is raised by r's predecessor.
                        if rank > 0 || round > 1 {
                            let want = if rank == 0 { round - 1 } else { round };
                            flags[rank].wait(want, waiters, rank).unwrap();
                        }
                        flags[next].raise(round, waiters, next);
                    }
                });
            }
        });
    }

    #[test]
    fn a_failed_rank_releases_those_who_wait() {
        for parks in [false, true] {
            let waiters = Waiters::new(2, parks);
            let flag = Flag::default();
            thread::scope(|scope| {
                let waiter = scope.spawn(|| {
                    waiters.enter(0);
                    flag.wait(1, &waiters, 0)
                });
                scope.spawn(|| waiters.poison());
                assert_eq!(waiter.join().unwrap(), Err(Poisoned));
            });
        }
    }
}

/// Run with `RUSTFLAGS="--cfg loom" cargo test -p linkwright-exec --lib loom`.
#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    struct World {
        waiters: Waiters,
        there: Mailbox,
        back: Flag,
        barrier: Barrier,
        data: UnsafeCell<u64>,
    }
    // SAFETY: `data` is guarded by the flags; loom checks exactly this.
    unsafe impl Sync for World {}
    // SAFETY: as above.
    unsafe impl Send for World {}

    fn world(parks: bool) -> Arc<World> {
        Arc::new(World {
            waiters: Waiters::new(2, parks),
            there: Mailbox::default(),
            back: Flag::default(),
            barrier: Barrier::default(),
            data: UnsafeCell::new(0),
        })
    }

    fn check(model: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(model);
    }

    /// A message one way, data back under a flag, twice: no race on payload or data.
    fn ping_pong(parks: bool) {
        check(move || {
            let world = world(parks);
            let other = world.clone();
            let partner = thread::spawn(move || {
                other.waiters.enter(1);
                for epoch in 1..=2u64 {
                    // SAFETY: reads a word of the payload.
                    let read = |payload: *const u8| unsafe { *payload.cast::<u64>() };
                    let got = other.there.take(epoch, &other.waiters, 1, read).unwrap();
                    assert_eq!(got, 10 * epoch);
                    // SAFETY: rank 0 reads only after the flag.
                    other.data.with_mut(|data| unsafe { *data = got + 1 });
                    other.back.raise(epoch, &other.waiters, 0);
                }
            });
            world.waiters.enter(0);
            for epoch in 1..=2u64 {
                // SAFETY: the partner's answer to the last message was awaited.
                let write = |payload: *mut u8| unsafe { *payload.cast::<u64>() = 10 * epoch };
                unsafe { world.there.post(epoch, &world.waiters, 1, write) };
                world.back.wait(epoch, &world.waiters, 0).unwrap();
                // SAFETY: the partner writes again only after the next message.
                assert_eq!(world.data.with(|data| unsafe { *data }), 10 * epoch + 1);
            }
            partner.join().unwrap();
        });
    }

    #[test]
    fn loom_ping_pong_spinning() {
        ping_pong(false);
    }

    #[test]
    fn loom_ping_pong_parking() {
        ping_pong(true);
    }

    /// What was written before a barrier is read after it, and may be written again after the next.
    fn barrier(parks: bool) {
        check(move || {
            let world = world(parks);
            let other = world.clone();
            let partner = thread::spawn(move || {
                other.waiters.enter(1);
                // SAFETY: nobody reads before the barrier.
                other.data.with_mut(|data| unsafe { *data = 7 });
                other.barrier.wait(1, &other.waiters, 1).unwrap();
                other.barrier.wait(2, &other.waiters, 1).unwrap();
                // SAFETY: rank 0 read before the second barrier.
                other.data.with_mut(|data| unsafe { *data = 8 });
            });
            world.waiters.enter(0);
            world.barrier.wait(1, &world.waiters, 0).unwrap();
            // SAFETY: rank 1 wrote before the first barrier and writes after the second.
            assert_eq!(world.data.with(|data| unsafe { *data }), 7);
            world.barrier.wait(2, &world.waiters, 0).unwrap();
            partner.join().unwrap();
        });
    }

    #[test]
    fn loom_barrier_spinning() {
        barrier(false);
    }

    #[test]
    fn loom_barrier_parking() {
        barrier(true);
    }

    #[test]
    fn loom_poison_wakes_a_sleeper() {
        check(|| {
            let world = world(true);
            let other = world.clone();
            let waiter = thread::spawn(move || {
                other.waiters.enter(1);
                other.back.wait(1, &other.waiters, 1)
            });
            world.waiters.poison();
            assert_eq!(waiter.join().unwrap(), Err(Poisoned));
        });
    }
}
