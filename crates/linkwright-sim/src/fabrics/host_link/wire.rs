//! A server that handles one transfer at a time: a direction of the link, a DMA engine, a copier.

use linkwright_core::{Bytes, BytesPerSec, TimePs};
use std::collections::VecDeque;

/// First come, first served; back-to-back work is timed from its common beginning, so that rounding
/// does not add up.
#[derive(Clone, Debug, Default)]
pub(super) struct Wire {
    /// When the present unbroken run of work began, and its bytes.
    since: TimePs,
    bytes: u64,
    /// When the wire is free again.
    free: TimePs,
    /// Ends of the transfers that hold or want the wire.
    ends: VecDeque<TimePs>,
}

impl Wire {
    /// Serve `bytes` at `rate`, offered at `now`; returns beginning and end.
    pub fn serve(&mut self, now: TimePs, bytes: u64, rate: BytesPerSec) -> (TimePs, TimePs) {
        if now > self.free {
            (self.since, self.bytes) = (now, 0);
        }
        let start = self.free.max(now);
        self.bytes += bytes;
        self.free = self.since + rate.time(Bytes(self.bytes));
        self.enter(now);
        (start, self.free)
    }

    /// Serve a transfer that takes `length`; returns beginning and end.
    pub fn hold(&mut self, now: TimePs, length: TimePs) -> (TimePs, TimePs) {
        let start = self.free.max(now);
        self.free = start + length;
        (self.since, self.bytes) = (self.free, 0);
        self.enter(now);
        (start, self.free)
    }

    fn enter(&mut self, now: TimePs) {
        while self.ends.front().is_some_and(|&end| end <= now) {
            self.ends.pop_front();
        }
        self.ends.push_back(self.free);
    }

    /// Transfers that hold or want it.
    pub fn load(&self) -> u32 {
        self.ends.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_does_not_add_up() {
        // 3 B/ps: a byte takes a third of a picosecond.
        let (mut wire, rate) = (Wire::default(), BytesPerSec(3e12));
        let ends: Vec<u64> = (0..6)
            .map(|_| wire.serve(TimePs(0), 1, rate).1 .0)
            .collect();
        assert_eq!(ends, [0, 0, 1, 1, 1, 2]);
        // After a pause it begins anew.
        assert_eq!(wire.serve(TimePs(10), 3, rate), (TimePs(10), TimePs(11)));
        assert_eq!(wire.hold(TimePs(10), TimePs(5)), (TimePs(11), TimePs(16)));
        assert_eq!(wire.serve(TimePs(0), 3, rate), (TimePs(16), TimePs(17)));
    }
}
