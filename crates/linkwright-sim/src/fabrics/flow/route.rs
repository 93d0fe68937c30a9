//! From a pair of endpoints and a network to everything that its messages need.
//!
//! A *network* is a way of using the wires (a copy by the driver, a kernel that writes to its
//! neighbour); it lists *transports*, and the first that reaches the target carries the message. A transport
//! knows which classes of links it uses, whether data pass at once or are stored on the way, and
//! what a message costs besides its bytes.

use super::job::time;
use super::pairs::Key;
use super::phases::{coalesced, serial};
use super::topology::Topology;
use super::trees::{Terrain, Trees};
use super::uses::{List, Uses};
use crate::fabric::MsgKind;
use linkwright_core::TimePs;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};

/// Room for the links of a route; most are shorter.
const LONG: usize = 32;

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
    /// Nodes of which one stores the data; empty where none does.
    pub stages: Vec<u32>,
    pub start: TimePs,
    pub notice: TimePs,
    pub rate: Option<u64>,
    pub chunk: u64,
    /// Smaller messages take `start` and no longer.
    pub inline: u64,
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

/// What is particular about one ordered pair.
#[derive(Clone, Debug, Default)]
pub(super) struct Override {
    pub networks: Vec<u8>,
    pub transport: Option<usize>,
    pub way: Option<Vec<u32>>,
    pub start: Option<TimePs>,
    pub rate: Option<u64>,
}

/// How long the messages of a route take, whichever links they use; many routes have the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Timing {
    pub hops: u32,
    pub start: TimePs,
    pub notice: TimePs,
    /// From the last byte leaving to its arrival, but for what switches store.
    latency: TimePs,
    /// Rates at which switches on the way pass on the packet that they store, and how many do so.
    store_rates: Vec<(u64, u64)>,
    packet: u64,
    pub chunk: u64,
    inline: u64,
    pub passes: usize,
    /// Most that passes i..=j can do together, at i * passes + j.
    ceilings: Vec<u64>,
}

impl Hash for Timing {
    /// What tells most timings apart; all of it would cost as much as the search for the route.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.latency.0 ^ u64::from(self.hops) << 48);
    }
}

impl Timing {
    /// Bytes per second of passes `first..=last` together, where nobody else is there.
    pub fn ceiling(&self, first: usize, last: usize) -> u64 {
        self.ceilings[first * self.passes + last]
    }

    /// The same of each pass by itself.
    pub fn each(&self) -> Vec<u64> {
        (0..self.passes).map(|i| self.ceiling(i, i)).collect()
    }

    /// Whether a message is small enough to go at once.
    pub fn is_inline(&self, bytes: u64) -> bool {
        bytes < self.inline
    }

    /// Time before the first byte of a transfer moves.
    pub fn lead(&self, bytes: u64) -> TimePs {
        match self.is_inline(bytes) {
            true => (self.start).saturating_sub(time(bytes, self.ceiling(0, self.passes - 1))),
            false => self.start,
        }
    }

    /// The same for a message of any kind.
    pub fn ahead(&self, kind: MsgKind, bytes: u64) -> TimePs {
        match kind {
            MsgKind::Notice => self.notice,
            MsgKind::Get => self.back() + self.lead(bytes),
            _ => self.lead(bytes),
        }
    }

    /// Time between the last byte leaving and its arrival.
    pub fn tail(&self, bytes: u64) -> TimePs {
        let stored = self.packet.min(bytes);
        let each = |&(rate, times): &(u64, u64)| time(stored, rate) * times;
        self.latency + self.store_rates.iter().map(each).sum()
    }

    /// Time for an answer to come back.
    pub fn back(&self) -> TimePs {
        self.latency
    }

    /// Time that `bytes` take between lead and tail, alone on the machine.
    pub fn alone(&self, bytes: u64, each_chunk: bool) -> TimePs {
        if bytes == 0 {
            return TimePs::ZERO;
        }
        if self.is_inline(bytes) || self.passes == 1 && !each_chunk {
            return time(bytes, self.ceiling(0, self.passes - 1));
        }
        if each_chunk {
            return serial(bytes, self.chunk, &self.each());
        }
        (coalesced(bytes, self.chunk, &self.each()).iter())
            .map(|phase| time(phase.bytes, self.ceiling(phase.first, phase.last)))
            .sum()
    }
}

/// The links of a route, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Way {
    links: Vec<u32>,
    /// Where each pass ends among them.
    ends: Vec<usize>,
}

impl Way {
    /// The links of passes `first..=last`, pass by pass.
    fn passes(&self, first: usize, last: usize) -> impl Iterator<Item = &[u32]> {
        let begin = |pass: usize| pass.checked_sub(1).map_or(0, |before| self.ends[before]);
        (first..=last).map(move |pass| &self.links[begin(pass)..self.ends[pass]])
    }
}

/// All that is known of routes before anybody asks.
#[derive(Clone, Debug)]
pub(super) struct Routing {
    pub topology: Topology,
    pub transports: Vec<Transport>,
    pub networks: Vec<Network>,
    pub overrides: HashMap<(u32, u32), Override>,
    pub packet: u64,
    /// Start of a copy inside an endpoint.
    pub local_start: TimePs,
}

