//! Bulk synchronous exchange: whoever has something to send meets at a sync, then all send.
//!
//! ```text
//!   phase = sync + max over endpoints of max(bytes out, bytes in) / rate
//! ```
//!
//! All messages released at one instant form a phase; what is released while a phase runs forms
//! the next one. Everything of a phase completes at its end: a compiled exchange has no events of
//! its own that software could see. Inside a phase there is no contention beyond the ports, and no
//! latency besides the sync. The barrier is the sync alone. A get is a transfer like any other: in
//! a compiled exchange both sides know their part.
//!
//! Source: Valiant, "A bridging model for parallel computation" (CACM 1990).

use super::FabricKind;
use crate::error::SimError;
use crate::fabric::{Bounds, Done, Event, Fabric, LinkTable, Msg, MsgKind, Stuck};
use linkwright_core::{Bytes, BytesPerSec, EndpointId, Machine, TimePs};

/// Registry entry.
pub static KIND: FabricKind = FabricKind {
    key: "exchange",
    summary: "bulk synchronous phases: a sync, then the busiest port decides",
    description: "All messages released at one instant form a phase, which takes a sync and the \
                  time of the endpoint with most bytes in or out. With a hardware barrier.",
    source: "Valiant, CACM 1990",
    from_machine,
};

/// The exchange over a number of endpoints.
pub struct Exchange {
    sync: TimePs,
    rate: BytesPerSec,
    sets: Vec<Vec<EndpointId>>,
    /// The phase under way and its end.
    running: (Vec<Msg>, TimePs),
    /// The phase that gathers and its beginning.
    gathering: (Vec<Msg>, TimePs),
    /// Bytes of the gathering phase: out, then in, of each endpoint.
    bytes: Vec<u64>,
    links: LinkTable,
}

fn from_machine(machine: &Machine) -> Result<Box<dyn Fabric + Send>, SimError> {
    let mut section = machine.fabric_section();
    let (sync, rate) = (section.time("sync")?, section.rate("bandwidth")?);
    section.finish()?;
    let names: Vec<String> = machine.endpoints().iter().map(|e| e.name.clone()).collect();
    let both = ["out", "in"].map(|way| names.iter().map(move |name| format!("{name} {way}")));
    Ok(Box::new(Exchange {
        sync,
        rate,
        sets: Vec::new(),
        running: (Vec::new(), TimePs::ZERO),
        gathering: (Vec::new(), TimePs::ZERO),
        bytes: vec![0; 2 * names.len()],
        links: LinkTable::new(both.into_iter().flatten().collect()),
    }))
}

impl Exchange {
    fn length(&self, bytes: u64) -> TimePs {
        self.sync + self.rate.time(Bytes(bytes))
    }

    /// The gathering phase is complete: run it.
    fn close_phase(&mut self) {
        let busiest = self.bytes.iter().copied().max().unwrap_or(0);
        let end = self.gathering.1 + self.length(busiest);
        for (index, bytes) in self.bytes.iter_mut().enumerate() {
            self.links.bytes[index] += *bytes;
            self.links.busy_ps[index] += self.rate.time(Bytes(*bytes)).0;
            self.links.peak[index] = self.links.peak[index].max(u32::from(*bytes > 0));
            *bytes = 0;
        }
        self.running = (std::mem::take(&mut self.gathering.0), end);
    }
}

impl Fabric for Exchange {
    fn reset(&mut self, _seed: u64, sets: &[Vec<EndpointId>]) {
        self.sets = sets.to_vec();
        self.running = (Vec::new(), TimePs::ZERO);
        self.gathering = (Vec::new(), TimePs::ZERO);
        self.bytes.fill(0);
        self.links.clear();
    }

    fn offer(&mut self, now: TimePs, released: &[Msg]) {
        if self.gathering.0.is_empty() {
            self.gathering.1 = now.max(self.running.1);
        }
        self.gathering.0.extend_from_slice(released);
        let ports_in = self.bytes.len() / 2;
        for m in released {
            self.bytes[m.from.index()] += m.bytes;
            let targets = match m.kind {
                MsgKind::Multicast => &self.sets[m.set as usize][..],
                _ => std::slice::from_ref(&m.to),
            };
            for to in targets {
                self.bytes[ports_in + to.index()] += m.bytes;
            }
        }
    }

    fn barrier(&mut self, now: TimePs, _group: u32) -> Option<TimePs> {
        Some(now + self.sync)
    }

    fn next(&mut self) -> Option<TimePs> {
        match (self.running.0.is_empty(), self.gathering.0.is_empty()) {
            (false, _) => Some(self.running.1),
            (true, false) => Some(self.gathering.1 + self.sync),
            (true, true) => None,
        }
    }

    fn advance(&mut self, until: TimePs, out: &mut Vec<Done>) -> TimePs {
        if self.running.0.is_empty() && !self.gathering.0.is_empty() && until > self.gathering.1 {
            self.close_phase();
        }
        let at = self.running.1;
        if self.running.0.is_empty() || at > until {
            return until;
        }
        for m in self.running.0.drain(..) {
            let done = |event, target| Done {
                op: m.op,
                event,
                at,
                target,
            };
            let targets = match m.kind {
                MsgKind::Multicast => self.sets[m.set as usize].len() as u32,
                _ => 1,
            };
            out.push(done(Event::SourceFree, 0));
            out.extend((0..targets).map(|target| done(Event::Delivered, target)));
            out.push(done(Event::Acknowledged, 0));
        }
        at
    }

    fn in_flight(&self) -> usize {
        self.running.0.len() + self.gathering.0.len()
    }

    fn stuck(&self) -> Stuck {
        Stuck::default()
    }

    fn quiet(&self, m: &Msg) -> TimePs {
        self.length(m.bytes)
    }

    fn hops(&self, _from: EndpointId, _to: EndpointId, _network: u8) -> u32 {
        1
    }

    fn links(&self) -> &LinkTable {
        &self.links
    }

    fn bounds(&self) -> Bounds {
        let rate = Some(self.rate);
        Bounds {
            rank_out: rate,
            rank_in: rate,
            memory_out: rate,
            memory_in: rate,
            halves: None,
        }
    }
}
