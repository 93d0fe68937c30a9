//! An ideal switch: one port out and one port in per endpoint, and nothing else is ever shared.
//!
//! ```text
//!   source  [out port] \          / [in port]  target
//!                       >-switch-<
//!   source  [out port] /          \ [in port]  target
//! ```
//!
//! A message of `b` bytes offered at `t` takes its ports in turn, each first come first served:
//!
//! ```text
//!   leaves       = max(t, out port free)       out port busy for b / rate
//!   enters       = max(leaves + latency, in port free)     in port busy for b / rate
//!   source free  = leaves + b / rate
//!   delivered    = enters + b / rate
//!   acknowledged = delivered + latency
//! ```
//!
//! so a message alone takes `latency + b / rate` (cut-through: the head does not wait for the
//! tail), and `k` messages into one port take `latency + k b / rate`. The switch stores what an
//! in port cannot yet accept, so a hot target never holds up a source. The request of a get travels
//! for `latency` without using ports; a multicast is one message per target, one after another.
//! Loopback uses both ports of the endpoint. A notice has no bytes but waits its turn.
//!
//! Source: the output-queued switch of Karol, Hluchyj and Morgan, "Input versus output queueing on
//! a space-division packet switch" (IEEE Trans. Communications 1987).

use super::completions::Completions;
use crate::error::SimError;
use crate::fabric::{
    Character, Conditions, Done, Event, Fabric, FabricKind, LinkTable, Msg, MsgKind, Times, Wanted,
};
use crate::network::{Network, PortRates, Wire, Wiring};
use crate::queue::TimeQueue;
use linkwright_core::{Bytes, BytesPerSec, EndpointId, Machine, TimePs};
use std::collections::VecDeque;

/// Registry entry.
pub static KIND: FabricKind = FabricKind {
    key: "crossbar",
    summary: "one port out and one port in per endpoint; no other contention",
    description: "An ideal switch. Messages queue for the port of their source and for that of \
                  their target and meet nowhere else, which separates the cost of an algorithm's \
                  port conflicts from that of a topology.",
    source: "Karol, Hluchyj and Morgan, IEEE Trans. Communications 1987",
};

/// A message on its way.
#[derive(Clone, Copy)]
struct Transit {
    op: u32,
    target: u32,
    from: u32,
    to: u32,
    bytes: u64,
    /// How long it keeps a port.
    length: TimePs,
    kind: MsgKind,
    wanted: Wanted,
}

#[derive(Clone, Copy)]
enum Step {
    /// The request of a get reaches the source.
    Asked(Transit),
    /// The head reaches the target's port.
    Entering(Transit),
}

/// When a port is free, and the ends of the messages that hold it or will hold it.
#[derive(Clone, Default)]
struct Port {
    free: TimePs,
    ends: VecDeque<TimePs>,
}

/// The crossbar over a number of endpoints.
pub struct Crossbar {
    latency: TimePs,
    rate: BytesPerSec,
    /// Ports out, then ports in.
    ports: Vec<Port>,
    sets: Vec<Vec<EndpointId>>,
    steps: TimeQueue<Step>,
    completions: Completions,
    /// Multicasts under way, each with its targets still to come.
    multicasts: Vec<(u32, usize)>,
    links: LinkTable,
    /// See [`Conditions::alike`].
    alike: bool,
}

/// The fabric that `machine` describes.
pub(super) fn from_machine(machine: &Machine) -> Result<Crossbar, SimError> {
    let mut section = machine.fabric_section();
    let latency = section.time("latency")?;
    let rate = section.rate("port_bandwidth")?;
    section.finish()?;
    let names = machine.endpoints().iter().map(|e| e.name.clone()).collect();
    Ok(Crossbar::named(latency, rate, names))
}

impl Crossbar {
    /// A crossbar with `endpoints` endpoints.
    pub fn new(latency: TimePs, rate: BytesPerSec, endpoints: usize) -> Self {
        let names = (0..endpoints).map(|i| format!("endpoint {i}"));
        Crossbar::named(latency, rate, names.collect())
    }

    fn named(latency: TimePs, rate: BytesPerSec, names: Vec<String>) -> Self {
        let out = names.iter().map(|name| format!("{name} out"));
        let both = out.chain(names.iter().map(|name| format!("{name} in")));
        Crossbar {
            latency,
            rate,
            ports: vec![Port::default(); 2 * names.len()],
            sets: Vec::new(),
            steps: TimeQueue::default(),
            completions: Completions::default(),
            multicasts: Vec::new(),
            links: LinkTable::new(both.collect()),
            alike: false,
        }
    }

    /// Use port `index` from `now` on, for `length`; returns when it begins.
    fn take(&mut self, index: usize, now: TimePs, bytes: u64, length: TimePs) -> TimePs {
        let port = &mut self.ports[index];
        let start = now.max(port.free);
        if port.free <= now {
            port.ends.clear(); // the usual case: no message holds the port
        }
        port.free = start + length;
        while port.ends.front().is_some_and(|&end| end <= now) {
            port.ends.pop_front();
        }
        port.ends.push_back(port.free);
        self.links.busy(index, start, start + length);
        self.links.bytes[index] += bytes;
        self.links.peak[index] = self.links.peak[index].max(port.ends.len() as u32);
        start
    }

    /// The message takes its source's port; returns when the source is free.
    fn leave(&mut self, now: TimePs, transit: Transit) -> TimePs {
        let start = self.take(transit.from as usize, now, transit.bytes, transit.length);
        (self.steps).push(start + self.latency, Step::Entering(transit));
        start + transit.length
    }

