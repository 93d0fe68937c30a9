//! Equal ways: which of them messages take.
//!
//! ```text
//!            +-- spine 0 --+                 single    the first in the order of the file
//!   leaf 0 --+-- spine 1 --+-- leaf 1        hash      one for each pair of endpoints, drawn by a seed
//!            +-- spine 2 --+                 spray     all of them, each link by its share of the width
//!                                            adaptive  for each message the one with the fewest flows
//! ```
//!
//! The shortest way of a pair, the first in the order of the file, decides which ports and relays it uses. Each of its
//! *stretches*, links of classes with one rule between which only switches lie, is then replaced by a [`Fan`]: all
//! equally short ways over such links from its first node to its last.
//!
//! ```text
//!   share of a link     share of its node * width of the link / width of all links of the fan out of that node
//!   hash                leaves a node over a link with that probability, as over the members of a trunk
//!   cost of a link      (flows on it + 1) / its rate; the cheapest way of the fan, as on a torus
//! ```
//!
//! What no schedule can beat is what all ways together carry, whatever a seed draws, so a collision shows as a share of
//! the limit. Latencies are those of the first way.
//!
//! A message that is sprayed is one flow with one rate: the most crowded of its ways slows all of it, as packets that
//! wait for each other to be put in order do. Sources: RFC 2992 (hashes of flows); Dixit, Prakash, Hu and Kompella, "On
//! the impact of packet spraying in data center networks" (INFOCOM 2013).

use super::rule::Rule;
use super::topology::{Terrain, Topology};
use super::trees::Trees;
use linkwright_core::random::Random;
use petgraph::unionfind::UnionFind;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Femtoseconds, in which one byte takes a whole number on any real link.
const FS_PER_S: u64 = 1_000_000_000_000_000;

/// Steps of a draw.
const DRAWN: u64 = 1 << 32;

/// A link of a fan.
#[derive(Clone, Copy, Debug)]
struct Strand {
    link: u32,
    from: u32,
    to: u32,
    /// Part of the data that crosses it when they are sprayed.
    share: f64,
}

/// All equally short ways from one node to another, link by link from the first node on.
#[derive(Clone, Debug, Default)]
pub(super) struct Fan {
    source: u32,
    target: u32,
    strands: Vec<Strand>,
}

impl Fan {
    /// The fan from `source` to `target`; none where there is only one way.
    fn new(
        source: u32,
        target: u32,
        terrain: Terrain<'_>,
        trees: &mut Trees,
        number: u64,
    ) -> Option<Fan> {
        let topology = terrain.topology;
        let depths = trees.depths((source, target), (number, terrain))?;
        // Against the data: the links into each node from one that is nearer to the source.
        let mut strands: Vec<(u32, Strand)> = Vec::new();
        let (mut layer, mut depth) = (vec![target], depths(target)?);
        let mut forks = false;
        while depth > 0 {
            let mut before = Vec::new();
            for &to in &layer {
                let first = strands.len();
                for &back in topology.out(to) {
                    let (link, from) = (back ^ 1, topology.links[back as usize].to);
                    let carries = from == source || from >= topology.endpoints;
                    let allowed = terrain.classes[topology.links[link as usize].class as usize];
                    if carries && allowed && depths(from) == Some(depth - 1) {
                        let strand = Strand {
                            link,
                            from,
                            to,
                            share: 0.0,
                        };
                        strands.push((depth, strand));
                        before.push(from);
                    }
                }
                forks |= strands.len() > first + 1;
            }
            before.sort_unstable();
            before.dedup();
            layer = before;
            depth -= 1;
        }
        if !forks {
            return None;
        }
        strands.sort_unstable_by_key(|(depth, strand)| (*depth, strand.link));
        let mut fan = Fan {
            source,
            target,
            strands: strands.into_iter().map(|(_, strand)| strand).collect(),
        };
        fan.share(&topology.capacity);
        Some(fan)
    }

    /// Work out what each link carries of data that are sprayed.
    fn share(&mut self, capacity: &[u64]) {
        let width = |strand: &Strand| capacity[strand.link as usize] as f64;
        let mut widths: FxHashMap<u32, f64> = FxHashMap::default();
        for strand in &self.strands {
            *widths.entry(strand.from).or_default() += width(strand);
        }
        let mut shares = FxHashMap::from_iter([(self.source, 1.0)]);
        for strand in &mut self.strands {
            strand.share = shares[&strand.from] * width(strand) / widths[&strand.from];
            *shares.entry(strand.to).or_insert(0.0) += strand.share;
        }
    }

