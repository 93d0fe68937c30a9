//! What all links together must carry, each byte counted at the price of its way.
//!
//! Give every link a price for a byte, such that all links together earn at most 1 in a second: the sum of
//! price x rate is 1. A message of n bytes then costs n times the prices of the links on its way. Whatever the prices,
//! what a collective costs at least is a time that no schedule beats:
//!
//! ```text
//!   cut, port      price 1 / rate on the links across it, 0 on all others
//!   any prices     rank 0 ---- 1 ---- 2          the cheapest ways that bring everything to where it must be
//!                            \ host /
//! ```
//!
//! | collective | what it costs at least, for S bytes |
//! |---|---|
//! | broadcast, allgather | of each rank: the bytes that it must receive at the cheapest way into it |
//! | reduce, reduce_scatter | of each rank: the bytes that it must send at the cheapest way out of it |
//! | gather, scatter, alltoall | of each block: its cheapest way over any relays |
//! | allreduce | 2 S for each link of the cheapest tree of ranks |
//!
//! Why the last: take any price t, and join all ranks and memories between which a message costs at most t. Let k
//! groups with ranks remain. Each element then takes 2 (k - 1) messages that cost more than t: until one group has the
//! whole sum, the k - 1 others have sent, and from then on k - 1 must still receive. Summed over all t, that is twice
//! the cost of Kruskal's tree, in which only those links count that join two groups with ranks.
//!
//! Prices are found as in a game, in which what the cheapest ways load most becomes dearer, in ever smaller steps. They
//! need not be the best for the limit to hold. By linear programming duality, the best ones give the optimum of a
//! fractional flow, or of a packing of trees; the mean of all traffic so far says how near they are.
//!
//! Source: Freund and Schapire, "Adaptive game playing using multiplicative weights" (Games Econ. Behav. 1999);
//! Golumbic, "The general gossip problem" (1974), the 2 (k - 1) messages.

use crate::network::Ways;
use linkwright_schedule::Collective;

/// Most nodes among which ways are priced.
pub(super) const MOST: usize = 16;
/// Steps with one size, and sizes of steps.
const STEPS: (usize, usize) = (200, 10);
/// The first size of steps, and how much smaller each next one is.
const SIZE: (f64, f64) = (0.5, 0.75);
/// Steps between two looks at the mean of a size.
const LOOK: usize = 20;
/// Share of the best prices that is near enough.
const NEAR: f64 = 1e-3;
/// What rounding may have added.
const ROUNDING: f64 = 1e-9;
/// Terms of the series of [`exponential`]: the next one is below the last digit.
const TERMS: u32 = 17;

/// The ways of a problem, and what it asks of them.
pub(super) struct Market<'a> {
    ways: &'a Ways,
    /// How many of the nodes, the first, are ranks.
    ranks: usize,
    need: Need,
    /// By way, its links and how long a byte keeps each of them busy.
    seconds: Vec<Vec<(usize, f64)>>,
    /// Ways that join the same two nodes.
    between: Vec<Vec<usize>>,
}

/// What must move, as shares of the vector.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Need {
    /// Into each rank except one.
    Enter { share: f64, except: Option<usize> },
    /// Out of each rank except one.
    Leave { share: f64, except: Option<usize> },
    /// A block from each of some ranks to each of some.
    Travel {
        from: Option<usize>,
        to: Option<usize>,
    },
    /// Sums of all, to all.
    Join,
}

impl Need {
    fn of(collective: Collective, ranks: usize, root: usize) -> Option<Self> {
        let others = (ranks - 1) as f64 / ranks as f64;
        let (enter, leave) = (
            |share, except| Need::Enter { share, except },
            |share, except| Need::Leave { share, except },
        );
        let travel = |from, to| Need::Travel { from, to };
        Some(match collective {
            Collective::Allreduce => Need::Join,
            Collective::Allgather => enter(others, None),
            Collective::ReduceScatter => leave(others, None),
            Collective::Broadcast => enter(1.0, Some(root)),
            Collective::Reduce => leave(1.0, Some(root)),
            Collective::Gather => travel(None, Some(root)),
            Collective::Scatter => travel(Some(root), None),
            Collective::Alltoall => travel(None, None),
            _ => return None,
        })
    }
}

/// How much goes over each way, by its number.
type Traffic = Vec<(usize, f64)>;

impl<'a> Market<'a> {
    /// That of `collective`; `None` where it moves no data.
    pub fn new(
        ways: &'a Ways,
        (collective, ranks, root): (Collective, usize, usize),
    ) -> Option<Self> {
        let need = Need::of(collective, ranks, root).filter(|_| ranks > 1)?;
        Some(Market {
            ways,
            ranks,
            need,
            seconds: seconds(ways),
            between: between(ways),
        })
    }

