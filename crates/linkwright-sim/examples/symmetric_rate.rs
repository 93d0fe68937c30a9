//! Prints how fast rank-symmetric programs are simulated, folded and streamed, and how much memory that takes.
//!
//! `cargo run --release -p linkwright-sim --example symmetric_rate [fold|stream] [RANKS]`

use linkwright_core::Machine;
use linkwright_schedule::builder::Shape;
use linkwright_schedule::collectives::program;
use linkwright_schedule::ir::MAX_RANKS;
use linkwright_sim::{symmetric, How, Mode};
use std::time::Instant;

const MACHINE: &str = include_str!("../../../python/linkwright/machines/loggp.toml");

fn main() {
    let (mode, ranks) = arguments().unwrap_or_else(|problem| {
        eprintln!("symmetric_rate: {problem}");
        std::process::exit(2);
    });
    let machine = Machine::parse(MACHINE, "loggp.toml").expect("shipped");
    let start = Instant::now();
    // Chunks of 1 KiB.
    let shape = Shape::new(ranks, u64::from(ranks) * 256);
    let program = program("allreduce/ring", &shape).expect("a ring of any size");
    let written = start.elapsed().as_secs_f64();
    let modelled = symmetric::simulate(program, &machine, &How::default(), mode);
    let simulation = modelled.expect("it runs").simulation;
    let seconds = start.elapsed().as_secs_f64();
    let messages = simulation.totals.transfers + simulation.totals.notices;
    println!(
        "allreduce/ring p={ranks} {mode}: {messages} messages in {seconds:.3} s (including {written:.3} s to write the program), \
         {:.2} million messages/s; simulated time {:.3} us; {}",
        messages as f64 / seconds / 1e6,
        simulation.makespan.as_us(),
        memory(),
    );
}

/// Mode and number of ranks.
fn arguments() -> Result<(Mode, u32), String> {
    let mut words = std::env::args().skip(1);
    let mode = match words.next().as_deref() {
        Some("fold") => Mode::Folded,
        None | Some("stream") => Mode::Streamed,
        Some(other) => return Err(format!("`{other}` is not a mode; write fold or stream")),
    };
    let Some(word) = words.next() else {
        return Ok((mode, 1024));
    };
    let ranks = word
        .parse()
        .ok()
        .filter(|&ranks| (1..=MAX_RANKS).contains(&ranks));
    let cure = format!("`{word}` is not a number of ranks; write one from 1 to {MAX_RANKS}");
    Ok((mode, ranks.ok_or(cure)?))
}

/// Peak memory of this process.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM"));
    peak.map_or("peak memory unknown".to_string(), |line| {
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    })
}
