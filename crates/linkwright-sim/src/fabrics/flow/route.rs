//! From a pair of endpoints and a network to everything that its messages need.
//!
//! A *network* is a way of using the wires (a copy by the driver, a kernel that writes to its
//! neighbour); it lists *transports*, and the first that reaches the target carries the message. A transport
//! knows which classes of links it uses, whether data pass straight through or are stored on the way, and
//! what a message costs besides its bytes.

use super::pairs::Key;
use super::spread::{Fans, Piece};
use super::timing::Timing;
use super::topology::{Terrain, Topology};
use super::torus::Torus;
use super::trees::Trees;
use super::uses::{List, Uses};
use linkwright_core::TimePs;
use std::collections::{BTreeMap, HashMap};

/// Which pairs a transport serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    Any,
    /// Both are ranks.
    Ranks,
    /// One is a memory.
    Memory,
}

/// What ranks between source and target do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relays {
    None,
    Forward,
    Store,
}

/// One way of carrying a message.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    pub name: String,
    /// By class of links, whether it uses them.
    pub classes: Vec<bool>,
    pub ends: Ends,
    pub relays: Relays,
    /// Nodes of which one stores the data; empty if none does.
    pub stages: Vec<u32>,
    pub start: TimePs,
    pub notice: TimePs,
    pub rate: Option<u64>,
    /// The most that one channel carries.
    pub channel: Option<u64>,
    /// Whether it leads from node to node.
    pub across: bool,
    pub chunk: u64,
    /// Smaller messages take no longer than `start`.
    pub inline: u64,
    /// Messages of at least so many bytes take `long_start` instead of `start`.
    pub long: u64,
    pub long_start: TimePs,
    /// Messages of at least so many bytes between two ends go one at a time, whichever way.
    pub turns: u64,
    /// How long a message keeps the process busy that sends or receives it, and from how many bytes on.
    pub handling: TimePs,
    pub handling_from: u64,
}

/// One way of using the wires.
#[derive(Clone, Debug)]
pub(super) struct Network {
    pub name: String,
    /// In order of preference.
    pub transports: Vec<usize>,
    pub start: Option<TimePs>,
    /// Share of each transport's rate.
    pub efficiency: f64,
}

/// Exceptions for one ordered pair.
#[derive(Clone, Debug, Default)]
pub(super) struct Override {
    pub networks: Vec<u8>,
    pub transport: Option<usize>,
    pub way: Option<Vec<u32>>,
    pub start: Option<TimePs>,
    pub rate: Option<u64>,
}

/// The links of a route, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Way {
    pub links: Vec<u32>,
    /// The end of each pass among the links.
    ends: Vec<usize>,
    /// Whether it is a shortest way, which crosses no link twice.
    shortest: bool,
    /// Whether messages choose among it and other ways of a torus.
    pub adaptive: bool,
    /// By pass, where messages may take other links that are as good as `links`.
    pub pieces: Vec<Vec<Piece>>,
}

impl Way {
    /// The links of passes `first..=last`, pass by pass.
    fn passes(&self, first: usize, last: usize) -> impl Iterator<Item = &[u32]> {
        let begin = |pass: usize| pass.checked_sub(1).map_or(0, |before| self.ends[before]);
        (first..=last).map(move |pass| &self.links[begin(pass)..self.ends[pass]])
    }
}

/// Everything about routes that the file gives.
#[derive(Clone, Debug)]
pub(super) struct Routing {
    pub topology: Topology,
    /// What its links of class 0 are made from, where the file describes a torus.
    pub torus: Option<Torus>,
    pub transports: Vec<Transport>,
    pub networks: Vec<Network>,
    pub overrides: HashMap<(u32, u32), Override>,
    pub packet: u64,
    /// Start of a copy inside an endpoint.
    pub local_start: TimePs,
    /// Equal channels that every message stands for; `None` if they are not counted.
    pub channels: Option<u32>,
    /// Messages of a library that every message stands for; `None`: one.
    pub sends: Option<f64>,
    /// The most that a message carries from node to node, bytes of data per second.
    pub across: Option<u64>,
}

impl Routing {
    /// By class of links, whether some message on one of `networks` may take them.
    pub fn classes(&self, networks: &[u8]) -> Vec<bool> {
        let own = self.overrides.values().filter_map(|own| own.transport);
        let named = networks
            .iter()
            .filter_map(|&n| self.networks.get(n as usize));
        let transports = named.flat_map(|network| network.transports.iter().copied());
        let mut classes = self.topology.every_class();
        classes.fill(false);
        for transport in transports.chain(own) {
            // A class without a link is none of the topology's.
            for (class, used) in classes.iter_mut().zip(&self.transports[transport].classes) {
                *class |= used;
            }
        }
        classes
    }

