//! Scratch of its own for every arrival: what a path saves by it, by hand.

mod files;

use linkwright_core::Machine;
use linkwright_schedule::collectives::build;
use linkwright_schedule::Shape;
use linkwright_sim::placement::Placement;
use linkwright_sim::{ask, lowered, symmetric, How};

const KEY: &str = "allreduce/recursive_doubling_latency";

/// The shipped LogGP, as it is or with scratch for every arrival.
fn machine(own: bool) -> Machine {
    let given = ("fused_combine", "scratch = \"own\"\nfused_combine");
    let changes = if own { &[given][..] } else { &[] };
    let machine = files::machine("python/linkwright/machines/loggp.toml", changes);
    machine.with_endpoints(4).unwrap()
}

/// An exchange of 4 bytes takes o + 3 G + L + o = 200 + 0.24 + 1000 + 200 ns, and adding them 0.4 ns. The second of
/// two waits for the notice that the partner's scratch is ready, o + L + o = 1400 ns, unless it has its own.
#[test]
fn the_second_exchange_waits_for_no_notice() {
    let schedule = build(KEY, &Shape::new(4, 1)).unwrap();
    let time = |own| {
        let machine = machine(own);
        let low = lowered(&schedule, &machine, None, &Placement::Identity).unwrap();
        let run = ask(&machine, &low.unwrap_or(schedule.clone()), &How::default());
        run.unwrap().simulation.makespan.0
    };
    assert_eq!(time(true), 2 * 1_400_640);
    assert_eq!(time(false), 2 * 1_400_640 + 1_400_000);
}

#[test]
fn one_rank_cannot_stand_for_all_on_such_a_path() {
    let refused = symmetric::simulate(KEY, &Shape::new(4, 1), &machine(true), &How::default());
    let problem = refused.map(drop).unwrap_err().to_string();
    assert!(
        problem.contains("scratch of its own; use another path"),
        "{problem}"
    );
}
