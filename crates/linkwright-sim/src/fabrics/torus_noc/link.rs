//! One directed link as a server that interleaves flits of different virtual channels.
//!
//! A link sends one flit per cycle and turns fairly among the packets that stream over it, at most
//! one per virtual channel. Turning flit by flit means that each of n packets advances by 1/n flit
//! per flit time; between arrivals and departures this has the closed form of processor sharing:
//!
//! ```text
//! dV/dt = 1 / n(t)         virtual time V: service given to each streaming packet
//! F     = V(grant) + W     a packet with W of service to get is through when V = F
//! ```
//!
//! V counts in ps / 720720 (the least common multiple of 1..=16), so V is an exact integer for
//! every n up to 16 and needs no event until its state is read.

use super::config::Buffers;
use super::geometry::Port;
use super::lane::{Lane, Packet, LANES};
use super::NONE;

/// Parts of a picosecond in which service is counted.
pub(super) const SCALE: u64 = 720_720;
/// Most packets that stream over one link at once: 16 virtual channels, or 12 + 4 at an interface.
pub(super) const STREAMS: usize = 16;

/// [`SCALE`] over the number of packets that share a link.
const PART: [u64; STREAMS + 1] = {
    let (mut part, mut streams) = ([SCALE; STREAMS + 1], 1);
    while streams <= STREAMS {
        part[streams] = SCALE / streams as u64;
        streams += 1;
    }
    part
};

/// A packet that streams: its job and the virtual time at which it is through.
#[derive(Clone, Copy, Default)]
pub(super) struct Streaming {
    pub finish: u64,
    pub job: u32,
}

/// A link with its lanes and the buffer behind it. One packet at a time is the common case; its state is in the first
/// cache lines, and several packets are kept elsewhere.
#[derive(Clone)]
#[repr(C, align(64))]
pub(super) struct Link {
    pub virtual_now: u64,
    last: u64,
    /// The streaming packet, if there is only one.
    only: Streaming,
    /// Time for which the link has had something to send.
    pub busy_ps: u64,
    /// Free flits in the shared part of the buffer behind this link.
    pub shared_free: u32,
    /// Packets with data that hold or want this link.
    wanted: u32,
    /// Time of a head over the link, in ps.
    pub latency: u32,
    /// First link of the place where this one ends.
    pub beyond: u32,
    /// Bytes of data that have been granted it.
    pub bytes: u64,
    /// Most packets with data that ever held or wanted it.
    pub peak: u32,
    pub port: Port,
    /// Whether it leads around the torus.
    pub wraps: bool,
    /// A channel waits because the shared part of the buffer behind this link is used up.
    pub starved: bool,
    /// Packets that stream over the link.
    pub streams: u8,
    several: Option<Box<[Streaming; STREAMS]>>,
    /// Bit per lane: part of the reserved tree of a multicast.
    pub reserved: u16,
    pub lanes: [Lane; LANES as usize],
}

impl Link {
    pub fn new(port: Port, wraps: bool, beyond: u32, latency: u32, shared: u32) -> Self {
        Link {
            virtual_now: 0,
            last: 0,
            only: Streaming::default(),
            busy_ps: 0,
            shared_free: shared,
            wanted: 0,
            latency,
            beyond,
            bytes: 0,
            peak: 0,
            port,
            wraps,
            starved: false,
            streams: 0,
            several: None,
            reserved: 0,
            lanes: [Lane::new(1); LANES as usize],
        }
    }

    /// One more packet with data wants the link.
    #[inline]
    pub fn want(&mut self) {
        self.wanted += 1;
        self.peak = self.peak.max(self.wanted);
    }

    /// A packet of this many flits has left the link.
    #[inline]
    pub fn leave(&mut self, flits: u32) {
        self.wanted -= u32::from(flits > 1);
    }

    /// Whether no packet holds a lane, wants it or lies in the buffer behind it.
    pub fn at_rest(&self) -> bool {
        self.reserved == 0 && self.lanes.iter().all(Lane::at_rest)
    }

