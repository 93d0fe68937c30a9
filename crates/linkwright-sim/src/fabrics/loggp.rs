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
//! and no gap. Endpoints receive any number of messages at once and links are never shared: what
//! only contention can show, this model does not. Memories are endpoints like any other.
//!
//! All times of a message follow from what was offered before it, so the fabric answers at once
//! and has no events.
//!
//! Source: Alexandrov, Ionescu, Schauser and Scheiman, "LogGP: Incorporating Long Messages into
//! the LogP Model" (SPAA 1995); the gap after the last byte as in Hoefler, Schneider and
//! Lumsdaine, "LogGOPSim" (HPDC 2010).

use super::completions::Completions;
use super::FabricKind;
use crate::error::SimError;
use crate::fabric::{Bounds, Done, Fabric, LinkTable, Msg, MsgKind, Stuck, Times};
use linkwright_core::{Bytes, BytesPerSec, EndpointId, Machine, TimePs};

/// Registry entry.
pub static KIND: FabricKind = FabricKind {
    key: "loggp",
    summary: "latency, overhead, gap and bandwidth; no topology",
    description: "The smallest useful model of a network: every endpoint sends one message after \\
                  another, and messages never meet. Use it to compare the steps and bytes of \\
                  algorithms, and as the fast model for very many ranks.",
    source: "Alexandrov, Ionescu, Schauser and Scheiman, SPAA 1995",
    from_machine,
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

/// The LogGP model over a number of endpoints.
#[derive(Clone, Debug)]
pub struct LogGp {
    parameters: Parameters,
    /// When each endpoint may send again.
    next_departure: Vec<TimePs>,
    sets: Vec<Vec<EndpointId>>,
    completions: Completions,
    links: LinkTable,
}

fn from_machine(machine: &Machine) -> Result<Box<dyn Fabric + Send>, SimError> {
    let mut section = machine.fabric_section();
    let parameters = Parameters {
        latency: section.time("latency")?,
        gap: section.time("gap")?,
        bandwidth: section.rate("bandwidth")?,
    };
    section.finish()?;
    let names = machine
        .endpoints()
        .iter()
        .map(|e| format!("{} out", e.name));
    Ok(Box::new(LogGp::named(parameters, names.collect())))
}

impl LogGp {
    /// A model with `endpoints` endpoints.
    pub fn new(parameters: Parameters, endpoints: usize) -> Self {
        let names = (0..endpoints).map(|i| format!("endpoint {i} out"));
        LogGp::named(parameters, names.collect())
    }

    fn named(parameters: Parameters, names: Vec<String>) -> Self {
        LogGp {
            parameters,
            next_departure: vec![TimePs::ZERO; names.len()],
            sets: Vec::new(),
            completions: Completions::default(),
            links: LinkTable::new(names),
        }
    }

    /// (b - 1) G.
    fn serialisation(&self, bytes: u64) -> TimePs {
        (self.parameters.bandwidth).time(Bytes(bytes.saturating_sub(1)))
    }

    #[inline]
    fn send(&mut self, now: TimePs, m: &Msg) -> Times {
        let latency = self.parameters.latency;
        let source = m.from.index();
        // The request of a get needs no gap of its initiator, as an interface answers it.
        let request = match m.kind {
            MsgKind::Get => latency,
            _ => TimePs::ZERO,
        };
        let depart = (now + request).max(self.next_departure[source]);
        let source_free = depart + self.serialisation(m.bytes);
        self.next_departure[source] = source_free + self.parameters.gap;
        self.links.busy_ps[source] += (source_free - depart).0;
        self.links.bytes[source] += m.bytes;
        self.links.peak[source] = 1;
        let delivered = source_free + latency;
        Times {
            source_free,
            delivered,
            acknowledged: match m.kind {
                MsgKind::Get => delivered,
                _ => delivered + latency,
            },
        }
    }
}

impl Fabric for LogGp {
    fn reset(&mut self, _seed: u64, sets: &[Vec<EndpointId>]) {
        self.next_departure.fill(TimePs::ZERO);
        self.sets = sets.to_vec();
        self.completions.clear();
        self.links.clear();
    }

    fn answer(&mut self, now: TimePs, m: &Msg) -> Option<Times> {
        (m.kind != MsgKind::Multicast).then(|| self.send(now, m))
    }

    fn order_free(&self) -> bool {
        true
    }

    fn offer(&mut self, now: TimePs, released: &[Msg]) {
        for m in released {
            let targets = match m.kind {
                MsgKind::Multicast => self.sets[m.set as usize].len(),
                _ => 1,
            };
            let each: Vec<Times> = (0..targets).map(|_| self.send(now, m)).collect();
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

    fn stuck(&self) -> Stuck {
        Stuck::default()
    }

    fn quiet(&self, m: &Msg) -> TimePs {
        let request = match m.kind {
            MsgKind::Get => self.parameters.latency,
            _ => TimePs::ZERO,
        };
        request + self.serialisation(m.bytes) + self.parameters.latency
    }

    fn hops(&self, _from: EndpointId, _to: EndpointId, _network: u8) -> u32 {
        1
    }

    fn links(&self) -> &LinkTable {
        &self.links
    }

    fn bounds(&self) -> Bounds {
        // The first byte of a message is free, so the rate is a bound only where gap and latency
        // make up for it.
        let byte = self.parameters.bandwidth.time(Bytes(1));
        let holds = byte <= self.parameters.gap && byte <= self.parameters.latency;
        let rate = holds.then_some(self.parameters.bandwidth);
        Bounds {
            rank_out: rate,
            memory_out: rate,
            ..Bounds::default()
        }
    }
}
