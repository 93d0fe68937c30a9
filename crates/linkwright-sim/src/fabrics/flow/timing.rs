//! How long the messages of a route take, apart from waiting for other messages.

use super::job::time;
use super::phases::{coalesced, serial};
use crate::fabric::MsgKind;
use linkwright_core::TimePs;

/// How long the messages of a route take, whichever links they use; many routes have the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Timing {
    pub hops: u32,
    pub start: TimePs,
    pub notice: TimePs,
    /// From the departure of the last byte to its arrival, without storing in switches.
    pub latency: TimePs,
    /// Rates at which switches on the way forward the packet they store, and how many have each rate.
    pub store_rates: Vec<(u64, u64)>,
    pub packet: u64,
    pub chunk: u64,
    pub inline: u64,
    /// Messages of at least so many bytes start later than others.
    pub long: u64,
    pub long_start: TimePs,
    /// Messages of at least so many bytes go in turn with those that come back.
    pub turns: u64,
    /// How long a message keeps the process busy that sends or receives it.
    pub handling: TimePs,
    /// Smaller messages do not.
    pub handling_from: u64,
    pub passes: usize,
    /// Highest rate of all passes together.
    pub whole: u64,
    /// For several passes: highest rate of passes i..=j together, at i * passes + j.
    pub ceilings: Option<Box<[u64]>>,
}

impl Timing {
    /// Bytes per second of passes `first..=last` together, when no other job is there.
    pub fn ceiling(&self, first: usize, last: usize) -> u64 {
        match &self.ceilings {
            None => self.whole,
            Some(each) => each[first * self.passes + last],
        }
    }

    /// The same for each single pass.
    pub fn each(&self) -> Vec<u64> {
        (0..self.passes).map(|i| self.ceiling(i, i)).collect()
    }

    /// Whether a message is small enough to go at once.
    pub fn is_inline(&self, bytes: u64) -> bool {
        bytes < self.inline
    }

    /// How long a message keeps the process that sends or receives it.
    pub fn handling(&self, bytes: u64) -> TimePs {
        match bytes < self.handling_from.max(1) {
            true => TimePs::ZERO,
            false => self.handling,
        }
    }

    /// Time before the first byte of a transfer moves.
    pub fn lead(&self, bytes: u64) -> TimePs {
        match self.is_inline(bytes) {
            true => (self.start).saturating_sub(time(bytes, self.whole)),
            false if bytes >= self.long => self.long_start,
            false => self.start,
        }
    }

    /// The least that [`Timing::lead`] can be.
    pub fn least_lead(&self) -> TimePs {
        let shortest = self.start.min(self.long_start);
        shortest.saturating_sub(time(self.inline, self.whole))
    }

    /// The same for a message of any kind.
    pub fn ahead(&self, kind: MsgKind, bytes: u64) -> TimePs {
        match kind {
            MsgKind::Notice => self.notice,
            MsgKind::Get => self.latency + self.lead(bytes),
            _ => self.lead(bytes),
        }
    }

    /// Time between the last byte leaving and its arrival.
    pub fn tail(&self, bytes: u64) -> TimePs {
        let stored = self.packet.min(bytes);
        let each = |&(rate, times): &(u64, u64)| time(stored, rate) * times;
        self.latency + self.store_rates.iter().map(each).sum()
    }

    /// Time that `bytes` take between lead and tail, alone on the machine.
    pub fn alone(&self, bytes: u64, each_chunk: bool) -> TimePs {
        if bytes == 0 {
            return TimePs::ZERO;
        }
        if self.is_inline(bytes) || self.passes == 1 && !each_chunk {
            return time(bytes, self.whole);
        }
        if each_chunk {
            return serial(bytes, self.chunk, &self.each());
        }
        (coalesced(bytes, self.chunk, &self.each()).iter())
            .map(|phase| time(phase.bytes, self.ceiling(phase.first, phase.last)))
            .sum()
    }
}
