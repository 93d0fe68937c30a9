//! Input buffers and back-pressure.
//!
//! ```text
//!   buffer behind a link     | own of each lane | shared by the lanes, so much at most for one |
//! ```
//!
//! A packet reserves what it needs and can get when it enters the link, takes more when more becomes
//! free, and returns all when its head goes on. A packet whose head has to wait runs on until what it
//! reserved is full, on each link that it holds; the rest of its service there is *deferred*, so the
//! others on those links get faster, until the head goes on.

use super::lane::{Job, LANES, NEVER, SERVING, TAIL_LEFT, TAIL_WAITS};
use super::link::{Link, SCALE};
use super::{TorusNoc, NONE};

impl TorusNoc {
    /// Free flits for `lane` in the buffer behind its link; at most what one lane may take.
    #[inline]
    pub(super) fn room(&mut self, lane: u32) -> u32 {
        let Some(buffers) = self.config.buffers else {
            return u32::MAX;
        };
        let link = &mut self.links[(lane / LANES) as usize];
        let occupied = self.lanes[lane as usize].occupied as u32;
        let own = buffers.guaranteed.saturating_sub(occupied);
        let taken = occupied.saturating_sub(buffers.guaranteed);
        let shared = (buffers.shared_per_channel - taken).min(link.shared_free);
        link.starved |= own + shared == 0;
        own + shared
    }

    /// Take `flits` of the buffer behind `lane`.
    #[inline]
    pub(super) fn reserve(&mut self, lane: u32, flits: u32, own: u32) {
        let occupied = &mut self.lanes[lane as usize].occupied;
        let before = (*occupied as u32).max(own);
        *occupied += flits as u16;
        let after = (*occupied as u32).max(own);
        self.links[(lane / LANES) as usize].shared_free -= after - before;
    }

    /// Give `flits` of the buffer behind `lane` back: to the packet on the lane, if it needs them,
    /// else to whoever waits.
    #[inline]
    pub(super) fn give_back(&mut self, lane: u32, flits: u32, own: u32, now: u64) {
        let state = &mut self.lanes[lane as usize];
        let before = (state.occupied as u32).max(own);
        state.occupied -= flits as u16;
        let after = (state.occupied as u32).max(own);
        if state.first_waiting != NONE {
            self.woken.push(lane);
        }
        let link = &mut self.links[(lane / LANES) as usize];
        link.shared_free += before - after;
        if link.starved && before > after {
            link.starved = false;
            let first = lane - lane % LANES;
            self.woken
                .extend((first..first + LANES).filter(|&other| other != lane));
        }
        let last = self.lanes[lane as usize].back;
        if self.lanes[lane as usize].front != NONE
            && self.jobs[last as usize].flags & TAIL_LEFT == 0
        {
            self.top_up(last, own, now);
        }
    }

    /// The packet on a lane takes what it still needs of the buffer behind it.
    #[inline(never)]
    pub(super) fn top_up(&mut self, job: u32, own: u32, now: u64) {
        let Job {
            flits,
            lane,
            reserved,
            granted,
            branches,
            ..
        } = self.jobs[job as usize];
        let missing = flits - reserved as u32;
        let more = self.room(lane).min(missing);
        if granted == branches || more == 0 {
            return;
        }
        self.reserve(lane, more, own);
        self.jobs[job as usize].reserved += more as u16;
        self.resume(job, more, now);
    }

    /// The head of `id` cannot go on: let its flits fill the buffers behind it, no more.
    #[inline(never)]
    pub(super) fn hold_back(&mut self, id: u32, now: u64) {
        let packet = self.packets[id as usize];
        if self.config.buffers.is_none() || packet.blocked {
            return;
        }
        let mut job = packet.head;
        let mut stored = 0;
        while job != NONE {
            let Job {
                lane,
                up,
                flags,
                reserved,
                flit,
                ..
            } = self.jobs[job as usize];
            stored += reserved as u32;
            if flags & TAIL_LEFT != 0 || stored >= packet.flits {
                break;
            }
            self.packets[id as usize].blocked = true;
            let link: &mut Link = &mut self.links[(lane / LANES) as usize];
            link.advance(now, &mut self.jobs);
            let Job { finish, flags, .. } = self.jobs[job as usize];
            if flags & SERVING != 0 {
                let beyond = (packet.flits - stored) as u64 * flit as u64 * SCALE;
                let rest = finish - link.virtual_now;
                let deferred = beyond.min(rest);
                self.jobs[job as usize].deferred = deferred;
                link.retime(job, finish - deferred, &mut self.jobs);
                if link.streams() > 0 {
                    self.hurry((lane / LANES) as usize, now);
                }
            }
            job = up;
        }
    }

    /// The packet has been granted a lane beyond `job`: its worm moves again.
    #[inline(never)]
    pub(super) fn let_go(&mut self, id: u32, job: u32, now: u64) {
        self.packets[id as usize].blocked = false;
        self.resume(job, u32::MAX, now);
    }

    /// Back-pressure allows `more` flits of the packet to pass `job` and the links before it.
    pub(super) fn resume(&mut self, mut job: u32, more: u32, now: u64) {
        while job != NONE {
            let Job {
                lane,
                up,
                flags,
                deferred,
                flit,
                ..
            } = self.jobs[job as usize];
            if flags & TAIL_LEFT != 0 {
                break;
            }
            let resumed = deferred.min((more as u64 * flit as u64).saturating_mul(SCALE));
            if resumed > 0 {
                let link: &mut Link = &mut self.links[(lane / LANES) as usize];
                link.advance(now, &mut self.jobs);
                self.jobs[job as usize].deferred -= resumed;
                let Job { finish, flags, .. } = self.jobs[job as usize];
                if flags & SERVING != 0 {
                    link.retime(job, finish + resumed, &mut self.jobs);
                } else {
                    link.serve(job, resumed, &mut self.jobs);
                }
            }
            if flags & TAIL_WAITS != 0 {
                self.jobs[job as usize].flags &= !TAIL_WAITS;
                self.ask(job, now + resumed / SCALE);
            }
            job = up;
        }
    }

    /// A packet has paused on `link`, so the others are faster than expected: ask earlier.
    pub(super) fn hurry(&mut self, link: usize, now: u64) {
        for slot in 0..self.links[link].streams() {
            let id = self.links[link].streaming(slot);
            let job = self.jobs[id as usize];
            let through = job.tail_in.max(self.links[link].reaches(job.finish));
            if job.asked != NEVER && through < job.asked {
                self.ask(id, through);
            }
            if job.up == NONE {
                continue;
            }
            let above = self.jobs[job.up as usize];
            let fits = above.reserved as u64 * job.flit as u64 * SCALE;
            let drained = self.links[link].reaches(job.finish.saturating_sub(fits));
            let drained = drained.max(above.tail_in).max(now);
            if above.asked != NEVER && above.flags & SERVING == 0 && drained < above.asked {
                self.ask(job.up, drained);
            }
        }
    }
}