    /// The links and their shares.
    pub fn shares(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.strands
            .iter()
            .map(|strand| (strand.link, strand.share))
    }

    /// Append the links of the way that a pair draws.
    fn drawn(&self, random: &mut Random, links: &mut Vec<u32>) {
        let mut node = self.source;
        while node != self.target {
            let out = || self.strands.iter().filter(|strand| strand.from == node);
            // Shares of the links out of a node are as their widths.
            let all: f64 = out().map(|strand| strand.share).sum();
            let mut point = random.below(DRAWN) as f64 / DRAWN as f64 * all;
            let strand = out().find(|strand| {
                point -= strand.share;
                point < 0.0
            });
            let strand = strand.or(out().next_back()).expect("a link leads on");
            links.push(strand.link);
            node = strand.to;
        }
    }

    /// Append the links of the way with the smallest sum of `cost`, of equal ones the first.
    pub fn cheapest(&self, cost: impl Fn(u32) -> u64, links: &mut Vec<u32>) {
        let mut best: FxHashMap<u32, (u64, u32, u32)> = FxHashMap::default(); // by node: rest, link, next
        for strand in self.strands.iter().rev() {
            let rest = best.get(&strand.to).map_or(0, |found| found.0);
            let total = cost(strand.link).saturating_add(rest);
            let found = best
                .entry(strand.from)
                .or_insert((u64::MAX, strand.link, strand.to));
            if total <= found.0 {
                *found = (total, strand.link, strand.to);
            }
        }
        let mut node = self.source;
        while node != self.target {
            let (_, link, next) = best[&node];
            links.push(link);
            node = next;
        }
    }
}

/// A piece of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Piece {
    Link(u32),
    /// Over all links of this fan.
    Spread(u32),
    /// Over a way of this fan that each message chooses.
    Chosen(u32),
}

/// Cost of one more flow on a link of this many bytes per second that already has `flows`.
pub(super) fn cost(flows: usize, rate: u64) -> u64 {
    (flows as u64 + 1).saturating_mul(FS_PER_S) / rate.min(FS_PER_S)
}

/// The fans of a run, each worked out once.
#[derive(Debug, Default)]
pub(super) struct Fans {
    all: Vec<Fan>,
    /// By first and last node and number of the terrain; none where there is one way.
    known: FxHashMap<(u32, u32, u64), Option<u32>>,
    /// By number of the terrain, whether it has circles; without one there is a single way between any two nodes.
    circles: FxHashMap<u64, bool>,
    pub seed: u64,
}

impl Fans {
    pub fn get(&self, fan: u32) -> &Fan {
        &self.all[fan as usize]
    }

    /// Append the links of the widest way of a fan, which an idle network's messages choose.
    pub fn widest(&self, fan: u32, capacity: &[u64], links: &mut Vec<u32>) {
        self.get(fan)
            .cheapest(|link| cost(0, capacity[link as usize]), links);
    }

    /// Append the links of one way over a piece.
    pub fn first(&self, piece: Piece, capacity: &[u64], links: &mut Vec<u32>) {
        match piece {
            Piece::Link(link) => links.push(link),
            Piece::Spread(fan) | Piece::Chosen(fan) => self.widest(fan, capacity, links),
        }
    }

