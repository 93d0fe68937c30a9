//! Engine and `loggp`: hand-derived times, each with its algebra.
//!
//! All on L = 1000 ns, g = 100 ns, G = 1 ns per byte, o = 200 ns at both ends.

use linkwright_core::machine::{Completion, Path};
use linkwright_core::{Bytes, BytesPerSec, EndpointId, TimePs};
use linkwright_schedule::builder::{Builder, Shape};
use linkwright_schedule::collectives::find;
use linkwright_schedule::{Buffer, Collective, Schedule};
use linkwright_sim::fabric::{Character, Conditions, Done, Fabric, LinkTable, Msg, Stuck};
use linkwright_sim::fabrics::loggp::{LogGp, Parameters};
use linkwright_sim::{simulate, Issue, Setup, SimError, Simulation, Spent};

const NS: u64 = 1000;

fn fabric(endpoints: u32) -> LogGp {
    let parameters = Parameters {
        latency: TimePs::from_ns(1000),
        gap: TimePs::from_ns(100),
        bandwidth: BytesPerSec(1e9),
    };
    LogGp::new(parameters, endpoints as usize)
}

fn path() -> Path {
    Path {
        name: "message".into(),
        start: TimePs::from_ns(200),
        receive: TimePs::from_ns(200),
        notice_start: TimePs::from_ns(200),
        completion: Completion::SourceFree,
        fused_combine: true,
        ..Path::default()
    }
}

/// A schedule over vectors of `bytes` bytes; `write` adds steps.
fn schedule(ranks: u32, bytes: u64, write: impl FnOnce(&mut Builder)) -> Schedule {
    let mut shape = Shape::new(ranks, bytes);
    shape.element_bytes = 1;
    let mut b = Builder::new(Collective::Pattern, &shape);
    write(&mut b);
    b.finish().unwrap()
}

fn run(schedule: &Schedule, change: impl FnOnce(&mut Setup)) -> Simulation {
    let mut run = Setup::new(schedule.ranks + schedule.memories, path());
    run.record_operations = true;
    change(&mut run);
    simulate(schedule, &mut fabric(run.placement.len() as u32), &run).unwrap()
}

/// One put from rank 0 to each of ranks 1.., all in one step.
fn fan_out(ranks: u32, bytes: u64) -> Schedule {
    schedule(ranks, bytes, |b| {
        let data = b.buffer(Buffer::vector("output", 1));
        b.step();
        for to in 1..ranks {
            b.put(0, data.at(0), to, data.at(0));
        }
    })
}

#[test]
fn one_message_takes_o_l_bytes_o() {
    // 200 + 99 * 1 + 1000 + 200 = 1499 ns; the source is free after 200 + 99.
    let result = run(&fan_out(2, 100), |_| {});
    assert_eq!(result.finish, [299 * NS, 1499 * NS]);
    assert_eq!(result.makespan, TimePs(1499 * NS));
    let shares = result.critical.totals();
    // latency, serialisation, waiting, overhead, compute
    assert_eq!(shares, [1000 * NS, 99 * NS, 0, 400 * NS, 0]);
    assert_eq!(result.totals.bytes, 100);
    assert_eq!(result.links.bytes[0], 100);
}

#[test]
fn nothing_to_do_takes_no_time() {
    let empty = schedule(3, 8, |_| {});
    let result = run(&empty, |_| {});
    assert_eq!(result.makespan, TimePs::ZERO);
    assert_eq!(result.critical.shares(), [0.0; 5]);
}

#[test]
fn empty_messages_take_no_bandwidth() {
    // 200 + 1000 + 200
    assert_eq!(run(&fan_out(2, 0), |_| {}).makespan, TimePs(1400 * NS));
}

