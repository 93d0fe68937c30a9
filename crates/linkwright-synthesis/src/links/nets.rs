//! Which pairs a search looks at: all of a few endpoints, the near ones of many.
//!
//! *Near* are the pairs whose messages take no longer than is needed to connect all endpoints. In a hybrid cube mesh
//! these are the NVLinks, without the ways over host memory; in a cluster, the pairs inside a node and those between
//! ports of one rail. Of many equally near pairs, those remain whose endpoints are 1, 2, 4, ... places apart, in both
//! directions.

use super::wires::{Pair, Wires};
use std::fmt;

/// Which pairs a search uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Net {
    /// All that have a route.
    All,
    /// The near ones.
    Near,
    /// All that have a route, and those to and from memories.
    Memories,
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Net::All => "all pairs",
            Net::Near => "near pairs",
            Net::Memories => "all pairs and memories",
        })
    }
}

/// Most pairs of a network that a search takes whole.
const WHOLE: usize = 64 * 63;
/// Most near pairs of an endpoint, on average, before they are thinned out.
const CROWD: usize = 20;

/// The networks on which to search for messages of `bytes`, the smallest first.
pub fn of(wires: &Wires, bytes: u64) -> Vec<(Net, Wires)> {
    let near = near(wires, bytes);
    let fewer = near.pairs().len() < wires.pairs().len();
    let mut nets = Vec::new();
    if wires.pairs().len() <= WHOLE || !fewer {
        nets.push((Net::All, wires.clone()));
    }
    if fewer {
        nets.push((Net::Near, near));
    }
    nets
}

/// The near pairs.
pub fn near(wires: &Wires, bytes: u64) -> Wires {
    let mut times: Vec<u64> = wires
        .pairs()
        .iter()
        .map(|pair| pair.time_ps(bytes))
        .collect();
    times.sort_unstable();
    times.dedup();
    let enough = times.partition_point(|&most| !wires.connects(|pair| pair.time_ps(bytes) <= most));
    let Some(&most) = times.get(enough) else {
        return wires.clone();
    };
    let ranks = wires.endpoints();
    let (closest, crowd) = (times[0], CROWD * ranks as usize);
    let count = |most: u64| {
        let pairs = wires.pairs().iter();
        pairs.filter(|pair| pair.time_ps(bytes) <= most).count()
    };
    let (all_fit, closest_fit) = (count(most) <= crowd, count(closest) <= crowd);
    let regular = |pair: &Pair| {
        let apart = (pair.to + ranks - pair.from) % ranks;
        apart.is_power_of_two() || (ranks - apart).is_power_of_two()
    };
    let is_near = |pair: &Pair| pair.time_ps(bytes) <= most;
    let is_kept = |pair: &Pair| {
        let close = closest_fit && pair.time_ps(bytes) == closest;
        is_near(pair) && (all_fit || close || regular(pair))
    };
    let thinned = wires.only(is_kept).or_else(|_| wires.only(is_near));
    thinned.unwrap_or_else(|_| wires.clone())
}
