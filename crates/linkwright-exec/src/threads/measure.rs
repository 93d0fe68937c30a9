//! The rules of measurement ([`crate::rounds`]) on threads: rank 0 leads, the others follow.

use super::launch::{Leader, Order, Stopped};
use crate::executor::{Launch, RunOptions};
use crate::rounds::{self, Ranks, Sample};
use crate::sampling::{median, shortest_sample_ns};
use crate::timer::{Clock, Ticks};
use std::time::Instant;

/// Repetitions in a row of which the first and the last are reported, and how often that is done.
const ROW: u32 = 5;
const ROWS: usize = 21;
/// Share of the launch's time that rows may take.
const ROWS_SHARE: u32 = 20;

/// Measures; the caller decided `back_to_back` and `oversubscribed`, and how many messages are `watched`.
pub(super) fn measure(
    leader: &mut Leader,
    options: &RunOptions,
    back_to_back: bool,
    oversubscribed: bool,
    watched: usize,
) -> Result<Launch, Stopped> {
    let begun = Instant::now();
    let mut led = Led {
        leader,
        begun,
        watched,
    };
    let mut launch = rounds::measure(&mut led, options, back_to_back, oversubscribed)?;
    if back_to_back {
        launch.row_ns = row(led.leader, options)?;
    }
    Ok(launch)
}

/// All ranks, through their leader.
struct Led<'a, 'c> {
    leader: &'a mut Leader<'c>,
    begun: Instant,
    watched: usize,
}

impl Led<'_, '_> {
    fn run(&mut self, repetitions: u32, back_to_back: bool) -> Result<(), Stopped> {
        self.leader.round(Order::Run {
            repetitions,
            back_to_back,
        })?;
        Ok(())
    }
}

impl Ranks for Led<'_, '_> {
    type Error = Stopped;

    fn fill(&mut self) -> Result<(), Stopped> {
        Ok(self.leader.round(Order::Fill)?)
    }

    fn sample(&mut self, repetitions: u32, back_to_back: bool) -> Result<Sample, Stopped> {
        self.run(repetitions, back_to_back)?;
        let times: Vec<&[(Ticks, Ticks)]> = self.leader.reports().map(|r| &r.times[..]).collect();
        let per_region = if back_to_back { repetitions } else { 1 };
        Ok(Sample {
            disturbance: self.leader.reports().find_map(|report| report.disturbance),
            elapsed_s: self.begun.elapsed().as_secs_f64(),
            ..summarise(&times, f64::from(per_region))
        })
    }

    fn watched(&self) -> usize {
        self.watched
    }

    fn latencies(&mut self) -> Result<(Vec<f64>, bool), Stopped> {
        self.leader.round(Order::Watch)?;
        let mut reports = self.leader.reports();
        let disturbed = reports.any(|report| report.disturbance.is_some());
        let reports = self.leader.reports();
        let latencies = reports.flat_map(|report| report.latencies_ns.iter().copied());
        Ok((latencies.collect(), disturbed))
    }

    /// Every set of buffers in use is filled, run on and compared.
    fn check(&mut self, back_to_back: bool) -> Result<u64, Stopped> {
        self.fill()?;
        self.run(if back_to_back { 2 } else { 1 }, back_to_back)?;
        self.leader.round(Order::Check)?;
        let mut elements = 0;
        for report in self.leader.reports() {
            elements += report.checked.clone().expect("every rank checked")?;
        }
        Ok(elements)
    }
}

/// The first and the last of a few repetitions in a row, medians over undisturbed rows.
///
/// Ranks leave a collective at different times, so the next one begins skewed: the last of a row shows
/// what a program sees that calls it again and again. One repetition is timed by itself, so those too
/// short for the clock have none.
fn row(leader: &mut Leader, options: &RunOptions) -> Result<Option<(f64, f64)>, Stopped> {
    let clock = Clock::get();
    let end = Instant::now() + options.sampling.time_budget / ROWS_SHARE;
    let (mut first, mut last) = (Vec::new(), Vec::new());
    while first.len() < ROWS && (first.is_empty() || Instant::now() < end) {
        leader.round(Order::Row(ROW))?;
        if leader.reports().any(|report| report.disturbance.is_some()) {
            if Instant::now() >= end {
                break;
            }
            continue;
        }
        let slowest = |region: usize| {
            let ticks = leader.reports().map(|report| report.times[region]);
            let times = ticks.map(|(start, finish)| clock.ns_between(start, finish));
            (times.fold(0.0, f64::max) - clock.overhead_ns()).max(0.0)
        };
        first.push(slowest(0));
        last.push(slowest(ROW as usize - 1));
    }
    let both = median(&mut first).zip(median(&mut last));
    Ok(both.filter(|(first, last)| first.min(*last) >= shortest_sample_ns(clock)))
}

/// Means over the timed regions of a sample; each region holds `per_region` repetitions.
fn summarise(times: &[&[(Ticks, Ticks)]], per_region: f64) -> Sample {
    let clock = Clock::get();
    let (ranks, regions) = (times.len(), times[0].len());
    let mut sample = Sample {
        slowest_ns: 0.0,
        start_ns: vec![0.0; ranks],
        finish_ns: vec![0.0; ranks],
        disturbance: None,
        elapsed_s: 0.0,
    };
    for region in 0..regions {
        let first = times.iter().map(|rank| rank[region].0).min();
        let first = first.expect("at least one rank");
        let mut slowest = 0.0f64;
        for (rank, times) in times.iter().enumerate() {
            let (start, finish) = times[region];
            let whole = clock.ns_between(start, finish) - clock.overhead_ns();
            let one = whole.max(0.0) / per_region;
            let started = clock.ns_between(first, start);
            slowest = slowest.max(one);
            sample.start_ns[rank] += started / regions as f64;
            sample.finish_ns[rank] += (started + one) / regions as f64;
        }
        sample.slowest_ns += slowest / regions as f64;
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_rank_counts_and_starts_are_relative_to_the_first() {
        let clock = Clock::get();
        let at = |us: f64| (1u64 << 40) + clock.ticks_in(us * 1e3);
        let region = |start: f64, finish: f64| (Ticks(at(start)), Ticks(at(finish)));
        let (one, two) = ([region(0.0, 100.0)], [region(30.0, 90.0)]);
        let sample = summarise(&[&one, &two], 1.0);
        let near = |value: f64, us: f64| (value / 1e3 - us).abs() < 0.2;
        assert!(near(sample.slowest_ns, 100.0), "{}", sample.slowest_ns);
        assert!(near(sample.start_ns[1], 30.0));
        assert!(near(sample.finish_ns[1], 90.0));
    }
}