#[test]
fn ping_pong_is_twice_one_message() {
    let there_and_back = schedule(2, 100, |b| {
        let data = b.buffer(Buffer::vector("output", 1));
        b.step();
        b.put(0, data.at(0), 1, data.at(0));
        b.step();
        b.put(1, data.at(0), 0, data.at(0));
    });
    let result = run(&there_and_back, |_| {});
    assert_eq!(result.makespan, TimePs(2 * 1499 * NS));
    assert_eq!(
        result.critical.totals(),
        [2000 * NS, 198 * NS, 0, 800 * NS, 0]
    );
}

#[test]
fn a_ring_allreduce_takes_its_rounds() {
    // 2 (p - 1) rounds, each a message of S / p bytes: 200 + (25 - 1) + 1000 + 200 = 1424 ns.
    let mut shape = Shape::new(4, 100);
    shape.element_bytes = 1;
    let ring = (find("allreduce/ring").unwrap().build)(&shape).unwrap();
    let result = run(&ring, |_| {});
    assert_eq!(result.makespan, TimePs(6 * 1424 * NS));
    assert_eq!(result.finish, [6 * 1424 * NS; 4]);
    assert_eq!(result.totals.transfers, 24);
    assert_eq!(result.totals.bytes, 24 * 25);
}

#[test]
fn a_get_asks_first() {
    // 200 + 1000 for the request, 99 + 1000 for the data, 200 at the receiver, which sent the request.
    let get = schedule(2, 100, |b| {
        let data = b.buffer(Buffer::vector("output", 1));
        b.step();
        b.get(0, data.at(0), 1, data.at(0));
    });
    let result = run(&get, |r| r.path.completion = Completion::Delivered);
    assert_eq!(result.finish, [0, 2499 * NS]);
}

#[test]
fn the_gap_keeps_messages_of_one_source_apart() {
    // Unlimited: issued at 0 and 200, offered at 200 and 400; the first leaves 200 to 500, the
    // second not before 600; visible at 600 + 300 + 1000 + 200.
    let two = fan_out(3, 301);
    let result = run(&two, |r| r.issue = Issue::Unlimited);
    assert_eq!(result.finish, [900 * NS, 1700 * NS, 2100 * NS]);
    // Blocking until the source is free: issued at 500, leaves at 700.
    let result = run(&two, |_| {});
    assert_eq!(result.finish, [1000 * NS, 1700 * NS, 2200 * NS]);
}

#[test]
fn window_and_batch_differ_in_the_completion_that_frees_a_place() {
    // Four empty messages, complete when acknowledged: L + L = 2000 ns after they leave.
    // Each check of a completion costs 50 ns. Offered times:
    //   window 2:  200, 400, then at 2200 a place is free, 50 + 200 later: 2450, and at
    //              max(2400, 2450) + 50 + 200: 2700.
    //   batch 2:   200, 400, then both are complete at 2400, 50 + 200 later: 2650, 2850.
    //   blocking:  200, then 2200 + 50 + 200 = 2450, 4700, 6950.
    //   unlimited: 200, 400, 600, 800.
    // The last one is visible 1000 + 200 after it was offered, acknowledged 2000 after.
    let four = fan_out(5, 0);
    let last = |issue| {
        let result = run(&four, |r| {
            r.issue = issue;
            r.path.completion = Completion::Acknowledged;
            r.path.barrier = TimePs::from_ns(50);
        });
        (result.finish[4] / NS, result.finish[0] / NS)
    };
    assert_eq!(last(Issue::Window(2)), (2700 + 1200, 2700 + 2000 + 50));
    assert_eq!(last(Issue::Batch(2)), (2850 + 1200, 2850 + 2000 + 50));
    assert_eq!(last(Issue::Blocking), (6950 + 1200, 6950 + 2000 + 50));
    assert_eq!(last(Issue::Unlimited), (800 + 1200, 800 + 2000));
    assert_eq!(last(Issue::Window(4)).0, 2000);
    assert_eq!(last(Issue::Window(1)), last(Issue::Blocking));
}

