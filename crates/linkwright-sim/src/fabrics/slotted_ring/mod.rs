//! Slotted rings under a central arbiter, fed by DMA engines: the Cell's element interconnect bus.
//!
//! ```text
//!   SPU -> [queue] -> DMA engine -> address slot -> snoop -> [arbiter] -> one of four rings -> receiver
//!           16         lines of 128 B   1 per cycle   50       3 lines a ring    16 B a cycle
//! ```
//!
//! Time is counted in bus cycles. A command of L lines that meets no other takes
//!
//! ```text
//! T(L) = issue + flow_through + snoop + max(data, data + 8 (L - data_lines))
//! ```
//!
//! where `data` is the documented data phase and `data_lines` how many lines it covers: 1 in one
//! reading of the source, 4 in the other. What commands do to each other follows from five rules:
//!
//! 1. A queue has 16 (8) entries; an entry stays until its last line is done; a command that meets a
//!    full queue waits ([`mfc`]).
//! 2. An element keeps at most K lines in flight, and unrolls get and put in turn.
//! 3. Every request takes one address slot, of which the chip has one per cycle.
//! 4. The arbiter sees a few of the oldest lines of the whole chip. Of these, a line starts only where it
//!    disturbs nothing in flight; the memory controller first, the others round robin, one receiver's
//!    requests by age ([`arbiter`]).
//! 5. A line holds each segment of its path and both ports for 8 cycles ([`rings`]).
//!
//! A message is cut into commands of at most 16 KB; its three completions coincide with the end of
//! the last one, because an SPU can see nothing else. A notice is a signal, a command of 4 bytes.
//! A multicast is one message per target. Lines are simulated one by one, hops are not.
//!
//! Not modelled: DRAM banks and refresh, contents of caches, two chips coupled to one, effects of
//! distance on latency (none could be measured). Sources: Kistler, Perrone and Petrini, "Cell
//! Multiprocessor Communication Network: Built for Speed" (IEEE Micro 2006).

mod arbiter;
mod chip;
pub mod command;
mod config;
mod mfc;
mod rings;

use std::collections::VecDeque;

use super::slab::Slab;
use crate::error::SimError;
use crate::fabric::{
    Character, Conditions, Done, Event, Fabric, FabricKind, LinkTable, Msg, MsgKind, Stuck,
};
use crate::network::{Network, NetworkCut, PortRates, Wire, Wiring};
pub use chip::{Chip, News, Start};
use command::{sizes, Command, Kind};
pub use config::{ReceiverOrder, RingConfig, Sees, Tie};
use linkwright_core::{BytesPerSec, EndpointId, Machine, TimePs};
pub use mfc::Life;

/// Registry entry.
pub static KIND: FabricKind = FabricKind {
    key: "slotted_ring",
    summary: "slotted rings under a central arbiter, fed by DMA engines with queues",
    description: "Lines of 128 bytes on rings in both directions, one address slot per bus cycle, \
                  ports, a memory controller, and DMA engines that unroll queued commands.",
    source: "Cell Multiprocessor Communication Network: Built for Speed (IEEE Micro 2006)",
};

/// Bytes of a signal, which stands for messages without data.
const SIGNAL_BYTES: u32 = 4;

/// A message under way, or one target of a multicast.
#[derive(Clone, Copy, Debug)]
struct Transit {
    op: u32,
    target: u32,
    /// Commands that are not complete.
    left: u32,
    /// Transits of the same message that are not complete, at the first of them.
    others: u32,
    first: u32,
}

/// See the module.
pub struct SlottedRing {
    config: RingConfig,
    chip: Chip,
    transits: Slab<Transit>,
    sets: Vec<Vec<EndpointId>>,
    done: VecDeque<Done>,
    in_flight: usize,
}

/// The fabric that `machine` describes.
pub(super) fn from_machine(machine: &Machine) -> Result<SlottedRing, SimError> {
    Ok(SlottedRing::new(RingConfig::from_machine(machine)?))
}

impl SlottedRing {
    /// Rings at rest.
    pub fn new(config: RingConfig) -> Self {
        SlottedRing {
            chip: Chip::new(&config),
            transits: Slab::default(),
            sets: Vec::new(),
            done: VecDeque::new(),
            in_flight: 0,
            config,
        }
    }

    /// Lines that have been moved.
    pub fn lines(&self) -> u64 {
        self.chip.lines
    }

