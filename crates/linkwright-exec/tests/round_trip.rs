//! Every transport carries every byte, gives plausible times and leaves no process behind.

use linkwright_exec::round_trip::{find, Plan, RoundTripError, RoundTrips, REGISTRY};
use linkwright_exec::sampling::Sampling;
use linkwright_exec::topology::allowed_cpus;
use std::time::Duration;

fn small(request_bytes: usize, reply_bytes: usize) -> Plan<'static> {
    let cpus = allowed_cpus();
    Plan {
        request_bytes,
        reply_bytes,
        sampling: Sampling {
            samples: 3,
            warmup_at_most: 3,
            ..Sampling::default()
        },
        trips_per_block: 10,
        seed: 0,
        cpus: [cpus[0], *cpus.last().unwrap()],
        cancelled: None,
    }
}

/// `None` where the system forbids the transport, with the reason on the test's output.
fn measured(key: &str, plan: &Plan) -> Option<RoundTrips> {
    match find(key).unwrap()(plan) {
        Ok(trips) => Some(trips),
        Err(RoundTripError::Forbidden { error, hint }) => {
            eprintln!("{key} skipped: {error}{hint}");
            None
        }
        Err(error) => panic!("{key}: {error}"),
    }
}

#[test]
fn every_transport_carries_all_bytes_both_ways() {
    for (key, _) in REGISTRY {
        for (request, reply) in [(64, 64), (64, 16 << 10), (16 << 10, 64), (8, 8 * 127)] {
            let Some(trips) = measured(key, &small(request, reply)) else {
                continue;
            };
            let words = ((request + reply) / 8) as u64;
            assert_eq!(trips.checked_words, 2 * 3 * words, "{}", key);
            assert!(trips.samples.first_ns > 0.0);
            assert_eq!(trips.samples.values_ns.len() % trips.trips_per_block, 0);
            // Two messages between two cores take more than a few cycles.
            assert!(
                trips.samples.values_ns.iter().all(|&ns| ns > 5.0),
                "{}",
                key
            );
        }
    }
}

#[test]
fn the_budget_ends_a_measurement() {
    let plan = Plan {
        sampling: Sampling {
            samples: usize::MAX,
            time_budget: Duration::from_millis(20),
            ..Sampling::default()
        },
        ..small(64, 64)
    };
    let trips = measured("pipe", &plan).unwrap();
    assert!(trips.out_of_time);
}

#[test]
fn one_processor_is_enough_and_is_told() {
    let cpu = allowed_cpus()[0];
    let plan = Plan {
        cpus: [cpu, cpu],
        ..small(64, 64)
    };
    for key in ["in_place", "unix_socket"] {
        assert!(measured(key, &plan).unwrap().oversubscribed);
    }
}

#[test]
fn the_callers_processors_stay_as_they_are() {
    let before = allowed_cpus();
    measured("user_buffers", &small(64, 64));
    assert_eq!(allowed_cpus(), before);
}

#[test]
fn sizes_are_whole_words_within_bounds() {
    for (request, reply) in [(0, 64), (64, 12), (2 << 20, 64)] {
        let refused = find("pipe").unwrap()(&small(request, reply)).unwrap_err();
        assert!(refused.to_string().contains("multiples of 8"), "{refused}");
    }
}
