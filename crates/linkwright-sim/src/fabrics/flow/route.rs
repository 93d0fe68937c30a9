//! From a pair of endpoints and a network to everything that its messages need.
//!
//! A *network* is a way of using the wires (a copy by the driver, a kernel that writes to its
//! neighbour); it lists *transports*, and the first that reaches the target carries the message. A transport
//! knows which classes of links it uses, whether data pass at once or are stored on the way, and
//! what a message costs besides its bytes.

use super::job::time;
use super::phases::{coalesced, serial};
use super::topology::{merged, Topology, Uses};
use linkwright_core::TimePs;
use std::collections::HashMap;
use std::sync::Arc;

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

/// Several passes working together.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub uses: Arc<[(u32, u32)]>,
    pub ceiling: u64,
}

/// How messages of a pair travel.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub hops: u32,
    pub start: TimePs,
    pub notice: TimePs,
    /// From the last byte leaving to its arrival, but for what switches store.
    latency: TimePs,
    /// Rates at which switches on the way pass on the packet that they store.
    store_rates: Vec<u64>,
    packet: u64,
    pub chunk: u64,
    inline: u64,
    pub passes: usize,
    /// Span of passes i..=j at i * passes + j.
    spans: Vec<Span>,
}

impl Route {
    pub fn span(&self, first: usize, last: usize) -> &Span {
        &self.spans[first * self.passes + last]
    }

    pub fn ceilings(&self) -> Vec<u64> {
        (0..self.passes).map(|i| self.span(i, i).ceiling).collect()
    }

    /// Whether a message is small enough to go at once.
    pub fn is_inline(&self, bytes: u64) -> bool {
        bytes < self.inline
    }

    /// Time before the first byte of a transfer moves.
    pub fn lead(&self, bytes: u64) -> TimePs {
        match self.is_inline(bytes) && self.passes > 0 {
            true => (self.start).saturating_sub(time(bytes, self.span(0, self.passes - 1).ceiling)),
            false => self.start,
        }
    }

    /// Time between the last byte leaving and its arrival.
    pub fn tail(&self, bytes: u64) -> TimePs {
        let stored = self.packet.min(bytes);
        let each = self.store_rates.iter().map(|&rate| time(stored, rate));
        self.latency + each.sum()
    }

    /// Time for an answer to come back.
    pub fn back(&self) -> TimePs {
        self.latency
    }