    fn step(&mut self, now: TimePs, step: Step) {
        match step {
            Step::Asked(transit) => {
                let free = self.leave(now, transit);
                if transit.wanted.source_free {
                    (self.completions).push(free, transit.op, Event::SourceFree, 0);
                }
            }
            Step::Entering(transit) => {
                let port = self.ports.len() / 2 + transit.to as usize;
                let start = self.take(port, now, transit.bytes, transit.length);
                let delivered = start + transit.length;
                let (op, target) = (transit.op, transit.target);
                if transit.kind == MsgKind::Multicast && !self.is_last(op) {
                    return (self.completions).push(delivered, op, Event::Delivered, target);
                }
                if !transit.wanted.acknowledged {
                    return (self.completions).last(delivered, op, Event::Delivered, target);
                }
                (self.completions).push(delivered, op, Event::Delivered, target);
                let back = match transit.kind {
                    MsgKind::Get => TimePs::ZERO,
                    _ => self.latency,
                };
                (self.completions).last(delivered + back, op, Event::Acknowledged, 0);
            }
        }
    }

    /// Whether the last target of multicast `op` has just been reached.
    fn is_last(&mut self, op: u32) -> bool {
        let known = self.multicasts.iter().position(|m| m.0 == op);
        let at = known.expect("a multicast is listed when it is offered");
        self.multicasts[at].1 -= 1;
        let last = self.multicasts[at].1 == 0;
        if last {
            self.multicasts.swap_remove(at);
        }
        last
    }
}

impl Fabric for Crossbar {
    fn character(&self) -> Character {
        Character {
            endpoints_alike: true,
            multicasts_are_copies: true,
            ..Character::default()
        }
    }

    fn network(&self) -> &dyn Network {
        self
    }

    fn reset(&mut self, conditions: &Conditions<'_>) {
        self.ports.fill(Port::default());
        self.sets = conditions.sets.to_vec();
        self.steps.clear();
        self.completions.clear();
        self.multicasts.clear();
        self.links.clear(conditions.watch);
        self.alike = conditions.alike;
    }

    fn offer(&mut self, now: TimePs, released: &[Msg]) {
        for m in released {
            let transit = Transit {
                op: m.op,
                target: 0,
                from: m.from.0,
                to: m.to.0,
                bytes: m.bytes,
                length: self.rate.time(Bytes(m.bytes)),
                kind: m.kind,
                wanted: m.wanted,
            };
            self.completions.begin();
            if m.kind == MsgKind::Get {
                self.steps.push(now + self.latency, Step::Asked(transit));
                continue;
            }
            let mut free = now;
            if m.kind == MsgKind::Multicast {
                let set = std::mem::take(&mut self.sets[m.set as usize]);
                self.multicasts.push((m.op, set.len()));
                for (target, to) in (0u32..).zip(set.iter().map(|e| e.0)) {
                    free = self.leave(
                        now,
                        Transit {
                            target,
                            to,
                            ..transit
                        },
                    );
                }
                self.sets[m.set as usize] = set;
            } else {
                free = self.leave(now, transit);
            }
            if m.wanted.source_free {
                self.completions.push(free, m.op, Event::SourceFree, 0);
            }
        }
    }

    /// Where endpoints send alike, messages reach a port in the order in which they leave one: the port needs no events.
    fn answer(&mut self, now: TimePs, m: &Msg) -> Option<Times> {
        if !self.alike || !matches!(m.kind, MsgKind::Put | MsgKind::Notice) {
            return None;
        }
        let length = self.rate.time(Bytes(m.bytes));
        let leaves = self.take(m.from.index(), now, m.bytes, length);
        let into = self.ports.len() / 2 + m.to.index();
        let enters = self.take(into, leaves + self.latency, m.bytes, length);
        let delivered = enters + length;
        Some(Times {
            source_free: leaves + length,
            delivered,
            acknowledged: delivered + self.latency,
        })
    }

    fn next(&mut self) -> Option<TimePs> {
        self.completions.next_with(&self.steps)
    }

    fn advance(&mut self, until: TimePs, out: &mut Vec<Done>) -> TimePs {
        while let Some((at, step)) = self.completions.step_due(&mut self.steps, until) {
            self.step(at, step);
        }
        self.completions.advance(until, out)
    }

    fn in_flight(&self) -> usize {
        self.completions.in_flight()
    }

    fn quiet(&self, m: &Msg) -> TimePs {
        let request = match m.kind {
            MsgKind::Get => self.latency,
            _ => TimePs::ZERO,
        };
        request + self.latency + self.rate.time(Bytes(m.bytes))
    }

    fn links(&self) -> &LinkTable {
        &self.links
    }
}

impl Network for Crossbar {
    fn wiring(&self) -> Wiring {
        Wiring::of_ports(self.ports.len() / 2, 2)
    }

    fn hops(&self, _from: EndpointId, _to: EndpointId, _network: u8) -> u32 {
        2
    }

    /// The port out of the source, the port into the target.
    fn wire(&self, from: EndpointId, to: EndpointId, _network: u8) -> Option<Wire> {
        Some(Wire {
            start: TimePs::ZERO,
            rate: self.rate.0 as u64,
            latency: self.latency,
            uses: vec![(from.0, 1), ((self.ports.len() / 2) as u32 + to.0, 1)],
            chooses: false,
        })
    }

    fn capacities(&self) -> Vec<u64> {
        vec![self.rate.0 as u64; self.ports.len()]
    }

    fn port(&self, _endpoint: EndpointId, _networks: &[u8]) -> PortRates {
        let rate = Some(self.rate);
        PortRates {
            out: rate,
            into: rate,
        }
    }
}