    /// Seconds for each byte of the vector that no schedule beats; 0 where nothing is known.
    pub fn seconds_per_byte(&self) -> f64 {
        // All prices equal, as shares of what the links earn in a second; a link without use never gets one.
        let mut even = vec![0.0; self.ways.capacities.len()];
        for &(link, _) in self.ways.all.iter().flat_map(|way| &way.uses) {
            even[link as usize] = self.ways.capacities[link as usize] as f64;
        }
        let total: f64 = even.iter().sum();
        even.iter_mut().for_each(|share| *share /= total);
        let mut best = (self.cheapest(&even).0, even);
        if !best.0.is_finite() {
            return 0.0;
        }
        // What the least busy mix of traffic takes: no prices give more.
        let mut least = f64::INFINITY;
        let mut size = SIZE.0;
        for _ in 0..STEPS.1 {
            let mut shares = best.1.clone();
            let (mut sum, mut loads) = (vec![0.0; shares.len()], vec![0.0; shares.len()]);
            for step in 1..=STEPS.0 {
                let (value, traffic) = self.cheapest(&shares);
                improve(&mut best, value, &shares);
                let load = self.load(&traffic);
                raise(&mut shares, &load, size);
                add(&mut sum, &shares);
                add(&mut loads, &load);
                if step % LOOK == 0 {
                    let mean: Vec<f64> = sum.iter().map(|sum| sum / step as f64).collect();
                    improve(&mut best, self.cheapest(&mean).0, &mean);
                    least = least.min(most(&loads) / step as f64);
                    if best.0 >= least * (1.0 - NEAR) {
                        return best.0 * (1.0 - ROUNDING);
                    }
                }
            }
            size *= SIZE.1;
        }
        best.0 * (1.0 - ROUNDING)
    }

    /// Seconds for which `traffic` keeps each link busy.
    fn load(&self, traffic: &Traffic) -> Vec<f64> {
        let mut load = vec![0.0; self.ways.capacities.len()];
        for &(way, bytes) in traffic {
            for &(link, seconds) in &self.seconds[way] {
                load[link] += bytes * seconds;
            }
        }
        load
    }

    /// What a byte over each way costs at these shares of the links.
    fn costs(&self, shares: &[f64]) -> Vec<f64> {
        let price = |&(link, seconds): &(usize, f64)| seconds * shares[link];
        let cost = |way: &Vec<(usize, f64)>| way.iter().map(price).sum();
        self.seconds.iter().map(cost).collect()
    }

    /// What a byte of the vector costs at least, and the traffic that costs so much.
    fn cheapest(&self, shares: &[f64]) -> (f64, Traffic) {
        let costs = self.costs(shares);
        let traffic = match self.need {
            Need::Enter { share, except } => self.nearest(&costs, |way| way.to, (share, except)),
            Need::Leave { share, except } => self.nearest(&costs, |way| way.from, (share, except)),
            Need::Travel { from, to } => self.paths(&costs, from, to),
            Need::Join => Some(self.tree(&costs)),
        };
        match traffic {
            None => (f64::INFINITY, Vec::new()),
            Some(traffic) => (
                traffic.iter().map(|&(way, bytes)| bytes * costs[way]).sum(),
                traffic,
            ),
        }
    }

    /// The cheapest way at each rank, which is at its `end`.
    fn nearest(
        &self,
        costs: &[f64],
        end: impl Fn(&crate::network::Way) -> usize,
        (share, except): (f64, Option<usize>),
    ) -> Option<Traffic> {
        let mut best = vec![None; self.ranks];
        for (way, described) in self.ways.all.iter().enumerate() {
            if let Some(best) = best.get_mut(end(described)) {
                if best.is_none_or(|other: usize| costs[way] < costs[other]) {
                    *best = Some(way);
                }
            }
        }
        let asked = best
            .into_iter()
            .enumerate()
            .filter(|&(rank, _)| Some(rank) != except);
        asked.map(|(_, way)| Some((way?, share))).collect()
    }