    /// Time that `bytes` take between lead and tail, alone on the machine.
    pub fn alone(&self, bytes: u64, each_chunk: bool) -> TimePs {
        if bytes == 0 || self.passes == 0 {
            return TimePs::ZERO;
        }
        if self.is_inline(bytes) {
            return time(bytes, self.span(0, self.passes - 1).ceiling);
        }
        if each_chunk {
            return serial(bytes, self.chunk, &self.ceilings());
        }
        (coalesced(bytes, self.chunk, &self.ceilings()).iter())
            .map(|phase| time(phase.bytes, self.span(phase.first, phase.last).ceiling))
            .sum()
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
    /// The route of messages between two endpoints, or why there is none.
    pub fn route(&self, from: u32, to: u32, network: u8) -> Result<Route, String> {
        let Some(used) = self.networks.get(network as usize) else {
            return Err(format!(
                "the machine has no network {network}; name it in [hints]"
            ));
        };
        if from == to {
            return self.local(from);
        }
        let own = self
            .overrides
            .get(&(from, to))
            .filter(|o| o.networks.is_empty() || o.networks.contains(&network));
        let own = own.cloned().unwrap_or_default();
        let named: Vec<usize> = own.transport.into_iter().collect();
        let order = if named.is_empty() {
            &used.transports
        } else {
            &named
        };
        for &index in order {
            let transport = &self.transports[index];
            if let Some(passes) = self.passes(transport, from, to, &own) {
                return Ok(self.assemble(transport, used, &own, &passes));
            }
        }
        let (a, b) = (self.topology.name(from), self.topology.name(to));
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

    fn local(&self, endpoint: u32) -> Result<Route, String> {
        let name = self.topology.name(endpoint);
        let uses = self.topology.local_uses(endpoint).ok_or_else(|| {
            format!("{name} sends to itself, but the machine describes no such copies; add [fabric.local]")
        })?;
        let ceiling = self.topology.most(&uses);
        Ok(Route {
            hops: 0,
            start: self.local_start,
            notice: self.local_start,
            latency: TimePs::ZERO,
            store_rates: Vec::new(),
            packet: 0,
            chunk: u64::MAX,
            inline: 0,
            passes: 1,
            spans: vec![Span {
                uses: uses.into(),
                ceiling,
            }],
        })
    }

    /// The links of each pass; `None` where the transport does not lead there.
    fn passes(&self, t: &Transport, from: u32, to: u32, own: &Override) -> Option<Vec<Vec<u32>>> {
        let ranks = from < self.topology.ranks && to < self.topology.ranks;
        if t.ends == Ends::Ranks && !ranks || t.ends == Ends::Memory && ranks {
            return None;
        }
        let relays = t.relays != Relays::None;
        let way = |a: u32, b: u32| {
            let tree = self.topology.tree(a, Some(b), &t.classes, relays);
            self.topology.way(&tree, a, b)
        };
        let (links, stage) = match &own.way {
            Some(nodes) => {
                let stage = nodes.iter().rev().find(|node| t.stages.contains(node));
                (self.topology.along(nodes, &t.classes).ok()?, stage.copied())
            }
            None if t.stages.is_empty() => (way(from, to)?, None),
            None => {
                let through = |&stage: &u32| Some((way(from, stage)?, way(stage, to)?, stage));
                let all = t.stages.iter().filter_map(through);
                let (before, after, stage) =
                    all.min_by_key(|(a, b, _)| (a.len() + b.len(), b.len()))?;
                ([before, after].concat(), Some(stage))
            }
        };
        let mut passes = vec![Vec::new()];
        for &link in &links {
            passes.last_mut().expect("one at least").push(link);
            let node = self.topology.links[link as usize].to;
            let relayed = t.relays == Relays::Store && node < self.topology.ranks;
            if (relayed || stage == Some(node)) && node != to {
                passes.push(Vec::new());
            }
        }
        Some(passes)
    }

    fn assemble(&self, t: &Transport, n: &Network, own: &Override, passes: &[Vec<u32>]) -> Route {
        let topology = &self.topology;
        let uses: Vec<Uses> = passes.iter().map(|links| topology.uses(links)).collect();
        let share = |rate: u64| ((rate as f64 * n.efficiency) as u64).max(1);
        let rate = own.rate.or(t.rate).unwrap_or(u64::MAX);
        let mut spans = Vec::with_capacity(passes.len() * passes.len());
        for first in 0..passes.len() {
            for last in 0..passes.len() {
                let several = first..=last.max(first);
                let together = merged(uses[several.clone()].iter().cloned());
                let slowest = uses[several].iter().map(|each| topology.most(each)).min();
                let alone = share(rate.min(slowest.unwrap_or(u64::MAX)));
                spans.push(Span {
                    ceiling: alone.min(topology.most(&together)),
                    uses: together.into(),
                });
            }
        }
        let links = passes.iter().flatten();
        let forwarded = passes.iter().flat_map(|links| links.iter().skip(1));
        let start = own.start.or(n.start).unwrap_or(t.start);
        Route {
            hops: links.clone().count() as u32,
            start,
            notice: if n.start.is_some() || own.start.is_some() {
                start
            } else {
                t.notice
            },
            latency: links.map(|&l| topology.links[l as usize].latency).sum(),
            store_rates: forwarded.map(|&l| topology.capacity[l as usize]).collect(),
            packet: self.packet,
            chunk: t.chunk,
            inline: t.inline,
            passes: passes.len(),
            spans,
        }
    }
}
