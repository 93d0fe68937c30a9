//! The length of a phase, from its messages.
//!
//! All ranks have met; the compiler knows every message. On a chip a phase ends with the last of these; `out`
//! and `in` are the loads of the ports at both ends in the whole phase:
//!
//! ```text
//!   a message alone          sync + transit + place
//!   both ports its own, or both shared
//!                            sync + transit + place + max(out, in) / rate
//!   only the source shared   sync + transit + out / rate           far destinations are served first
//!   only the target shared   collect_lead + in / rate              and far sources send first
//!   multicast                sync + transit + spread + max(out, in) / rate
//! ```
//!
//! So the place hides behind a queue at one end, because the compiler chooses the order there; if both ends
//! have queues, no order suits both. [`super::traffic`] covers messages that leave the chip; messages from
//! the host take as long as the busiest of its lanes.

use super::config::Config;
use super::ladder::Route;
use super::traffic::{Copy, Traffic};
use crate::fabric::{Msg, MsgKind};
use linkwright_core::{Bytes, EndpointId, TimePs};

/// Loads of one phase; kept between phases to reuse its memory.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    ranks: u32,
    /// Loads of the ports of every rank.
    pub out: Vec<u64>,
    pub inward: Vec<u64>,
    pub traffic: Traffic,
    /// Bytes between host and each chip: to the chip, from it.
    pub host: [Vec<u64>; 2],
    busy: Vec<u32>,
}

/// The part of a multicast that goes to one chip.
struct Branch {
    chip: u32,
    targets: u64,
    /// Least and most place of a column.
    x: (u32, u32),
    /// Heaviest receiving port, and any target.
    port: u64,
    to: u32,
}

impl Phase {
    pub fn new(config: &Config, ranks: usize) -> Self {
        let chips = config.chips();
        Phase {
            ranks: ranks as u32,
            out: vec![0; ranks],
            inward: vec![0; ranks],
            traffic: Traffic::new(chips, ranks),
            host: [vec![0; chips as usize], vec![0; chips as usize]],
            busy: Vec::new(),
        }
    }

    /// Forget all loads.
    pub fn clear(&mut self) {
        for &endpoint in &self.busy {
            (self.out[endpoint as usize], self.inward[endpoint as usize]) = (0, 0);
        }
        self.busy.clear();
        self.traffic.clear();
        self.host.iter_mut().for_each(|way| way.fill(0));
    }

    /// Time from the meeting of all to the end of the phase.
    pub fn length(
        &mut self,
        config: &Config,
        messages: &[Msg],
        sets: &[Vec<EndpointId>],
    ) -> TimePs {
        self.clear();
        for m in messages {
            self.load(config, m, targets(m, sets));
        }
        let mut longest = TimePs::ZERO;
        for m in messages {
            let time = match m.kind {
                MsgKind::Multicast => self.multicast(config, m, targets(m, sets)),
                _ => self.single(config, m),
            };
            longest = longest.max(time);
        }
        if let Some(links) = &config.links {
            longest = longest.max(self.traffic.length(config, links));
        }
        longest.max(self.host_time(config))
    }

    fn is_host(&self, endpoint: EndpointId) -> bool {
        endpoint.0 >= self.ranks
    }

    /// Put a message on the ports of its ends.
    fn load(&mut self, config: &Config, m: &Msg, targets: &[EndpointId]) {
        let chip = &config.chip;
        let home = m.from.0 / chip.tiles;
        let stays = targets.iter().all(|to| to.0 / chip.tiles == home);
        let load = match (m.kind, stays) {
            (MsgKind::Multicast, true) => chip.multicast_load(m.bytes, targets.len() as u64),
            _ => chip.load(m.bytes),
        };
        if !self.is_host(m.from) {
            self.out[m.from.index()] += load;
            self.busy.push(m.from.0);
        }
        for to in targets.iter().filter(|to| to.0 < self.ranks) {
            self.inward[to.index()] += load;
            self.busy.push(to.0);
        }
    }