    /// The lane of this link with that number among all.
    #[inline]
    pub fn lane(&mut self, lane: u32) -> &mut Lane {
        &mut self.lanes[(lane % LANES) as usize]
    }

    /// Free flits for `lane` in the buffer behind the link, up to the limit of one lane.
    #[inline]
    pub fn room(&mut self, lane: u32, buffers: Buffers) -> u32 {
        let occupied = self.lane(lane).occupied as u32;
        let own = buffers.guaranteed.saturating_sub(occupied);
        let taken = occupied.saturating_sub(buffers.guaranteed);
        let shared = (buffers.shared_per_channel - taken).min(self.shared_free);
        self.starved |= own + shared == 0;
        own + shared
    }

    /// Flits for which there is room behind `lane`; 0 if no packet may enter it now.
    #[inline]
    pub fn admits(&mut self, lane: u32, buffers: Buffers) -> u32 {
        let state = self.lane(lane);
        if state.held >= state.limit {
            return 0;
        }
        match self.port {
            Port::Eject => u32::MAX,
            _ => self.room(lane, buffers),
        }
    }

    /// The same, if no other packet waits for the lane already.
    #[inline]
    pub fn free_room(&mut self, lane: u32, buffers: Buffers) -> u32 {
        match self.lane(lane).waiting {
            NONE => self.admits(lane, buffers),
            _ => 0,
        }
    }

    /// Take `flits` of the buffer for `lane`, of which `own` are its own.
    #[inline]
    pub fn reserve(&mut self, lane: u32, flits: u32, own: u32) {
        let occupied = &mut self.lane(lane).occupied;
        let before = (*occupied as u32).max(own);
        *occupied += flits as u16;
        self.shared_free -= (*occupied as u32).max(own) - before;
    }

    /// Give them back; returns whether shared ones are among them.
    #[inline]
    pub fn give_back(&mut self, lane: u32, flits: u32, own: u32) -> bool {
        let occupied = &mut self.lane(lane).occupied;
        let before = (*occupied as u32).max(own);
        *occupied -= flits as u16;
        let shared = before - (*occupied as u32).max(own);
        self.shared_free += shared;
        shared > 0
    }

    /// Bring the service up to `now`; packets that are through stop streaming.
    #[inline]
    pub fn advance(&mut self, now: u64) {
        match self.streams {
            0 => self.virtual_now = 0,
            1 => {
                let served = (now - self.last).saturating_mul(SCALE);
                self.virtual_now = self.virtual_now.saturating_add(served);
                if self.virtual_now >= self.only.finish {
                    (self.streams, self.virtual_now) = (0, 0);
                }
            }
            _ => return self.advance_shared(now),
        }
        self.last = now;
    }

    /// The same for several packets.
    #[inline(never)]
    fn advance_shared(&mut self, now: u64) {
        while self.streams > 1 {
            let first = self.earliest();
            let streams = self.streams as u64;
            let need = ((first - self.virtual_now) * streams).div_ceil(SCALE);
            if self.last + need > now {
                self.virtual_now += (now - self.last) * PART[streams as usize];
                self.last = now;
                return;
            }
            self.last += need;
            self.virtual_now = first;
            let mut slot = 0;
            while slot < self.streams as usize {
                if self.streaming(slot).finish <= first {
                    self.drop_slot(slot);
                } else {
                    slot += 1;
                }
            }
        }
        self.advance(now);
    }

    /// Serve `job`, the passage of `packet`, whose flits take `flit` each; when it is through as of now. The link
    /// must be advanced.
    #[inline(always)]
    pub fn carry(&mut self, job: u32, packet: &Packet, flit: u32) -> u64 {
        let work = packet.flits as u64 * flit as u64;
        self.busy_ps += work;
        if packet.flits > 1 {
            self.bytes += packet.payload as u64;
        }
        self.join(job, work)
    }

    /// Start to serve `job` with `work` ps; the answer is when it is through if nothing else comes or
    /// goes before its end. The link must be advanced.
    #[inline]
    pub fn join(&mut self, job: u32, work: u64) -> u64 {
        let finish = self.virtual_now + work * SCALE;
        if self.streams == 0 {
            (self.only, self.streams) = (Streaming { finish, job }, 1);
            return self.last + work;
        }
        self.serve(job, work * SCALE);
        self.reaches(finish)
    }

