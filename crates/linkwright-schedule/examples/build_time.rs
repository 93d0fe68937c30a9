//! Prints how long schedules take to build, and how many edges and notices they have.
//!
//! `cargo run --release -p linkwright-schedule --example build_time`

use linkwright_schedule::builder::Shape;
use linkwright_schedule::collectives::find;
use linkwright_schedule::ir::OpKind;
use std::time::Instant;

fn main() {
    for (key, ranks) in [
        ("allreduce/ring", 4),
        ("allreduce/ring", 64),
        ("allreduce/ring", 1024),
        ("allreduce/recursive_doubling_latency", 8),
        ("allreduce/recursive_doubling_latency", 1024),
        ("allreduce/recursive_doubling_latency", 16384),
    ] {
        let start = Instant::now();
        let schedule = (find(key).expect("registered").build)(&Shape::new(ranks, 1 << 20))
            .expect("the shape suits");
        let seconds = start.elapsed().as_secs_f64();
        let ops = schedule.ops().len();
        let notices = schedule
            .ops()
            .iter()
            .filter(|op| op.kind == OpKind::Notice)
            .count();
        println!(
            "{key} p={ranks}: {ops} operations, {notices} notices, {} edges, {:.1} ns per operation",
            schedule.edge_count(),
            seconds * 1e9 / ops as f64
        );
    }
}
