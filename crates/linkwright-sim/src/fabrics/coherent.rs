//! Shared memory between coherent caches: a store becomes visible to other processors a little later.
//!
//! Ranks move data themselves (`[path.NAME.memory]`, `crate::residence`); the fabric only models how long it takes
//! until a rank that polls a flag sees the store of another:
//!
//! ```text
//!   writer  | store |--gap--| store |
//!                  \            \
//!                   \<- latency ->\          the line is taken from the reader, written, and read again
//!   reader   poll poll poll poll   sees it
//! ```
//!
//! A store blocks no rank: the writer goes on at once. Eager messages (of the path's `memory`) have a line each, for
//! which they wait in the store buffer, `gap` after one another; all others share the line of their pair's flag. Two
//! ranks that write to each other while neither store has been seen yet hold each other's lines: each store is then
//! seen `crossing` later. Data that a rank reads (a get) or writes into a memory have arrived once the rank has moved
//! them.
//!
//! A `barrier` is a counter that all add to and look at; without one, barriers are notices.
//!
//! Ranks in the same instance of a `[[fabric.level]]` may be nearer; the innermost level that both share counts.
//!
//! Leaves out: more than two ranks at one line; traffic on the interconnect between the caches.
//!
//! Source: Ramos and Hoefler, "Modeling communication in cache-coherent SMP systems: a case-study with Xeon
//! Phi" (HPDC 2013).

use super::slab::Slab;
use crate::error::SimError;
use crate::fabric::{
    Character, Conditions, Done, Event, Fabric, FabricKind, LinkTable, Msg, MsgKind,
};
use crate::network::{Network, Wiring};
use crate::queue::TimeQueue;
use linkwright_core::machine::Nearness;
use linkwright_core::{Bytes, EndpointId, Machine, TimePs};

/// Registry entry.
pub static KIND: FabricKind = FabricKind {
    key: "coherent",
    summary: "flags in coherent caches; ranks move the data themselves",
    description: "Shared memory of one host. A store is seen by who polls for it after a latency, longer where \
                  two ranks write to each other at once; latencies may differ by level (core, package). Use it \
                  with a path that has a `memory`, which says what loads and stores cost where data lie.",
    source: "Ramos and Hoefler, HPDC 2013",
};

/// How far apart two ranks are.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Distance {
    /// Index of the level that both must share; `None`: any two ranks.
    level: Option<usize>,
    latency: TimePs,
    crossing: TimePs,
}

/// A store that has not been seen yet.
#[derive(Clone, Copy, Debug)]
struct Flight {
    op: u32,
    target: u32,
    /// What a crossing adds.
    crossing: TimePs,
    /// Whether it has been added.
    crossed: bool,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Seen(Flight, u32),
    Done(u32, Event, u32),
}

/// Coherent caches over a number of endpoints.
pub struct Coherent {
    gap: TimePs,
    /// From the last arrival at a barrier until all go on.
    barrier: Option<TimePs>,
    /// Largest message that has its own line.
    eager: Bytes,
    /// Nearest level first; the last holds for any two ranks.
    distances: Vec<Distance>,
    nearness: Nearness,
    ranks: usize,
    next_departure: Vec<TimePs>,
    sets: Vec<Vec<EndpointId>>,
    steps: TimeQueue<Step>,
    /// Stores under way by writer and reader, each with whether another has crossed it.
    under_way: Slab<(u32, u32, bool)>,
    /// Targets that have still to see a multicast.
    multicasts: Vec<(u32, usize)>,
    in_flight: usize,
    links: LinkTable,
}

/// The fabric that `machine` describes.
pub(super) fn from_machine(machine: &Machine) -> Result<Coherent, SimError> {
    let mut section = machine.fabric_section();
    let names: Vec<&str> = machine.levels().iter().map(|l| l.name.as_str()).collect();
    let zero = TimePs::ZERO;
    let any = Distance {
        level: None,
        latency: section.time("latency")?,
        crossing: section.optional_time("crossing")?.unwrap_or(zero),
    };
    let gap = section.optional_time("gap")?.unwrap_or(zero);
    let barrier = section.optional_time("barrier")?;
    let mut distances = Vec::new();
    for mut table in section.sections("level")? {
        distances.push(Distance {
            level: Some(table.name("name", &names)?),
            latency: table.time("latency")?,
            crossing: table.optional_time("crossing")?.unwrap_or(zero),
        });
        table.finish()?;
    }
    section.finish()?;
    distances.sort_by_key(|distance| std::cmp::Reverse(distance.level));
    distances.push(any);
    let endpoints = machine.endpoints().iter();
    let memory = machine.default_path().memory.as_ref();
    Ok(Coherent {
        gap,
        barrier,
        eager: memory.map_or(Bytes(0), |memory| memory.eager),
        distances,
        nearness: machine.nearness(),
        ranks: machine.ranks(),
        next_departure: vec![zero; machine.endpoints().len()],
        sets: Vec::new(),
        steps: TimeQueue::default(),
        under_way: Slab::default(),
        multicasts: Vec::new(),
        in_flight: 0,
        links: LinkTable::new(endpoints.map(|e| format!("{} stores", e.name)).collect()),
    })
}