    /// How messages travel between two endpoints, or why they do not. What passes i..=j use goes to `uses`, and its
    /// lists to `pieces`, at i * passes + j; the way is worked out in `way`.
    pub fn route(
        &self,
        key: Key,
        (trees, fans, way): (&mut Trees, &mut Fans, &mut Way),
        uses: &mut Uses,
        pieces: &mut Vec<List>,
    ) -> Result<Timing, String> {
        way.pieces.clear();
        let Some(used) = self.networks.get(key.network as usize) else {
            return Err(format!(
                "the machine has no network {}; name it in [hints]",
                key.network
            ));
        };
        if key.from == key.to {
            return self.local(key.from, uses, pieces);
        }
        let own = (self.overrides.get(&(key.from, key.to)))
            .filter(|o| o.networks.is_empty() || o.networks.contains(&key.network));
        let named = own.and_then(|own| own.transport).map(|named| [named]);
        let order: &[usize] = named.as_ref().map_or(&used.transports, |one| one);
        let mut leads = |&&index: &&usize| self.way(index, key, own, trees, way);
        let Some(&index) = order.iter().find(&mut leads) else {
            return Err(self.nowhere(key, used, order));
        };
        if own.is_none_or(|own| own.way.is_none()) && !way.adaptive {
            self.spread(index, key, (trees, fans), way);
        }
        let first = pieces.len();
        self.pieces(way, fans, uses, pieces);
        let carrier = (&self.transports[index], used, own);
        Ok(self.timing(carrier, way, uses, &pieces[first..]))
    }

    /// The transport of a pair whose data pass straight through over one way, which goes to `way`; none where they are
    /// stored or choose their way, or where the file has an exception for the pair.
    pub fn straight(&self, key: Key, trees: &mut Trees, way: &mut Way) -> Option<usize> {
        let used = self.networks.get(key.network as usize)?;
        if key.from == key.to || self.overrides.contains_key(&(key.from, key.to)) {
            return None;
        }
        let mut transports = used.transports.iter().copied();
        let index = transports.find(|&index| self.way(index, key, None, trees, way))?;
        (way.ends.len() == 1 && !way.adaptive).then_some(index)
    }

    /// Timing of a message on `network` by transport `index`, of which the last byte crosses `links` and that uses
    /// `list` as a whole.
    pub fn timing_along(
        &self,
        (network, index): (u8, usize),
        links: Vec<u32>,
        (uses, list): (&Uses, List),
    ) -> Timing {
        let way = Way {
            ends: vec![links.len()],
            links,
            ..Way::default()
        };
        let carrier = (
            &self.transports[index],
            &self.networks[network as usize],
            None,
        );
        self.timing(carrier, &way, uses, &[list])
    }

    /// Why none of the transports in `order` leads from one endpoint to another, and the cure.
    fn nowhere(&self, key: Key, used: &Network, order: &[usize]) -> String {
        let (a, b) = (self.topology.name(key.from), self.topology.name(key.to));
        let names: Vec<_> = order
            .iter()
            .map(|&i| format!("`{}`", self.transports[i].name))
            .collect();
        format!(
            "no transport of network `{}` leads from {a} to {b} (tried {}); choose another path, or give \
             the machine a transport that relays or stages",
            used.name,
            names.join(", ")
        )
    }

    fn local(
        &self,
        endpoint: u32,
        uses: &mut Uses,
        pieces: &mut Vec<List>,
    ) -> Result<Timing, String> {
        let name = self.topology.name(endpoint);
        let memory = self.topology.local_use(endpoint).ok_or_else(|| {
            format!("{name} sends to itself, but the machine describes no such copies; add [fabric.local]")
        })?;
        pieces.push(uses.add(|uses| uses.push(memory)));
        Ok(Timing {
            start: self.local_start,
            notice: self.local_start,
            chunk: u64::MAX,
            passes: 1,
            whole: self.topology.most(&[memory], &uses.fractions),
            ..Timing::default()
        })
    }

    /// Put the links of each pass of transport `index` into `way`; whether it leads there.
    fn way(
        &self,
        index: usize,
        key: Key,
        own: Option<&Override>,
        trees: &mut Trees,
        way: &mut Way,
    ) -> bool {
        let (t, topology) = (&self.transports[index], &self.topology);
        let ranks = key.from < topology.ranks && key.to < topology.ranks;
        if t.ends == Ends::Ranks && !ranks || t.ends == Ends::Memory && ranks {
            return false;
        }
        way.links.clear();
        way.ends.clear();
        way.shortest = false;
        way.adaptive = false;
        let stage = match own.and_then(|own| own.way.as_ref()) {
            Some(nodes) => match topology.along(nodes, &t.classes) {
                Ok(links) => {
                    way.links = links;
                    (nodes.iter().rev().find(|node| t.stages.contains(node))).copied()
                }
                Err(_) => return false,
            },
            None if self.torus_of(t).is_some() && ranks => {
                let torus = self.torus_of(t).expect("just seen");
                torus.lead(key.from, key.to, &mut way.links);
                way.shortest = true;
                let whole = t.relays == Relays::Forward;
                way.adaptive = whole && torus.is_choice(key.from, key.to);
                None
            }
            None if t.stages.is_empty() => {
                if !trees.way(
                    (key.from, key.to),
                    (index as u64, self.terrain(t)),
                    &mut way.links,
                ) {
                    return false;
                }
                way.shortest = true;
                None
            }
            None => match self.staged(index, key, trees) {
                Some((links, stage)) => {
                    way.links = links;
                    Some(stage)
                }
                None => return false,
            },
        };
        self.cut(t, stage, key.to, way);
        true
    }

