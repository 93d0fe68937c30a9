//! Bulk synchronous exchange: all tiles with something to send meet at a sync, then send.
//!
//! ```text
//!   phase = sync + the slowest of: messages on a chip, streams between chips, lanes to the host
//! ```
//!
//! All messages released at one instant form a phase; those released while a phase runs form the
//! next one. All messages of a phase complete at its end: a compiled exchange has no events that software
//! could see, no headers, no queues and no arbitration on a chip. A get is a transfer like any
//! other: in a compiled exchange both sides know their part.
//!
//! The length of a phase follows from its messages and from nothing else: [`phase`] on a chip with the
//! places of [`chip`], [`traffic`] between chips along the routes of [`mod@ladder`]. Start-ups of software are
//! the path's. Not modelled: overlap of phases, of compute and exchange, and of chips that exchange
//! nothing, which the machine would not synchronise.
//!
//! Sources: Valiant, "A bridging model for parallel computation" (CACM 1990); Jia, Tillman, Maggioni and
//! Scarpazza, "Dissecting the Graphcore IPU architecture via microbenchmarking" (2019); US patent 10963003B2.

pub mod chip;
pub mod config;
pub mod ladder;
mod phase;
mod traffic;

use crate::error::SimError;
use crate::fabric::{
    Character, CheapCopies, Conditions, Done, Event, Fabric, FabricKind, LinkTable, Msg, MsgKind,
};
use crate::network::{Network, NetworkCut, PortRates, Wire, Wiring};
use chip::Multicast;
use config::Config;
use ladder::{Ladder, Route};
use linkwright_core::{Bytes, BytesPerSec, EndpointId, Machine, TimePs};
use phase::{targets, Phase};

/// Registry entry.
pub static KIND: FabricKind = FabricKind {
    key: "exchange",
    summary: "bulk synchronous phases: a sync, then a compiled exchange on chips and streams between them",
    description: "All messages released at one instant form a phase, which ends when the busiest port, the \
                  slowest stream between chips and the busiest host lanes are done. With multicast, places \
                  of tiles, a ladder of boards and a hardware barrier.",
    source: "Valiant, CACM 1990; Jia, Tillman, Maggioni and Scarpazza 2019",
};

/// The exchange over a number of endpoints.
pub struct Exchange {
    config: Config,
    ranks: u32,
    has_memories: bool,
    sets: Vec<Vec<EndpointId>>,
    /// The phase under way and its end.
    running: (Vec<Msg>, TimePs),
    /// The phase that gathers and its beginning.
    gathering: (Vec<Msg>, TimePs),
    phase: Phase,
    links: LinkTable,
}

/// The fabric that `machine` describes.
pub(super) fn from_machine(machine: &Machine) -> Result<Exchange, SimError> {
    let config = Config::read(machine)?;
    let ranks = machine.ranks();
    let mut links = port_names(machine, &config);
    if let Some(between) = &config.links {
        links.extend(between.ladder.link_names());
    }
    if config.host.is_some() {
        for way in ["to", "from"] {
            links.extend((0..config.chips()).map(|chip| format!("host {way} chip {chip}")));
        }
    }
    Ok(Exchange {
        ranks: ranks as u32,
        has_memories: machine.memories() > 0,
        sets: Vec::new(),
        running: (Vec::new(), TimePs::ZERO),
        gathering: (Vec::new(), TimePs::ZERO),
        phase: Phase::new(&config, ranks),
        links: LinkTable::new(links),
        config,
    })
}

/// The ports of every tile of a chip; of several chips the busiest port of each.
fn port_names(machine: &Machine, config: &Config) -> Vec<String> {
    let both = |names: Vec<&str>| {
        let way = |way| names.iter().map(move |name| format!("{name} {way}"));
        way("out").chain(way("in")).collect()
    };
    if config.links.is_none() {
        let ranks = &machine.endpoints()[..machine.ranks()];
        return both(ranks.iter().map(|e| e.name.as_str()).collect());
    }
    let chips: Vec<String> = (0..config.chips())
        .map(|chip| format!("chip {chip} busiest tile"))
        .collect();
    both(chips.iter().map(String::as_str).collect())
}

impl Exchange {
    /// The gathering phase is complete: run it.
    fn close_phase(&mut self) {
        let length = (self.phase).length(&self.config, &self.gathering.0, &self.sets);
        self.note_links(length);
        self.running = (
            std::mem::take(&mut self.gathering.0),
            self.gathering.1 + length,
        );
    }

