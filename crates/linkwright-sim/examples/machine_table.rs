//! Simulates every allreduce on a machine file and prints time, limit and critical path.
//!
//! `cargo run --release -p linkwright-sim --example machine_table -- FILE RANKS BYTES`

use linkwright_core::Machine;
use linkwright_schedule::builder::Shape;
use linkwright_schedule::collectives::of;
use linkwright_schedule::Collective;
use linkwright_sim::{lowered, run, Options, Spent};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, ranks, bytes] = &arguments[..] else {
        return Err("needs FILE RANKS BYTES".into());
    };
    let machine = Machine::parse(&std::fs::read_to_string(file)?, file)?;
    let mut shape = Shape::new(ranks.parse()?, bytes.parse::<u64>()? / 4);
    if let Some(grid) = machine.rank_grid() {
        shape = shape.with_grid(grid.columns, grid.rows);
    }
    println!(
        "{:28} {:>10} {:>10} limit     path",
        "algorithm", "time us", "limit us"
    );
    for algorithm in of(Collective::Allreduce) {
        let built = match (algorithm.build)(&shape) {
            Ok(built) => built,
            Err(why) => {
                println!("{:28} {why}", algorithm.name);
                continue;
            }
        };
        let outcome = lowered(&built, &machine, None).and_then(|own| {
            run(
                own.as_ref().unwrap_or(&built),
                &machine,
                &Options::default(),
            )
        });
        let modelled = match outcome {
            Ok(modelled) => modelled,
            Err(why) => {
                println!("{:28} {why}", algorithm.name);
                continue;
            }
        };
        let simulation = &modelled.simulation;
        let (name, limit) =
            (modelled.limits.largest()).map_or(("", 0.0), |l| (l.name, l.time.as_us()));
        let shares = Spent::ALL.iter().zip(simulation.critical.shares());
        let shares: Vec<String> = shares
            .map(|(spent, share)| format!("{} {:.0}%", spent.name(), 100.0 * share))
            .collect();
        println!(
            "{:28} {:10.2} {limit:10.2} {name:9} {}",
            algorithm.name,
            simulation.makespan.as_us(),
            shares.join(", "),
        );
    }
    Ok(())
}