#[test]
fn a_signal_follows_the_acknowledgement() {
    // 200 + 99 + 1000 delivered at 1299, acknowledged at 2299, checked by 2349, the notice is
    // issued by 2549 and delivered at 3549, handled by 3749.
    let result = run(&fan_out(2, 100), |r| {
        r.path.completion = Completion::Acknowledged;
        r.path.signal = true;
        r.path.barrier = TimePs::from_ns(50);
    });
    assert_eq!(result.finish, [2549 * NS, 3749 * NS]);
    assert_eq!(result.totals.notices, 1);
    // latency: 1000 there, 1000 back, 1000 of the signal
    assert_eq!(
        result.critical.totals(),
        [3000 * NS, 99 * NS, 0, 650 * NS, 0]
    );
}

#[test]
fn a_receiver_handles_arrivals_one_after_another() {
    // All three arrive at 1200; handled at 1400, 1600, 1800.
    let fan_in = schedule(4, 0, |b| {
        let data = b.buffer(Buffer::vector("output", 1));
        b.step();
        for from in 1..4 {
            b.put(from, data.at(0), 0, data.at(0)).reduce();
        }
    });
    let result = run(&fan_in, |_| {});
    assert_eq!(result.finish[0], 1800 * NS);
    assert_eq!(result.critical.totals()[Spent::Waiting as usize], 400 * NS);
}

#[test]
fn combining_on_arrival_costs_the_arithmetic() {
    // 100 bytes at 1 GB/s: 100 ns; handling of one tile of 2048 bytes: 7 ns, which remains
    // without arithmetic.
    let add = schedule(2, 100, |b| {
        let data = b.buffer(Buffer::vector("output", 1));
        b.step();
        b.put(0, data.at(0), 1, data.at(0)).reduce();
    });
    let time = |arithmetic| {
        let result = run(&add, |r| {
            r.path.combine_rate = Some(BytesPerSec(1e9));
            r.path.combine_tile = Some(Bytes(2048));
            r.path.tile_handling = TimePs::from_ns(7);
            r.arithmetic = arithmetic;
        });
        let totals = result.critical.totals();
        (result.makespan.0 / NS, totals[Spent::Compute as usize] / NS)
    };
    assert_eq!(time(true), (1499 + 107, 107));
    assert_eq!(time(false), (1499 + 7, 7));
}

#[test]
fn a_late_rank_delays_its_receivers() {
    // Rank 0 arrives at 5 us; rank 1 is present from the beginning and waits.
    let result = run(&fan_out(2, 100), |r| {
        r.arrivals = vec![TimePs::from_ns(5000), TimePs::ZERO];
    });
    assert_eq!(result.start, [5000 * NS, 0]);
    assert_eq!(result.finish, [5299 * NS, 6499 * NS]);
    assert_eq!(result.critical.totals()[Spent::Waiting as usize], 5000 * NS);
    let sum: f64 = result.critical.shares().iter().sum();
    assert!((sum - 1.0).abs() < 1e-12);
}

#[test]
fn placement_moves_messages() {
    let result = run(&fan_out(2, 100), |r| {
        r.placement = vec![EndpointId(1), EndpointId(0)];
    });
    assert_eq!(result.links.bytes, [0, 100]);
}

#[test]
fn local_work_keeps_its_lane_only() {
    // 1000 operations at 1 GHz = 1 us on the compute lane, while the put goes on lane 0.
    let both = schedule(2, 100, |b| {
        let data = b.buffer(Buffer::vector("output", 1));
        b.step();
        b.compute(0, 1000);
        b.compute(0, 1000);
        b.put(0, data.at(0), 1, data.at(0));
    });
    let result = run(&both, |r| r.operations_per_s = Some(1e9));
    assert_eq!(result.finish, [2000 * NS, 1499 * NS]);
    assert_eq!(result.critical.shares()[Spent::Compute as usize], 1.0);
}

