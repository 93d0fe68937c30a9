//! How fast schedules are built, proved and simulated, workload by workload.
//!
//! ```text
//!   cargo run --release -p linkwright-sim --example workloads -- [NAME...] [--json]
//!             [--records] [--launches N] [--list]
//!   cargo run --release -p linkwright-sim --example workloads -- --once NAME...
//! ```
//!
//! A NAME selects itself and, ending in `*`, all that begin so; without names all run but those that only
//! their names select. Every workload runs in a process of its own, so that its peak memory is its own; `--launches` takes
//! the median over several. `--records` keeps the times of every operation. `--once` runs each stage a single
//! time, all workloads in this process, which is what an instruction counter wants.

mod catalogue;
mod noc;
mod process;
mod report;
mod stages;

use catalogue::{Workload, WORKLOADS};
use report::Figures;
use std::process::{exit, Command, Stdio};

struct Arguments {
    names: Vec<String>,
    json: bool,
    list: bool,
    records: bool,
    once: bool,
    child: bool,
    launches: usize,
}

fn arguments() -> Result<Arguments, String> {
    let mut asked = Arguments {
        names: Vec::new(),
        json: false,
        list: false,
        records: false,
        once: false,
        child: false,
        launches: 1,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--json" => asked.json = true,
            "--list" => asked.list = true,
            "--records" => asked.records = true,
            "--once" => asked.once = true,
            "--child" => asked.child = true,
            "--launches" => {
                let count = words.next().and_then(|count| count.parse().ok());
                asked.launches = count
                    .filter(|&count| count > 0)
                    .ok_or("--launches wants a number, at least 1")?;
            }
            flag if flag.starts_with('-') => {
                return Err(format!("unknown option `{flag}`; see the head of main.rs"))
            }
            name => asked.names.push(name.to_string()),
        }
    }
    Ok(asked)
}

fn selected(names: &[String]) -> Result<Vec<&'static Workload>, String> {
    if names.is_empty() {
        return Ok(WORKLOADS.iter().filter(|w| !w.by_name).collect());
    }
    let mut found = Vec::new();
    for name in names {
        let suits = |w: &&Workload| match name.strip_suffix('*') {
            Some(head) => w.name.starts_with(head),
            None => w.name == name,
        };
        let before = found.len();
        found.extend(WORKLOADS.iter().filter(suits));
        if found.len() == before {
            return Err(format!("no workload `{name}`; --list names them"));
        }
    }
    Ok(found)
}

/// Figures of one workload from fresh processes, the medians over them.
fn launched(workload: &Workload, asked: &Arguments) -> Result<Figures, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut launches = Vec::new();
    for _ in 0..asked.launches {
        let mut command = Command::new(&program);
        command.args(["--child", workload.name]);
        if asked.records {
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
    let asked = arguments()?;
    let chosen = selected(&asked.names)?;
    if asked.list {
        for workload in WORKLOADS {
            println!("{:28} {}", workload.name, workload.summary);
        }
        return Ok(());
    }
    if asked.child || asked.once {
        for workload in chosen {
            let figures = stages::measure(workload, asked.records, asked.once)?;
            println!("{}", figures.line());
        }
        return Ok(());
    }
    if !asked.json {
        println!("{}", report::HEAD);
    }
    let mut rows = Vec::new();
    for workload in chosen {
        let figures = launched(workload, &asked)?;
        match asked.json {
            true => rows.push(figures.json(workload.name)),
            false => println!("{}", figures.row(workload.name)),
        }
    }
    if asked.json {
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