    /// Add the loads of the phase, which lasts `length`, to the table of links.
    fn note_links(&mut self, length: TimePs) {
        let chip = &self.config.chip;
        let per_entry = match self.config.links {
            Some(_) => chip.tiles as usize,
            None => 1,
        };
        let both = [&self.phase.out, &self.phase.inward];
        let ports = both.iter().flat_map(|loads| loads.chunks(per_entry));
        let busiest = ports.map(|loads| loads.iter().copied().max().unwrap_or(0));
        let mut loads: Vec<(u64, TimePs)> =
            busiest.map(|load| (load / 2, chip.time(load))).collect();
        if let Some(links) = &self.config.links {
            let bytes = self.phase.traffic.bytes.iter();
            loads.extend(bytes.map(|&bytes| (bytes, links.rate.time(Bytes(bytes)))));
        }
        if let Some(host) = &self.config.host {
            let bytes = self.phase.host.iter().flatten();
            loads.extend(bytes.map(|&bytes| (bytes, host.chip_rate.time(Bytes(bytes)))));
        }
        for (link, (bytes, busy)) in loads.into_iter().enumerate().filter(|(_, l)| l.0 > 0) {
            self.links.bytes[link] += bytes;
            // All begin together, once everyone is there.
            let before = chip.sync.min(length.saturating_sub(busy));
            let from = self.gathering.1 + before;
            self.links.busy(link, from, from + busy);
            self.links.peak[link] = 1;
        }
    }

    fn chip_of(&self, endpoint: EndpointId) -> u32 {
        endpoint.0 / self.config.chip.tiles.max(1)
    }

    /// What the lanes to the host carry at most between this many chips and the host, in bytes per second.
    fn lanes(&self, chips: u32) -> f64 {
        let host = self.config.host.as_ref().filter(|_| self.has_memories);
        host.map_or(0.0, |host| {
            f64::from(chips) * host.chip_rate.0.min(host.group_rate.0)
        })
    }

    /// Route between the chips of two ranks; `None` on one chip or to the host.
    fn route(&self, from: EndpointId, to: EndpointId) -> Option<Route> {
        let (from, to) = (self.chip_of(from), self.chip_of(to));
        let chips = self.config.chips();
        (from != to && from < chips && to < chips).then_some(Route { from, to })
    }
}

impl Fabric for Exchange {
    fn character(&self) -> Character {
        // A pair receives over the buses of both tiles.
        let cheap = |rule: Multicast| CheapCopies {
            targets: rule.paired_from,
            times: 2,
        };
        Character {
            cheap_copies: self.config.chip.multicast.map(cheap),
            ..Character::default()
        }
    }

    fn network(&self) -> &dyn Network {
        self
    }

    fn reset(&mut self, conditions: &Conditions<'_>) {
        self.sets = conditions.sets.to_vec();
        self.running = (Vec::new(), TimePs::ZERO);
        self.gathering = (Vec::new(), TimePs::ZERO);
        self.phase.clear();
        self.links.clear(conditions.watch);
    }

    fn offer(&mut self, now: TimePs, released: &[Msg]) {
        if self.gathering.0.is_empty() {
            self.gathering.1 = now.max(self.running.1);
        }
        self.gathering.0.extend_from_slice(released);
    }

    fn barrier(&mut self, now: TimePs, group: u32) -> Option<TimePs> {
        let members = &self.sets[group as usize];
        let chips = members.iter().map(|&member| self.chip_of(member));
        let ends = chips.clone().min().zip(chips.max());
        let span = ends.filter(|(first, last)| first != last);
        Some(match (&self.config.links, span) {
            (Some(links), Some((from, to))) => now + traffic::latency(links, Route { from, to }),
            _ => now + self.config.chip.sync,
        })
    }

    fn next(&mut self) -> Option<TimePs> {
        match (self.running.0.is_empty(), self.gathering.0.is_empty()) {
            (false, _) => Some(self.running.1),
            (true, false) => Some(self.gathering.1 + self.config.chip.sync),
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
            let targets = targets(&m, &self.sets).len() as u32;
            out.push(done(Event::SourceFree, 0));
            out.extend((0..targets).map(|target| done(Event::Delivered, target)));
            out.push(done(Event::Acknowledged, 0));
        }
        at
    }

    fn in_flight(&self) -> usize {
        self.running.0.len() + self.gathering.0.len()
    }

    fn quiet(&self, m: &Msg) -> TimePs {
        let chip = &self.config.chip;
        if m.kind == MsgKind::Multicast {
            // The places of its targets depend on the schedule; none is nearer than this.
            return chip.start() + chip.time(chip.load(m.bytes) / 2);
        }
        if m.from.0.max(m.to.0) >= self.ranks {
            let host = self.config.host.as_ref();
            return host
                .map_or(TimePs::ZERO, |h| h.chip_rate.time(Bytes(m.bytes)))
                .max(chip.sync);
        }
        match (&self.config.links, self.route(m.from, m.to)) {
            (Some(links), Some(route)) => traffic::alone(m, route, &self.config, links),
            _ => chip.start() + chip.position(m.from.0, m.to.0) + chip.time(chip.load(m.bytes)),
        }
    }

    fn links(&self) -> &LinkTable {
        &self.links
    }
}

