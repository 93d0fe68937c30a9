//! The client's side: the rules of measurement, applied to trips between two processes.
//!
//! ```text
//!   first trip (kept apart) | checked trips | blocks of warm-up until 5 medians agree
//!   | block block block ... | checked trips
//!   a block:  t0 trip t1 trip t2 ... tn     n trips, n + 1 clock readings
//! ```
//!
//! A trip is `t(k+1) - t(k)` less the cost of one reading. A block in which the core was taken from either
//! process, or time from the machine, is dropped as a whole and counted; the tail within undisturbed
//! blocks is the transport's own and stays.

use super::control::{Control, Mode};
use super::error::{Result, RoundTripError};
use super::helper::Helper;
use super::transport::{Sizes, Transport};
use super::words;
use super::SIZES;
use crate::guard::{Disturbance, Drops, Guard};
use crate::sampling::{median, WarmUp};
use crate::timer::{Clock, Ticks};
use crate::topology::{pin_to, Topology};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What to measure, and for how long.
#[derive(Clone)]
pub struct Plan<'a> {
    /// Bytes from client to server.
    pub request_bytes: usize,
    /// Bytes from server to client.
    pub reply_bytes: usize,
    /// Blocks wanted.
    pub blocks: usize,
    /// Trips of a block.
    pub trips_per_block: usize,
    /// Most blocks of warm-up.
    pub warmup_at_most: usize,
    /// Wall-clock limit; at least one block is tried.
    pub time_budget: Duration,
    /// Whether to compare all data, before and after.
    pub check: bool,
    /// Of the data.
    pub seed: u64,
    /// Processors of client and server; `None`: the first two in topology order.
    pub cpus: Option<[u32; 2]>,
    /// Asked a few times per second, on the calling thread, whether to stop.
    pub cancelled: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl Default for Plan<'_> {
    fn default() -> Self {
        Plan {
            request_bytes: 64,
            reply_bytes: 64,
            blocks: 20,
            trips_per_block: 50,
            warmup_at_most: 50,
            time_budget: Duration::from_secs(1),
            check: true,
            seed: 0,
            cpus: None,
            cancelled: None,
        }
    }
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Every trip of every undisturbed block.
    pub trips_ns: Vec<f64>,
    /// The very first trip, cold.
    pub first_ns: f64,
    /// Trips of a block.
    pub trips_per_block: usize,
    /// Blocks dropped, by reason.
    pub drops: Drops,
    /// Blocks before the first kept one.
    pub warmup_blocks: usize,
    /// Whether they agreed at the end.
    pub warmed_up: bool,
    /// Whether the time budget ended before all blocks were taken.
    pub out_of_time: bool,
    /// Words of requests and replies whose arrival was checked.
    pub checked_words: u64,
    /// Processor of the client and of the server; -1: not pinned.
    pub cpus: [i32; 2],
    /// Client and server share one processor.
    pub oversubscribed: bool,
    /// Why they are not pinned.
    pub unpinned: Option<String>,
}

/// How often the calling thread looks up.
const WATCH: Duration = Duration::from_millis(50);
/// Checked trips on each side of the samples.
const CHECKS: u64 = 3;

/// Measures on `T`, in a thread of its own, so that the caller's processors stay as they are.
pub(super) fn on<T: Transport>(plan: &Plan) -> Result<Found> {
    let sizes = sizes(plan)?;
    Clock::get();
    let (stop, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let caller = std::thread::current();
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let found =
                Client::<T>::start(plan, sizes).and_then(|client| client.measure(plan, &stop));
            done.store(true, Ordering::Release);
            caller.unpark();
            found
        });
        while !done.load(Ordering::Acquire) {
            std::thread::park_timeout(WATCH);
            if plan.cancelled.is_some_and(|cancelled| cancelled()) {
                stop.store(true, Ordering::Relaxed);
            }
        }
        client
            .join()
            .expect("the client has no assertions of its own")
    })
}

