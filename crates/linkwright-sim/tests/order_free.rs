//! The order-free pass against the engine: the same times for every algorithm, path and policy.

use linkwright_core::machine::{Completion, Path};
use linkwright_core::{BytesPerSec, TimePs};
use linkwright_schedule::aggregations::gather_and_put;
use linkwright_schedule::builder::Shape;
use linkwright_schedule::collectives::REGISTRY;
use linkwright_schedule::{barriers, transforms, Schedule, ScheduleError};
use linkwright_sim::fabric::{Character, Conditions, Done, Fabric, LinkTable, Msg, Times};
use linkwright_sim::fabrics::loggp::{LogGp, Parameters};
use linkwright_sim::{simulate, Issue, Setup, Simulation};
use proptest::prelude::*;

/// LogGP that does not declare itself free of order, so the engine runs.
struct Ordered(LogGp);

impl Fabric for Ordered {
    fn character(&self) -> Character {
        Character::default()
    }
    fn reset(&mut self, conditions: &Conditions<'_>) {
        self.0.reset(conditions);
    }
    fn answer(&mut self, now: TimePs, m: &Msg) -> Option<Times> {
        self.0.answer(now, m)
    }
    fn offer(&mut self, now: TimePs, released: &[Msg]) {
        self.0.offer(now, released);
    }
    fn next(&mut self) -> Option<TimePs> {
        self.0.next()
    }
    fn advance(&mut self, until: TimePs, out: &mut Vec<Done>) -> TimePs {
        self.0.advance(until, out)
    }
    fn in_flight(&self) -> usize {
        self.0.in_flight()
    }
    fn quiet(&self, m: &Msg) -> TimePs {
        self.0.quiet(m)
    }
    fn links(&self) -> &LinkTable {
        self.0.links()
    }
}

fn loggp(gap_ns: u64, endpoints: usize) -> LogGp {
    let parameters = Parameters {
        latency: TimePs::from_ns(1000),
        gap: TimePs::from_ns(gap_ns),
        bandwidth: BytesPerSec(1e9),
    };
    LogGp::new(parameters, endpoints)
}

/// Both ways of simulating must agree in all but the choice among equally late causes.
fn assert_same(schedule: &Schedule, run: &Setup, gap_ns: u64, what: &str) {
    let fabric = loggp(gap_ns, run.placement.len());
    let pass = simulate(schedule, &mut fabric.clone(), run).unwrap();
    let engine = simulate(schedule, &mut Ordered(fabric), run).unwrap();
    assert_eq!(pass.operations, engine.operations, "{what}");
    assert_eq!(pass.finish, engine.finish, "{what}");
    assert_eq!(pass.makespan, engine.makespan, "{what}");
    assert_eq!(pass.links, engine.links, "{what}");
    assert_eq!(pass.totals, engine.totals, "{what}");
    let whole = |s: &Simulation| s.critical.totals().iter().sum::<u64>();
    assert_eq!(whole(&pass), pass.makespan.0, "{what}");
    assert_eq!(whole(&engine), whole(&pass), "{what}");
}

fn schedules(ranks: u32, elements: u64) -> Vec<(String, Schedule)> {
    let mut shape = Shape::new(ranks, elements);
    if ranks % 2 == 0 {
        shape = shape.with_grid(ranks / 2, 2);
    }
    let mut schedules = Vec::new();
    for algorithm in REGISTRY {
        let built = match (algorithm.build)(&shape) {
            Err(ScheduleError::Waived { .. }) => continue,
            other => gather_and_put(&other.unwrap()).unwrap(),
        };
        let unfused = transforms::unfuse(&built).unwrap();
        for (schedule, how) in [(built, "as it is"), (unfused, "unfused")] {
            // LogGP has neither a barrier nor a switch that combines.
            let schedule = barriers::disseminate(&schedule).unwrap();
            schedules.push((format!("{} p={ranks} {how}", algorithm.key()), schedule));
        }
    }
    schedules
}

fn path(receive_ns: u64, barrier_ns: u64, completion: Completion) -> Path {
    Path {
        start: TimePs::from_ns(200),
        receive: TimePs::from_ns(receive_ns),
        barrier: TimePs::from_ns(barrier_ns),
        notice_start: TimePs::from_ns(150),
        completion,
        fused_combine: true,
        ..Path::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_pass_agrees_with_the_engine(
        ranks in 1u32..10,
        elements in 0u64..600,
        costs in (0u64..3, 0u64..2, 0u64..3),
        completion in prop::sample::select(vec![
            Completion::SourceFree, Completion::Delivered, Completion::Acknowledged,
        ]),
        issue in prop::sample::select(vec![
            Issue::Blocking, Issue::Unlimited, Issue::Batch(3), Issue::Window(2),
        ]),
        late in prop::collection::vec(0u64..5000, 10),
    ) {
        let (receive, barrier, gap) = (costs.0 * 110, costs.1 * 70, costs.2 * 60);
        for (what, schedule) in schedules(ranks, elements) {
            let mut run = Setup::new(schedule.ranks + schedule.memories, path(receive, barrier, completion));
            run.issue = issue;
            run.record_operations = true;
            run.arrivals = late[..ranks as usize].iter().map(|&ns| TimePs::from_ns(ns)).collect();
            assert_same(&schedule, &run, gap, &what);
        }
    }
}

#[test]
fn all_at_once_in_step_agrees_too() {
    // All ranks start at zero: ties everywhere.
    for ranks in [2, 3, 4, 7, 8, 16] {
        for (what, schedule) in schedules(ranks, 1000) {
            for issue in [Issue::Blocking, Issue::Unlimited, Issue::Batch(2)] {
                for receive in [0, 200] {
                    let recipe = path(receive, 0, Completion::SourceFree);
                    let mut run = Setup::new(schedule.ranks + schedule.memories, recipe);
                    run.issue = issue;
                    run.record_operations = true;
                    assert_same(&schedule, &run, 100, &format!("{what} {issue} {receive}"));
                }
            }
        }
    }
}
