//! Prints how long schedules take to build and to prove, and how many edges and notices they have.
//!
//! `cargo run --release -p linkwright-schedule --example build_time`
//! `cargo run --release -p linkwright-schedule --example build_time -- 64 allreduce`
//! `cargo run --release -p linkwright-schedule --example build_time -- 72x20 allreduce`
//!
//! Without arguments the cases that must build in seconds; with them all algorithms whose key
//! contains the second, over as many ranks, or over such a grid, as the first says.

use linkwright_schedule::builder::Shape;
use linkwright_schedule::collectives::{find, REGISTRY};
use linkwright_schedule::ir::OpKind;
use linkwright_schedule::verify::verify;
use std::time::Instant;

const LARGE: [(&str, u32); 10] = [
    ("allreduce/ring", 1024),
    ("allreduce/swing_bandwidth", 1024),
    ("allreduce/recursive_doubling_latency", 16384),
    ("allgather/ring", 1216),
    ("allgather/linear", 1216),
    ("alltoall/linear", 1216),
    ("alltoall/pairwise", 1216),
    ("alltoall/bruck", 1216),
    ("gather/linear", 19456),
    ("gather/binomial", 19456),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let cases: Vec<(String, Shape)> = match arguments.first() {
        None => LARGE
            .map(|(key, ranks)| (key.into(), shape(&ranks.to_string())))
            .to_vec(),
        Some(ranks) => {
            let part = arguments.get(1).map_or("", String::as_str);
            let keys = REGISTRY.iter().map(|algorithm| algorithm.key());
            let wanted = keys.filter(|key| key.contains(part));
            wanted.map(|key| (key, shape(ranks))).collect()
        }
    };
    for (key, shape) in cases {
        measure(&key, &shape);
    }
}

/// A line of ranks, or a grid such as `8x4`.
fn shape(text: &str) -> Shape {
    let sides: Vec<u32> = text
        .split('x')
        .map(|side| {
            side.parse()
                .expect("the first argument is a number of ranks or a grid")
        })
        .collect();
    let ranks = sides.iter().product();
    let line = Shape::new(ranks, u64::from(ranks) * 1024);
    match sides.len() {
        1 => line,
        _ => line.with_sides(&sides),
    }
}

fn measure(key: &str, shape: &Shape) {
    let ranks = shape.ranks;
    let start = Instant::now();
    let built = (find(key).expect("registered").build)(shape);
    let seconds = start.elapsed().as_secs_f64();
    let schedule = match built {
        Ok(schedule) => schedule,
        Err(reason) => return println!("{key} p={ranks}: {reason}"),
    };
    let ops = schedule.ops().len();
    let notices = schedule
        .ops()
        .iter()
        .filter(|op| op.kind == OpKind::Notice)
        .count();
    let start = Instant::now();
    verify(&schedule).expect("registered algorithms are right");
    let proof = start.elapsed().as_secs_f64();
    println!(
        "{key} p={ranks}: {ops} operations, {notices} notices, {} edges, {seconds:.4} s, \
         {:.1} ns per operation, proved in {proof:.4} s",
        schedule.edge_count(),
        seconds * 1e9 / ops.max(1) as f64
    );
}
