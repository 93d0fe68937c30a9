//! Prints how long plans take to be read, verified and simulated.
//!
//! `cargo run --release -p linkwright-plans --example plan_speed [FILE...]`
//!
//! Without files: an MSCCL plan of 64 GPUs and 105,664 steps, 13 rings that each take a part of an allreduce.
//! A file that is refused is named with the reason.

use linkwright_core::Machine;
use linkwright_schedule::{verify, Schedule};
use linkwright_sim::{ask, How};
use std::fmt::Write as _;
use std::time::Instant;

const RANKS: usize = 64;
const RINGS: usize = 13;

fn main() {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        measure("13 rings of 64 GPUs", &rings());
    }
    for file in files {
        match std::fs::read(&file) {
            Ok(bytes) => measure(&file, &String::from_utf8_lossy(&bytes)),
            Err(error) => println!("{file}: {error}"),
        }
    }
}

fn measure(name: &str, text: &str) {
    let mut seconds = Vec::new();
    let start = Instant::now();
    let mut lap = || seconds.push(start.elapsed().as_secs_f64());
    let schedule = match linkwright_plans::read(text) {
        Ok(schedule) => schedule,
        Err(error) => return println!("{name}: refused: {error}"),
    };
    lap();
    verify(&schedule).expect("a reader has verified it");
    lap();
    let time = simulate(&schedule);
    lap();
    println!(
        "{name}: {} over {} ranks, {} operations, {:.1} MB; read {:.3} s, verified again {:.3} s, simulated {:.3} s \
         ({time})",
        schedule.spec.collective.name(),
        schedule.ranks,
        schedule.ops().len(),
        text.len() as f64 / 1e6,
        seconds[0],
        seconds[1] - seconds[0],
        seconds[2] - seconds[1]
    );
}

fn simulate(schedule: &Schedule) -> String {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../python/linkwright/machines/loggp.toml"
    );
    let text = std::fs::read_to_string(file).expect("the machine is part of the package");
    let machine = Machine::parse(&text, file).expect("the machine is right");
    match ask(&machine, schedule, &How::default()) {
        Ok(modelled) => format!("{:.1} us", modelled.simulation.makespan.0 as f64 / 1e6),
        Err(error) => error.to_string(),
    }
}

/// Each GPU has a thread block in each ring: it sends its part, then adds and passes on, then copies and passes on.
fn rings() -> String {
    let chunks = RANKS * RINGS;
    let mut text = format!(
        "<algo name=\"rings\" proto=\"Simple\" nchannels=\"{RINGS}\" nchunksperloop=\"{chunks}\" ngpus=\"{RANKS}\" \
         coll=\"allreduce\" inplace=\"1\">\n"
    );
    for gpu in 0..RANKS {
        let _ = writeln!(
            text,
            "<gpu id=\"{gpu}\" i_chunks=\"{chunks}\" o_chunks=\"{chunks}\" s_chunks=\"0\">"
        );
        for ring in 0..RINGS {
            let (to, from) = ((gpu + 1) % RANKS, (gpu + RANKS - 1) % RANKS);
            let _ = writeln!(
                text,
                "<tb id=\"{ring}\" send=\"{to}\" recv=\"{from}\" chan=\"{ring}\">"
            );
            for s in 0..2 * RANKS - 1 {
                let part = (gpu + 2 * RANKS - s) % RANKS;
                let word = match s {
                    0 => "s",
                    _ if s < RANKS - 1 => "rrs",
                    _ if s == RANKS - 1 => "rrcs",
                    _ if s < 2 * RANKS - 2 => "rcs",
                    _ => "r",
                };
                let at = part * RINGS + ring;
                let _ = writeln!(
                    text,
                    "<step s=\"{s}\" type=\"{word}\" srcbuf=\"i\" srcoff=\"{at}\" dstbuf=\"i\" dstoff=\"{at}\" \
                     cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>"
                );
            }
            text.push_str("</tb>\n");
        }
        text.push_str("</gpu>\n");
    }
    text.push_str("</algo>\n");
    text
}