impl Routing {
    /// How messages travel between two endpoints, or why they do not. What passes i..=j use goes to `uses`, and its
    /// lists to `pieces`, at i * passes + j.
    pub fn route(
        &self,
        key: Key,
        trees: &mut Trees,
        uses: &mut Uses,
        pieces: &mut Vec<List>,
    ) -> Result<Timing, String> {
        let Some(used) = self.networks.get(key.network as usize) else {
            return Err(format!(
                "the machine has no network {}; name it in [hints]",
                key.network
            ));
        };
        if key.from == key.to {
            return self.local(key.from, uses, pieces);
        }
        let own = self
            .overrides
            .get(&(key.from, key.to))
            .filter(|o| o.networks.is_empty() || o.networks.contains(&key.network));
        let own = own.cloned().unwrap_or_default();
        let named = own.transport.map(|named| [named]);
        let order: &[usize] = named.as_ref().map_or(&used.transports, |one| one);
        for &index in order {
            if let Some(way) = self.way(index, key.from, key.to, &own, trees) {
                let transport = &self.transports[index];
                return Ok(self.assemble(transport, used, &own, &way, uses, pieces));
            }
        }
        let (a, b) = (self.topology.name(key.from), self.topology.name(key.to));
        let names: Vec<_> = order
            .iter()
            .map(|&i| format!("`{}`", self.transports[i].name))
            .collect();
        Err(format!(
            "no transport of network `{}` leads from {a} to {b} (tried {}); choose another path, or give \
             the machine a transport that relays or stages",
            used.name,
            names.join(", ")
        ))
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
            ceilings: vec![self.topology.most(&[memory])],
            ..Timing::default()
        })
    }

    /// The links of each pass of transport `index`; `None` where it does not lead there.
    fn way(
        &self,
        index: usize,
        from: u32,
        to: u32,
        own: &Override,
        trees: &mut Trees,
    ) -> Option<Way> {
        let (t, topology) = (&self.transports[index], &self.topology);
        let ranks = from < topology.ranks && to < topology.ranks;
        if t.ends == Ends::Ranks && !ranks || t.ends == Ends::Memory && ranks {
            return None;
        }
        let terrain = Terrain {
            topology,
            classes: &t.classes,
            relays: t.relays != Relays::None,
        };
        let mut shortest =
            |a: u32, b: u32, links: &mut Vec<u32>| trees.way((a, b), (index, terrain), links);
        let mut links = Vec::with_capacity(LONG);
        let stage = match &own.way {
            Some(nodes) => {
                links = topology.along(nodes, &t.classes).ok()?;
                (nodes.iter().rev().find(|node| t.stages.contains(node))).copied()
            }
            None if t.stages.is_empty() => {
                if !shortest(from, to, &mut links) {
                    return None;
                }
                None
            }
            None => {
                let mut through = |&stage: &u32| {
                    let (mut before, mut after) = (Vec::new(), Vec::new());
                    let leads =
                        shortest(from, stage, &mut before) && shortest(stage, to, &mut after);
                    leads.then_some((before, after, stage))
                };
                let all = t.stages.iter().filter_map(&mut through);
                let (before, after, stage) =
                    all.min_by_key(|(a, b, _)| (a.len() + b.len(), b.len()))?;
                links = [before, after].concat();
                Some(stage)
            }
        };
        let ends_pass = |&link: &u32| {
            let node = topology.links[link as usize].to;
            let relayed = t.relays == Relays::Store && node < topology.ranks;
            (relayed || stage == Some(node)) && node != to
        };
        let mut ends = Vec::new();
        if stage.is_some() || t.relays == Relays::Store {
            let stores = (1..).zip(&links).filter(|(_, link)| ends_pass(link));
            ends.extend(stores.map(|(end, _)| end));
        }
        ends.push(links.len());
        Some(Way { links, ends })
    }

    fn assemble(
        &self,
        t: &Transport,
        n: &Network,
        own: &Override,
        way: &Way,
        uses: &mut Uses,
        pieces: &mut Vec<List>,
    ) -> Timing {
        let (topology, passes) = (&self.topology, way.ends.len());
        let share = |rate: u64| ((rate as f64 * n.efficiency) as u64).max(1);
        let rate = own.rate.or(t.rate).unwrap_or(u64::MAX);
        let base = pieces.len();
        for (first, last) in (0..passes).flat_map(|i| (0..passes).map(move |j| (i, j))) {
            pieces.push(uses.add(|all| {
                let links = way.passes(first, last.max(first));
                links.for_each(|links| topology.uses(links, all));
            }));
        }
        let most = |first, last| topology.most(uses.of(pieces[base + first * passes + last]));
        let ceiling = |first, last: usize| {
            let together = most(first, last);
            let alone = match first == last {
                true => Some(together),
                false => (first..=last).map(|i| most(i, i)).min(),
            };
            share(rate.min(alone.unwrap_or(u64::MAX))).min(together)
        };
        let start = own.start.or(n.start).unwrap_or(t.start);
        Timing {
            hops: way.links.len() as u32,
            start,
            notice: if n.start.is_some() || own.start.is_some() {
                start
            } else {
                t.notice
            },
            latency: (way.links.iter())
                .map(|&l| topology.links[l as usize].latency)
                .sum(),
            store_rates: match self.packet {
                0 => Vec::new(),
                _ => self.stores(way),
            },
            packet: self.packet,
            chunk: t.chunk,
            inline: t.inline,
            passes,
            ceilings: (0..passes)
                .flat_map(|i| (0..passes).map(move |j| (i, j.max(i))))
                .map(|(first, last)| ceiling(first, last))
                .collect(),
        }
    }

    /// Rates of the links over which what was stored goes on, and how many there are of each.
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
