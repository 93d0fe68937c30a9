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
//! every n up to 16 and needs no event until somebody asks.

use super::lane::{Job, SERVING};

/// Parts of a picosecond in which service is counted.
pub(super) const SCALE: u64 = 720_720;
/// Most packets that stream over one link at once: 16 virtual channels, or 12 + 4 at an interface.
pub(super) const STREAMS: usize = 16;

/// A packet that streams: its job and the virtual time at which it is through.
#[derive(Clone, Copy, Default)]
struct Streaming {
    finish: u64,
    job: u32,
}

// A link with one packet is the common case: it fits one line of cache.
#[derive(Clone)]
#[repr(C, align(64))]
pub(super) struct Link {
    pub virtual_now: u64,
    last: u64,
    /// Free flits in the shared part of the buffer behind this link.
    pub shared_free: u32,
    /// Packets with data that hold or want this link.
    pub wanted: u32,
    streams: u8,
    /// A channel waits because the shared part of the buffer behind this link is used up.
    pub starved: bool,
    slots: [Streaming; STREAMS],
}

impl Link {
    pub fn new(shared: u32) -> Self {
        Link {
            virtual_now: 0,
            last: 0,
            shared_free: shared,
            wanted: 0,
            streams: 0,
            starved: false,
            slots: [Streaming::default(); STREAMS],
        }
    }

    /// Bring the service up to `now`; packets that are through stop serving.
    #[inline(always)]
    pub fn advance(&mut self, now: u64, jobs: &mut [Job]) {
        match self.streams {
            0 => {
                self.virtual_now = 0;
                self.last = now;
            }
            1 => {
                let served = (now - self.last) * SCALE;
                let rest = self.slots[0].finish - self.virtual_now;
                if served < rest {
                    self.virtual_now += served;
                } else {
                    jobs[self.slots[0].job as usize].flags &= !SERVING;
                    self.streams = 0;
                    self.virtual_now = 0;
                }
                self.last = now;
            }
            _ => self.advance_shared(now, jobs),
        }
    }

    /// The same for several packets.
    #[inline(never)]
    fn advance_shared(&mut self, now: u64, jobs: &mut [Job]) {
        while self.streams > 0 {
            let first = self.earliest();
            let streams = self.streams as u64;
            let need = ((first - self.virtual_now) * streams).div_ceil(SCALE);
            if self.last + need > now {
                self.virtual_now += (now - self.last) * (SCALE / streams);
                self.last = now;
                return;
            }
            self.last += need;
            self.virtual_now = first;
            let mut slot = 0;
            while slot < self.streams as usize {
                if self.slots[slot].finish <= first {
                    jobs[self.slots[slot].job as usize].flags &= !SERVING;
                    self.drop_slot(slot);
                } else {
                    slot += 1;
                }
            }
        }
        self.virtual_now = 0;
        self.last = now;
    }

    /// Start serving `job` with `work` (in ps / SCALE, not 0). The link must be advanced.
    #[inline]
    pub fn serve(&mut self, id: u32, work: u64, jobs: &mut [Job]) {
        let job = &mut jobs[id as usize];
        job.flags |= SERVING;
        job.finish = self.join(id, work);
    }

    /// The same for a job that is only being made; returns its finish.
    #[inline]
    pub fn join(&mut self, id: u32, work: u64) -> u64 {
        let finish = self.virtual_now + work;
        self.slots[self.streams as usize] = Streaming { finish, job: id };
        self.streams += 1;
        finish
    }

    /// Change the finish of a serving job; stops it when the finish has passed.
    pub fn retime(&mut self, id: u32, finish: u64, jobs: &mut [Job]) {
        let slot = (0..self.streams as usize).find(|&slot| self.slots[slot].job == id);
        let slot = slot.expect("a serving job is in the list of its link");
        jobs[id as usize].finish = finish;
        self.slots[slot].finish = finish;
        if finish <= self.virtual_now {
            jobs[id as usize].flags &= !SERVING;
            self.drop_slot(slot);
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
            let active = &self.slots[..self.streams as usize];
            let first = active
                .iter()
                .map(|slot| slot.finish)
                .filter(|&f| f > virtual_now)
                .min();
            let first = first.unwrap_or(target);
            if first >= target || streams == 1 {
                return at + (target.saturating_sub(virtual_now) * streams).div_ceil(SCALE);
            }
            at += ((first - virtual_now) * streams).div_ceil(SCALE);
            streams -= active.iter().filter(|slot| slot.finish == first).count() as u64;
            virtual_now = first;
        }
    }

    /// How many packets stream over the link.
    #[inline]
    pub fn streams(&self) -> usize {
        self.streams as usize
    }

    /// One of the packets that stream over the link.
    #[inline]
    pub fn streaming(&self, slot: usize) -> u32 {
        self.slots[slot].job
    }

    #[inline]
    fn earliest(&self) -> u64 {
        let active = self.slots[..self.streams as usize].iter();
        active
            .map(|slot| slot.finish)
            .min()
            .unwrap_or(self.virtual_now)
    }

    #[inline]
    fn drop_slot(&mut self, slot: usize) {
        let last = self.streams as usize - 1;
        self.slots[slot] = self.slots[last];
        self.streams = last as u8;
    }
}
