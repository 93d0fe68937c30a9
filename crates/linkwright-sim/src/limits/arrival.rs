//! Bytes that pass a port or a cut, and the time before the first of them can.
//!
//! ```text
//!   into rank r     first + bytes of all sources from which nothing enters sooner / rate + last
//!   out of rank r   least start of a message + bytes / rate + last
//!   all ports, cuts the same, over all messages that may pass
//! ```
//!
//! Before a byte of source s enters the port of r, news of s must have reached the relay that sends it (s itself, or
//! any other node), and that message must have begun to move. So the bytes of all sources whose first byte enters at
//! `first` or later take their time at the port behind `first`. The least time from the departure of a last byte to its
//! delivery comes behind.

use super::demand::{Demand, Whole};
use super::distance::{shortest, Distances};
use super::Limit;
use crate::fabric::Fabric;
use crate::network::{NetworkCut, PortRates};
use linkwright_core::{BytesPerSec, TimePs};
use linkwright_schedule::Collective;

/// Most nodes of which all pairs are looked at.
pub(super) const MOST: usize = 72;
/// Most nodes among which the shortest ways are searched; of more, relays are taken to be as near as the nearest.
const SEARCHED: usize = 16;

/// Picoseconds before the first byte of a message can pass, and behind the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ends {
    first: u64,
    last: u64,
}

impl Ends {
    /// The least of both.
    fn least(all: impl Iterator<Item = Ends>) -> Option<Ends> {
        all.reduce(|a, b| Ends {
            first: a.first.min(b.first),
            last: a.last.min(b.last),
        })
    }

    /// `None` where bytes wait for nothing.
    fn limit(self, what: &str, bytes: u64, rate: BytesPerSec) -> Option<Limit> {
        if self.first + self.last == 0 {
            return None;
        }
        let first = self.first as f64 / 1e3;
        let what = format!("{what}, none before {first:.1} ns");
        let passing = Limit::of_rate("arrival", what, bytes, rate);
        Some(Limit {
            time: TimePs(self.first + passing.time.0 + self.last),
            ..passing
        })
    }
}

/// Ends and times of messages between all pairs of nodes.
pub(super) struct Table {
    nodes: usize,
    /// How many of the nodes, the first, are ranks of the problem.
    ranks: usize,
    ends: Vec<Option<Ends>>,
    /// Least time of a message; `u64::MAX` where none goes.
    hop: Vec<u64>,
}