#[test]
fn a_multicast_without_hardware_is_one_message_after_another() {
    // 100 bytes each: leave at 200, 200 + 99 + 100 = 399, 598; the last is visible at
    // 598 + 99 + 1000 + 200.
    let all = schedule(4, 100, |b| {
        let data = b.buffer(Buffer::vector("output", 1));
        b.step();
        b.multicast(0, data.at(0), &[1, 2, 3], data.at(0));
    });
    let result = run(&all, |_| {});
    assert_eq!(result.finish, [697 * NS, 1499 * NS, 1698 * NS, 1897 * NS]);
    assert_eq!(result.totals.bytes, 300);
}

#[test]
fn an_operation_that_the_path_lacks_is_an_error() {
    let add = (find("allreduce/ring").unwrap().build)(&Shape::new(4, 100)).unwrap();
    let mut run = Setup::new(4, Path::default());
    let error = simulate(&add, &mut fabric(4), &run).unwrap_err();
    assert!(
        matches!(error, SimError::NotFused { op: 0, step: 1, .. }),
        "{error}"
    );

    let barrier = schedule(2, 0, |b| b.barrier(&[0, 1]));
    run.placement.truncate(2);
    let error = simulate(&barrier, &mut fabric(2), &run).unwrap_err();
    assert!(
        matches!(error, SimError::NoBarrier { ranks: 2, .. }),
        "{error}"
    );

    let compute = schedule(2, 0, |b| {
        b.compute(0, 5);
    });
    let error = simulate(&compute, &mut fabric(2), &run).unwrap_err();
    assert!(matches!(error, SimError::NoComputeRate { .. }), "{error}");

    run.issue = Issue::Window(0);
    let error = simulate(&compute, &mut fabric(2), &run).unwrap_err();
    assert!(error.to_string().contains("at least 1"), "{error}");
    run.placement.clear();
    let error = simulate(&compute, &mut fabric(2), &run).unwrap_err();
    assert!(error.to_string().contains("0 places for 2"), "{error}");
}

/// Takes messages and never delivers them.
#[derive(Default)]
struct BlackHole {
    held: usize,
    links: LinkTable,
}

impl Fabric for BlackHole {
    fn character(&self) -> Character {
        Character::default()
    }
    fn reset(&mut self, _conditions: &Conditions<'_>) {}
    fn offer(&mut self, _now: TimePs, released: &[Msg]) {
        self.held += released.len();
    }
    fn next(&mut self) -> Option<TimePs> {
        None
    }
    fn advance(&mut self, until: TimePs, _out: &mut Vec<Done>) -> TimePs {
        until
    }
    fn in_flight(&self) -> usize {
        self.held
    }
    fn stuck(&self) -> Stuck {
        Stuck {
            waiting: vec!["a message waits for Godot".into()],
        }
    }
    fn quiet(&self, _m: &Msg) -> TimePs {
        TimePs::ZERO
    }
    fn links(&self) -> &LinkTable {
        &self.links
    }
}

#[test]
fn an_overflow_of_time_is_an_error() {
    let ring = (find("allreduce/ring").unwrap().build)(&Shape::new(4, 100)).unwrap();
    let mut run = Setup::new(4, path());
    let arrives = |run: &mut Setup, at: u64| {
        run.arrivals = vec![TimePs(at); 4];
        simulate(&ring, &mut BlackHole::default(), run).unwrap_err()
    };
    let last = (1 << 61) - 1;
    assert!(matches!(arrives(&mut run, last), SimError::Stuck { .. }));
    let error = arrives(&mut run, last + 1).to_string();
    assert!(error.contains("26 days are the most"), "{error}");
}

#[test]
fn a_fabric_that_loses_messages_is_an_error() {
    let ring = (find("allreduce/ring").unwrap().build)(&Shape::new(4, 100)).unwrap();
    let run = Setup::new(4, path());
    let error = simulate(&ring, &mut BlackHole::default(), &run).unwrap_err();
    let SimError::Stuck {
        unfinished,
        waiting,
        ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(*unfinished, 24);
    assert_eq!(waiting[0], "a message waits for Godot");
    assert!(
        waiting[1].starts_with("rank 0 (lane 0, step 2): operation"),
        "{error}"
    );
}