    /// Let messages of transport `index` use the ways that are as short as the one found, by the rules of their links.
    fn spread(
        &self,
        index: usize,
        key: Key,
        (trees, fans): (&mut Trees, &mut Fans),
        way: &mut Way,
    ) {
        // Most ways have no stretch of two links, and a look costs less than what follows.
        let has_switches = self.topology.names.len() > self.topology.endpoints as usize;
        if !has_switches || !(way.links.windows(2)).any(|two| self.topology.goes_on(two[0], two[1]))
        {
            return;
        }
        let terrain = self.terrain(&self.transports[index]);
        let passes = way.ends.len();
        let mut spread = |links: &[u32]| {
            let asked = (links, (key.from, key.to));
            fans.pieces(asked, (index as u64, terrain), trees, passes > 1)
        };
        let found: Vec<Option<Vec<Piece>>> = way.passes(0, passes - 1).map(&mut spread).collect();
        if found.iter().all(Option::is_none) {
            return;
        }
        let whole = |links: &[u32]| links.iter().map(|&link| Piece::Link(link)).collect();
        let passes = way.passes(0, passes - 1).zip(found);
        let pieces = passes.map(|(links, found)| found.unwrap_or_else(|| whole(links)));
        way.pieces = pieces.collect();
    }

    /// Add what data use that take these pieces; where messages choose, that of the widest way.
    fn over(&self, pieces: &[Piece], fans: &Fans, parts: &mut BTreeMap<u32, f64>) {
        let (mut all, mut way) = (Vec::new(), Vec::new());
        for &piece in pieces {
            if let Piece::Spread(fan) = piece {
                all.extend(fans.get(fan).shares());
                continue;
            }
            way.clear();
            fans.first(piece, &self.topology.capacity, &mut way);
            all.extend(way.iter().map(|&link| (link, 1.0)));
        }
        self.topology.parts(&all, parts);
    }

    /// File what messages use that take these pieces in one pass.
    pub fn list(&self, pieces: &[Piece], fans: &Fans, uses: &mut Uses) -> List {
        let link = |piece: &Piece| match piece {
            Piece::Link(link) => Some(*link),
            _ => None,
        };
        if let Some(links) = pieces.iter().map(link).collect::<Option<Vec<u32>>>() {
            return self.along(&links, uses);
        }
        let mut parts = BTreeMap::new();
        self.over(pieces, fans, &mut parts);
        uses.spread(&parts)
    }

    /// Note the ends of the passes of a way, which are the nodes that store its data.
    fn cut(&self, t: &Transport, stage: Option<u32>, to: u32, way: &mut Way) {
        if stage.is_some() || t.relays == Relays::Store {
            let ends_pass = |&link: &u32| {
                let node = self.topology.links[link as usize].to;
                let relayed = t.relays == Relays::Store && node < self.topology.ranks;
                (relayed || stage == Some(node)) && node != to
            };
            let stores = (1..).zip(&way.links).filter(|(_, link)| ends_pass(link));
            way.ends.extend(stores.map(|(end, _)| end));
        }
        way.ends.push(way.links.len());
    }

    /// The torus, for a transport that uses nothing else.
    fn torus_of(&self, t: &Transport) -> Option<&Torus> {
        let only = t
            .classes
            .iter()
            .enumerate()
            .all(|(i, &used)| used == (i == 0));
        let plain = only && t.stages.is_empty() && t.relays != Relays::None;
        self.torus.as_ref().filter(|_| plain)
    }

    /// Add what a way over `links` uses to `uses`.
    pub fn along(&self, links: &[u32], uses: &mut Uses) -> List {
        match self.topology.has_only_links() {
            true => uses.links(links),
            false => uses.add(|all| self.topology.uses(links, all)),
        }
    }

    /// What the ways of a transport may lead over.
    fn terrain<'a>(&'a self, t: &'a Transport) -> Terrain<'a> {
        Terrain {
            topology: &self.topology,
            classes: &t.classes,
            relays: t.relays != Relays::None,
        }
    }

