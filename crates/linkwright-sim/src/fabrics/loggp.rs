//! LogGP: latency, overhead, gap and bandwidth; no topology.
//!
//! ```text
//!   source   | o |--- (b-1) G ---|- g -|  next message may leave
//!                 \\               \\
//!                  \\<---- L ----->  \\
//!   target                           | o |  visible
//! ```
//!
//! A message of `b` bytes offered at `t` leaves when the source's gap allows, and
//!
//! ```text
//!   depart       = max(t, gap of the source)
//!   source free  = depart + (b - 1) G
//!   next depart >= depart + (b - 1) G + g
//!   delivered    = depart + (b - 1) G + L
//!   acknowledged = delivered + L
//! ```
//!
//! so one message takes `o + L + (b-1) G + o`; the overheads `o` are the path's `start` and
//! `receive`. `G` is the inverse of `bandwidth`. A get sends its request first, which costs `L`
//! and no gap. Endpoints receive any number of messages at once and links are never shared: the model
//! shows no effect of contention. Memories are endpoints like any other.
//!
//! Real machines treat long and short messages differently (another protocol, another cache), so L and 1/G may
//! change at a size, and each message may keep its source for an `occupancy` in addition to its bytes: a
//! `[[fabric.regime]]` holds for messages of at least `from` bytes, as in PLogP. A longer message must not be
//! faster, which is checked when the file is read. Ranks in the same instance of a `[[fabric.level]]` (a host of a
//! cluster) have their own numbers; the innermost shared level counts.
//!
//! All times of a message follow from what was offered before it, so the fabric answers at once
//! and has no events.
//!
//! Source: Alexandrov, Ionescu, Schauser and Scheiman, "LogGP: Incorporating Long Messages into
//! the LogP Model" (SPAA 1995); the gap after the last byte as in Hoefler, Schneider and
//! Lumsdaine, "LogGOPSim" (HPDC 2010).

use super::completions::Completions;
use crate::error::SimError;
use crate::fabric::{
    Character, Conditions, Done, Fabric, FabricKind, LinkTable, Msg, MsgKind, Times,
};
use crate::network::{Network, PortRates, Wire, Wiring};
use linkwright_core::machine::{Nearness, Section};
use linkwright_core::{Bytes, BytesPerSec, EndpointId, Machine, TimePs};
use std::cmp::Reverse;

/// Registry entry.
pub static KIND: FabricKind = FabricKind {
    key: "loggp",
    summary: "latency, overhead, gap and bandwidth; no topology",
    description: "The smallest useful model of a network: every endpoint sends one message after \
                  another, and messages never meet. Use it to compare the steps and bytes of \
                  algorithms, and as the fast model for very many ranks.",
    source: "Alexandrov, Ionescu, Schauser and Scheiman, SPAA 1995",
};

/// The parameters of LogGP; overheads belong to the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// L.
    pub latency: TimePs,
    /// g, between the last byte of a message and the first of the next.
    pub gap: TimePs,
    /// 1 / G.
    pub bandwidth: BytesPerSec,
}

/// L and 1/G of messages of at least `from` bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Regime {
    /// Smallest message.
    pub from: Bytes,
    /// How long a message keeps its source in addition to its bytes.
    pub occupancy: TimePs,
    /// L.
    pub latency: TimePs,
    /// 1 / G.
    pub bandwidth: BytesPerSec,
}

impl Regime {
    /// (b - 1) G, and the occupancy.
    #[inline]
    fn serialisation(&self, bytes: u64) -> TimePs {
        match bytes {
            0 | 1 => self.occupancy,
            _ => self.occupancy + self.bandwidth.time(Bytes(bytes - 1)),
        }
    }

    #[inline]
    fn time(&self, bytes: u64) -> TimePs {
        self.serialisation(bytes) + self.latency
    }
}

/// The regime of messages of this many bytes.
#[inline]
fn holding(regimes: &[Regime], bytes: u64) -> &Regime {
    let above = regimes[1..].iter().rev().find(|r| r.from.0 <= bytes);
    above.unwrap_or(&regimes[0])
}

/// The LogGP model over a number of endpoints.
#[derive(Clone, Debug)]
pub struct LogGp {
    gap: TimePs,
    /// For any two ranks, by ascending size; the first holds from 0 bytes on.
    regimes: Vec<Regime>,
    /// The same for ranks in one instance of a level, by its index, innermost first.
    levels: Vec<(usize, Vec<Regime>)>,
    nearness: Nearness,
    /// When each endpoint may send again.
    next_departure: Vec<TimePs>,
    /// A size, how long it keeps its source, and its L; most messages are as long as the one before.
    latest: (u64, TimePs, TimePs),
    sets: Vec<Vec<EndpointId>>,
    completions: Completions,
    links: LinkTable,
}

