//! A rank sends on only what it has received, and what comes too late is not sent on.
//!
//! ```text
//!   head    a link of v carries nothing before v can have something      | at(v)  xxxxxxxxxxxx|
//!   tail    what enters a group within the last hop enters m times                      | m x |
//!                                                                        0             T - h  T
//! ```
//!
//! Divide the nodes into groups. A broadcast brings each byte into every group without the root, over links that lead
//! from one group to another. A link of rate r carries data from at = (the least time until its sender has any + that
//! until its first byte moves) until T less the time behind its last byte, so at most r (T - at).
//!
//! A group whose m ranks all need a byte gets it once if someone inside has the time to tell the others. That takes a
//! hop of h or more behind its delivery. A byte of which no message had left by T - h comes from outside for each of the m.
//! If x of the D bytes that enter groups come in time, m (D - x) + x enter, x of them by T - h:
//!
//! ```text
//!   m D  <=  sum over links of  r (T - at)+  +  (m - 1) r (T - h - at)+
//! ```
//!
//! The least T is a limit. Groups are
//!
//! ```text
//!   the sender | all others      S leaves the sender, the last of it S / m at a time
//!   each rank by itself          all send on, none before it has something: p - 1 times S over ever more links
//!   nodes of a cluster           the same among nodes; the last of it must reach each rank of a node from outside
//!   all others | the receiver    links of near neighbours carry sooner than those of far ones
//! ```
//!
//! Backwards in time it holds for sums: each rank has a contribution for every element, and one that leaves a group before
//! anybody inside can have added it to others leaves m times.
//!
//! | collective | is at least |
//! |---|---|
//! | broadcast | one of S |
//! | reduce | one of S backwards |
//! | allgather | broadcasts of S / p from all ranks |
//! | reduce_scatter | the same backwards |
//! | allreduce | one of S from any rank, whose data every sum tells; one backwards to any; 2 (k - 1) S among k groups |
//!
//! The last for the reason given in [`super::prices`].
//!
//! Sound where a message passes the links once for each target ([`Network::gates`](crate::network::Network::gates)).
//! Elsewhere the ports of ranks are taken for links, and where one message serves many, only those into ranks. Where
//! switches combine, only data that are not added up are looked at: what several sources send as one is of no use to a
//! broadcast.
//!
//! Source: Ford and Fulkerson, "Constructing maximal dynamic flows from static flows" (Operations Research 1958), flows
//! that take time; Karp and others (SPAA 1993), growth.

use super::arrival::Table;
use super::distance::shortest;
use super::links::Links;
use super::Limit;
use crate::network::Gates;
use linkwright_core::{BytesPerSec, TimePs};
use linkwright_schedule::Collective;

/// Most divisions into groups of near nodes that are looked at.
const DIVISIONS: usize = 4;
/// Picoseconds that rounding may have taken away.
const ROUNDING: f64 = 1e-3;

/// Which way data go in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Forwards,
    Backwards,
}

/// Whose data move; backwards, for whom they are.
#[derive(Clone, Debug)]
enum Ends {
    /// All of one rank's.
    One(usize),
    /// A block of each.
    Each,
    /// A block of each of some, between them and one rank.
    Far(Vec<usize>, usize),
    /// Sums of all, which all need.
    Sums,
}

/// A link from `at` on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Channel {
    /// Picoseconds before its first byte and behind its last one.
    at: u64,
    /// Bytes per second.
    rate: f64,
}

/// One limit, for vectors of any size.
#[derive(Clone, Debug, PartialEq)]
struct Growth {
    what: String,
    /// Bytes that enter groups, for each byte of the vector.
    demand: f64,
    /// How often what comes too late enters a group.
    times: f64,
    /// By time.
    channels: Vec<Channel>,
}