    /// Keep every start of a line from now on.
    pub fn record_starts(&mut self) {
        self.chip.starts = Some(Vec::new());
    }

    /// The starts since [`SlottedRing::record_starts`], in order.
    pub fn starts(&self) -> &[Start] {
        self.chip.starts.as_deref().unwrap_or_default()
    }

    fn site(&self, endpoint: EndpointId) -> u8 {
        self.config.sites[endpoint.index()]
    }

    /// The commands that move `m` to one of its targets.
    fn commands(&self, m: &Msg, to: EndpointId) -> (u8, Vec<Command>) {
        let (from, to) = (self.site(m.from), self.site(to));
        let (unit, other, kind) = match m.kind {
            MsgKind::Get => (to, from, Kind::Get),
            _ => (from, to, Kind::Put),
        };
        let runs = u64::from(m.runs.max(1));
        let each = (0..runs).map(|run| m.bytes / runs + u64::from(run < m.bytes % runs));
        let whole = each.flat_map(|bytes| sizes(bytes, self.config.dma_largest));
        let command = |bytes| {
            Command::single(
                kind,
                other,
                if bytes == 0 { SIGNAL_BYTES } else { bytes },
                0,
            )
        };
        (unit, whole.map(command).collect())
    }

    fn take(&mut self, now: u64, m: &Msg) {
        let targets = match m.kind {
            MsgKind::Multicast => self.sets[m.set as usize].clone(),
            _ => vec![m.to],
        };
        self.in_flight += 1;
        let mut first = None;
        for (target, to) in (0u32..).zip(&targets) {
            let (unit, commands) = self.commands(m, *to);
            let index = self.transits.insert(Transit {
                op: m.op,
                target,
                left: commands.len() as u32,
                others: targets.len() as u32,
                first: 0,
            });
            let first = *first.get_or_insert(index);
            self.transits[index as usize].first = first;
            for command in commands {
                let handle = index;
                self.chip.submit(now, unit, Command { handle, ..command });
            }
        }
    }

    /// A command of transit `index` is complete at `at`.
    fn command_done(&mut self, at: TimePs, index: u32) {
        let transit = &mut self.transits[index as usize];
        transit.left -= 1;
        if transit.left > 0 {
            return;
        }
        let Transit {
            op, target, first, ..
        } = *transit;
        let mut tell = |event, target| {
            self.done.push_back(Done {
                op,
                event,
                at,
                target,
            });
        };
        let group = &mut self.transits[first as usize].others;
        *group -= 1;
        let last = *group == 0;
        if last {
            tell(Event::SourceFree, 0);
        }
        tell(Event::Delivered, target);
        if last {
            tell(Event::Acknowledged, 0);
            self.in_flight -= 1;
            self.transits.remove(first);
            if self.in_flight == 0 {
                self.chip.settle();
            }
        }
        if index != first {
            self.transits.remove(index);
        }
    }

    /// Process the cycle `now`.
    fn step(&mut self, now: u64) {
        self.chip.step(now);
        let at = TimePs(now * self.config.period_ps);
        let mut news = std::mem::take(&mut self.chip.news);
        for item in news.drain(..) {
            if let News::Complete(handle, ..) = item {
                self.command_done(at, handle);
            }
        }
        self.chip.news = news;
    }
}

impl Fabric for SlottedRing {
    fn character(&self) -> Character {
        Character {
            piece_bytes: Some(u64::from(self.config.line_bytes)),
            ..Character::default()
        }
    }

    fn network(&self) -> &dyn Network {
        self
    }

    fn reset(&mut self, conditions: &Conditions<'_>) {
        self.chip = Chip::new(&self.config);
        self.chip.links.clear(conditions.watch);
        self.transits.clear();
        self.sets = conditions.sets.to_vec();
        self.done.clear();
        self.in_flight = 0;
    }

    fn offer(&mut self, now: TimePs, released: &[Msg]) {
        let cycle = now.0.div_ceil(self.config.period_ps);
        for message in released {
            self.take(cycle, message);
        }
    }

    fn next(&mut self) -> Option<TimePs> {
        self.chip
            .next()
            .map(|at| TimePs(at * self.config.period_ps))
    }

