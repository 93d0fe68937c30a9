//! What a pattern says of itself.

use super::traffic::{Message, Traffic};
use crate::error::{Result, ScheduleError};
use crate::ir::{most_ops, Schedule};

/// Source of several patterns.
pub(super) const DALLY_TOWLES: &str =
    "Dally and Towles, Principles and Practices of Interconnection Networks, 2004, section 3.2";

/// One pattern; describes itself.
pub struct Pattern {
    /// Name in snake case.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What it stresses and how it is laid out, in a few sentences.
    pub description: &'static str,
    /// What it demands of the ranks, in words; empty when nothing beyond two ranks.
    pub needs: &'static str,
    /// Where it was published or is commonly used.
    pub source: &'static str,
    /// Messages of one round in one direction, where the pattern serves the ranks.
    pub messages: fn(&Traffic) -> u64,
    /// Make the schedule; [`ScheduleError::Waived`] where the ranks do not suit.
    pub build: fn(&Traffic) -> Result<Schedule>,
}

impl Pattern {
    /// `pattern/name`.
    pub fn key(&self) -> String {
        format!("pattern/{}", self.name)
    }

    /// Bytes of all messages, where the pattern serves the ranks: those that the schedule moves, without making it.
    pub fn bytes(&self, traffic: &Traffic) -> u64 {
        let ways = 1 + u64::from(traffic.both_ways);
        let messages = (self.messages)(traffic) * u64::from(traffic.count) * ways;
        messages * traffic.shape.elements * u64::from(traffic.shape.element_bytes)
    }

    /// The error of a pattern that cannot serve the ranks.
    pub fn waive(&self, reason: impl Into<String>) -> ScheduleError {
        ScheduleError::Waived {
            algorithm: self.key(),
            reason: reason.into(),
        }
    }

    /// Check what no pattern can serve; every pattern begins with it.
    pub(super) fn check(&self, traffic: &Traffic) -> Result<()> {
        traffic.shape.check()?;
        if traffic.count == 0 {
            let text = "0 messages per pair; at least 1 is needed";
            return Err(ScheduleError::Shape(text.into()));
        }
        if traffic.shape.ranks < 2 {
            return Err(self.waive("1 rank has nobody to send to; use 2 ranks or more"));
        }
        // The lists of messages must fit before the schedule can tell whether it does.
        few_enough(traffic.shape.ranks as usize, traffic)
    }

    /// Every rank's messages, except to itself, `count` times.
    pub(super) fn each<I: IntoIterator<Item = Message>>(
        &self,
        traffic: &Traffic,
        of_rank: impl Fn(u32) -> I,
    ) -> Result<Schedule> {
        self.check(traffic)?;
        let messages: Vec<_> = (0..traffic.shape.ranks)
            .flat_map(of_rank)
            .filter(|(from, to)| from != to)
            .collect();
        few_enough(messages.len(), traffic)?;
        traffic.rounds(|| messages.clone())
    }
}

/// Refuse more messages, of this many pairs, than memory holds.
fn few_enough(pairs: usize, traffic: &Traffic) -> Result<()> {
    let ways = 1 + u64::from(traffic.both_ways);
    let (messages, most) = (
        pairs as u64 * u64::from(traffic.count) * ways,
        most_ops() as u64 / 4,
    );
    match messages > most {
        true => Err(ScheduleError::TooLarge(most)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Shape;
    use crate::patterns::find;

    #[test]
    fn messages_are_counted_before_they_are_written() {
        let pattern = find("neighbour").unwrap();
        let mut traffic = Traffic::new(Shape::new(16, 8));
        // As many as allowed if each rank sent one way; it also gets replies.
        traffic.both_ways = true;
        traffic.count = (most_ops() / 4 / 16) as u32;
        assert!(matches!(
            (pattern.build)(&traffic),
            Err(ScheduleError::TooLarge(_))
        ));
    }
}
