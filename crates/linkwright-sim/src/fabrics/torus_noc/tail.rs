//! The end of a passage: when the tail may leave a link, and what follows.
//!
//! Tail events are questions, asked at the earliest time at which the answer can be yes. If flits are
//! still to be served or the next link lags behind, the next question follows from the present
//! shares; if only a grant can help, the grant asks. A job has one valid question at a time; those
//! replaced by an earlier one are ignored.

use super::geometry::Port;
use super::lane::{Job, LANES, NEVER, ON_TREE, SERVING, TAIL_LEFT, TAIL_WAITS};
use super::link::SCALE;
use super::{event, TorusNoc, NONE};

impl TorusNoc {
    /// See at `at` whether the tail of `id` leaves its link; replaces an earlier request.
    #[inline]
    pub(super) fn ask(&mut self, id: u32, at: u64) {
        self.jobs[id as usize].asked = at;
        self.calendar.push(at, event::TAIL | id);
    }

    /// Perhaps the tail of `id` leaves its link now; if not, ask again when it may.
    pub(super) fn tail(&mut self, id: u32, now: u64) {
        if self.jobs[id as usize].asked != now {
            return;
        }
        self.jobs[id as usize].asked = NEVER;
        let link = (self.jobs[id as usize].lane / LANES) as usize;
        self.links[link].advance(now, &mut self.jobs);
        let job = self.jobs[id as usize];
        if job.deferred > 0 {
            self.jobs[id as usize].flags |= TAIL_WAITS;
        } else if job.flags & SERVING != 0 {
            self.ask(id, self.links[link].reaches(job.finish));
        } else if self.config.buffers.is_none()
            || job.port == Port::Eject
            || job.flits <= job.reserved as u32
            || self.drained(id, &job, now)
        {
            self.leave(id, &job, now);
        }
    }

    /// Whether the flits that have not passed the next link fit the buffer; if not, see to it
    /// that the tail is asked again.
    pub(super) fn drained(&mut self, id: u32, job: &Job, now: u64) -> bool {
        if job.granted < job.branches {
            self.jobs[id as usize].flags |= TAIL_WAITS;
            return false;
        }
        let mut down = job.down;
        while down != NONE {
            if !self.passed_on(id, job, down, now) {
                return false;
            }
            down = self.jobs[down as usize].sibling;
        }
        true
    }

    /// The same for one of the next links.
    pub(super) fn passed_on(&mut self, id: u32, job: &Job, down: u32, now: u64) -> bool {
        let next_link = (self.jobs[down as usize].lane / LANES) as usize;
        self.links[next_link].advance(now, &mut self.jobs);
        let next = &self.jobs[down as usize];
        let link = &self.links[next_link];
        let served_later = if next.flags & SERVING != 0 {
            next.finish - link.virtual_now
        } else {
            0
        };
        let fits = job.reserved as u64 * next.flit as u64 * SCALE;
        if served_later + next.deferred <= fits {
            return true;
        }
        if next.deferred > 0 {
            self.jobs[id as usize].flags |= TAIL_WAITS;
        } else {
            let at = link.reaches(next.finish - fits);
            self.ask(id, at);
        }
        false
    }

    /// The tail leaves the link: free the lane, the buffer before it and the job before it.
    pub(super) fn leave(&mut self, id: u32, job: &Job, now: u64) {
        let link = (job.lane / LANES) as usize;
        if job.flits > 1 {
            self.links[link].wanted -= 1;
        }
        if job.flags & ON_TREE != 0 {
            self.passed(job.packet, now);
        }
        if job.up != NONE {
            self.pop_buffer(job.up, now);
        }
        let tail_at = now + self.latency(job.port);
        let left = &mut self.jobs[id as usize];
        left.flags |= TAIL_LEFT;
        left.up = NONE;
        left.tail_at = tail_at;
        match job.port {
            Port::Eject => {
                self.calendar.push(tail_at, event::ARRIVE | job.packet);
                self.jobs.remove(id);
                if self.packets[job.packet as usize].response {
                    self.release(job.lane);
                }
                return;
            }
            // The interface's own eject link follows its inject link.
            Port::Inject => self.injected(job.packet, (link as u32 + 1) * LANES, now),
            _ => {}
        }
        self.release(job.lane);
        let mut down = job.down;
        while down != NONE {
            self.jobs[down as usize].tail_in = tail_at;
            self.ask(down, tail_at);
            down = self.jobs[down as usize].sibling;
        }
    }
}