    fn advance(&mut self, until: TimePs, out: &mut Vec<Done>) -> TimePs {
        while let Some(cycle) = self.chip.next() {
            let at = TimePs(cycle * self.config.period_ps);
            if at > until {
                break;
            }
            self.step(cycle);
            if !self.done.is_empty() {
                out.extend(self.done.drain(..));
                return at;
            }
        }
        until
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn stuck(&self) -> Stuck {
        let held = |(unit, name): (u8, &String)| match self.chip.held(unit) {
            0 => None,
            held => Some(format!("{name}: {held} commands wait in its queues")),
        };
        Stuck {
            waiting: (0u8..)
                .zip(&self.config.elements)
                .filter_map(held)
                .collect(),
        }
    }

    fn quiet(&self, m: &Msg) -> TimePs {
        let c = &self.config;
        let (cycles, lines) = (
            c.issue + c.flow_through + c.snoop,
            m.bytes.div_ceil(u64::from(c.line_bytes)),
        );
        let memory = m.kind == MsgKind::Get && self.site(m.from) == c.memory;
        let read = if memory { c.memory_read } else { 0 };
        let single = m.runs <= 1 && sizes(m.bytes, c.dma_largest).count() == 1;
        if lines <= c.data_lines && single && m.kind != MsgKind::Multicast && c.walk == 0 {
            return TimePs((cycles + read + c.data) * c.period_ps);
        }
        // Beyond that, lines wait for each other in several ways: run the model itself.
        let mut alone = SlottedRing::new(c.clone());
        alone.sets.clone_from(&self.sets);
        alone.offer(TimePs::ZERO, &[*m]);
        let (mut out, mut at) = (Vec::new(), TimePs::ZERO);
        while alone.in_flight > 0 && alone.chip.next().is_some() {
            at = alone.advance(TimePs::MAX, &mut out);
        }
        at
    }

    fn links(&self) -> &LinkTable {
        &self.chip.links
    }
}

impl Network for SlottedRing {
    fn wiring(&self) -> Wiring {
        self.chip.rings.wiring(&self.config)
    }

    fn hops(&self, from: EndpointId, to: EndpointId, _network: u8) -> u32 {
        u32::from(self.chip.rings.hops(self.site(from), self.site(to)))
    }

    /// Segments clockwise and the other way, each of all rings of its direction; ports out; ports in. Both ways of a
    /// tie are equally long; the wire takes the clockwise one.
    fn wire(&self, from: EndpointId, to: EndpointId, network: u8) -> Option<Wire> {
        let (source, target) = (self.site(from), self.site(to));
        let elements = self.config.elements.len() as u32;
        let (direction, segments) = self.chip.rings.way(source, target);
        let segments = segments
            .iter()
            .map(|&at| direction * elements + u32::from(at));
        let ports = [
            2 * elements + u32::from(source),
            3 * elements + u32::from(target),
        ];
        let uses = segments.chain(ports).map(|link| (link, 1)).collect();
        let whole = u64::from(self.config.dma_largest);
        let wire = Wire::measured(|put| self.quiet(put), (from, to, network), whole, uses);
        // The first lines of a command cost no more than its start.
        Some(Wire {
            rate: wire.rate.min(self.config.port().0 as u64),
            ..wire
        })
    }

    fn capacities(&self) -> Vec<u64> {
        let elements = self.config.elements.len();
        let port = self.config.port().0;
        let segments = self.config.rings.map(|rings| port * f64::from(rings));
        let each = [segments[0], segments[1], port, port].map(|rate| vec![rate as u64; elements]);
        each.concat()
    }

    fn port(&self, _endpoint: EndpointId, _networks: &[u8]) -> PortRates {
        let rate = Some(self.config.port());
        PortRates {
            out: rate,
            into: rate,
        }
    }

    /// Every arc of the ring, which two borders cut off; each lets all rings of one direction through.
    fn cuts(&self, places: &[EndpointId], _networks: &[u8]) -> Vec<NetworkCut> {
        let rings = self.config.rings.map(f64::from).iter().sum::<f64>();
        let rate = BytesPerSec(self.config.port().0 * rings);
        let elements = self.config.elements.len() as u8;
        let arcs = (0..elements).flat_map(|a| (a + 1..elements).map(move |b| a..b));
        arcs.map(|arc| NetworkCut {
            inside: places
                .iter()
                .map(|&p| arc.contains(&self.site(p)))
                .collect(),
            out: rate,
            into: rate,
        })
        .collect()
    }
}
