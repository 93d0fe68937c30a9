//! Round trip of a request and its reply between two processes; [`crate::round_trip`] does the work.
//!
//! A wanted sample is ten trips, so that a launch of 100 samples knows its 99th percentile from 1,000: they
//! are run in blocks of 50, each kept or dropped as a whole. All trips leave as samples; mean and 99th
//! percentile of the launch leave as columns of one value each, so that they have an interval over launches.

use super::probe::{waived, Answer, Probe, Setting};
use crate::error::{ExecError, Result};
use crate::round_trip::{self, Plan, RoundTripError, RoundTrips};
use crate::sampling::Sampling;
use linkwright_core::probes::{Assignment, ROUND_TRIP};

/// Registry entry.
pub static PROBE: Probe = Probe {
    about: &ROUND_TRIP,
    measure,
};

const TRIPS_PER_SAMPLE: usize = 10;
const TRIPS_PER_BLOCK: usize = 50;

fn measure(axes: &Assignment, setting: &Setting) -> Result<Answer> {
    let transport = axes.word("transport");
    let measure = round_trip::find(transport).expect("every word of the axis is a transport");
    let client = setting.cpus[0];
    let trips = setting.sampling.samples.saturating_mul(TRIPS_PER_SAMPLE);
    let plan = Plan {
        request_bytes: axes.number("in_bytes") as usize,
        reply_bytes: axes.number("out_bytes") as usize,
        sampling: Sampling {
            samples: trips.div_ceil(TRIPS_PER_BLOCK),
            ..setting.sampling.clone()
        },
        trips_per_block: TRIPS_PER_BLOCK,
        seed: setting.seed,
        cpus: [client, *setting.cpus.get(1).unwrap_or(&client)],
        cancelled: setting.cancelled,
    };
    match measure(&plan) {
        Ok(trips) => Ok(answer(
            trips,
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

fn answer(trips: RoundTrips, bytes: f64) -> Answer {
    let mut samples = trips.samples;
    // A tenth of a nanosecond is less than the clock resolves.
    (samples.values_ns.iter_mut()).for_each(|ns| *ns = (*ns * 10.0).round() / 10.0);
    let columns = match mean_and_p99(&samples.values_ns) {
        Some((mean, p99)) => vec![
            ("round_trip_mean", vec![mean]),
            ("round_trip_p99", vec![p99]),
        ],
        None => Vec::new(),
    };
    let shared = trips.oversubscribed.then(|| {
        "client and server share one processor, so each waits for the other to be switched out"
            .to_owned()
    });
    Answer {
        samples,
        counted_bytes: bytes,
        moved_bytes: bytes,
        columns,
        notes: trips.unpinned.into_iter().chain(shared).collect(),
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
        let keys: Vec<_> = round_trip::REGISTRY.iter().map(|(key, _)| *key).collect();
        assert_eq!(words, keys);
    }

    #[test]
    fn a_launch_gives_trips_and_their_mean_and_tail() {
        let axes = Assignment::parse(&ROUND_TRIP, &[("out_bytes", "1K")]).unwrap();
        let setting = Setting {
            sampling: Sampling::of(20, 2, Duration::from_secs(5)),
            ..Setting::of(allowed_cpus())
        };
        let answer = measure(&axes, &setting).unwrap();
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