fn over(stop: &AtomicBool, end: Instant) -> bool {
    stop.load(Ordering::Relaxed) || Instant::now() >= end
}

fn sizes(plan: &Plan) -> Result<Sizes> {
    let asked = [("request", plan.request_bytes), ("reply", plan.reply_bytes)];
    for (what, bytes) in asked {
        if !SIZES.contains(&bytes) || bytes % size_of::<u64>() != 0 {
            let (&smallest, &largest) = (SIZES.start(), SIZES.end());
            return Err(RoundTripError::Size {
                what,
                bytes,
                smallest,
                largest,
            });
        }
    }
    Ok(Sizes {
        request: plan.request_bytes,
        reply: plan.reply_bytes,
    })
}

struct Client<T> {
    // Dropped first: the server must be gone before its memory is.
    _helper: Helper,
    transport: T,
    control: Control,
    seed: u64,
    stamps: Vec<Ticks>,
    /// How often the server had lost its core when it was asked last.
    switches: i64,
    found: Found,
}

impl<T: Transport> Client<T> {
    fn start(plan: &Plan, sizes: Sizes) -> Result<Client<T>> {
        let mut found = Found {
            trips_per_block: plan.trips_per_block.max(1),
            cpus: [-1; 2],
            ..Found::default()
        };
        let cpus = match plan.cpus {
            Some(cpus) => cpus,
            None => {
                let all = Topology::discover().cpus;
                let (first, second) = (all.first(), all.get(1).or(all.first()));
                [first, second].map(|cpu| cpu.map_or(0, |cpu| cpu.id))
            }
        };
        found.oversubscribed = cpus[0] == cpus[1];
        match pin_to(cpus[0]) {
            Ok(()) => found.cpus = cpus.map(|cpu| cpu as i32),
            Err(error) => found.unpinned = Some(error.to_string()),
        }
        let mut control = Control::new()?;
        control.yields = found.oversubscribed;
        let mut transport = T::open(sizes)?;
        let pinned = found.unpinned.is_none();
        let helper = Helper::start(&mut transport, &mut control, pinned.then_some(cpus[1]))?;
        Ok(Client {
            _helper: helper,
            transport,
            control,
            seed: plan.seed,
            stamps: vec![Ticks(0); found.trips_per_block + 1],
            switches: 0,
            found,
        })
    }

    fn measure(mut self, plan: &Plan, stop: &AtomicBool) -> Result<Found> {
        let end = Instant::now() + plan.time_budget;
        self.set_mode(Mode::Timed);
        let first = self.block(1).map_err(|error| self.explain(error))?;
        self.found.first_ns = first[0];
        self.checked(plan)?;
        self.warm_up(plan, stop, end)?;
        self.sample(plan, stop, end)?;
        self.checked(plan)?;
        self.control.stop();
        Ok(self.found)
    }

    /// The server's error, where it left one, says more than its silence.
    fn explain(&self, error: RoundTripError) -> RoundTripError {
        match self.control.reported_errno() {
            Some(errno) => super::cross_memory::explain(std::io::Error::from_raw_os_error(errno)),
            None => error,
        }
    }

    fn set_mode(&self, mode: Mode) {
        self.control.set_mode(mode);
    }

    #[inline]
    fn trip(&mut self) -> Result<()> {
        if T::IN_PLACE {
            self.seed = self.seed.wrapping_add(1);
            self.transport.compose_request(self.seed);
        }
        self.transport.send_request(&mut self.control)?;
        self.transport.receive_reply(&mut self.control)?;
        if T::IN_PLACE {
            black_box(words::sum(self.transport.places().client_reply));
        }
        Ok(())
    }

    /// Times of so many trips in a row.
    fn block(&mut self, trips: usize) -> Result<Vec<f64>> {
        let clock = Clock::get();
        self.stamps[0] = clock.now();
        for k in 1..=trips {
            self.trip()?;
            self.stamps[k] = clock.now();
        }
        let pairs = self.stamps[..=trips].windows(2);
        let one = |pair: &[Ticks]| clock.ns_between(pair[0], pair[1]) - clock.overhead_ns();
        Ok(pairs.map(|pair| one(pair).max(0.0)).collect())
    }

