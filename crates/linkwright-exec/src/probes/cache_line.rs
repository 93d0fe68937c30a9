//! One cache line from one core to another, three ways.
//!
//! ```text
//!   compare_and_swap  line: 0 -first-> 1 -second-> 2 -first-> 3 ...       both want the line exclusively
//!   read_write        first writes n into line A, second sees it and writes n into line B
//!   one_way           first writes the time into A; second reads A and the clock: the difference
//! ```
//!
//! The first is the leader, on the first processor; the second is a helper on the next. Lines lie on a page
//! of their own that one of the two touches first. The time is half a round trip, or the difference. A
//! difference means something only if both cores read one clock, so a negative one waives the probe.

use super::memory::{Mapped, Pages};
use super::probe::{waived, Answer, Floor, Probe, Setting};
use super::workers::Workers;
use crate::error::Result;
use crate::guard::Guard;
use crate::timer::{Clock, Ticks};
use linkwright_core::probes::{Assignment, CACHE_LINE};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

/// Registry entry.
pub static PROBE: Probe = Probe {
    about: &CACHE_LINE,
    measure,
};

/// Lines apart by more than a prefetcher fetches at once.
const APART: usize = 512;

/// How a line is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handover {
    CompareAndSwap,
    ReadWrite,
    OneWay,
}

/// Three lines on a page of their own: there, back, and the sum of differences.
#[derive(Clone, Copy)]
pub(super) struct Lines<'m>(&'m [AtomicU64]);

/// The lines on a page; the probe `loaded_latency` uses them too.
pub(super) fn lines(page: &Mapped) -> Lines<'_> {
    // SAFETY: a page of zeros, which are valid numbers, shared by reference only.
    Lines(unsafe { std::slice::from_raw_parts(page.base().cast::<AtomicU64>(), 512) })
}

fn measure(axes: &Assignment, setting: &Setting) -> Result<Answer> {
    let handover = Handover::of(axes.word("how"));
    if let Some(reason) = handover.impossible(setting) {
        return Err(waived(&CACHE_LINE, reason));
    }
    let first_touches = axes.word("touched_by") == "first";
    // The core that touches first maps the page; the other waits for it.
    let page = OnceLock::new();
    let map = || -> Result<()> {
        let memory = Mapped::new(&CACHE_LINE, 4096, Pages::Base)?;
        page.set(memory).expect("only one of the two maps it");
        Ok(())
    };
    let partner = |_: usize, workers: &Workers| {
        if !first_touches {
            map()?;
        }
        workers.enter();
        workers.wait_until(|| page.get().is_some());
        if let Some(page) = page.get() {
            lines(page).follow(handover, workers);
        }
        Ok(())
    };
    Workers::launch(setting, 1, partner, |workers| {
        if first_touches {
            map()?;
        }
        let lines = lines(page.get().expect("mapped by one of the two"));
        match handover {
            Handover::OneWay => one_way(lines, workers, setting),
            Handover::CompareAndSwap | Handover::ReadWrite => {
                Ok(half_round_trip(lines, handover, workers, setting))
            }
        }
    })
}

impl Handover {
    fn of(word: &str) -> Handover {
        match word {
            "compare_and_swap" => Handover::CompareAndSwap,
            "read_write" => Handover::ReadWrite,
            _ => Handover::OneWay,
        }
    }

    /// Why this machine cannot answer, if so.
    fn impossible(self, setting: &Setting) -> Option<&'static str> {
        if setting.cpus.len() < 2 {
            Some("a pair needs two processors and there is one")
        } else if self == Handover::OneWay && Clock::get().source() != "tsc" {
            Some("one way needs a clock that all cores share, the time-stamp counter")
        } else {
            None
        }
    }
}

fn half_round_trip(
    lines: Lines,
    handover: Handover,
    workers: &Workers,
    setting: &Setting,
) -> Answer {
    let floor = Floor::cycle();
    let mut samples = workers.sample(setting, |n| {
        lines.lead(handover, n, workers);
        None
    });
    samples.per(2.0);
    Answer {
        samples,
        floor,
        ..Answer::default()
    }
}

