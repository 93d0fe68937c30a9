//! A network that has come to a standstill: which messages wait for what, and the circle of waits.
//!
//! Dimension order and datelines keep single packets from waiting in a circle. A multicast does not reserve
//! its receivers, though, so two of them may each have the place that the other needs:
//!
//! ```text
//!   message 0   holds the place at (2,2)   waits for (3,2)      with one place for requests,
//!   message 1   holds the place at (3,2)   waits for (2,2)      `target_requests`, at each
//! ```

use super::geometry::{Place, Port};
use super::interface::Message;
use super::lane::{Job, HEAD_WAITS, LANES, TAIL_LEFT};
use super::{TorusNoc, NONE};

/// A message that waits for a lane or for room behind it.
#[derive(Clone, Copy)]
struct Wait {
    op: u32,
    lane: u32,
}

impl TorusNoc {
    /// Which packets wait for what, the circle first.
    pub(super) fn waiting(&self) -> Vec<String> {
        let (waits, links) = (self.waits(), self.geometry.names());
        let name = |lane: u32| {
            format!(
                "{} channel {}",
                links[(lane / LANES) as usize],
                lane % LANES
            )
        };
        let mut waiting: Vec<String> = self.circle(&waits, name).into_iter().collect();
        waiting.extend(waits.iter().map(|wait| {
            let Place { x, y } = self.geometry.place_of(wait.lane / LANES);
            let lane = name(wait.lane);
            format!("message {}: packet at ({x},{y}) waits for {lane}", wait.op)
        }));
        waiting.extend(self.unreserved.iter().map(|&id| {
            let Message { op, from, .. } =
                self.messages[self.packets[id as usize].message as usize];
            let Place { x, y } = self.place(from);
            format!("message {op}: multicast at ({x},{y}) waits for the reservation of its tree")
        }));
        waiting
    }

    fn waits(&self) -> Vec<Wait> {
        let mut waits = Vec::new();
        let lanes = self.links.iter().flat_map(|link| &link.lanes);
        for (lane, state) in (0u32..).zip(lanes) {
            let wait = |packet| Wait {
                op: self.op_of(packet),
                lane,
            };
            let mut id = state.waiting;
            while id != NONE {
                id = self.packets[id as usize].waits_behind;
                waits.push(wait(id));
                if id == state.waiting {
                    break;
                }
            }
            let mut job = state.front;
            while job != NONE {
                let state = &self.jobs[job as usize];
                if state.flags & HEAD_WAITS != 0 {
                    waits.push(wait(state.packet));
                }
                job = state.behind;
            }
        }
        waits
    }

    fn op_of(&self, packet: u32) -> u32 {
        self.messages[self.packets[packet as usize].message as usize].op
    }

    /// The circle of waits, if there is one.
    fn circle(&self, waits: &[Wait], name: impl Fn(u32) -> String) -> Option<String> {
        let mut chain = vec![*waits.first()?];
        let (first, holder) = loop {
            let last = chain[chain.len() - 1];
            let holders = self.holders(last.lane);
            let mut others = waits.iter().filter(|wait| wait.op != last.op);
            let holder = *others.find(|wait| holders.contains(&wait.op))?;
            if let Some(first) = chain.iter().position(|wait| wait.op == holder.op) {
                break (first, holder);
            }
            chain.push(holder);
        };
        let circle = &chain[first..];
        let holders = circle[1..].iter().chain([&holder]);
        let steps = circle.iter().zip(holders).map(|(wait, holder)| {
            let lane = name(wait.lane);
            format!(
                "message {} waits for {lane}, which message {} holds",
                wait.op, holder.op
            )
        });
        let mut steps: Vec<String> = steps.collect();
        let port = |wait: &Wait| self.links[(wait.lane / LANES) as usize].port;
        if circle.iter().any(|wait| port(wait) == Port::Eject) {
            steps.push("multicasts reserve links, not receivers: raise `target_requests`".into());
        }
        Some(format!("circle: {}", steps.join("; ")))
    }

    /// The packet on `lane`, or first in the buffer behind it.
    fn holders(&self, lane: u32) -> Vec<u32> {
        let front = self.links[(lane / LANES) as usize].lanes[(lane % LANES) as usize].front;
        let holds = |(id, job): &(u32, &Job)| {
            job.lane == lane && (job.flags & TAIL_LEFT == 0 || *id == front)
        };
        let jobs = self.jobs.iter_live().filter(holds);
        jobs.map(|(_, job)| self.op_of(job.packet)).collect()
    }
}