impl Network for Exchange {
    /// Of several chips, what is of a chip is at its first tile.
    fn wiring(&self) -> Wiring {
        let chips = self.config.chips();
        let (parts, tiles, exits) = match &self.config.links {
            Some(_) => (chips, self.config.chip.tiles, Ladder::widths().len() as u32),
            None => (self.ranks, 1, 0),
        };
        let at = |part: u32| Some((part * tiles, part * tiles));
        let ports = (0..2 * parts).map(|port| at(port % parts));
        let mut places: Vec<_> = ports.collect();
        places.extend((0..parts * exits).map(|exit| at(exit / exits)));
        let lanes = self.links.names.len() - places.len();
        let lane = |lane: u32| (exits > 0).then(|| at(lane % chips)).flatten();
        places.extend((0..lanes as u32).map(lane));
        Wiring {
            places,
            ..Wiring::default()
        }
    }

    /// Of a chip, no byte moves before its phase has begun.
    fn ends(&self, from: EndpointId, to: EndpointId, _network: u8) -> (TimePs, TimePs) {
        let inside = self.config.links.is_none() && from.0.max(to.0) < self.ranks;
        match inside {
            true => (self.config.chip.start(), TimePs::ZERO),
            false => (TimePs::ZERO, TimePs::ZERO),
        }
    }

    fn hops(&self, from: EndpointId, to: EndpointId, _network: u8) -> u32 {
        let route = self.route(from, to);
        route.map_or(1, |route| route.rails() + route.rungs())
    }

    /// Ports out of tiles, ports into tiles, links between chips. Both links that a board keeps for its pair count as
    /// one of twice the rate; messages to the host have no wire.
    fn wire(&self, from: EndpointId, to: EndpointId, network: u8) -> Option<Wire> {
        if from.0.max(to.0) >= self.ranks {
            return None;
        }
        let between = self.route(from, to);
        let links = between.into_iter().flat_map(Route::links);
        let ports = [from.0, self.ranks + to.0];
        let uses = (ports.into_iter()).chain(links.map(|link| 2 * self.ranks + link));
        let uses = uses.map(|link| (link, 1)).collect();
        Some(Wire::measured(
            |put| self.quiet(put),
            (from, to, network),
            1 << 16,
            uses,
        ))
    }

    fn capacities(&self) -> Vec<u64> {
        let mut all = vec![self.config.chip.rate.0 as u64; 2 * self.ranks as usize];
        if let Some(links) = &self.config.links {
            let each = (0..links.ladder.chips()).flat_map(|_| Ladder::widths());
            all.extend(each.map(|width| u64::from(width) * links.rate.0 as u64));
        }
        all
    }

    fn port(&self, endpoint: EndpointId, _networks: &[u8]) -> PortRates {
        let chip = &self.config.chip;
        let rate = match &self.config.host {
            Some(host) if endpoint.0 >= self.ranks => {
                let groups = self.config.chips().div_ceil(host.group);
                BytesPerSec(host.group_rate.0 * f64::from(groups))
            }
            // Pairs of tiles receive a multicast at twice the rate.
            _ if chip.multicast.is_some() => BytesPerSec(chip.rate.0 * 2.0),
            _ => chip.rate,
        };
        PortRates {
            out: Some(rate),
            into: Some(rate),
        }
    }

    fn cuts(&self, places: &[EndpointId], _networks: &[u8]) -> Vec<NetworkCut> {
        let Some(links) = &self.config.links else {
            return Vec::new();
        };
        let is_host = |place: &EndpointId| place.0 >= self.ranks;
        let cut = |(side, count): (Vec<bool>, u32)| {
            let within = side.iter().filter(|&&is| is).count() as u32;
            // What passes through the host needs lanes on both sides, unless the host itself is outside.
            let lanes = match places.iter().any(is_host) {
                true => within,
                false => within.min(self.config.chips() - within),
            };
            let rate = BytesPerSec(f64::from(count) * links.nominal.0 + self.lanes(lanes));
            let inside =
                |place: &EndpointId| !is_host(place) && side[self.chip_of(*place) as usize];
            NetworkCut {
                inside: places.iter().map(inside).collect(),
                out: rate,
                into: rate,
            }
        };
        links.ladder.sides().into_iter().map(cut).collect()
    }

    /// A multicast on a chip does not pay for the place of its target.
    fn least(&self, from: EndpointId, to: EndpointId, network: u8) -> Option<TimePs> {
        let host = from.0.max(to.0) >= self.ranks;
        Some(match &self.config.links {
            Some(_) if self.route(from, to).is_some() || host => self.quiet(&Msg {
                network,
                ..Msg::new(0, MsgKind::Put, from, to, 0)
            }),
            _ if host => self.config.chip.sync,
            _ => self.config.chip.start(),
        })
    }
}

/// The ladder of a machine of this kind; an error where it has none.
pub fn ladder(machine: &Machine) -> Result<Ladder, SimError> {
    let missing = SimError::NoDevice;
    if machine.fabric_kind() != KIND.key {
        let kind = machine.fabric_kind();
        return Err(missing(format!(
            "machine {} has a fabric of kind {kind} and no devices; name a machine whose chips form a ladder",
            machine.name()
        )));
    }
    let links = Config::read(machine)?.links;
    links.map(|links| links.ladder).ok_or_else(|| {
        missing(format!(
            "machine {} is one chip and has no other devices; name a machine whose chips form a ladder",
            machine.name()
        ))
    })
}