/// The fabric that `machine` describes.
pub(super) fn from_machine(machine: &Machine) -> Result<LogGp, SimError> {
    let mut section = machine.fabric_section();
    let all = regimes(&mut section)?;
    let gap = section.time("gap")?;
    let endpoints = machine.endpoints().iter();
    let mut fabric = LogGp::named(gap, all, endpoints.map(|e| format!("{} out", e.name)));
    let names: Vec<&str> = machine.levels().iter().map(|l| l.name.as_str()).collect();
    for mut table in section.sections("level")? {
        let level = table.name("name", &names)?;
        fabric.levels.push((level, regimes(&mut table)?));
        table.finish()?;
    }
    fabric.levels.sort_by_key(|(level, _)| Reverse(*level));
    fabric.nearness = machine.nearness();
    section.finish()?;
    Ok(fabric)
}

/// The numbers of a table, which hold for all sizes, and its `[[regime]]`, which default to the table's latency.
fn regimes(table: &mut Section<'_>) -> Result<Vec<Regime>, SimError> {
    let mut regimes = vec![Regime {
        from: Bytes(0),
        latency: table.time("latency")?,
        bandwidth: table.rate("bandwidth")?,
        occupancy: table.optional_time("occupancy")?.unwrap_or(TimePs::ZERO),
    }];
    for mut table in table.sections("regime")? {
        let regime = Regime {
            from: table.bytes("from")?,
            occupancy: table.optional_time("occupancy")?.unwrap_or(TimePs::ZERO),
            latency: (table.optional_time("latency")?).unwrap_or(regimes[0].latency),
            bandwidth: table.rate("bandwidth")?,
        };
        add(&mut regimes, regime).map_err(|problem| table.inconsistent("from", problem))?;
        table.finish()?;
    }
    Ok(regimes)
}

/// Append a regime beyond the last, or explain what is wrong with it.
fn add(regimes: &mut Vec<Regime>, regime: Regime) -> Result<(), String> {
    let (last, from) = (regimes[regimes.len() - 1], regime.from);
    if from <= last.from {
        return Err(format!(
            "{} B follows {} B; order regimes by size, above 0",
            from.0, last.from.0
        ));
    }
    if regime.time(from.0) < last.time(from.0 - 1) {
        return Err(format!(
            "a message of {} B would be faster than one of {} B; raise the latency or lower the bandwidth",
            from.0,
            from.0 - 1
        ));
    }
    regimes.push(regime);
    Ok(())
}

impl LogGp {
    /// A model with `endpoints` endpoints.
    pub fn new(parameters: Parameters, endpoints: usize) -> Self {
        let all = Regime {
            from: Bytes(0),
            occupancy: TimePs::ZERO,
            latency: parameters.latency,
            bandwidth: parameters.bandwidth,
        };
        let names = (0..endpoints).map(|i| format!("endpoint {i} out"));
        LogGp::named(parameters.gap, vec![all], names)
    }

    fn named(gap: TimePs, regimes: Vec<Regime>, names: impl Iterator<Item = String>) -> Self {
        let links = LinkTable::new(names.collect());
        LogGp {
            gap,
            regimes,
            levels: Vec::new(),
            nearness: Nearness::default(),
            next_departure: vec![TimePs::ZERO; links.names.len()],
            latest: (u64::MAX, TimePs::ZERO, TimePs::ZERO),
            sets: Vec::new(),
            completions: Completions::default(),
            links,
        }
    }

    /// Regimes of messages between two endpoints.
    #[inline]
    fn regimes(&self, from: EndpointId, to: EndpointId) -> &[Regime] {
        if self.levels.is_empty() {
            return &self.regimes;
        }
        let shared = self.nearness.shared(from.index(), to.index());
        let near = self.levels.iter().find(|(level, _)| Some(*level) <= shared);
        near.map_or(&self.regimes, |(_, regimes)| regimes)
    }

    /// The regimes of all levels.
    fn every_regime(&self) -> impl Iterator<Item = &Regime> {
        let levels = self.levels.iter().flat_map(|(_, regimes)| regimes);
        self.regimes.iter().chain(levels)
    }

    /// How long a message of this size between any two ranks keeps its source, and its L.
    #[inline]
    fn times_of(&mut self, bytes: u64) -> (TimePs, TimePs) {
        if self.latest.0 != bytes {
            let regime = holding(&self.regimes, bytes);
            self.latest = (bytes, regime.serialisation(bytes), regime.latency);
        }
        (self.latest.1, self.latest.2)
    }

    #[inline]
    fn send(&mut self, now: TimePs, m: &Msg, to: EndpointId) -> Times {
        let (serialisation, latency, small) = if self.levels.is_empty() {
            let (serialisation, latency) = self.times_of(m.bytes);
            (serialisation, latency, self.regimes[0].latency)
        } else {
            let regimes = self.regimes(m.from, to);
            let regime = holding(regimes, m.bytes);
            let serialisation = regime.serialisation(m.bytes);
            (serialisation, regime.latency, regimes[0].latency)
        };
        let source = m.from.index();
        // The request of a get needs no gap of its initiator, as an interface answers it.
        let request = match m.kind {
            MsgKind::Get => small,
            _ => TimePs::ZERO,
        };
        let depart = (now + request).max(self.next_departure[source]);
        let source_free = depart + serialisation;
        self.next_departure[source] = source_free + self.gap;
        self.links.busy(source, depart, source_free);
        self.links.bytes[source] += m.bytes;
        self.links.peak[source] = 1;
        let delivered = source_free + latency;
        Times {
            source_free,
            delivered,
            acknowledged: match m.kind {
                MsgKind::Get => delivered,
                _ => delivered + small,
            },
        }
    }
}

