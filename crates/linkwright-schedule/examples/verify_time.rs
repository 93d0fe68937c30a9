//! Prints how long verification takes.
//!
//! `cargo run --release -p linkwright-schedule --example verify_time [key ranks]`

use linkwright_schedule::builder::Shape;
use linkwright_schedule::collectives::find;
use linkwright_schedule::verify;
use std::time::Instant;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [key, ranks] = &arguments[..] {
        return time(key, ranks.parse().expect("a number of ranks"));
    }
    for (key, ranks) in [
        ("allreduce/ring", 64),
        ("allreduce/ring", 1024),
        ("allreduce/recursive_doubling_latency", 16384),
        ("allreduce/recursive_doubling_bandwidth", 1024),
        ("allreduce/swing_bandwidth", 1024),
        ("allgather/linear", 1024),
        ("allgather/bruck", 1024),
        ("reduce_scatter/pairwise", 1024),
    ] {
        time(key, ranks);
    }
}

fn time(key: &str, ranks: u32) {
    let algorithm = find(key).expect("registered");
    let start = Instant::now();
    let schedule = (algorithm.build)(&Shape::new(ranks, 1 << 20)).expect("the shape suits");
    let built = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let report = verify(&schedule).expect("the algorithm is right");
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{key} p={ranks}: {} operations, {} chunk moves, {} hazards, {} long proofs; \
         built in {built:.3} s, verified in {seconds:.3} s, {:.1} ns per chunk move",
        report.operations,
        report.chunk_moves,
        report.hazards,
        report.long_searches,
        seconds * 1e9 / report.chunk_moves as f64
    );
}
