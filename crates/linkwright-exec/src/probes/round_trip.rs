//! Round trip of a request and its reply between two processes; [`crate::round_trip`] does the work.
//!
//! A wanted sample is ten trips, so that a launch of 100 samples knows its 99th percentile from 1,000: they
//! are run in blocks of 50, each kept or dropped as a whole. All trips leave as samples; mean and 99th
//! percentile of the launch leave as columns of one value each, so that they have an interval over launches.

use super::{waived, Answer, Probe, Setting};
use crate::error::{ExecError, Result};
use crate::round_trip::{self, Found, Plan, RoundTripError};
use crate::sampling::Samples;
use linkwright_core::probes::{Assignment, ROUND_TRIP};

/// Registry entry.
pub static PROBE: Probe = Probe {
    about: &ROUND_TRIP,
    measure,
};

const TRIPS_PER_SAMPLE: usize = 10;
const TRIPS_PER_BLOCK: usize = 50;

fn measure(asked: &Assignment, setting: &Setting) -> Result<Answer> {
    let transport = asked.word("transport");
    let entry = round_trip::find(transport).expect("every word of the axis is a transport");
    let cpus =
        (setting.cpus.first()).map(|&client| [client, *setting.cpus.get(1).unwrap_or(&client)]);
    let plan = Plan {
        request_bytes: asked.number("in_bytes") as usize,
        reply_bytes: asked.number("out_bytes") as usize,
        blocks: setting
            .samples
            .saturating_mul(TRIPS_PER_SAMPLE)
            .div_ceil(TRIPS_PER_BLOCK),
        trips_per_block: TRIPS_PER_BLOCK,
        warmup_at_most: setting.warmup_at_most,
        time_budget: setting.budget,
        check: true,
        seed: setting.seed,
        cpus,
        cancelled: setting.cancelled,
    };
    match (entry.measure)(&plan) {
        Ok(found) => Ok(answer(
            found,
            (plan.request_bytes + plan.reply_bytes) as f64,
        )),
        Err(error @ RoundTripError::Forbidden { .. }) => Err(waived(
            &ROUND_TRIP,
            format!("transport {transport}: {error}"),
        )),
        Err(error) => Err(ExecError::RoundTrip {
            transport,
            reason: error.to_string(),
        }),
    }
}

fn answer(found: Found, bytes: f64) -> Answer {
    // A tenth of a nanosecond is less than the clock resolves.
    let values_ns: Vec<f64> = (found.trips_ns.iter())
        .map(|ns| (ns * 10.0).round() / 10.0)
        .collect();
    let columns = match mean_and_p99(&values_ns) {
        Some((mean, p99)) => vec![
            ("round_trip_mean", vec![mean]),
            ("round_trip_p99", vec![p99]),
        ],
        None => Vec::new(),
    };
    let shared = found.oversubscribed.then(|| {
        "client and server share one processor, so each waits for the other to be switched out"
            .to_owned()
    });
    Answer {
        samples: Samples {
            first_ns: found.first_ns,
            values_ns,
            batch: 1,
            warmup_batches: found.warmup_blocks,
            warmed_up: found.warmed_up,
            drops: found.drops,
        },
        counted_bytes: bytes,
        moved_bytes: bytes,
        columns,
        notes: found.unpinned.into_iter().chain(shared).collect(),
        ..Answer::default()
    }
}

/// Mean, and the smallest value that 99 % of all do not exceed.
fn mean_and_p99(values: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = (0.99 * sorted.len() as f64).ceil() as usize;
    let p99 = *sorted.get(rank.checked_sub(1)?)?;
    Some((values.iter().sum::<f64>() / values.len() as f64, p99))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::allowed_cpus;
    use linkwright_core::probes::AxisKind;
    use std::time::Duration;

    #[test]
    fn the_axis_and_the_registry_name_the_same_transports() {
        let AxisKind::Word(words) = ROUND_TRIP.axis("transport").unwrap().kind else {
            panic!("a closed list")
        };
        let keys: Vec<_> = round_trip::REGISTRY.iter().map(|entry| entry.key).collect();
        assert_eq!(words, keys);
    }

    #[test]
    fn a_launch_gives_trips_and_their_mean_and_tail() {
        let asked = Assignment::parse(&ROUND_TRIP, &[("out_bytes", "1K")]).unwrap();
        let setting = Setting {
            samples: 20,
            warmup_at_most: 2,
            budget: Duration::from_secs(5),
            ..Setting::of(allowed_cpus())
        };
        let answer = measure(&asked, &setting).unwrap();
        assert_eq!(answer.samples.values_ns.len(), 200);
        assert_eq!(answer.counted_bytes, 1088.0);
        let column = |key| answer.columns.iter().find(|(k, _)| *k == key).unwrap().1[0];
        let longest = answer.samples.values_ns.iter().copied().fold(0.0, f64::max);
        assert!(column("round_trip_mean") > 5.0);
        assert!(column("round_trip_p99") <= longest);
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(mean_and_p99(&values), Some((50.5, 99.0)));
        assert_eq!(mean_and_p99(&[7.0]), Some((7.0, 7.0)));
        assert_eq!(mean_and_p99(&[]), None);
    }
}