impl Fabric for LogGp {
    fn character(&self) -> Character {
        let occupancy = self.every_regime().map(|r| r.occupancy).min();
        Character {
            order_free: true,
            endpoints_alike: self.levels.is_empty(),
            multicasts_are_copies: true,
            gap: self.gap + occupancy.unwrap_or(TimePs::ZERO),
            ..Character::default()
        }
    }

    #[inline]
    fn network(&self) -> &dyn Network {
        self
    }

    fn reset(&mut self, conditions: &Conditions<'_>) {
        self.next_departure.fill(TimePs::ZERO);
        self.sets = conditions.sets.to_vec();
        self.completions.clear();
        self.links.clear(conditions.watch);
    }

    #[inline(always)]
    fn answer(&mut self, now: TimePs, m: &Msg) -> Option<Times> {
        (m.kind != MsgKind::Multicast).then(|| self.send(now, m, m.to))
    }

    fn offer(&mut self, now: TimePs, released: &[Msg]) {
        for m in released {
            let set = match m.kind {
                MsgKind::Multicast => self.sets[m.set as usize].clone(),
                _ => vec![m.to],
            };
            let each: Vec<Times> = set.iter().map(|&to| self.send(now, m, to)).collect();
            self.completions.message(m.op, &each);
        }
    }

    fn next(&mut self) -> Option<TimePs> {
        self.completions.next()
    }

    fn advance(&mut self, until: TimePs, out: &mut Vec<Done>) -> TimePs {
        self.completions.advance(until, out)
    }

    fn in_flight(&self) -> usize {
        self.completions.in_flight()
    }

    #[inline]
    fn quiet(&self, m: &Msg) -> TimePs {
        let regimes = match m.kind {
            // The bound holds for the nearest target, whichever that is.
            MsgKind::Multicast => self.levels.first().map_or(&*self.regimes, |near| &near.1),
            _ => self.regimes(m.from, m.to),
        };
        let request = match m.kind {
            MsgKind::Get => regimes[0].latency,
            _ => TimePs::ZERO,
        };
        request + holding(regimes, m.bytes).time(m.bytes)
    }

    fn links(&self) -> &LinkTable {
        &self.links
    }
}

impl Network for LogGp {
    fn wiring(&self) -> Wiring {
        Wiring::of_ports(self.links.names.len(), 1)
    }

    /// The way out of the source, at the rate and latency of long messages.
    fn wire(&self, from: EndpointId, to: EndpointId, _network: u8) -> Option<Wire> {
        let long = self.regimes(from, to).last()?;
        Some(Wire {
            start: TimePs::ZERO,
            rate: long.bandwidth.0 as u64,
            latency: long.occupancy + long.latency,
            uses: vec![(from.0, 1)],
            chooses: false,
        })
    }

    fn capacities(&self) -> Vec<u64> {
        let rates = self.every_regime().map(|regime| regime.bandwidth.0);
        vec![rates.fold(0.0, f64::max) as u64; self.links.names.len()]
    }

    fn port(&self, _endpoint: EndpointId, _networks: &[u8]) -> PortRates {
        // The first byte of a message is free, so the rate is a bound only where gap and latency
        // make up for it.
        let holds = self.every_regime().all(|r| {
            let byte = r.bandwidth.time(Bytes(1));
            byte <= self.gap && byte <= r.latency
        });
        let fastest = self
            .every_regime()
            .map(|r| r.bandwidth.0)
            .fold(0.0, f64::max);
        PortRates {
            out: holds.then_some(BytesPerSec(fastest)),
            into: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regime(from: u64, latency_ns: u64, bytes_per_s: f64) -> Regime {
        Regime {
            from: Bytes(from),
            occupancy: TimePs::ZERO,
            latency: TimePs::from_ns(latency_ns),
            bandwidth: BytesPerSec(bytes_per_s),
        }
    }

    #[test]
    fn a_longer_message_is_never_faster() {
        let mut regimes = vec![regime(0, 1000, 1e9)];
        // 998 + 1000 ns below 1000 B; 999 / 4 + 1700 = 1949 ns from there on.
        let problem = add(&mut regimes, regime(1000, 1700, 4e9)).unwrap_err();
        assert!(problem.contains("1000 B would be faster than one of 999 B"));
        add(&mut regimes, regime(1000, 1900, 4e9)).unwrap();
        let problem = add(&mut regimes, regime(1000, 9000, 4e9)).unwrap_err();
        assert!(problem.contains("1000 B follows 1000 B"));
        assert!((0..4000).map(|b| holding(&regimes, b).time(b)).is_sorted());
    }
}