    /// The cheapest paths (Floyd and Warshall).
    fn paths(&self, costs: &[f64], from: Option<usize>, to: Option<usize>) -> Option<Traffic> {
        let n = self.ways.nodes;
        let mut far = vec![f64::INFINITY; n * n];
        // The first way of the path from one node to another.
        let mut first = vec![usize::MAX; n * n];
        for (number, way) in self.ways.all.iter().enumerate() {
            let place = way.from * n + way.to;
            if costs[number] < far[place] {
                (far[place], first[place]) = (costs[number], number);
            }
        }
        for over in 0..n {
            let behind = far[over * n..][..n].to_vec();
            for a in (0..n).filter(|&a| a != over) {
                let (before, way) = (far[a * n + over], first[a * n + over]);
                for b in (0..n).filter(|&b| b != a) {
                    let place = a * n + b;
                    if before + behind[b] < far[place] {
                        (far[place], first[place]) = (before + behind[b], way);
                    }
                }
            }
        }
        let share = 1.0 / self.ranks as f64;
        let mut bytes = vec![0.0; self.ways.all.len()];
        for a in (0..self.ranks).filter(|&a| from.is_none_or(|from| from == a)) {
            for b in (0..self.ranks).filter(|&b| b != a && to.is_none_or(|to| to == b)) {
                let mut at = a;
                while at != b {
                    let way = *first.get(at * n + b).filter(|&&way| way != usize::MAX)?;
                    bytes[way] += share;
                    at = self.ways.all[way].to;
                }
            }
        }
        Some(
            bytes
                .into_iter()
                .enumerate()
                .filter(|&(_, bytes)| bytes > 0.0)
                .collect(),
        )
    }

    /// The links of the cheapest tree that join two groups with ranks, twice each (Kruskal).
    fn tree(&self, costs: &[f64]) -> Traffic {
        let cheaper = |a: &usize, b: &usize| costs[*a].total_cmp(&costs[*b]).then(a.cmp(b));
        let between = self.between.iter();
        let mut order: Vec<usize> = between
            .filter_map(|ways| ways.iter().copied().min_by(cheaper))
            .collect();
        order.sort_unstable_by(cheaper);
        let mut group: Vec<usize> = (0..self.ways.nodes).collect();
        let mut has_ranks: Vec<bool> = group.iter().map(|&node| node < self.ranks).collect();
        let (mut traffic, mut groups) = (Vec::new(), group.len());
        for number in order {
            let way = &self.ways.all[number];
            let (kept, joined) = (group[way.from], group[way.to]);
            if kept == joined {
                continue;
            }
            if has_ranks[kept] && has_ranks[joined] {
                traffic.push((number, 2.0));
            }
            has_ranks[kept] |= has_ranks[joined];
            for own in group.iter_mut().filter(|own| **own == joined) {
                *own = kept;
            }
            groups -= 1;
            if groups == 1 {
                break;
            }
        }
        traffic
    }
}

fn seconds(ways: &Ways) -> Vec<Vec<(usize, f64)>> {
    let of = |&(link, weight): &(u32, u32)| {
        let rate = ways.capacities[link as usize] as f64;
        (link as usize, f64::from(weight) / rate)
    };
    let all = ways.all.iter();
    all.map(|way| way.uses.iter().map(of).collect()).collect()
}

/// By two nodes, the ways between them, in either direction.
fn between(ways: &Ways) -> Vec<Vec<usize>> {
    let mut found = vec![Vec::new(); ways.nodes * ways.nodes];
    for (number, way) in ways.all.iter().enumerate() {
        let (low, high) = (way.from.min(way.to), way.from.max(way.to));
        found[low * ways.nodes + high].push(number);
    }
    found.retain(|ways| !ways.is_empty());
    found
}

/// Make dearer what is loaded, the busiest link by `size`.
fn raise(shares: &mut [f64], load: &[f64], size: f64) {
    let most = most(load);
    for (share, &load) in shares.iter_mut().zip(load) {
        if load > 0.0 {
            *share *= exponential(size * load / most);
        }
    }
    let total: f64 = shares.iter().sum();
    shares.iter_mut().for_each(|share| *share /= total);
}

/// e^x for x from 0 to 1 by its series. That of the standard library differs by processor and C library in the last
/// digit, and prices follow it to other limits, which are no worse but not the same.
fn exponential(x: f64) -> f64 {
    (1..=TERMS)
        .rev()
        .fold(1.0, |sum, n| 1.0 + sum * x / f64::from(n))
}

fn add(sum: &mut [f64], values: &[f64]) {
    sum.iter_mut()
        .zip(values)
        .for_each(|(sum, value)| *sum += value);
}

fn most(load: &[f64]) -> f64 {
    load.iter().copied().fold(f64::MIN_POSITIVE, f64::max)
}

fn improve(best: &mut (f64, Vec<f64>), value: f64, shares: &[f64]) {
    if value > best.0 {
        *best = (value, shares.to_vec());
    }
}