impl Growth {
    /// That of a group whose ranks tell each other within `hop`.
    fn new(what: String, demand: f64, (times, hop): (usize, u64), links: Vec<Channel>) -> Self {
        let times = times as f64;
        let late = links.iter().map(|channel| Channel {
            at: channel.at.saturating_add(hop),
            rate: (times - 1.0) * channel.rate,
        });
        let mut channels: Vec<Channel> = links.iter().copied().chain(late).collect();
        channels.retain(|channel| channel.rate > 0.0 && channel.at < u64::MAX);
        channels.sort_by_key(|channel| channel.at);
        Growth {
            what,
            demand,
            times,
            channels,
        }
    }

    /// The least time for a vector of `bytes`.
    fn time(&self, bytes: u64) -> u64 {
        filled(&self.channels, self.times * self.demand * bytes as f64)
    }

    fn limit(&self, bytes: u64) -> Option<Limit> {
        let (first, time) = (self.channels.first()?.at, self.time(bytes));
        let moved = (self.demand * bytes as f64) as u64;
        let rate = moved as f64 * 1e12 / time.saturating_sub(first).max(1) as f64;
        let what = format!("{}, none before {:.1} ns", self.what, first as f64 / 1e3);
        Some(Limit {
            name: "arrival",
            time: TimePs(time),
            what,
            bytes: moved,
            rate: Some(BytesPerSec(rate)),
        })
    }
}

/// When `channels`, which are in the order of time, have carried `bytes`.
fn filled(channels: &[Channel], bytes: f64) -> u64 {
    let (mut rate, mut ahead, mut time) = (0.0, 0.0, f64::MAX);
    for channel in channels {
        if time <= channel.at as f64 {
            break;
        }
        rate += channel.rate;
        ahead += channel.rate * channel.at as f64;
        time = (bytes * 1e12 + ahead) / rate;
    }
    match channels.is_empty() || bytes <= 0.0 {
        true => 0,
        false => (time + ROUNDING) as u64,
    }
}

/// All limits of a collective for its nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Growths(Vec<Growth>);

impl Growths {
    /// Those of `collective` among the nodes of `table`, with its root; of sums only unless they are `combined` on the way.
    /// A rank is at work for `handling` until it can use what arrives.
    pub fn new(
        table: &Table,
        gates: &[Gates],
        (collective, root): (Collective, usize),
        (combined, handling): (bool, u64),
    ) -> Self {
        let (there, back) = (Way::Forwards, Way::Backwards);
        let one = |way| (way, Ends::One(root));
        let each = |way| {
            let far = far(table, way).into_iter().map(|far| Ends::Far(far, 0));
            far.chain([Ends::Each]).map(move |ends| (way, ends))
        };
        let stories = match collective {
            Collective::Broadcast => vec![one(there)],
            Collective::Allgather => each(there).collect(),
            Collective::Reduce if !combined => vec![one(back)],
            Collective::ReduceScatter if !combined => each(back).collect(),
            Collective::Allreduce if !combined => {
                let any = |way| (way, Ends::One(0));
                vec![any(there), any(back), (there, Ends::Sums)]
            }
            _ => Vec::new(),
        };
        let links = Links::new(gates);
        let of = |(way, ends)| Telling::new((table, handling), &links, way, ends).all();
        Growths(stories.into_iter().flat_map(of).collect())
    }

    /// The largest for a vector of `bytes`.
    pub fn largest(&self, bytes: u64) -> Option<Limit> {
        // The first of equals.
        let longest = (self.0.iter().rev()).max_by_key(|growth| growth.time(bytes))?;
        longest.limit(bytes)
    }
}

/// The ranks farthest from rank 0, for a few distances; backwards, those that it is farthest from.
fn far(table: &Table, way: Way) -> Vec<Vec<usize>> {
    let hop = |a: usize, b: usize| match way {
        Way::Forwards => table.hop(b, a),
        Way::Backwards => table.hop(a, b),
    };
    let direct = (0..table.nodes()).map(|node| hop(0, node)).collect();
    let away = shortest(0, direct, hop);
    let mut distances: Vec<u64> = away[1..table.ranks()].to_vec();
    distances.sort_unstable();
    distances.dedup();
    let beyond = |&least: &u64| {
        (1..table.ranks())
            .filter(|&rank| away[rank] >= least)
            .collect()
    };
    distances.iter().rev().take(DIVISIONS).map(beyond).collect()
}