/// Each sample is the mean of the differences that the second core saw in it.
fn one_way(lines: Lines, workers: &Workers, setting: &Setting) -> Result<Answer> {
    let clock = Clock::get();
    let (mut differences, mut guard) = (Vec::new(), Guard::of_thread_only());
    let mut samples = workers.sample(setting, |n| {
        let before = lines.at(2).load(Ordering::Acquire);
        guard.open();
        lines.lead(Handover::OneWay, n, workers);
        let disturbed = guard.close();
        let sum = lines.at(2).load(Ordering::Acquire).wrapping_sub(before);
        let mean_ns = clock.ns_between(Ticks(0), Ticks(sum)) / f64::from(n);
        differences.push(disturbed.is_none().then_some(mean_ns));
        disturbed
    });
    // The sampler times round trips; what counts are the differences of its last rounds, the samples.
    let warm_up = differences.len().saturating_sub(samples.taken());
    samples.first_ns = differences[0].unwrap_or(samples.first_ns);
    samples.values_ns = differences
        .split_off(warm_up)
        .into_iter()
        .flatten()
        .collect();
    if samples.values_ns.iter().any(|&ns| ns <= 0.0) {
        let reason = "a line arrived before it was sent: the clocks of the two cores disagree";
        return Err(waived(&CACHE_LINE, reason));
    }
    Ok(Answer {
        samples,
        ..Answer::default()
    })
}

impl Lines<'_> {
    fn at(&self, number: usize) -> &AtomicU64 {
        &self.0[number * APART / 8]
    }

    /// The first core: `n` round trips.
    pub(super) fn swap(&self, n: u32, workers: &Workers) {
        let line = self.at(0);
        // From even to odd: ours; the partner's are from odd to even.
        let mut seen = line.load(Ordering::Relaxed) & !1;
        for _ in 0..n {
            while let Err(now) =
                line.compare_exchange(seen, seen + 1, Ordering::AcqRel, Ordering::Relaxed)
            {
                seen = now & !1;
                if workers.stopped() {
                    return;
                }
            }
            seen += 2;
        }
        // The round trip ends when the partner has answered.
        while line.load(Ordering::Acquire) & 1 == 1 && !workers.stopped() {}
    }

    fn lead(&self, handover: Handover, n: u32, workers: &Workers) {
        if handover == Handover::CompareAndSwap {
            return self.swap(n, workers);
        }
        let clock = Clock::get();
        let (there, back) = (self.at(0), self.at(1));
        let mut turn = back.load(Ordering::Relaxed);
        for _ in 0..n {
            turn += 1;
            let word = if handover == Handover::OneWay {
                clock.now().0
            } else {
                turn
            };
            there.store(word, Ordering::Release);
            while back.load(Ordering::Acquire) != turn {
                if workers.stopped() {
                    return;
                }
            }
        }
    }

    /// The second core, until the end.
    fn follow(&self, handover: Handover, workers: &Workers) {
        match handover {
            Handover::CompareAndSwap => self.swap_back(workers),
            Handover::ReadWrite | Handover::OneWay => self.reply(handover, workers),
        }
    }

    /// From odd to even, until the end.
    pub(super) fn swap_back(&self, workers: &Workers) {
        let line = self.at(0);
        let mut seen = 1;
        while !workers.stopped() {
            match line.compare_exchange(seen, seen + 1, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => seen += 2,
                Err(now) => seen = now | 1,
            }
        }
    }

    fn reply(&self, handover: Handover, workers: &Workers) {
        let clock = Clock::get();
        let (there, back, sum) = (self.at(0), self.at(1), self.at(2));
        let (mut last, mut turn) = (0, 0);
        while !workers.stopped() {
            let word = there.load(Ordering::Acquire);
            if word == last {
                continue;
            }
            if handover == Handover::OneWay {
                let late = clock.now().0.wrapping_sub(word);
                sum.store(
                    sum.load(Ordering::Relaxed).wrapping_add(late),
                    Ordering::Release,
                );
            }
            (last, turn) = (word, turn + 1);
            back.store(turn, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::Sampling;
    use crate::topology::allowed_cpus;
    use std::time::Duration;

    #[test]
    fn every_way_gives_times_or_says_why_not() {
        let cpus = allowed_cpus();
        let setting = Setting {
            sampling: Sampling::of(5, 2, Duration::from_millis(200)),
            ..Setting::of(cpus.clone())
        };
        for how in ["compare_and_swap", "read_write", "one_way"] {
            for touched_by in ["first", "second"] {
                let axes = [("how", how), ("touched_by", touched_by)];
                let axes = Assignment::parse(&CACHE_LINE, &axes).unwrap();
                match measure(&axes, &setting) {
                    Ok(answer) => {
                        let values = answer.samples.values_ns;
                        assert!(values.iter().all(|&ns| ns > 0.0), "{how}: {values:?}");
                    }
                    Err(error) => assert!(cpus.len() < 2 || how == "one_way", "{error}"),
                }
            }
        }
    }
}
