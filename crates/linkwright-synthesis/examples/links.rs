//! try
use linkwright_core::{EndpointId, Machine};
use linkwright_schedule::{verify, Collective, Shape};
use linkwright_sim::fabric::{Msg, MsgKind};
use linkwright_sim::Options;
use linkwright_synthesis::links::search::{Found, Search};
use linkwright_synthesis::links::wires::{Pair, Wires};
use std::time::Instant;

fn wires(machine: &Machine, p: u32, network: u8, channels: Option<u32>) -> Wires {
    let mut fabric = linkwright_sim::fabrics::build(machine).unwrap();
    if let Some(c) = channels {
        fabric.bundle(c)
    }
    let mut pairs = Vec::new();
    for from in 0..p {
        for to in (0..p).filter(|&to| to != from) {
            let (a, b) = (EndpointId(from), EndpointId(to));
            let Some(wire) = fabric.wire(a, b, network) else {
                continue;
            };
            let bytes = 1 << 20;
            let quiet = fabric
                .quiet(&Msg {
                    network,
                    ..Msg::new(0, MsgKind::Put, a, b, bytes)
                })
                .0;
            let mut pair = Pair {
                from,
                to,
                start_ps: wire.start.0,
                latency_ps: 0,
                rate: wire.rate,
                uses: wire.uses,
            };
            pair.latency_ps = quiet.saturating_sub(pair.time_ps(bytes));
            pairs.push(pair);
        }
    }
    Wires::new(p, fabric.capacities(), pairs).unwrap()
}

fn main() {
    let a: Vec<String> = std::env::args().collect();
    let machine = Machine::parse(&std::fs::read_to_string(&a[1]).unwrap(), &a[1]).unwrap();
    let collective = Collective::from_name(&a[2]).unwrap();
    let size: u64 = a[3].parse().unwrap();
    let path = a.get(4).cloned().filter(|s| s != "-");
    let p = a
        .get(5)
        .map_or(machine.ranks() as u32, |s| s.parse().unwrap());
    let used = path
        .as_ref()
        .map_or(machine.default_path(), |n| machine.path(n).unwrap());
    let network = used.network.unwrap_or(0);
    let all = wires(&machine, p, network, used.channels);
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
    let mut search = Search::new(collective, &shape, &all, 254);
    let mut count = 0;
    let mut rounds = 0;
    let mut at = 0.0;
    let mut tsim = 0.0;
    while let Some(found) = search.next_round() {
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
