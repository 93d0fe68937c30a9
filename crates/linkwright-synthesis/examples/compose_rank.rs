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
    println!("{} recipes", recipes.len());
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
                for &issue in &issues {
                    let o = Options {
                        issue,
                        grid: grid.clone(),
                        path: path.clone(),
                        ..Options::default()
                    };
                    match run(&s, &machine, &o) {
                        Ok(m) => v.push((m.simulation.makespan.0, format!("{issue} {r}"))),
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
