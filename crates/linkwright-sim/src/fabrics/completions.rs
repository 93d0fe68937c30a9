//! The completions that a fabric has computed but not yet reported.
//!
//! A fabric that knows the times of a message at the offer (`loggp`), or once the last resource is
//! granted (`crossbar`), files them here; this keeps the fabric's side of the contract of
//! [`crate::fabric::Fabric`].

use crate::fabric::{Done, Event, Times};
use crate::queue::TimeQueue;
use linkwright_core::TimePs;

/// A completion: message, event, target, and whether it is the last of the message.
type Filed = (u32, Event, u32, bool);

/// Completions to come, in order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Completions {
    queue: TimeQueue<Filed>,
    in_flight: usize,
}

impl Completions {
    pub fn clear(&mut self) {
        self.queue.clear();
        self.in_flight = 0;
    }

    /// One more message is under way, until its last completion is reported.
    pub fn begin(&mut self) {
        self.in_flight += 1;
    }

    /// One completion of a message that has begun; an acknowledgement is its last.
    pub fn push(&mut self, at: TimePs, op: u32, event: Event, target: u32) {
        let last = event == Event::Acknowledged;
        self.queue.push(at, (op, event, target, last));
    }

    /// The last completion that the engine wants of a message.
    pub fn last(&mut self, at: TimePs, op: u32, event: Event, target: u32) {
        self.queue.push(at, (op, event, target, true));
    }

    /// A message with known times, by target.
    pub fn message(&mut self, op: u32, each: &[Times]) {
        self.begin();
        let (mut source_free, mut acknowledged) = (TimePs::ZERO, TimePs::ZERO);
        for (target, times) in (0u32..).zip(each) {
            self.push(times.delivered, op, Event::Delivered, target);
            source_free = source_free.max(times.source_free);
            acknowledged = acknowledged.max(times.acknowledged);
        }
        self.push(source_free, op, Event::SourceFree, 0);
        self.push(acknowledged, op, Event::Acknowledged, 0);
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    pub fn next(&self) -> Option<TimePs> {
        self.queue.next()
    }

    /// The next of the fabric's `steps`, if it is due by `until` and no completion comes before it.
    #[inline]
    pub fn step_due<T: Copy>(
        &self,
        steps: &mut TimeQueue<T>,
        until: TimePs,
    ) -> Option<(TimePs, T)> {
        let limit = self.next().map_or(until, |at| at.min(until));
        let at = steps.next().filter(|&at| at <= limit)?;
        steps.pop_at(at).map(|step| (at, step))
    }

    /// Time of the next step or completion.
    pub fn next_with<T: Copy>(&self, steps: &TimeQueue<T>) -> Option<TimePs> {
        [steps.next(), self.next()].into_iter().flatten().min()
    }

    /// As [`crate::fabric::Fabric::advance`].
    pub fn advance(&mut self, until: TimePs, out: &mut Vec<Done>) -> TimePs {
        let Some(at) = self.queue.next().filter(|&at| at <= until) else {
            return until;
        };
        while let Some((op, event, target, last)) = self.queue.pop_at(at) {
            self.in_flight -= usize::from(last);
            out.push(Done {
                op,
                event,
                at,
                target,
            });
        }
        at
    }
}
