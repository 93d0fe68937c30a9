//! Noise of a machine: what it adds in the mean, that it only delays, and that a seed fixes it.

mod files;

use linkwright_core::Machine;
use linkwright_schedule::builder::Builder;
use linkwright_schedule::collectives::build;
use linkwright_schedule::ir::Schedule;
use linkwright_schedule::{Buffer, Collective, Shape};
use linkwright_sim::placement::Placement;
use linkwright_sim::{ask, lowered, symmetric, How, SimError};
use proptest::prelude::*;

/// The machine of this file with `[noise]` of these keys: (key, value, unit).
fn noisy(file: &str, keys: &[(&str, f64, &str)]) -> Machine {
    let number = |&(key, value, unit): &(&str, f64, &str)| {
        format!("{key} = {{ value = {value:?}, unit = \"{unit}\", status = \"assumed\", source = \"test\" }}\n")
    };
    let table: String = keys.iter().map(number).collect();
    let text = files::text(&format!("python/linkwright/machines/{file}.toml"));
    Machine::parse(&format!("{text}\n[noise]\n{table}"), "noisy.toml").unwrap()
}

/// A message from rank to rank, `links` times.
fn chain(links: u32) -> Schedule {
    let mut b = Builder::new(Collective::Pattern, &Shape::new(links + 1, 1));
    let data = b.buffer(Buffer::vector("data", 1));
    for rank in 0..links {
        b.step();
        b.put(rank, data.at(0), rank + 1, data.at(0));
    }
    b.finish().unwrap()
}

fn launch(noise: bool, seed: u64) -> How {
    How {
        noise,
        seed,
        ..How::default()
    }
}

fn time(machine: &Machine, schedule: &Schedule, how: &How) -> u64 {
    ask(machine, schedule, how).unwrap().simulation.makespan.0
}

#[test]
fn a_chain_of_start_ups_is_late_by_their_sum() {
    // 12 start-ups, each up to 120 ns late: 720 ns in the mean, with variance 12 * 120^2 / 12 = 120^2 ns^2.
    let machine = noisy("loggp", &[("start_up", 120.0, "ns")]);
    let (schedule, launches) = (chain(12), 2000);
    let alone = time(&machine, &schedule, &launch(false, 0));
    let late: Vec<f64> = (0..launches)
        .map(|seed| (time(&machine, &schedule, &launch(true, seed)) - alone) as f64 / 1e3)
        .collect();
    let mean = late.iter().sum::<f64>() / launches as f64;
    let variance = late.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / launches as f64;
    // Four standard errors: 120 / sqrt(2000) = 2.7 ns, and sqrt(2 / 2000) of the variance.
    assert!((mean - 720.0).abs() < 11.0, "{mean}");
    assert!((variance / 14_400.0 - 1.0).abs() < 0.13, "{variance}");
}

#[test]
fn a_rate_and_a_poll_delay_by_their_shares() {
    // 12.5 MB at 12.5 GB/s take 1 ms, up to a tenth longer; one arrival is seen up to 1 us late.
    let schedule = {
        let mut b = Builder::new(Collective::Pattern, &Shape::new(2, 12_500_000 / 4));
        let data = b.buffer(Buffer::vector("data", 1));
        b.step();
        b.put(0, data.at(0), 1, data.at(0));
        b.finish().unwrap()
    };
    for (key, value, unit, most_ns) in [
        ("rate", 0.1, "ratio", 100_000.0),
        ("poll", 1.0, "us", 1000.0),
    ] {
        let machine = noisy("loggp", &[(key, value, unit)]);
        let alone = time(&machine, &schedule, &launch(false, 0));
        let late = (0..500).map(|seed| time(&machine, &schedule, &launch(true, seed)) - alone);
        let late: Vec<f64> = late.map(|ps| ps as f64 / 1e3).collect();
        let mean = late.iter().sum::<f64>() / 500.0;
        assert!(late.iter().all(|&ns| ns <= most_ns * 1.001), "{key}");
        assert!((mean / most_ns - 0.5).abs() < 0.06, "{key}: {mean}");
    }
}

