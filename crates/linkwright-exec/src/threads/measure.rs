//! What rank 0 decides between rounds: the rules of measurement, applied to ranks that run together.
//!
//! ```text
//!   fill, first repetition (kept apart), check
//!   estimate -> batch; warm-up until medians agree
//!   samples, each guarded; dropped ones are counted and repeated
//!   fill, repetition, check
//! ```
//!
//! Data are not refilled between samples, so in-place reductions keep growing (integers wrap, floats
//! end at infinity); the time of an addition does not depend on it, and what is checked is freshly
//! filled, before and after.

use super::launch::{Leader, Order, Stopped};
use crate::error::Result;
use crate::executor::{Launch, RunOptions};
use crate::guard::Drops;
use crate::sampling::{batch_size, median, WarmUp};
use crate::timer::{Clock, Ticks};
use std::time::Instant;

/// Repetitions in a row of which the first and the last are told apart, and how often that is done.
const ROW: u32 = 5;
const ROWS: usize = 21;
/// Share of the launch's time that rows may take.
const ROWS_SHARE: u32 = 20;

/// Most repetitions of a sample with a barrier before each: beyond, more samples tell more.
const MOST_APART: u32 = 1_000;

/// One sample of all ranks, per repetition.
struct Sample {
    slowest_ns: f64,
    start_ns: Vec<f64>,
    finish_ns: Vec<f64>,
}

/// Measures; `back_to_back` and `oversubscribed` were decided by the caller.
pub(super) fn measure(
    leader: &mut Leader,
    options: &RunOptions,
    back_to_back: bool,
    oversubscribed: bool,
) -> Result<Launch, Stopped> {
    let end = Instant::now() + options.time_budget;
    let mut launch = Launch {
        back_to_back,
        oversubscribed,
        ..Launch::default()
    };
    leader.round(Order::Fill)?;
    launch.first_ns = repeat(leader, 1, false)?.slowest_ns;
    if options.check {
        // The sets that the first repetition did not use still hold their initial state.
        run_all_sets(leader, back_to_back)?;
        launch.checked_elements = check(leader)?;
    }
    launch.batch = match options.batch {
        Some(batch) => batch.max(1),
        None => choose_batch(leader, back_to_back)?,
    };
    warm_up(leader, options, end, &mut launch)?;
    sample(leader, options, end, &mut launch)?;
    if back_to_back {
        launch.row_ns = row(leader, options)?;
    }
    if options.check {
        run_all_sets(leader, back_to_back)?;
        launch.checked_elements += check(leader)?;
    }
    Ok(launch)
}

/// Fills, and runs the schedule once on every set of buffers in use.
fn run_all_sets(leader: &mut Leader, back_to_back: bool) -> Result<(), Stopped> {
    leader.round(Order::Fill)?;
    leader.round(Order::Run {
        repetitions: if back_to_back { 2 } else { 1 },
        back_to_back,
    })?;
    Ok(())
}

fn check(leader: &mut Leader) -> Result<u64, Stopped> {
    leader.round(Order::Check)?;
    let mut elements = 0;
    for report in leader.reports() {
        elements += report.checked.clone().expect("every rank checked")?;
    }
    Ok(elements)
}

fn choose_batch(leader: &mut Leader, back_to_back: bool) -> Result<u32, Stopped> {
    let clock = Clock::get();
    let most = if back_to_back { u32::MAX } else { MOST_APART };
    let cold = repeat(leader, 3, back_to_back)?.slowest_ns;
    let guess = batch_size(cold, clock).min(most);
    let warm = repeat(leader, guess, back_to_back)?.slowest_ns;
    Ok(batch_size(warm, clock).min(most))
}

fn warm_up(
    leader: &mut Leader,
    options: &RunOptions,
    end: Instant,
    launch: &mut Launch,
) -> Result<(), Stopped> {
    let mut warm_up = WarmUp::new(options.warmup_at_most);
    // Half of the budget at most: a machine that never settles is measured all the same.
    let end = end - options.time_budget / 2;
    while warm_up.batches() < options.warmup_at_most && Instant::now() < end {
        let mut few = Vec::with_capacity(3);
        for _ in 0..3 {
            few.push(repeat(leader, launch.batch, launch.back_to_back)?.slowest_ns);
        }
        if warm_up.push(median(&mut few).expect("three values")) {
            break;
        }
    }
    launch.warmup_batches = warm_up.batches();
    launch.warmed_up = warm_up.agreed();
    Ok(())
}

fn sample(
    leader: &mut Leader,
    options: &RunOptions,
    end: Instant,
    launch: &mut Launch,
) -> Result<(), Stopped> {
    let mut drops = Drops::default();
    loop {
        let sample = repeat(leader, launch.batch, launch.back_to_back)?;
        let disturbance = leader.reports().find_map(|report| report.disturbance);
        // Ranks that share a core preempt each other by design.
        match disturbance.filter(|_| !launch.oversubscribed) {
            None => {
                launch.slowest_ns.push(sample.slowest_ns);
                launch.start_ns.extend(sample.start_ns);
                launch.finish_ns.extend(sample.finish_ns);
            }
            Some(reason) => {
                drops.count(reason);
                launch.disturbed_ns.push(sample.slowest_ns);
            }
        }
        if launch.slowest_ns.len() >= options.samples || options.settled(&launch.slowest_ns) {
            break;
        }
        if Instant::now() >= end {
            launch.out_of_time = true;
            break;
        }
    }
    launch.drops = drops;
    Ok(())
}

/// The first and the last of a few repetitions in a row, medians over undisturbed rows.
///
/// Ranks leave a collective at different times, so the next one begins skewed: the last of a row shows
/// what a program sees that calls it again and again. One repetition is timed by itself, so those too
/// short for the clock have none.
fn row(leader: &mut Leader, options: &RunOptions) -> Result<Option<(f64, f64)>, Stopped> {
    let clock = Clock::get();
    let end = Instant::now() + options.time_budget / ROWS_SHARE;
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
    let shortest = (100.0 * clock.resolution_ns()).max(50.0 * clock.overhead_ns());
    let both = median(&mut first).zip(median(&mut last));
    Ok(both.filter(|(first, last)| first.min(*last) >= shortest))
}

fn repeat(leader: &mut Leader, repetitions: u32, back_to_back: bool) -> Result<Sample, Stopped> {
    leader.round(Order::Run {
        repetitions,
        back_to_back,
    })?;
    let times: Vec<&[(Ticks, Ticks)]> = leader.reports().map(|r| &r.times[..]).collect();
    let per_region = if back_to_back { repetitions } else { 1 };
    Ok(summarise(&times, f64::from(per_region)))
}

/// Means over the timed regions of a sample; each region holds `per_region` repetitions.
fn summarise(times: &[&[(Ticks, Ticks)]], per_region: f64) -> Sample {
    let clock = Clock::get();
    let (ranks, regions) = (times.len(), times[0].len());
    let mut sample = Sample {
        slowest_ns: 0.0,
        start_ns: vec![0.0; ranks],
        finish_ns: vec![0.0; ranks],
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
