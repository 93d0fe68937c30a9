//! How fast schedules are built, proved and simulated, workload by workload.
//!
//! ```text
//!   cargo run --release -p linkwright-sim --example workloads -- [NAME...] [--json]
//!             [--records] [--bins N] [--launches N] [--list]
//!   cargo run --release -p linkwright-sim --example workloads -- --once NAME...
//! ```
//!
//! A NAME ending in `*` selects all workloads with that prefix; without names all run except those selected only by
//! name. Each workload runs in its own process, which makes its peak memory measurable; `--launches` takes the median
//! over several. `--records` keeps the times of every operation, `--bins` the busy time of every link by bins of time. `--once` runs each stage once, with all workloads in
//! this process, as an instruction counter needs it.

mod catalogue;
mod noc;
mod process;
mod report;
mod stages;

use catalogue::{Workload, WORKLOADS};
use report::Figures;
use stages::Kept;
use std::process::{exit, Command, Stdio};

#[derive(Default)]
struct Options {
    names: Vec<String>,
    json: bool,
    list: bool,
    kept: Kept,
    once: bool,
    child: bool,
    launches: usize,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        launches: 1,
        ..Options::default()
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--json" => options.json = true,
            "--list" => options.list = true,
            "--records" => options.kept.records = true,
            "--bins" => {
                let count = words.next().and_then(|count| count.parse().ok());
                options.kept.bins = count.ok_or("--bins needs a number")?;
            }
            "--once" => options.once = true,
            "--child" => options.child = true,
            "--launches" => {
                let count = words.next().and_then(|count| count.parse().ok());
                options.launches = count
                    .filter(|&count| count > 0)
                    .ok_or("--launches needs a number, at least 1")?;
            }
            flag if flag.starts_with('-') => {
                return Err(format!("unknown option `{flag}`; see the head of main.rs"))
            }
            name => options.names.push(name.to_string()),
        }
    }
    Ok(options)
}

fn selected(names: &[String]) -> Result<Vec<&'static Workload>, String> {
    if names.is_empty() {
        return Ok(WORKLOADS.iter().filter(|w| !w.by_name).collect());
    }
    let mut selection = Vec::new();
    for name in names {
        let suits = |w: &&Workload| match name.strip_suffix('*') {
            Some(head) => w.name.starts_with(head),
            None => w.name == name,
        };
        let before = selection.len();
        selection.extend(WORKLOADS.iter().filter(suits));
        if selection.len() == before {
            return Err(format!("no workload `{name}`; --list names them"));
        }
    }
    Ok(selection)
}

/// Figures of one workload from fresh processes, the medians over them.
fn launched(workload: &Workload, options: &Options) -> Result<Figures, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut launches = Vec::new();
    for _ in 0..options.launches {
        let mut command = Command::new(&program);
        command.args(["--child", workload.name]);
        if options.kept.bins > 0 {
            command.args(["--bins", &options.kept.bins.to_string()]);
        }
        if options.kept.records {
            command.arg("--records");
        }
        let output = command
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(format!("{} ended with {}", workload.name, output.status));
        }
        launches.push(Figures::parse(&String::from_utf8_lossy(&output.stdout))?);
    }
    Ok(Figures::median(launches))
}

fn work() -> Result<(), String> {
    let options = options()?;
    let chosen = selected(&options.names)?;
    if options.list {
        for workload in WORKLOADS {
            println!("{:28} {}", workload.name, workload.summary);
        }
        return Ok(());
    }
    if options.child || options.once {
        for workload in chosen {
            let figures = stages::measure(workload, options.kept, options.once)?;
            println!("{}", figures.line());
        }
        return Ok(());
    }
    if !options.json {
        println!("{}", report::HEAD);
    }
    let mut rows = Vec::new();
    for workload in chosen {
        let figures = launched(workload, &options)?;
        match options.json {
            true => rows.push(figures.json(workload.name)),
            false => println!("{}", figures.row(workload.name)),
        }
    }
    if options.json {
        println!("[\n  {}\n]", rows.join(",\n  "));
    }
    Ok(())
}

fn main() {
    if let Err(problem) = work() {
        eprintln!("workloads: {problem}");
        exit(2);
    }
}
