//! When pairs and their links are free, as transfers are issued one after another.
//!
//! ```text
//!   issue    once fewer than `window` transfers of the lane are on their way, and the pair and its links are free when
//!            the first byte moves; with serial starts, behind the last start of its sender
//!   arrival  issue + start + bytes / rate + latency
//!   link     busy for bytes / capacity from the first byte on
//! ```

use super::wires::{time_ps, Wires};
use std::collections::VecDeque;

/// The state of all pairs and links.
pub(super) struct Clock<'a> {
    wires: &'a Wires,
    bytes: u64,
    window: usize,
    /// By pair, when its last transfer has left.
    pair_free: Vec<u64>,
    link_free: Vec<u64>,
    /// Lane of each pair, over all ranks.
    lane: Vec<u32>,
    /// By lane, when those of its transfers arrive that may be on their way.
    coming: Vec<VecDeque<u64>>,
    /// By rank, when its last transfer has started; `None` where starts may be concurrent.
    starter: Option<Vec<u64>>,
}

impl<'a> Clock<'a> {
    /// Transfers of `bytes`, of each pair up to `window` at once.
    pub fn new(wires: &'a Wires, bytes: u64, window: u32) -> Self {
        Clock::of_lanes(
            (wires, bytes, window),
            (0..).take(wires.pairs().len()).collect(),
            false,
        )
    }

    /// Transfers of `bytes`, of each lane up to `window` at once.
    pub fn of_lanes(
        (wires, bytes, window): (&'a Wires, u64, u32),
        lane: Vec<u32>,
        serial: bool,
    ) -> Self {
        let lanes = lane.iter().max().map_or(0, |&last| last as usize + 1);
        Clock {
            wires,
            bytes,
            window: window.max(1) as usize,
            pair_free: vec![0; wires.pairs().len()],
            link_free: vec![0; wires.capacity().len()],
            coming: vec![VecDeque::new(); lanes],
            lane,
            starter: serial.then(|| vec![0; wires.endpoints() as usize]),
        }
    }

    /// The earliest time at which `pair` may issue a transfer, in picoseconds.
    pub fn free(&self, pair: u32) -> u64 {
        let described = self.wires.pair(pair);
        let uses = described.uses.iter();
        let links = uses.map(|&(link, _)| self.link_free[link as usize]);
        let moves = links.fold(self.pair_free[pair as usize], u64::max);
        let coming = &self.coming[self.lane[pair as usize] as usize];
        let place = match coming.len() < self.window {
            true => 0,
            false => coming[0],
        };
        let starts = self.starter.as_ref();
        let started = starts.map_or(0, |free| free[self.wires.initiator(pair) as usize]);
        moves
            .saturating_sub(described.start_ps)
            .max(place)
            .max(started)
    }

    /// Issue a transfer over `pair`; gives when it arrives.
    pub fn issue(&mut self, pair: u32, now: u64) -> u64 {
        let described = self.wires.pair(pair);
        let moves = now + described.start_ps;
        self.pair_free[pair as usize] = moves + described.moving_ps(self.bytes);
        for &(link, weight) in &described.uses {
            let capacity = self.wires.capacity()[link as usize];
            let busy = time_ps(self.bytes * u64::from(weight), capacity);
            self.link_free[link as usize] = moves + busy;
        }
        let arrival = now + described.time_ps(self.bytes);
        if let Some(starter) = &mut self.starter {
            starter[self.wires.initiator(pair) as usize] = moves;
        }
        let coming = &mut self.coming[self.lane[pair as usize] as usize];
        if coming.len() == self.window {
            coming.pop_front();
        }
        coming.push_back(arrival);
        arrival
    }
}
