//! try
use linkwright_core::Machine;
use linkwright_schedule::{verify, Collective, Shape};
use linkwright_sim::Options;
use linkwright_synthesis::links::search::{Found, Search};
use linkwright_synthesis::links::fabric;
use std::time::Instant;

fn main() {
    let a: Vec<String> = std::env::args().collect();
    let machine = Machine::parse(&std::fs::read_to_string(&a[1]).unwrap(), &a[1]).unwrap();
    let collective = Collective::from_name(&a[2]).unwrap();
    let size: u64 = a[3].parse().unwrap();
    let path = a.get(4).cloned().filter(|s| s != "-");
    let p = a
        .get(5)
        .map_or(machine.ranks() as u32, |s| s.parse().unwrap());
    let network = fabric::network(&machine, p, path.as_deref()).unwrap();
    let budget: f64 = a.get(6).map_or(10.0, |s| s.parse().unwrap());
    let shape = Shape::new(p, size / 4);
    let limit = linkwright_sim::run::limits_of(
        collective,
        &shape,
        &machine,
        &Options {
            path: path.clone(),
            ..Options::default()
        },
    )
    .unwrap();
    let (mut best, mut what) = (f64::INFINITY, String::new());
    let begin = Instant::now();
    let mut search = Search::new(collective, &shape, &network.wires, network.lanes);
    let mut count = 0;
    let mut rounds = 0;
    let mut at = 0.0;
    let mut tsim = 0.0;
    while let Some(found) = search.next_batch(&|| begin.elapsed().as_secs_f64() < budget) {
        rounds += 1;
        for Found {
            recipe,
            schedule,
            issue,
        } in found.unwrap()
        {
            let t = Instant::now();
            let lowered = linkwright_sim::lowered(&schedule, &machine, path.as_deref()).unwrap();
            let run = lowered.as_ref().unwrap_or(&schedule);
            let o = Options {
                path: path.clone(),
                issue,
                ..Options::default()
            };
            let us = linkwright_sim::run(run, &machine, &o)
                .unwrap()
                .simulation
                .makespan
                .as_us();
            tsim += t.elapsed().as_secs_f64();
            count += 1;
            if us < best {
                verify(run).unwrap();
                best = us;
                at = begin.elapsed().as_secs_f64();
                what = format!("{recipe}, {issue}, {} ops", run.ops().len());
                if std::env::var("V").is_ok() {
                    println!("{at:.2} s {us:.1} us {what}");
                }
            }
        }
        if begin.elapsed().as_secs_f64() > budget {
            break;
        }
    }
    let most = limit.0.iter().max_by_key(|l| l.time).unwrap();
    println!("{} {size}: {best:.1} us, limit {:.1} {} ratio {:.2}; at {at:.2} s of {:.1} (sim {tsim:.1}), {count} runs, {rounds} rounds; {what}", collective.name(), most.time.as_us(), most.name, best / most.time.as_us(), begin.elapsed().as_secs_f64());
}
