//! Paths for data that one endpoint has for another: all-to-all, gather, scatter.
//!
//! ```text
//!   0 -> 5      half over 1, half over 4          pairs without a link of their own are relayed by endpoints
//! ```
//!
//! The fractional optimum is a concurrent multicommodity flow. Here each slice of each pair's data is one unit that
//! takes the cheapest path at the prices of [`super::loads`]; then each is taken out and routed again until the busiest
//! link is no less busy. With s slices, shares of a flow are multiples of 1 / s.
//!
//! Source: Shahrokhi and Matula, "The maximum concurrent flow problem" (J. ACM 1990); Basu, Zhao, Fantl, Pal,
//! Krishnamurthy and Khoury, "Efficient all-to-all collective communication schedules for direct-connect topologies"
//! (HPDC 2024), flows rounded to paths.

use super::loads::Loads;
use super::plan::{Plan, Task};
use super::wires::Wires;

/// What is routed, and how hard.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// Slices of what a pair exchanges.
    pub slices: u32,
    /// How much more a pair costs for each one before it on the path.
    pub detour: f64,
    /// Times that every path is taken out and routed again.
    pub rounds: u32,
}

/// Paths for `demands` (from, to), and the load of the busiest link: seconds that 1 GB of each slice keeps it busy.
/// Each goes over pairs of `relays`, as pair numbers by endpoint, and at last over any pair.
pub fn route(
    wires: &Wires,
    relays: &[Vec<u32>],
    demands: &[(u32, u32)],
    wish: Wish,
) -> (Plan, f64) {
    let mut loads = Loads::new(wires);
    let lead = |loads: &mut Loads<'_>, demand| lead((wires, relays), loads, demand, wish.detour);
    loads.sharpen(4.0);
    let slices = 0..wish.slices;
    let mut paths: Vec<Vec<u32>> = slices
        .flat_map(|_| demands.iter())
        .map(|&demand| lead(&mut loads, demand))
        .collect();
    let mut best = (paths.clone(), loads.busiest(), loads.total());
    for round in 0..wish.rounds {
        loads.sharpen(8.0 * f64::from(round.min(3) + 1));
        for (number, path) in paths.iter_mut().enumerate() {
            path.iter().for_each(|&pair| loads.add(pair, -1.0));
            *path = lead(&mut loads, demands[number % demands.len()]);
        }
        let (busiest, total) = (loads.busiest(), loads.total());
        if busiest < best.1 * (1.0 - 1e-9) || busiest < best.1 * (1.0 + 1e-9) && total < best.2 {
            best = (paths.clone(), busiest, total);
        }
    }
    (plan(wires, demands, &best.0, wish.slices), best.1)
}

/// The tasks of the paths, in which longer paths come first.
fn plan(wires: &Wires, demands: &[(u32, u32)], paths: &[Vec<u32>], slices: u32) -> Plan {
    let mut tasks = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        let (from, to) = demands[number % demands.len()];
        let slice = (number / demands.len()) as u32;
        let chunk = (from * wires.ranks() + to) * slices + slice;
        tasks.extend(path.iter().map(|&pair| Task {
            pair,
            chunk,
            reduce: false,
        }));
    }
    Plan {
        tasks,
        blocks: wires.ranks(),
        slices,
    }
}

/// Route a unit over the cheapest path (Dijkstra), and load it.
fn lead(
    (wires, relays): (&Wires, &[Vec<u32>]),
    loads: &mut Loads<'_>,
    (from, to): (u32, u32),
    detour: f64,
) -> Vec<u32> {
    let n = wires.endpoints() as usize;
    let mut cost = vec![f64::INFINITY; n];
    let (mut by, mut hops, mut done) = (vec![u32::MAX; n], vec![0u32; n], vec![false; n]);
    cost[from as usize] = 0.0;
    while let Some(at) = (0..n)
        .filter(|&v| !done[v] && cost[v].is_finite())
        .min_by(|&a, &b| cost[a].total_cmp(&cost[b]))
    {
        if at == to as usize {
            break;
        }
        done[at] = true;
        let last = wires.between(at as u32, to);
        for &pair in relays[at].iter().chain(&last) {
            let next = wires.pair(pair).to as usize;
            let far = 1.0 + detour * f64::from(hops[at]);
            let new = cost[at] + loads.cost(pair) * far;
            if new < cost[next] {
                (cost[next], by[next], hops[next]) = (new, pair, hops[at] + 1);
            }
        }
    }
    let mut path = Vec::new();
    let mut at = to;
    while at != from {
        let pair = by[at as usize];
        path.push(pair);
        at = wires.pair(pair).from;
    }
    path.reverse();
    path.iter().for_each(|&pair| loads.add(pair, 1.0));
    path
}