/// Data that move one way, on their machine.
struct Telling<'a> {
    table: &'a Table,
    links: &'a Links,
    way: Way,
    ends: Ends,
    /// Picoseconds that a rank is at work with what arrives.
    handling: u64,
    /// Least time until a node can have something; backwards, what is left from when on it is of no use.
    reached: Vec<u64>,
}

/// Groups of nodes.
struct Division {
    name: String,
    groups: Vec<usize>,
}

impl<'a> Telling<'a> {
    fn new((table, handling): (&'a Table, u64), links: &'a Links, way: Way, ends: Ends) -> Self {
        let (nodes, ranks) = (table.nodes(), table.ranks());
        let first: Vec<usize> = match &ends {
            Ends::One(end) => vec![*end],
            Ends::Far(far, _) => far.clone(),
            Ends::Each | Ends::Sums => (0..ranks).collect(),
        };
        let hop = |a: usize, b: usize| {
            let (a, b) = if way == Way::Forwards { (a, b) } else { (b, a) };
            table.hop(a, b).saturating_add(handling)
        };
        let nearest = |node| match first.contains(&node) {
            true => 0,
            false => first.iter().map(|&one| hop(one, node)).min().unwrap_or(0),
        };
        let reached = shortest(first[0], (0..nodes).map(nearest).collect(), hop);
        Telling {
            table,
            links,
            way,
            ends,
            handling,
            reached,
        }
    }

    fn all(&self) -> Vec<Growth> {
        let (nodes, ranks) = (self.table.nodes(), self.table.ranks());
        let apart = |one: usize| Division {
            name: format!("of rank {one}"),
            groups: (0..nodes).map(|node| (node == one) as usize).collect(),
        };
        let mut divisions = Vec::new();
        match &self.ends {
            Ends::Far(_, one) => divisions.push(apart(*one)),
            Ends::One(end) => {
                let far = (0..ranks).filter(|&rank| rank != *end && ranks > 2);
                let far = far.max_by_key(|&rank| (self.reached[rank], std::cmp::Reverse(rank)));
                divisions.extend([Some(*end), far].into_iter().flatten().map(apart));
                divisions.extend(self.divisions());
            }
            Ends::Each | Ends::Sums => divisions.extend(self.divisions()),
        }
        let of = |division: &Division| -> Vec<Growth> {
            let all = self
                .links
                .picks
                .iter()
                .map(|pick| self.grown(division, pick));
            all.flatten().collect()
        };
        divisions.iter().flat_map(of).collect()
    }

    /// Each node alone, and groups of near nodes.
    fn divisions(&self) -> Vec<Division> {
        let each = Division {
            name: "of all ranks".to_string(),
            groups: (0..self.table.nodes()).collect(),
        };
        // Where ports are taken for links, a group of ranks has no other links than they have.
        let near = match self.links.picks.len() > 2 {
            true => near(self.table),
            false => Vec::new(),
        };
        let near = near.into_iter().map(|(count, groups)| Division {
            name: format!("between {count} groups"),
            groups,
        });
        std::iter::once(each).chain(near).collect()
    }

    /// What the links that `pick` takes let into the groups; backwards, out of them.
    fn grown(&self, Division { name, groups }: &Division, pick: &[u32]) -> Option<Growth> {
        let (nodes, ranks) = (self.table.nodes(), self.table.ranks());
        let mut members = vec![0usize; nodes];
        (groups[..ranks].iter()).for_each(|&group| members[group] += 1);
        let home = match &self.ends {
            Ends::One(end) => Some(groups[*end]),
            Ends::Far(far, _) => Some(groups[far[0]]),
            Ends::Each | Ends::Sums => None,
        };
        let needs = |group: usize| members[group] > 0 && Some(group) != home;
        let needing = || (0..nodes).filter(|&group| needs(group));
        let (count, least) = (
            needing().count(),
            needing().map(|group| members[group]).min()?,
        );
        let blocks = |blocks: usize| blocks as f64 / ranks as f64;
        let (demand, times) = match &self.ends {
            Ends::One(_) => (count as f64, least),
            Ends::Each => (
                needing().map(|group| blocks(ranks - members[group])).sum(),
                least,
            ),
            Ends::Far(far, _) => (blocks(far.len()), least),
            Ends::Sums => (2.0 * (count as f64 - 1.0), 1),
        };
        let forwards = self.way == Way::Forwards;
        // Who tells whom inside of a group; memories may tell, but need not know.
        let inside = |a: usize, b: usize| {
            let told = if forwards { b } else { a };
            a != b && groups[a] == groups[b] && told < ranks && needs(groups[a])
        };
        let senders = if times > 1 { 0..nodes } else { 0..0 };
        let pairs = senders.flat_map(|a| (0..nodes).map(move |b| (a, b)));
        let hops = pairs.filter(|&(a, b)| inside(a, b));
        let hop = hops.map(|(a, b)| self.table.hop(a, b)).min().unwrap_or(0);
        let mut ends = vec![(u64::MAX, u64::MAX); self.links.rates.len()];
        for (&(a, b), &link) in self.links.pairs.iter().zip(pick) {
            let needed = if forwards { groups[b] } else { groups[a] };
            let counts = needs(needed) || matches!(self.ends, Ends::Sums);
            if groups[a] == groups[b] || !counts {
                continue;
            }
            let (first, last) = self.table.around(a, b)?;
            let last = last.saturating_add(self.handling);
            let known = &mut ends[link as usize];
            let (first, last) = match self.way {
                Way::Forwards => (self.reached[a].saturating_add(first), last),
                Way::Backwards => (first, self.reached[b].saturating_add(last)),
            };
            *known = (known.0.min(first), known.1.min(last));
        }
        let links = ends.into_iter().zip(&self.links.rates);
        let channel = |((first, last), &rate): ((u64, u64), &u64)| Channel {
            at: first.saturating_add(last),
            rate: rate as f64,
        };
        let links = links.map(channel).filter(|channel| channel.at < u64::MAX);
        let moved = if forwards { "received" } else { "sent" };
        let what = format!("{moved} over the links {name}");
        let hop = hop.saturating_add(self.handling);
        let growth = Growth::new(what, demand, (times, hop), links.collect());
        (!growth.channels.is_empty() && growth.demand > 0.0).then_some(growth)
    }
}

/// Groups of nodes that are joined by hops of at most some time, for a few such times, and how many groups there are.
fn near(table: &Table) -> Vec<(usize, Vec<usize>)> {
    let nodes = table.nodes();
    let mut groups: Vec<usize> = (0..nodes).collect();
    let pairs = (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a, b)));
    let mut pairs: Vec<_> = (pairs.filter(|(a, b)| a != b))
        .map(|(a, b)| (table.hop(a, b), a, b))
        .filter(|&(hop, ..)| hop < u64::MAX)
        .collect();
    pairs.sort_unstable();
    let (mut found, mut count): (Vec<(usize, _)>, _) = (Vec::new(), nodes);
    for (place, &(hop, a, b)) in pairs.iter().enumerate() {
        let (one, other) = (groups[a], groups[b]);
        if one != other {
            count -= 1;
            let joined = groups.iter_mut().filter(|group| **group == other);
            joined.for_each(|group| *group = one);
        }
        if count == 1 || found.len() == DIVISIONS {
            break;
        }
        let is_last = pairs.get(place + 1).is_none_or(|next| next.0 > hop);
        if is_last && count < found.last().map_or(nodes, |last| last.0) {
            found.push((count, groups.clone()));
        }
    }
    found
}
