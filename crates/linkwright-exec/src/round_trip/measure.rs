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
use super::server::Server;
use super::transport::{Sizes, Transport, SIZES};
use super::words;
use crate::guard::{Disturbance, Guard};
use crate::sampling::{median, Samples, Sampling, WarmUp};
use crate::timer::{Clock, Ticks};
use crate::topology::pin_to;
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
    /// How much; a sample is a block of trips.
    pub sampling: Sampling,
    /// Trips of a block.
    pub trips_per_block: usize,
    /// Of the data.
    pub seed: u64,
    /// Processors of client and server.
    pub cpus: [u32; 2],
    /// Asked a few times per second, on the calling thread, whether to stop.
    pub cancelled: Option<&'a (dyn Fn() -> bool + Sync)>,
}

/// The trips of one launch.
#[derive(Clone, Debug, Default)]
pub struct RoundTrips {
    /// Every trip of every undisturbed block; blocks of warm-up and dropped blocks are counted.
    pub samples: Samples,
    /// Trips of a block.
    pub trips_per_block: usize,
    /// Whether the time budget ended before all blocks were taken.
    pub out_of_time: bool,
    /// Words of requests and replies whose arrival was checked.
    pub checked_words: u64,
    /// Client and server share one processor.
    pub oversubscribed: bool,
    /// Why they are not pinned.
    pub unpinned: Option<String>,
}

/// How often the calling thread checks.
const WATCH: Duration = Duration::from_millis(50);
/// Checked trips on each side of the samples.
const CHECKS: u64 = 3;

/// Measures on `T`, in a thread of its own, so that the caller's processors stay as they are.
pub(super) fn on<T: Transport>(plan: &Plan) -> Result<RoundTrips> {
    let sizes = sizes(plan)?;
    Clock::get();
    let (stop, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let caller = std::thread::current();
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let trips =
                Client::<T>::start(plan, sizes).and_then(|client| client.measure(plan, &stop));
            done.store(true, Ordering::Release);
            caller.unpark();
            trips
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
    _server: Server,
    transport: T,
    control: Control,
    seed: u64,
    stamps: Vec<Ticks>,
    /// How often the server had lost its core at the last report.
    switches: i64,
    trips: RoundTrips,
}

impl<T: Transport> Client<T> {
    fn start(plan: &Plan, sizes: Sizes) -> Result<Client<T>> {
        let mut trips = RoundTrips {
            trips_per_block: plan.trips_per_block.max(1),
            oversubscribed: plan.cpus[0] == plan.cpus[1],
            unpinned: pin_to(plan.cpus[0]).err().map(|error| error.to_string()),
            ..RoundTrips::default()
        };
        trips.samples.batch = 1;
        let mut control = Control::new()?;
        control.yields = trips.oversubscribed;
        let mut transport = T::open(sizes)?;
        let pinned = trips.unpinned.is_none();
        let server = Server::start(&mut transport, &mut control, pinned.then_some(plan.cpus[1]))?;
        Ok(Client {
            _server: server,
            transport,
            control,
            seed: plan.seed,
            stamps: vec![Ticks(0); trips.trips_per_block + 1],
            switches: 0,
            trips,
        })
    }

    fn measure(mut self, plan: &Plan, stop: &AtomicBool) -> Result<RoundTrips> {
        let end = Instant::now() + plan.sampling.time_budget;
        self.control.set_mode(Mode::Timed);
        let first = self.block(1).map_err(|error| self.explain(error))?;
        self.trips.samples.first_ns = first[0];
        self.checked()?;
        self.warm_up(plan, stop, end)?;
        self.sample(plan, stop, end)?;
        self.checked()?;
        self.control.stop();
        Ok(self.trips)
    }

    /// The server's error, where it left one, says more than its silence.
    fn explain(&self, error: RoundTripError) -> RoundTripError {
        match self.control.errno().load(Ordering::Acquire) {
            0 => error,
            errno => super::cross_memory::explain(std::io::Error::from_raw_os_error(errno)),
        }
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
        let mut warm_up = WarmUp::new(plan.sampling.warmup_at_most.max(1));
        // Half of the budget at most: a machine that never settles is measured all the same.
        let end = end - plan.sampling.time_budget / 2;
        loop {
            let mut block = self.block(self.trips.trips_per_block)?;
            if warm_up.push(median(&mut block).expect("a block has trips")) || over(stop, end) {
                break;
            }
        }
        self.trips.samples.warmup_batches = warm_up.batches();
        self.trips.samples.warmed_up = warm_up.agreed();
        Ok(())
    }

    fn sample(&mut self, plan: &Plan, stop: &AtomicBool, end: Instant) -> Result<()> {
        let mut guard = Guard::of_thread_and_machine();
        self.server_was_disturbed()?;
        let mut kept = 0;
        while kept < plan.sampling.samples {
            guard.open();
            let block = self.block(self.trips.trips_per_block)?;
            let mine = guard.close();
            let theirs = self
                .server_was_disturbed()?
                .then_some(Disturbance::Preempted);
            // Processes that share a core preempt each other by design.
            match mine.or(theirs).filter(|_| !self.trips.oversubscribed) {
                None => {
                    self.trips.samples.values_ns.extend(block);
                    kept += 1;
                }
                Some(reason) => self.trips.samples.drops.count(reason),
            }
            if over(stop, end) {
                self.trips.out_of_time = kept < plan.sampling.samples;
                break;
            }
        }
        Ok(())
    }

    /// Whether the server lost its core since the last report; takes one trip.
    fn server_was_disturbed(&mut self) -> Result<bool> {
        self.control.set_mode(Mode::Report);
        self.trip()?;
        self.control.set_mode(Mode::Timed);
        let switches = self.control.switches().load(Ordering::Acquire);
        Ok(std::mem::replace(&mut self.switches, switches) != switches)
    }

    /// Trips in which every byte is checked.
    fn checked(&mut self) -> Result<()> {
        self.control.set_mode(Mode::Checked);
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
            self.trips.checked_words += (request.len + reply.len) as u64;
        }
        self.control.set_mode(Mode::Timed);
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
        let cpu = crate::topology::allowed_cpus()[0];
        let plan = Plan {
            request_bytes: 64,
            reply_bytes: 64,
            sampling: Sampling::default(),
            trips_per_block: 50,
            seed: 0,
            cpus: [cpu, cpu],
            cancelled: None,
        };
        let mut client = Client::<T>::start(&plan, sizes).unwrap();
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
