//! Waiting: busy-wait while cores suffice, park when they do not, give up when another rank failed.
//!
//! A rank waits for a condition that one store of another rank makes true. With a core per rank it
//! busy-waits, because waking a sleeping thread costs microseconds and a cache line fifty nanoseconds.
//! With more ranks than cores the awaited rank may need the very core that the waiter occupies, so the
//! waiter spins briefly and parks. The rank that stores must then check whether the other sleeps:
//!
//! ```text
//!   waiter: asleep = true;  fence;  condition? -> go on, else park
//!   waker:  condition = true;  fence;  asleep? -> unpark
//! ```
//!
//! The two fences are sequentially consistent, so at least one side sees the other's store and no
//! wake-up is lost. If no thread parks, the waker skips its half: its stores stay plain.
//!
//! A rank that panics or fails *poisons* the list; all present and future waits return [`Poisoned`].

use super::sync::{fence, spin_loop, yield_now, AtomicBool, Ordering, Sleeper};

/// Another rank failed, so what is waited for will never come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poisoned;

/// How often a waiter spins before it yields.
const SPINS: u32 = if cfg!(loom) { 1 } else { 4_000 };
/// With more ranks than cores: as long as some cache-line transfers.
const SPINS_BEFORE_PARKING: u32 = if cfg!(loom) { 1 } else { 100 };

/// Where the ranks of one launch wait for each other.
#[derive(Debug)]
pub struct Waiters {
    places: Box<[Place]>,
    parks: bool,
    poisoned: AtomicBool,
}

/// One rank's place: two cache lines, because processors prefetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Place {
    asleep: AtomicBool,
    sleeper: Sleeper,
}

impl Waiters {
    /// For `ranks` waiters that park (`parks`) or only busy-wait.
    pub fn new(ranks: usize, parks: bool) -> Self {
        let place = || Place {
            asleep: AtomicBool::new(false),
            sleeper: Sleeper::default(),
        };
        Waiters {
            places: (0..ranks).map(|_| place()).collect(),
            parks,
            poisoned: AtomicBool::new(false),
        }
    }

    /// Called by each rank's thread before its first wait.
    pub fn enter(&self, rank: usize) {
        self.places[rank].sleeper.enter();
    }

    /// Returns when `ready` holds.
    #[inline(always)]
    pub fn wait(&self, rank: usize, ready: impl Fn() -> bool) -> Result<(), Poisoned> {
        if ready() {
            return Ok(());
        }
        self.wait_longer(rank, &ready)
    }

    #[inline(never)]
    fn wait_longer(&self, rank: usize, ready: &dyn Fn() -> bool) -> Result<(), Poisoned> {
        let spins = if self.parks {
            SPINS_BEFORE_PARKING
        } else {
            SPINS
        };
        loop {
            for _ in 0..spins {
                if ready() {
                    return Ok(());
                }
                spin_loop();
            }
            if self.poisoned.load(Ordering::Acquire) {
                return Err(Poisoned);
            }
            if self.parks {
                self.sleep(rank, ready);
            } else {
                // Another process may hold the awaited rank's core.
                yield_now();
            }
        }
    }

    fn sleep(&self, rank: usize, ready: &dyn Fn() -> bool) {
        let place = &self.places[rank];
        place.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !ready() && !self.poisoned.load(Ordering::Relaxed) {
            place.sleeper.sleep();
        }
        place.asleep.store(false, Ordering::Relaxed);
    }

    /// Called after the store that `rank` may wait for.
    #[inline(always)]
    pub fn wake(&self, rank: usize) {
        if self.parks {
            self.wake_sleeper(rank);
        }
    }

    #[inline(never)]
    fn wake_sleeper(&self, rank: usize) {
        fence(Ordering::SeqCst);
        let place = &self.places[rank];
        if place.asleep.load(Ordering::Relaxed) {
            place.sleeper.wake();
        }
    }

    /// Makes every present and future wait fail.
    pub fn poison(&self) {
        self.poisoned.store(true, Ordering::SeqCst);
        if self.parks {
            (0..self.places.len()).for_each(|rank| self.wake_sleeper(rank));
        }
    }

    /// How many ranks may wait here.
    pub fn ranks(&self) -> usize {
        self.places.len()
    }
}