impl Coherent {
    fn distance(&self, from: EndpointId, to: EndpointId) -> Distance {
        let shared = self.nearness.shared(from.index(), to.index());
        let near = |d: &&Distance| d.level.is_none_or(|level| Some(level) <= shared);
        *self
            .distances
            .iter()
            .find(near)
            .expect("the last holds for all")
    }

    /// Whether only the initiator sees the data.
    fn is_own(&self, m: &Msg, to: EndpointId) -> bool {
        m.kind == MsgKind::Get || to == m.from || to.index() >= self.ranks
    }

    fn push(&mut self, at: TimePs, step: Step) {
        self.in_flight += 1;
        self.steps.push(at, step);
    }

    fn store(&mut self, now: TimePs, m: &Msg, to: EndpointId, target: u32) {
        let source = m.from.index();
        self.links.bytes[source] += m.bytes;
        self.links.peak[source] = 1;
        if self.is_own(m, to) {
            self.push(now, Step::Done(m.op, Event::Delivered, target));
            return;
        }
        let Distance {
            latency, crossing, ..
        } = self.distance(m.from, to);
        let mut departs = now;
        if (1..=self.eager.0).contains(&m.bytes) {
            departs = now.max(self.next_departure[source]);
            self.next_departure[source] = departs + self.gap;
            self.links.busy(source, departs, departs + self.gap);
        }
        let mut crossed = false;
        for other in self.under_way.iter_mut() {
            if (other.0, other.1) == (to.0, m.from.0) {
                (other.2, crossed) = (true, true);
            }
        }
        let slot = self.under_way.insert((m.from.0, to.0, crossed));
        let flight = Flight {
            op: m.op,
            target,
            crossing,
            crossed: false,
        };
        self.push(departs + latency, Step::Seen(flight, slot));
    }

    fn step(&mut self, at: TimePs, step: Step, out: &mut Vec<Done>) {
        self.in_flight -= 1;
        let (op, event, target) = match step {
            Step::Done(op, event, target) => (op, event, target),
            Step::Seen(flight, slot) => {
                let crossed = self.under_way[slot as usize].2;
                if crossed && !flight.crossed && flight.crossing > TimePs::ZERO {
                    let flight = Flight {
                        crossed: true,
                        ..flight
                    };
                    self.push(at + flight.crossing, Step::Seen(flight, slot));
                    return;
                }
                // No rank writes to itself through another's line: this entry meets no store.
                self.under_way[slot as usize] = (u32::MAX, u32::MAX, false);
                self.under_way.remove(slot);
                (flight.op, Event::Delivered, flight.target)
            }
        };
        let done = |event, target| Done {
            op,
            event,
            at,
            target,
        };
        out.push(done(event, target));
        if event == Event::Delivered && self.is_last(op) {
            out.push(done(Event::Acknowledged, 0));
        }
    }

    /// Whether the target that has just seen the message was its last.
    fn is_last(&mut self, op: u32) -> bool {
        let Some(at) = self.multicasts.iter().position(|m| m.0 == op) else {
            return true;
        };
        self.multicasts[at].1 -= 1;
        let last = self.multicasts[at].1 == 0;
        if last {
            self.multicasts.swap_remove(at);
        }
        last
    }
}

impl Fabric for Coherent {
    fn character(&self) -> Character {
        Character::default()
    }

    fn network(&self) -> &dyn Network {
        self
    }

    fn reset(&mut self, conditions: &Conditions<'_>) {
        self.next_departure.fill(TimePs::ZERO);
        self.sets = conditions.sets.to_vec();
        self.steps.clear();
        self.under_way.clear();
        self.multicasts.clear();
        self.in_flight = 0;
        self.links.clear(conditions.watch);
    }

    fn offer(&mut self, now: TimePs, released: &[Msg]) {
        for m in released {
            // The rank has moved the data, and the store of the flag is in its store buffer.
            self.push(now, Step::Done(m.op, Event::SourceFree, 0));
            if m.kind == MsgKind::Multicast {
                let set = std::mem::take(&mut self.sets[m.set as usize]);
                self.multicasts.push((m.op, set.len()));
                for (target, &to) in (0u32..).zip(&set) {
                    self.store(now, m, to, target);
                }
                self.sets[m.set as usize] = set;
            } else {
                self.store(now, m, m.to, 0);
            }
        }
    }

    fn barrier(&mut self, now: TimePs, _group: u32) -> Option<TimePs> {
        self.barrier.map(|takes| now + takes)
    }

    fn next(&mut self) -> Option<TimePs> {
        self.steps.next()
    }

    fn advance(&mut self, until: TimePs, out: &mut Vec<Done>) -> TimePs {
        while let Some(at) = self.steps.next().filter(|&at| at <= until) {
            while let Some(step) = self.steps.pop_at(at) {
                self.step(at, step, out);
            }
            if !out.is_empty() {
                return at;
            }
        }
        until
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn quiet(&self, m: &Msg) -> TimePs {
        match m.kind {
            MsgKind::Multicast => self.distances[0].latency,
            _ if self.is_own(m, m.to) => TimePs::ZERO,
            _ => self.distance(m.from, m.to).latency,
        }
    }

    fn links(&self) -> &LinkTable {
        &self.links
    }
}

impl Network for Coherent {
    fn wiring(&self) -> Wiring {
        Wiring::of_ports(self.links.names.len(), 1)
    }
}