    /// The pieces of a way over `links`, and whether they are other than those links. Messages that are `fixed` do not choose.
    pub fn pieces(
        &mut self,
        (links, pair): (&[u32], (u32, u32)),
        (number, terrain): (u64, Terrain<'_>),
        trees: &mut Trees,
        fixed: bool,
    ) -> Option<Vec<Piece>> {
        let topology = terrain.topology;
        let mut pieces = Vec::with_capacity(links.len());
        let mut changed = false;
        for stretch in links.chunk_by(|&a, &b| topology.goes_on(a, b)) {
            let rule = topology.rules[topology.links[stretch[0] as usize].class as usize];
            let fan = match rule.rule {
                Rule::Single => None,
                _ if stretch.len() < 2 => None,
                _ => self.fan(stretch, (number, terrain), trees),
            };
            let Some(fan) = fan else {
                pieces.extend(stretch.iter().map(|&link| Piece::Link(link)));
                continue;
            };
            changed = true;
            match rule.rule {
                Rule::Spray => pieces.push(Piece::Spread(fan)),
                Rule::Adaptive if !fixed => pieces.push(Piece::Chosen(fan)),
                _ => {
                    let mut way = Vec::new();
                    let draw = u64::from(pair.0) << 32 | u64::from(pair.1);
                    let mut random = Random::new(Random::new(self.seed).bits() ^ draw);
                    self.all[fan as usize].drawn(&mut random, &mut way);
                    pieces.extend(way.into_iter().map(Piece::Link));
                }
            }
        }
        changed.then_some(pieces)
    }

    /// Number of the fan between the ends of a stretch.
    fn fan(
        &mut self,
        stretch: &[u32],
        (number, terrain): (u64, Terrain<'_>),
        trees: &mut Trees,
    ) -> Option<u32> {
        let topology = terrain.topology;
        let (first, last) = (stretch[0] as usize, stretch[stretch.len() - 1] as usize);
        let ends = (topology.begins[first], topology.links[last].to);
        let rule = topology.rules[topology.links[first].class as usize];
        // Terrains of transports come first; each rule narrows them to its own classes.
        let place = Rule::ALL
            .iter()
            .position(|&one| one == rule.rule)
            .expect("it is one of them");
        let number = ((number + 1) << 3 | (place as u64) << 1 | u64::from(rule.stated)) << 32;
        let classes = || -> Vec<bool> {
            let both = terrain.classes.iter().zip(&topology.rules);
            both.map(|(&used, &of)| used && of == rule).collect()
        };
        let circles = self.circles.entry(number);
        if !*circles.or_insert_with(|| topology.has_circles(&classes())) {
            return None;
        }
        let all = &mut self.all;
        *(self.known.entry((ends.0, ends.1, number))).or_insert_with(|| {
            let terrain = Terrain {
                classes: &classes(),
                relays: false,
                ..terrain
            };
            let fan = Fan::new(ends.0, ends.1, terrain, trees, number)?;
            all.push(fan);
            Some(all.len() as u32 - 1)
        })
    }
}

impl Topology {
    /// Whether link `b` goes on with the stretch of link `a`: past a switch, by the same rule.
    pub fn goes_on(&self, a: u32, b: u32) -> bool {
        let (a, b) = (&self.links[a as usize], &self.links[b as usize]);
        a.to >= self.endpoints && self.rules[a.class as usize] == self.rules[b.class as usize]
    }

    /// Whether links of these classes close a circle.
    pub fn has_circles(&self, classes: &[bool]) -> bool {
        let mut joined = UnionFind::<u32>::new(self.names.len());
        let edges = (0..self.links.len()).step_by(2);
        let mut used = edges.filter(|&forth| classes[self.links[forth].class as usize]);
        used.any(|forth| !joined.union(self.begins[forth], self.links[forth].to))
    }

    /// What data use that cross each link by a part, from where they are stored to where they are stored.
    pub fn parts(&self, links: &[(u32, f64)], uses: &mut BTreeMap<u32, f64>) {
        let mut entering: FxHashMap<(u32, u32), f64> = FxHashMap::default(); // by node and class
        let mut add = |resource: u32, part: f64| *uses.entry(resource).or_insert(0.0) += part;
        for &(link, part) in links {
            add(link, part);
            let to = &self.links[link as usize];
            *entering.entry((to.to, to.class)).or_default() += part;
            for node in [self.begins[link as usize], to.to] {
                if let Some(resource) = self.throughput_of(node) {
                    add(resource, part);
                }
            }
        }
        for &(link, part) in links {
            let (node, class) = (self.begins[link as usize], self.links[link as usize].class);
            let Some(resource) = self.turn_of(node, link) else {
                continue;
            };
            let all: f64 = (entering.iter().filter(|((to, _), _)| *to == node))
                .map(|(_, part)| part)
                .sum();
            let same = entering.get(&(node, class)).copied().unwrap_or(0.0);
            if same > 0.0 {
                add(resource, part * same / all);
            }
        }
        if let (Some(&(first, _)), Some(&(last, _))) = (links.first(), links.last()) {
            let ends = [
                self.injected(self.begins[first as usize], true),
                self.injected(self.links[last as usize].to, false),
            ];
            ends.into_iter().flatten().for_each(|own| add(own, 1.0));
        }
    }
}
