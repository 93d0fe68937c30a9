//! Prints how fast the ring is simulated by one rank that represents all, and how much memory that takes.
//!
//! `cargo run --release -p linkwright-sim --example symmetric_rate [RANKS]`

use linkwright_core::Machine;
use linkwright_schedule::builder::Shape;
use linkwright_schedule::ir::MAX_RANKS;
use linkwright_sim::{symmetric, How};
use std::time::Instant;

const MACHINE: &str = include_str!("../../../python/linkwright/machines/loggp.toml");

fn main() {
    let ranks = ranks().unwrap_or_else(|problem| {
        eprintln!("symmetric_rate: {problem}");
        std::process::exit(2);
    });
    let machine = Machine::parse(MACHINE, "loggp.toml").expect("shipped");
    let start = Instant::now();
    // Chunks of 1 KiB.
    let shape = Shape::new(ranks, u64::from(ranks) * 256);
    let found = symmetric::simulate("allreduce/ring", &shape, &machine, &How::default());
    let simulation = found.expect("it folds").simulation;
    let seconds = start.elapsed().as_secs_f64();
    let messages = simulation.totals.transfers + simulation.totals.notices;
    println!(
        "allreduce/ring p={ranks} folded: {messages} messages in {seconds:.3} s, {:.2} million messages/s; \
         simulated time {:.3} us; {}",
        messages as f64 / seconds / 1e6,
        simulation.makespan.as_us(),
        memory(),
    );
}

/// Number of ranks.
fn ranks() -> Result<u32, String> {
    let Some(word) = std::env::args().nth(1) else {
        return Ok(1024);
    };
    let ranks = word.parse().ok();
    let cure = format!("`{word}` is not a number of ranks; write one from 1 to {MAX_RANKS}");
    ranks
        .filter(|ranks| (1..=MAX_RANKS).contains(ranks))
        .ok_or(cure)
}

/// Peak memory of this process.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM"));
    peak.map_or("peak memory unknown".to_string(), |line| {
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    })
}