    /// Time of a message to one endpoint that stays on its chip; others are filed as traffic.
    fn single(&mut self, config: &Config, m: &Msg) -> TimePs {
        let chip = &config.chip;
        if self.is_host(m.from) || self.is_host(m.to) {
            let (way, tile) = if self.is_host(m.from) {
                (0, m.to)
            } else {
                (1, m.from)
            };
            if !self.is_host(tile) {
                self.host[way][(tile.0 / chip.tiles) as usize] += m.bytes;
            }
            return chip.sync;
        }
        let (out, inward) = (self.out[m.from.index()], self.inward[m.to.index()]);
        let chips = Route {
            from: m.from.0 / chip.tiles,
            to: m.to.0 / chip.tiles,
        };
        if let Some(links) = config.links.as_ref().filter(|_| chips.from != chips.to) {
            let copy = Copy {
                chips,
                from: m.from.0,
                to: m.to.0,
                bytes: m.bytes,
                ports: [out, inward],
                spread: TimePs::ZERO,
                second: 0,
            };
            self.traffic.add(copy, config, links);
            return TimePs::ZERO;
        }
        let own = chip.load(m.bytes);
        let alone = chip.start() + chip.position(m.from.0, m.to.0);
        match (out == own, inward == own) {
            _ if !chip.hides() => alone + chip.time(out.max(inward)),
            (false, true) => alone.max(chip.start() + chip.time(out)),
            (true, false) => alone.max(chip.collect_lead + chip.time(inward)),
            _ => alone + chip.time(out.max(inward)),
        }
    }

    /// Time of the part of a multicast that stays on its chip; the rest is filed as traffic.
    fn multicast(&mut self, config: &Config, m: &Msg, targets: &[EndpointId]) -> TimePs {
        let chip = &config.chip;
        let (home, out) = (m.from.0 / chip.tiles, self.out[m.from.index()]);
        let mut branches: Vec<Branch> = Vec::new();
        for to in targets {
            self.branch(config, &mut branches, to.0);
        }
        let own = branches.iter().find(|branch| branch.chip == home);
        // A tile that is its own target copies; the copy is part of the schedule.
        let second = match (&config.links, own) {
            (Some(links), Some(own)) if links.own_chip_last && branches.len() == 2 => {
                let beyond = m.bytes.saturating_sub(chip.word);
                chip.multicast_load(beyond, own.targets)
            }
            _ => 0,
        };
        let mut longest = TimePs::ZERO;
        for branch in &branches {
            let port = out.max(branch.port);
            if branch.chip == home {
                let from = Some(chip.x(m.from.0));
                let spread = chip.spread(branch.targets, from, branch.x);
                longest = longest.max(chip.start() + spread + chip.time(port));
            } else if let Some(links) = &config.links {
                let copy = Copy {
                    chips: Route {
                        from: home,
                        to: branch.chip,
                    },
                    from: m.from.0,
                    to: branch.to,
                    bytes: m.bytes,
                    ports: [out, branch.port],
                    spread: chip.spread(branch.targets, None, branch.x),
                    second,
                };
                self.traffic.add(copy, config, links);
            }
        }
        longest
    }

    /// Add a target of a multicast to the branch of its chip.
    fn branch(&self, config: &Config, branches: &mut Vec<Branch>, to: u32) {
        let (chip, x) = (to / config.chip.tiles, config.chip.x(to));
        let port = self.inward[to as usize];
        match branches.iter_mut().rev().find(|branch| branch.chip == chip) {
            Some(branch) => {
                branch.targets += 1;
                branch.x = (branch.x.0.min(x), branch.x.1.max(x));
                branch.port = branch.port.max(port);
            }
            None => branches.push(Branch {
                chip,
                targets: 1,
                x: (x, x),
                port,
                to,
            }),
        }
    }

    fn host_time(&self, config: &Config) -> TimePs {
        let Some(host) = &config.host else {
            return TimePs::ZERO;
        };
        let mut longest = TimePs::ZERO;
        for way in &self.host {
            for &bytes in way {
                longest = longest.max(host.chip_rate.time(Bytes(bytes)));
            }
            for group in way.chunks(host.group as usize) {
                longest = longest.max(host.group_rate.time(Bytes(group.iter().sum())));
            }
        }
        longest
    }
}

/// The targets of a message.
pub(super) fn targets<'a>(m: &'a Msg, sets: &'a [Vec<EndpointId>]) -> &'a [EndpointId] {
    match m.kind {
        MsgKind::Multicast => &sets[m.set as usize],
        _ => std::slice::from_ref(&m.to),
    }
}