    fn warm_up(&mut self, plan: &Plan, stop: &AtomicBool, end: Instant) -> Result<()> {
        let mut warm_up = WarmUp::new(plan.warmup_at_most.max(1));
        // Half of the budget at most: a machine that never settles is measured all the same.
        let end = end - plan.time_budget / 2;
        loop {
            let mut block = self.block(self.found.trips_per_block)?;
            if warm_up.push(median(&mut block).expect("a block has trips")) || over(stop, end) {
                break;
            }
        }
        self.found.warmup_blocks = warm_up.batches();
        self.found.warmed_up = warm_up.agreed();
        Ok(())
    }

    fn sample(&mut self, plan: &Plan, stop: &AtomicBool, end: Instant) -> Result<()> {
        let mut guard = Guard::new();
        self.server_was_disturbed()?;
        let mut kept = 0;
        while kept < plan.blocks {
            guard.open();
            let block = self.block(self.found.trips_per_block)?;
            let mine = guard.close();
            let theirs = self
                .server_was_disturbed()?
                .then_some(Disturbance::Preempted);
            // Processes that share a core preempt each other by design.
            match mine.or(theirs).filter(|_| !self.found.oversubscribed) {
                None => {
                    self.found.trips_ns.extend(block);
                    kept += 1;
                }
                Some(reason) => self.found.drops.count(reason),
            }
            if over(stop, end) {
                self.found.out_of_time = kept < plan.blocks;
                break;
            }
        }
        Ok(())
    }

    /// Whether the server lost its core since it was asked last; one trip.
    fn server_was_disturbed(&mut self) -> Result<bool> {
        self.set_mode(Mode::Report);
        self.trip()?;
        self.set_mode(Mode::Timed);
        let switches = self.control.reported_switches();
        Ok(std::mem::replace(&mut self.switches, switches) != switches)
    }

    /// Trips whose every byte counts.
    fn checked(&mut self, plan: &Plan) -> Result<()> {
        if !plan.check {
            return Ok(());
        }
        self.set_mode(Mode::Checked);
        for _ in 0..CHECKS {
            self.seed = self.seed.wrapping_add(1);
            self.transport.compose_request(self.seed);
            self.transport.send_request(&mut self.control)?;
            self.transport.receive_reply(&mut self.control)?;
            let places = self.transport.places();
            let (request, reply) = (places.client_request, places.client_reply);
            let digest = words::digest_of(self.seed, request.len);
            if let Some((word, got)) = words::first_wrong(reply, digest) {
                let wanted = words::word(digest, word);
                let words = reply.len;
                return Err(RoundTripError::WrongData {
                    word,
                    words,
                    got,
                    wanted,
                });
            }
            self.found.checked_words += (request.len + reply.len) as u64;
        }
        self.set_mode(Mode::Timed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round_trip::{shared, stream};

    fn loses_its_server<T: Transport>() {
        let sizes = Sizes {
            request: 64,
            reply: 64,
        };
        let mut client = Client::<T>::start(&Plan::default(), sizes).unwrap();
        client.block(3).unwrap();
        // SAFETY: a signal to our own child.
        unsafe { libc::kill(client.control.peer, libc::SIGKILL) };
        let lost = loop {
            // The signal may arrive a few trips later.
            if let Err(error) = client.block(1) {
                break error;
            }
        };
        let ended = matches!(
            lost,
            RoundTripError::ServerEnded { .. } | RoundTripError::System { .. }
        );
        assert!(ended, "{lost}");
    }

    #[test]
    fn a_client_whose_server_dies_does_not_wait_for_ever() {
        // In a thread, as `on` does it: the client pins itself.
        std::thread::spawn(|| {
            loses_its_server::<shared::InPlace>();
            loses_its_server::<stream::UnixSocket>();
        })
        .join()
        .unwrap();
    }
}
