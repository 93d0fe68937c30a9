//! Noise: random delays of a launch, as `[noise]` of the machine file has them.
//!
//! U is uniform on [0, 1), drawn anew for each cause and operation; P is `interrupt_every` and L `interrupt`.
//!
//! ```text
//! a message leaves    U * start_up + U * rate * (its time on an idle fabric - that of an empty one)   later
//! a completion and
//! an arrival are seen U * poll                                                                        later
//! work of a rank      begins and goes on outside interrupts; the k-th lasts from k P + U (P - L) for L
//! ```
//!
//! A chain of k start-ups is therefore k start_up / 2 longer in the mean, with variance k start_up^2 / 12. Work that
//! lasts many P takes P / (P - L) times as long. All of it delays, so no time falls below its limit. With random
//! arbitration, messages that leave at one instant are offered to the fabric in random order; otherwise in the order of
//! operations, which the same ones win every time.
//!
//! A draw depends on the seed, its cause and its operation alone, never on what was drawn before: the same seed gives
//! the same bytes on any number of threads, and a schedule with one more operation keeps the draws of all others.
//!
//! Not modelled: delays that many ranks have in common (a slow clock, a job next door), and delays inside the network.

use crate::fabric::{Fabric, Msg};
use linkwright_core::machine::Noise;
use linkwright_core::random::Random;

/// What is drawn for: the seen completion and the seen arrival of an operation.
pub(crate) const COMPLETION: u64 = 1;
pub(crate) const ARRIVAL: u64 = 2;
const START_UP: u64 = 3;
const RATE: u64 = 4;
const INTERRUPT: u64 = 5;
const ORDER: u64 = 6;

/// Time of data beyond which they are late by no more, some twenty minutes: sums stay within 64 bits.
const MOST_DATA: u64 = 1 << 50;

/// The draws of one launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    noise: Noise,
    seed: u64,
}

impl Draws {
    pub fn new(noise: Noise, seed: u64) -> Self {
        let seed = Random::new(seed).bits();
        Draws { noise, seed }
    }

    fn stream(&self, cause: u64, of: u64) -> Random {
        Random::new(self.seed ^ Random::new(cause << 61 ^ of).bits())
    }

    /// A whole number of picoseconds from 0 to `most`.
    fn up_to(&self, most: u64, cause: u64, of: u64) -> u64 {
        match most {
            0 => 0,
            _ => self.stream(cause, of).below(most + 1),
        }
    }

    /// How much later `message` leaves.
    pub fn sending<F: Fabric + ?Sized>(&self, message: &Msg, fabric: &F) -> u64 {
        let id = u64::from(message.op);
        let start_up = self.up_to(self.noise.start_up.0, START_UP, id);
        if self.noise.rate == 0.0 || message.bytes == 0 {
            return start_up;
        }
        let empty = Msg {
            bytes: 0,
            ..*message
        };
        let data = (fabric.quiet(message).0).saturating_sub(fabric.quiet(&empty).0);
        let most = data.min(MOST_DATA) as f64 * self.noise.rate;
        start_up + self.up_to(most as u64, RATE, id)
    }

    /// How much later than it happened `event` of operation `id` is seen.
    pub fn poll(&self, event: u64, id: u32) -> u64 {
        self.up_to(self.noise.poll.0, event, u64::from(id))
    }

    /// When `rank` has done work of `duration` that it begins at `from`.
    pub fn worked(&self, rank: u32, from: u64, duration: u64) -> u64 {
        let (every, length) = (self.noise.interrupt_every.0, self.noise.interrupt.0);
        if every == 0 {
            return from + duration;
        }
        let (mut at, mut left) = (from, duration);
        loop {
            let interval = at / every;
            let next = (interval + 1) * every;
            let random = self.up_to(every - length, INTERRUPT, u64::from(rank) << 40 ^ interval);
            let interrupt = next - every + random;
            if at < interrupt {
                if left <= interrupt - at {
                    return at + left;
                }
                left -= interrupt - at;
            }
            at = at.max(interrupt + length);
            if left <= next - at {
                return at + left;
            }
            left -= next - at;
            // Whole intervals have room for the same work, whenever their interrupts come.
            let whole = (left / (every - length)).saturating_sub(1);
            (at, left) = (next + whole * every, left - whole * (every - length));
        }
    }

    /// Put messages that leave at `now` into another order, if arbitration is random.
    pub fn shuffle(&self, now: u64, released: &mut [u32]) {
        if self.noise.shuffled && released.len() > 1 {
            let mut random = self.stream(ORDER, now);
            for last in (1..released.len()).rev() {
                released.swap(last, random.below(last as u64 + 1) as usize);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkwright_core::TimePs;
    use proptest::prelude::*;

    fn interrupts(every: u64, length: u64, seed: u64) -> Draws {
        let noise = Noise {
            interrupt_every: TimePs(every),
            interrupt: TimePs(length),
            ..Noise::default()
        };
        Draws::new(noise, seed)
    }

    proptest! {
        #[test]
        fn work_takes_what_it_needs_and_a_few_interrupts(
            from in 0u64..5000, work in 0u64..50_000, length in 1u64..50, seed: u64,
        ) {
            let draws = interrupts(100, length, seed);
            let took = draws.worked(3, from, work) - from;
            // A stretch of n intervals touches at most n + 2 interrupts.
            let most = work + length * (took / 100 + 2);
            prop_assert!((work..=most).contains(&took), "{took} for {work}");
            // In one piece as in two, and later if begun later.
            let half = draws.worked(3, from, work / 2);
            prop_assert_eq!(draws.worked(3, half, work - work / 2), from + took);
            prop_assert!(draws.worked(3, from + 1, work) >= from + took);
        }
    }

    #[test]
    fn long_work_slows_down_by_the_share_of_interrupts() {
        // 1000 intervals of 100 with 20 each are lost: 100,000 take 125,000, give or take the two at the ends.
        let took = interrupts(100, 20, 7).worked(0, 0, 100_000);
        assert!(took.abs_diff(125_000) <= 40, "{took}");
        assert_eq!(interrupts(0, 0, 7).worked(0, 5, 10), 15);
    }
}
