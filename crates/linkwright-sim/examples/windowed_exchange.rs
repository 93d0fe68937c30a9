//! How fast allreduces that signal window by window run on the torus network: half of their messages
//! are notices of one flit.
//!
//! `cargo run --release -p linkwright-sim --example windowed_exchange -- [MACHINE FILE] [ROUNDS]`
//!
//! Each line has the least time of so many rounds (default 3) and a digest of all results,
//! which no optimisation may change.

use std::error::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use linkwright_core::Machine;
use linkwright_schedule::builder::Shape;
use linkwright_schedule::collectives::find;
use linkwright_schedule::transforms::{refine, repeat, unfuse};
use linkwright_schedule::windows::windows;
use linkwright_sim::{run, Modelled, Options};

const MACHINE: &str = "python/linkwright/machines/wormhole-n150.toml";
const RUNS: u32 = 5;

/// A digest of every time and every load that a run yields.
fn digest(modelled: &Modelled) -> u64 {
    let simulation = &modelled.simulation;
    let mut hasher = DefaultHasher::new();
    let links = &simulation.links;
    (&simulation.start, &simulation.finish, simulation.makespan.0).hash(&mut hasher);
    (&links.busy_ps, &links.bytes, &links.peak).hash(&mut hasher);
    format!("{:?} {:?}", simulation.totals, simulation.critical).hash(&mut hasher);
    if let Some(times) = &simulation.operations {
        (&times.issued, &times.delivered, &times.visible).hash(&mut hasher);
    }
    hasher.finish()
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().unwrap_or_else(|| MACHINE.to_string());
    let rounds: u32 = arguments.next().map_or(Ok(3), |rounds| rounds.parse())?;
    let machine = Machine::parse(&std::fs::read_to_string(&file)?, &file)?;
    for (key, tiles, cut) in [
        ("allreduce/swing_latency", 64, 32),
        ("allreduce/recursive_doubling_latency", 320, 160),
        ("allreduce/swing_bandwidth", 64, 32),
        ("allreduce/recursive_doubling_bandwidth", 320, 160),
    ] {
        let mut shape = Shape::new(64, tiles * 1024).with_grid(8, 8);
        shape.element_bytes = 2;
        let built = unfuse(&(find(key).expect("registered").build)(&shape)?)?;
        let slices = if key.ends_with("latency") {
            tiles
        } else {
            tiles / 64
        };
        let schedule = windows(&refine(&repeat(&built, RUNS)?, slices as u32)?, cut)?;
        let options = Options {
            operations_per_s: Some(51.2e9),
            record_operations: true,
            ..Options::default()
        };
        let mut least = f64::INFINITY;
        let mut last = None;
        for _ in 0..rounds {
            let start = Instant::now();
            last = Some(run(&schedule, &machine, &options)?);
            least = least.min(start.elapsed().as_secs_f64());
        }
        let modelled = last.ok_or("at least one round")?;
        let totals = modelled.simulation.totals;
        let messages = totals.transfers + totals.notices;
        println!(
            "{key:40} {messages:>8} messages in {least:6.3} s, {:5.3} million/s; {:.3} us, digest {:016x}",
            messages as f64 / least / 1e6,
            modelled.simulation.makespan.as_us(),
            digest(&modelled),
        );
    }
    Ok(())
}