#[test]
fn who_leaves_first_is_drawn_where_arbitration_is_random() {
    let random =
        "[noise]\narbitration = { value = \"random\", status = \"assumed\", source = \"test\" }\n";
    let changes = [
        ("[noise]\n", random),
        ("poll = { value = 8", "poll = { value = 0"),
    ];
    let machine = files::machine("python/linkwright/machines/wormhole-n150.toml", &changes);
    let schedule = build("alltoall/linear", &Shape::new(64, 64 * 64)).unwrap();
    let path = |seed| How {
        path: Some("ideal".into()),
        ..launch(true, seed)
    };
    let lower = lowered(&schedule, &machine, Some("ideal"), &Placement::Identity).unwrap();
    let schedule = lower.unwrap_or(schedule);
    let times: Vec<u64> = (0..4)
        .map(|seed| time(&machine, &schedule, &path(seed)))
        .collect();
    assert!(times.iter().any(|&t| t != times[0]), "{times:?}");
}

#[test]
fn one_rank_does_not_stand_for_all_where_each_is_delayed_differently() {
    let machine = noisy("loggp", &[("poll", 1.0, "us")]);
    let found = symmetric::simulate(
        "allreduce/ring",
        &Shape::new(8, 800),
        &machine,
        &launch(true, 0),
    );
    assert!(matches!(found, Err(SimError::Unsuited { .. })));
    assert!(symmetric::simulate(
        "allreduce/ring",
        &Shape::new(8, 800),
        &machine,
        &launch(false, 0)
    )
    .is_ok());
}

#[test]
fn noise_that_makes_no_sense_is_refused() {
    let text = files::text("python/linkwright/machines/loggp.toml");
    let time = |value| {
        format!("{{ value = {value}, unit = \"us\", status = \"assumed\", source = \"test\" }}")
    };
    for table in [
        format!("interrupt = {}", time(5)),
        format!("interrupt_every = {}", time(5)),
        format!("interrupt = {}\ninterrupt_every = {}", time(5), time(9)),
        format!("start_ups = {}", time(5)),
        "arbitration = \"fair\"".to_string(),
        "rate = { value = 11, unit = \"ratio\", status = \"assumed\", source = \"test\" }"
            .to_string(),
    ] {
        let found = Machine::parse(&format!("{text}\n[noise]\n{table}\n"), "noisy.toml");
        assert!(found.is_err(), "{table}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn noise_only_delays_and_a_seed_fixes_it(
        seed: u64, start_up in 0u32..2000, poll in 0u32..2000, rate in 0.0..2.0, interrupt in 1u32..50, which in 0usize..4,
    ) {
        let keys = [
            ("start_up", f64::from(start_up), "ns"), ("poll", f64::from(poll), "ns"), ("rate", rate, "ratio"),
            ("interrupt", f64::from(interrupt), "us"), ("interrupt_every", 200.0, "us"),
        ];
        let file = ["loggp", "crossbar"][which % 2];
        let machine = noisy(file, &keys);
        let name = ["allreduce/ring", "allreduce/recursive_doubling_latency", "alltoall/pairwise", "broadcast/binomial"][which];
        let schedule = build(name, &Shape::new(8, 8000)).unwrap();
        let alone = ask(&machine, &schedule, &launch(false, seed)).unwrap();
        let first = ask(&machine, &schedule, &launch(true, seed)).unwrap();
        let second = ask(&machine, &schedule, &launch(true, seed)).unwrap();
        prop_assert_eq!(&first.simulation.finish, &second.simulation.finish);
        // The limit is checked by `ask`; a machine without noise is the one as described.
        let plain = Machine::parse(&files::text(&format!("python/linkwright/machines/{file}.toml")), "plain.toml").unwrap();
        let described = ask(&plain, &schedule, &launch(true, seed)).unwrap();
        prop_assert_eq!(&described.simulation.finish, &alone.simulation.finish);
        prop_assert!(first.simulation.makespan >= alone.limits.largest().map_or(first.simulation.makespan, |l| l.time));
        let covered: u64 = first.simulation.critical.totals().iter().sum();
        prop_assert_eq!(covered, first.simulation.makespan.0);
    }
}
