//! Input buffers and back-pressure.
//!
//! ```text
//!   buffer behind a link     | own of each lane | shared by the lanes, so much at most for one |
//! ```
//!
//! A packet reserves as much as it needs and can get when it enters the link, takes more when more
//! becomes free, and returns all when its head goes on. A packet whose head must wait runs on until
//! its reservation is full, on each link that it holds; the rest of its service there is *deferred*
//! until the head goes on, so the other packets on those links get faster.

use super::lane::{Job, Lane, Packet, GOES_ON, LANES, NEVER, TAIL_LEFT, TAIL_WAITS};
use super::link::{Link, Streaming, SCALE};
use super::{TorusNoc, NONE, OTHERS};

impl TorusNoc {
    /// `job` gives back its reservation behind `lane`: to the packet on the lane, if it needs more, else to waiting
    /// packets.
    #[inline(always)] // into a grant
    pub(super) fn give_back(&mut self, job: u32, lane: u32, flits: u32, now: u64) {
        let own = self.buffers.guaranteed;
        let link = &mut self.links[(lane / LANES) as usize];
        let shared = link.give_back(lane, flits, own);
        let Lane {
            waiting,
            occupied,
            back,
            ..
        } = *link.lane(lane);
        if waiting != NONE {
            self.woken.push(lane);
        }
        if link.starved && shared {
            link.starved = false;
            self.woken.push(lane | OTHERS);
        }
        // Alone in the buffer, `job` itself is the last.
        if back != job || occupied as u32 >= own {
            self.top_up(back, now);
        }
    }

    /// The packet on a lane takes the room that it still needs in the buffer behind it.
    #[inline(never)]
    fn top_up(&mut self, id: u32, now: u64) {
        let job = &mut self.jobs[id as usize];
        if job.flags & TAIL_LEFT != 0 {
            return;
        }
        let link = &mut self.links[(job.lane / LANES) as usize];
        let more = link
            .room(job.lane, self.buffers)
            .min(job.flits - job.reserved);
        if job.flags & GOES_ON != 0 || more == 0 {
            return;
        }
        link.reserve(job.lane, more, self.buffers.guaranteed);
        job.reserved += more;
        self.resume(id, more, now);
    }

    /// The head of `id` cannot go on: let its flits fill only the buffers behind it.
    #[inline(never)]
    pub(super) fn hold_back(&mut self, id: u32, now: u64) {
        let Packet {
            flits,
            blocked,
            head: mut job,
            ..
        } = self.packets[id as usize];
        if blocked {
            return;
        }
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
            stored += reserved;
            if flags & TAIL_LEFT != 0 || stored >= flits {
                break;
            }
            self.packets[id as usize].blocked = true;
            let link: &mut Link = &mut self.links[(lane / LANES) as usize];
            link.advance(now);
            let beyond = (flits - stored) as u64 * flit as u64 * SCALE;
            if let Some(deferred) = link.defer(job, beyond) {
                self.jobs[job as usize].deferred = deferred;
                if link.streams > 0 {
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
                link.advance(now);
                self.jobs[job as usize].deferred -= resumed;
                link.resume(job, resumed);
            }
            if flags & TAIL_WAITS != 0 {
                self.jobs[job as usize].flags &= !TAIL_WAITS;
                self.check_tail(job, now + resumed / SCALE);
            }
            job = up;
        }
    }

    /// A packet has paused on `link`, so the others are faster than expected: ask earlier.
    pub(super) fn hurry(&mut self, link: usize, now: u64) {
        for slot in 0..self.links[link].streams as usize {
            let server = &self.links[link];
            let Streaming { finish, job: id } = server.streaming(slot);
            let Job {
                up,
                flit,
                tail,
                check_at,
                ..
            } = self.jobs[id as usize];
            if check_at != NEVER {
                let through = tail.max(server.reaches(finish));
                if through < check_at {
                    self.check_tail(id, through);
                }
            }
            if up == NONE {
                continue;
            }
            let above = &self.jobs[up as usize];
            if above.check_at == NEVER
                || self.links[(above.lane / LANES) as usize]
                    .finish(up)
                    .is_some()
            {
                continue;
            }
            let fits = above.reserved as u64 * flit as u64 * SCALE;
            let drained = self.links[link].reaches(finish.saturating_sub(fits));
            let drained = drained.max(above.tail).max(now);
            if drained < above.check_at {
                self.check_tail(up, drained);
            }
        }
    }
}
