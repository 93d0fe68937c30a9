//! Price all recipes on a machine file: MACHINE COLLECTIVE BYTES SIDES [LIMIT].
use linkwright_core::{Issue, Machine};
use linkwright_schedule::{Collective, Shape};
use linkwright_sim::{run, Options};
use linkwright_synthesis::compose::{compose, enumerate};
use rayon::prelude::*;

fn main() {
    let a: Vec<String> = std::env::args().skip(1).collect();
    let text =
        std::fs::read_to_string(format!("python/linkwright/machines/{}.toml", a[0])).unwrap();
    let machine = Machine::parse(&text, &a[0]).unwrap();
    let collective = [
        Collective::Allreduce,
        Collective::Allgather,
        Collective::ReduceScatter,
        Collective::Broadcast,
        Collective::Alltoall,
    ]
    .into_iter()
    .find(|c| c.name() == a[1])
    .unwrap();
    let bytes: u64 = a[2].parse().unwrap();
    let sides: Vec<u32> = a[3].split('x').map(|s| s.parse().unwrap()).collect();
    let ranks: u32 = sides.iter().product();
    let shape = Shape::new(ranks, bytes / 4);
    let grid = if machine.ranks() == 0 {
        sides.clone()
    } else {
        vec![]
    };
    let recipes = enumerate::recipes(collective, &sides);
    let costs = linkwright_synthesis::compose::costs::measure(&machine, None, &sides).unwrap();
    println!("{} recipes {costs:?}", recipes.len());
    let hops = !machine.sides().is_empty() || grid.len() > 0;
    let mut ranked: Vec<_> = recipes
        .iter()
        .filter_map(|r| {
            Some((
                linkwright_synthesis::compose::estimate::estimate(r, &shape, &costs, hops).ok()?,
                r.clone(),
            ))
        })
        .collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let top: usize = std::env::var("TOP")
        .ok()
        .and_then(|t| t.parse().ok())
        .unwrap_or(usize::MAX);
    for (t, r) in ranked.iter().take(4) {
        println!("  about {:9.3} us  {r}", t / 1e6);
    }
    ranked.truncate(top);
    let place: std::collections::HashMap<String, usize> = ranked
        .iter()
        .enumerate()
        .map(|(k, r)| (r.1.to_string(), k))
        .collect();
    let recipes: Vec<_> = ranked.into_iter().map(|r| r.1).collect();
    let wanted = a.get(4).cloned().unwrap_or_default();
    let issues: Vec<Issue> = a
        .get(5)
        .map(|s| s.as_str())
        .unwrap_or("unlimited")
        .split(',')
        .map(|s| s.parse().unwrap())
        .collect();
    let slices: Vec<u32> = a
        .get(6)
        .map(|s| s.as_str())
        .unwrap_or("1")
        .split(',')
        .map(|s| s.parse().unwrap())
        .collect();
    let path = a.get(7).cloned();
    let mut out: Vec<(u64, String)> = recipes
        .par_iter()
        .filter(|r| r.to_string().contains(&wanted))
        .flat_map_iter(|r| {
            let mut v = vec![];
            for &n in &slices {
                let mut r = r.clone();
                r.slices = n;
                let s = match compose(&r, &shape) {
                    Ok(s) => s,
                    Err(_) => continue,
                };
                if n == slices[0] && std::env::var("VERIFY").is_ok() {
                    linkwright_schedule::verify(&s).unwrap_or_else(|e| panic!("{r}: {e}"));
                }
                let s = linkwright_sim::lowered(&s, &machine, path.as_deref())
                    .unwrap()
                    .unwrap_or(s);
                for &issue in &issues {
                    let o = Options {
                        issue,
                        grid: grid.clone(),
                        path: path.clone(),
                        ..Options::default()
                    };
                    match run(&s, &machine, &o) {
                        Ok(m) => v.push((
                            m.simulation.makespan.0,
                            format!("#{} {issue} {r}", {
                                let mut q = r.clone();
                                q.slices = 1;
                                place[&q.to_string()]
                            }),
                        )),
                        Err(e) => v.push((u64::MAX, format!("{issue} {r} {e}"))),
                    }
                }
            }
            v.into_iter()
        })
        .collect();
    out.sort();
    for (t, r) in out.iter().take(12) {
        println!("{:9.3} us  {}", *t as f64 / 1e6, r);
    }
    let bad = out.iter().filter(|o| o.0 == u64::MAX).count();
    if bad > 0 {
        println!("{bad} failed, e.g. {}", out.last().unwrap().1);
    }
}