impl Table {
    /// That of `distances`, of whose nodes the first are `ranks` ranks.
    pub fn new<F: Fabric + ?Sized>(distances: &Distances<'_, F>, ranks: usize) -> Self {
        let nodes = distances.nodes.len();
        let pairs = || (0..nodes).flat_map(move |a| (0..nodes).map(move |b| (a, b)));
        let hop = |(a, b): (usize, usize)| match a == b {
            true => 0,
            false => distances.hop(distances.nodes[a], distances.nodes[b]),
        };
        let ends = |(a, b)| (a != b).then(|| ends(distances, a, b)).flatten();
        Table {
            nodes,
            ranks,
            ends: pairs().map(ends).collect(),
            hop: pairs().map(hop).collect(),
        }
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// How many of them, the first, are ranks of the problem.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Least picoseconds of a message from `a` to `b`; `u64::MAX` where none goes.
    pub fn hop(&self, a: usize, b: usize) -> u64 {
        self.hop[a * self.nodes + b]
    }

    /// Picoseconds before the first byte of a message from `a` to `b` can pass, and behind the last one.
    pub fn around(&self, a: usize, b: usize) -> Option<(u64, u64)> {
        self.ends(a, b).map(|ends| (ends.first, ends.last))
    }

    fn ends(&self, a: usize, b: usize) -> Option<Ends> {
        self.ends[a * self.nodes + b]
    }

    /// The least ends of the messages that `passes` lets pass.
    fn least(&self, passes: impl Fn(usize, usize) -> bool) -> Option<Ends> {
        let of = |place: usize| (place / self.nodes, place % self.nodes);
        let all = (0..self.ends.len()).map(of);
        Ends::least(
            all.filter(|&(a, b)| passes(a, b))
                .filter_map(|(a, b)| self.ends(a, b)),
        )
    }

    /// Of `bytes` that all must receive together, at the rate of everything together.
    pub fn total(&self, what: &str, bytes: u64, rate: BytesPerSec) -> Option<Limit> {
        let ends = self.least(|_, _| true)?;
        ends.limit(what, bytes, rate)
    }

    /// Of `bytes` across `cut`, at a rate. Nodes other than ranks may be on either side.
    pub fn across(
        &self,
        what: &str,
        cut: &NetworkCut,
        (bytes, rate): (u64, BytesPerSec),
    ) -> Option<Limit> {
        let known = cut.inside.len() == self.nodes;
        let ends = self.least(|a, b| !known || cut.inside[a] != cut.inside[b])?;
        ends.limit(what, bytes, rate)
    }

    /// Of what must leave and enter `rank` through its port.
    pub fn through(&self, demand: &Demand, rank: usize, port: PortRates) -> Vec<Limit> {
        let (out, into) = demand.through(&[rank as u32])[0];
        let leaving = port.out.filter(|_| out > 0).and_then(|rate| {
            let ends = self.least(|a, _| a == rank)?;
            ends.limit(&format!("out of rank {rank}"), out, rate)
        });
        let entering = port.into.filter(|_| into > 0);
        let entering = entering.and_then(|rate| self.into(demand, rank, (into, rate)));
        leaving.into_iter().chain(entering).collect()
    }

    /// Of what must enter `rank`, the last of it from the farthest sources.
    fn into(
        &self,
        demand: &Demand,
        rank: usize,
        (bytes, rate): (u64, BytesPerSec),
    ) -> Option<Limit> {
        let last = self.least(|_, b| b == rank)?.last;
        let mut sources: Vec<u64> = (self.sources(demand, rank).into_iter())
            .filter_map(|source| self.enters(source, rank))
            .collect();
        sources.sort_unstable_by_key(|&first| std::cmp::Reverse(first));
        // Of blocks, each waits for its own source; of sums, all bytes wait for the farthest.
        let each = shares(demand, rank).map_or(bytes, |count| bytes / count.max(1));
        let what = format!("into rank {rank}");
        let limits = (1u64..).zip(sources).filter_map(|(count, first)| {
            let bytes = each.saturating_mul(count).min(bytes);
            Ends { first, last }.limit(&what, bytes, rate)
        });
        limits.max_by_key(|limit| limit.time)
    }

    /// Ranks whose data `rank` needs.
    fn sources(&self, demand: &Demand, rank: usize) -> Vec<usize> {
        let alone =
            |of: &Whole| matches!(of.collective, Collective::Broadcast | Collective::Scatter);
        let all = match demand.collective().filter(alone) {
            Some(Whole { root, .. }) => root as usize..root as usize + 1,
            None => 0..self.ranks,
        };
        all.filter(|&source| source != rank).collect()
    }

    /// The earliest that a byte of `source` enters `rank`, sent by itself or by a relay.
    fn enters(&self, source: usize, rank: usize) -> Option<u64> {
        let first = |relay: usize| self.ends(relay, rank).map(|ends| ends.first);
        let direct = first(source).unwrap_or(u64::MAX);
        let nearest = (0..self.nodes).filter_map(first).min()?;
        let hops = &self.hop[source * self.nodes..][..self.nodes];
        let others = (0..self.nodes).filter(|&other| other != source);
        let away = others.map(|other| hops[other]).min()?;
        let relayed = away.saturating_add(nearest);
        if direct <= relayed || self.nodes > SEARCHED {
            return Some(direct.min(relayed));
        }
        let reached = shortest(source, hops.to_vec(), |a, b| self.hop[a * self.nodes + b]);
        let over = |(relay, at): (usize, u64)| Some(first(relay)?.saturating_add(at));
        reached.into_iter().enumerate().filter_map(over).min()
    }
}

/// The ends of a message from node `a` to node `b`; `None` where none goes.
fn ends<F: Fabric + ?Sized>(distances: &Distances<'_, F>, a: usize, b: usize) -> Option<Ends> {
    let path = &distances.setup.path;
    let (from, to) = (distances.nodes[a], distances.nodes[b]);
    let begin = (path.start + path.per_run).0;
    let open = |network: &&u8| distances.network.no_route(from, to, **network).is_none();
    let ends = |&network: &u8| {
        let (first, last) = distances.network.ends(from, to, network);
        // Where a fabric does not know them, software is not counted either.
        let known = first + last > TimePs::ZERO;
        Ends {
            first: if known { begin + first.0 } else { 0 },
            last: last.0,
        }
    };
    Ends::least(distances.networks.iter().filter(open).map(ends))
}

/// Into how many equal shares by source the bytes into `rank` divide; `None` where each of them needs all sources.
fn shares(demand: &Demand, rank: usize) -> Option<u64> {
    let of = demand.collective()?;
    let equal = match of.collective {
        Collective::Allgather | Collective::Alltoall => true,
        Collective::Gather => of.root as usize == rank,
        _ => false,
    };
    equal.then(|| u64::from(of.ranks) - 1)
}