    /// The shortest way through a stage of transport `index`, of equals the one with its stage nearest to the target,
    /// and that stage.
    fn staged(&self, index: usize, key: Key, trees: &mut Trees) -> Option<(Vec<u32>, u32)> {
        let t = &self.transports[index];
        let mut shortest = |a: u32, b: u32| {
            let mut links = Vec::new();
            (trees.way((a, b), (index as u64, self.terrain(t)), &mut links)).then_some(links)
        };
        let mut through = |&stage: &u32| {
            let before = shortest(key.from, stage)?;
            Some((before, shortest(stage, key.to)?, stage))
        };
        let all = t.stages.iter().filter_map(&mut through);
        let (before, after, stage) = all.min_by_key(|(a, b, _)| (a.len() + b.len(), b.len()))?;
        Some(([before, after].concat(), stage))
    }

    /// File what passes i..=j of a way use.
    fn pieces(&self, way: &Way, fans: &Fans, uses: &mut Uses, pieces: &mut Vec<List>) {
        let passes = way.ends.len();
        if !way.pieces.is_empty() {
            for (first, last) in (0..passes).flat_map(|i| (0..passes).map(move |j| (i, j.max(i)))) {
                let mut parts = BTreeMap::new();
                for pass in &way.pieces[first..=last] {
                    self.over(pass, fans, &mut parts);
                }
                pieces.push(uses.spread(&parts));
            }
            return;
        }
        if passes == 1 && way.shortest {
            return pieces.push(self.along(&way.links, uses));
        }
        for (first, last) in (0..passes).flat_map(|i| (0..passes).map(move |j| (i, j))) {
            pieces.push(uses.add(|all| {
                let links = way.passes(first, last.max(first));
                links.for_each(|links| self.topology.uses(links, all));
            }));
        }
    }

    /// Timing of messages over one way; `pieces` are the lists of its uses.
    fn timing(
        &self,
        (t, n, own): (&Transport, &Network, Option<&Override>),
        way: &Way,
        uses: &Uses,
        pieces: &[List],
    ) -> Timing {
        let passes = way.ends.len();
        let share = |rate: u64| ((rate as f64 * n.efficiency) as u64).max(1);
        let own_rate = own.and_then(|own| own.rate).or(t.rate);
        let bundle = (t.channel.zip(self.channels)).map(|(one, n)| one.saturating_mul(n.into()));
        let sends = self.sends.unwrap_or(1.0);
        let rate = [own_rate, bundle].into_iter().flatten().min();
        let across = (self.across.filter(|_| t.across)).map_or(u64::MAX, |most| most.max(1));
        let most = |first, last| {
            let used = uses.of(pieces[first * passes + last]);
            (self.topology).most(used, &uses.fractions)
        };
        let ceiling = |first, last: usize| {
            let together = most(first, last);
            let alone = match first == last {
                true => together,
                false => (first..=last).map(|i| most(i, i)).fold(u64::MAX, u64::min),
            };
            share(rate.unwrap_or(u64::MAX).min(alone))
                .min(together)
                .min(across)
        };
        let start = own.and_then(|own| own.start).or(n.start);
        let links = way.links.iter();
        Timing {
            hops: way.links.len() as u32,
            start: start.unwrap_or(t.start),
            notice: start.unwrap_or(t.notice),
            latency: links
                .map(|&link| self.topology.links[link as usize].latency)
                .sum(),
            store_rates: match self.packet {
                0 => Vec::new(),
                _ => self.stores(way),
            },
            packet: self.packet,
            chunk: t.chunk,
            inline: t.inline,
            long: t.long,
            long_start: t.long_start,
            turns: t.turns,
            // Below one, several of the schedule's messages are parts of one: each is still a message to a process.
            handling: TimePs((t.handling.0 as f64 * sends.max(1.0)).round() as u64),
            handling_from: (t.handling_from as f64 * sends).ceil() as u64,
            passes,
            whole: ceiling(0, passes - 1),
            ceilings: (passes > 1).then(|| {
                let spans = (0..passes).flat_map(|i| (0..passes).map(move |j| (i, j.max(i))));
                spans.map(|(first, last)| ceiling(first, last)).collect()
            }),
        }
    }

    /// Rates of the links out of switches that store a packet, and how many links have each rate.
    fn stores(&self, way: &Way) -> Vec<(u64, u64)> {
        let mut rates: Vec<(u64, u64)> = Vec::new();
        for pass in way.passes(0, way.ends.len() - 1) {
            for &link in pass.iter().skip(1) {
                let rate = self.topology.capacity[link as usize];
                match rates.iter_mut().find(|known| known.0 == rate) {
                    Some(known) => known.1 += 1,
                    None => rates.push((rate, 1)),
                }
            }
        }
        rates
    }
}
