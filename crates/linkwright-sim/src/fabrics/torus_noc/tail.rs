//! The end of a passage: when the tail may leave a link, and what follows.
//!
//! A tail event checks whether the tail may leave, at the earliest possible time. If flits remain or
//! the next link lags behind, the present shares give the time of the next check; if only a grant can
//! help, the grant checks. A job has one valid check at a time; checks replaced by an earlier one are
//! ignored.

use super::geometry::Port;
use super::lane::{GOES_ON, LANES, NEVER, ON_TREE, RESPONSES, TAIL_LEFT, TAIL_WAITS};
use super::link::SCALE;
use super::{event, TorusNoc, NONE};

impl TorusNoc {
    /// Check at `at` whether the tail of `id` leaves its link; replaces an earlier check.
    #[inline]
    pub(super) fn check_tail(&mut self, id: u32, at: u64) {
        self.jobs[id as usize].check_at = at;
        self.calendar.push(at, event::TAIL | id);
    }

    /// Let the tail of `id` leave its link if it can; if not, check again when it may.
    #[inline]
    pub(super) fn tail(&mut self, id: u32, now: u64) {
        let job = &mut self.jobs[id as usize];
        if job.check_at != now {
            return;
        }
        job.check_at = NEVER;
        let link = &mut self.links[(job.lane / LANES) as usize];
        link.advance(now);
        if job.deferred > 0 {
            job.flags |= TAIL_WAITS;
        } else if let Some(finish) = link.finish(id) {
            let at = link.reaches(finish);
            self.check_tail(id, at);
        } else if job.flits <= job.reserved || self.drained(id, now) {
            self.leave(id, now);
        }
    }

    /// Whether the flits that have not passed the next link fit the buffer; if not, arrange another
    /// check.
    fn drained(&mut self, id: u32, now: u64) -> bool {
        let job = &mut self.jobs[id as usize];
        if job.flags & GOES_ON == 0 {
            job.flags |= TAIL_WAITS;
            return false;
        }
        let (reserved, mut down) = (job.reserved, job.down);
        while down != NONE {
            if !self.passed_on(id, reserved, down, now) {
                return false;
            }
            down = self.jobs[down as usize].sibling;
        }
        true
    }

    /// The same for one of the next links.
    fn passed_on(&mut self, id: u32, reserved: u32, down: u32, now: u64) -> bool {
        let next = &self.jobs[down as usize];
        let link = &mut self.links[(next.lane / LANES) as usize];
        link.advance(now);
        let finish = link.finish(down).unwrap_or(link.virtual_now);
        let fits = reserved as u64 * next.flit as u64 * SCALE;
        if finish - link.virtual_now + next.deferred <= fits {
            return true;
        }
        if next.deferred > 0 {
            self.jobs[id as usize].flags |= TAIL_WAITS;
        } else {
            let at = link.reaches(finish - fits);
            self.check_tail(id, at);
        }
        false
    }

    /// The tail leaves the link: free the lane, the buffer before it and the job before it.
    #[inline]
    fn leave(&mut self, id: u32, now: u64) {
        let job = &mut self.jobs[id as usize];
        let link = &mut self.links[(job.lane / LANES) as usize];
        let (packet, lane, up, mut down) = (job.packet, job.lane, job.up, job.down);
        let (port, tail_at) = (link.port, now + link.latency as u64);
        link.leave(job.flits);
        job.flags |= TAIL_LEFT;
        job.up = NONE;
        job.tail = tail_at;
        if job.flags & ON_TREE != 0 {
            self.passed(packet, now);
        }
        if up != NONE {
            self.pop_buffer(up, now);
        }
        match port {
            Port::Eject => return self.ejected(id, packet, lane, tail_at),
            // The interface's own eject link follows its inject link.
            Port::Inject => self.injected(packet, lane - lane % LANES + LANES, now),
            _ => {}
        }
        self.release(lane);
        while down != NONE {
            let next = &mut self.jobs[down as usize];
            (next.tail, next.check_at) = (tail_at, tail_at);
            self.calendar.push(tail_at, event::TAIL | down);
            down = next.sibling;
        }
    }

    /// The tail has left the last link and is in the interface at `at`.
    #[inline]
    fn ejected(&mut self, id: u32, packet: u32, lane: u32, at: u64) {
        self.calendar.push(at, event::ARRIVE | packet);
        self.jobs.remove(id);
        if lane % LANES == RESPONSES {
            self.release(lane);
        }
    }
}