    /// The same with `work` in ps / SCALE, not 0.
    #[inline(never)]
    fn serve(&mut self, job: u32, work: u64) {
        let stream = Streaming {
            finish: self.virtual_now + work,
            job,
        };
        match self.streams as usize {
            0 => self.only = stream,
            streams => {
                let several = self.several.get_or_insert_default();
                if streams == 1 {
                    several[0] = self.only;
                }
                several[streams] = stream;
            }
        }
        self.streams += 1;
    }

    /// The virtual time at which `job` is through, if it streams.
    #[inline]
    pub fn finish(&self, job: u32) -> Option<u64> {
        match self.streams {
            0 => None,
            1 => (self.only.job == job).then_some(self.only.finish),
            _ => {
                let stream = self.all().iter().find(|stream| stream.job == job)?;
                Some(stream.finish)
            }
        }
    }

    /// The slot of `job` among the streaming packets, and its virtual end.
    #[inline]
    fn stream(&mut self, job: u32) -> Option<(usize, &mut u64)> {
        match self.streams {
            0 => None,
            1 => (self.only.job == job).then_some((0, &mut self.only.finish)),
            streams => {
                let several = &mut self.several.as_mut()?[..streams as usize];
                let slot = several.iter().position(|stream| stream.job == job)?;
                Some((slot, &mut several[slot].finish))
            }
        }
    }

    /// Take up to `most` from the remaining service of `job`; returns how much that was, if it streams.
    pub fn defer(&mut self, job: u32, most: u64) -> Option<u64> {
        let now = self.virtual_now;
        let (slot, finish) = self.stream(job)?;
        let deferred = most.min(*finish - now);
        *finish -= deferred;
        if *finish <= now {
            self.drop_slot(slot);
        }
        Some(deferred)
    }

    /// Serve `job`, which may still be streaming, this much more.
    pub fn resume(&mut self, job: u32, more: u64) {
        match self.stream(job) {
            Some((_, finish)) => *finish += more,
            None => self.serve(job, more),
        }
    }

    /// When virtual time reaches `target` if nothing else arrives. The link must be advanced and
    /// `target` not beyond the finish of a serving job.
    #[inline]
    pub fn reaches(&self, target: u64) -> u64 {
        if self.streams == 1 {
            return self.last + target.saturating_sub(self.virtual_now).div_ceil(SCALE);
        }
        let (mut at, mut virtual_now, mut streams) =
            (self.last, self.virtual_now, self.streams as u64);
        loop {
            let active = self.all();
            let later = active.iter().map(|stream| stream.finish);
            let first = later.filter(|&finish| finish > virtual_now).min();
            let first = first.unwrap_or(target);
            if first >= target || streams == 1 {
                return at + (target.saturating_sub(virtual_now) * streams).div_ceil(SCALE);
            }
            at += ((first - virtual_now) * streams).div_ceil(SCALE);
            streams -= active
                .iter()
                .filter(|stream| stream.finish == first)
                .count() as u64;
            virtual_now = first;
        }
    }

    /// One of the packets that stream over the link.
    #[inline]
    pub fn streaming(&self, slot: usize) -> Streaming {
        match self.streams {
            1 => self.only,
            _ => self.all()[slot],
        }
    }

    /// All of them, if there are several.
    #[inline]
    fn all(&self) -> &[Streaming] {
        match &self.several {
            Some(several) => &several[..self.streams as usize],
            None => &[],
        }
    }

    #[inline]
    fn earliest(&self) -> u64 {
        let finishes = self.all().iter().map(|stream| stream.finish);
        finishes.min().unwrap_or(self.virtual_now)
    }

    fn drop_slot(&mut self, slot: usize) {
        self.streams -= 1;
        let left = self.streams as usize;
        if let Some(several) = self.several.as_mut().filter(|_| left > 0) {
            several[slot] = several[left];
            if left == 1 {
                self.only = several[0];
            }
        }
    }
}
