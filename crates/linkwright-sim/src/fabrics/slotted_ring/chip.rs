//! The chip in bus cycles: DMA engines, command network, arbiter, rings, memory controller.
//!
//! ```text
//!   request --address slot, 1 per cycle--> snoop 50 --+--------------> [waits at its source] --> rings
//!                                                     `--> memory ----'      8 cycles a line
//! ```
//!
//! Per line there are three moments: the request (its address slot and the memory's turn follow at
//! once, both being first come first served), ready at its source, start on a ring; the last decides
//! when the line is done. Requests become ready in order, so they need no sorted queue.

use std::collections::VecDeque;

use super::arbiter::{Arbiter, Grant, Waiting};
use super::command::{Command, Kind};
use super::config::{RingConfig, MILLI};
use super::mfc::{direction, queue_index, Life, Mfc};
use super::rings::Rings;
use crate::fabric::LinkTable;
use crate::queue::TimeQueue;
use linkwright_core::TimePs;

/// What the chip reports to its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// The command with this handle is in its queue.
    Queued(u32),
    /// It is complete; `false` for a conditional write whose reservation was lost.
    Complete(u32, bool, Life),
    /// A time that [`Chip::wake_at`] was given has come.
    Woken,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A command of this queue of a unit has been written.
    Written(u8, u8),
    /// A unit looks for a request to make.
    Unroll(u8),
    /// A line of an entry (unit, queue, slot) is done.
    LineDone(u8, u8, u8),
    /// An entry is complete.
    Complete(u8, u8, u8, bool),
    /// A requested wake-up without effect.
    Wake,
}

/// Load of one way through the rings.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    cycles: u64,
    bytes: u64,
}

/// A line that started on a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// Bus cycle.
    pub cycle: u64,
    /// Which ring.
    pub ring: usize,
    /// Position of the source.
    pub from: u8,
    /// Position of the receiver.
    pub to: u8,
    /// Bus cycles of data.
    pub length: u8,
    /// Segments of its path in order; segment k joins positions k and k+1.
    pub path: Vec<u8>,
}

/// See the module.
pub struct Chip {
    pub(super) config: RingConfig,
    pub(super) rings: Rings,
    arbiter: Arbiter,
    pub(super) units: Vec<Mfc>,
    events: TimeQueue<Event>,
    /// Lines by when they become ready: from local stores, to memory, from memory.
    coming: [VecDeque<(u64, Waiting)>; 3],
    /// Units that try again to make a request, and when.
    eager: u16,
    eager_at: u64,
    /// When the arbiter looks next.
    look: u64,
    /// Next address slot.
    address_free: u64,
    memory_free_milli: u64,
    /// Lock line that each unit has reserved.
    reserved: Vec<Option<u64>>,
    reservations: usize,
    /// Load of rings by segment, of ports out and in, of the command network.
    pub(super) links: LinkTable,
    /// Lines that have started.
    pub(super) lines: u64,
    addresses: u64,
    /// Lines moved by ring, source and receiver since the links were last up to date, and which entries are in use.
    tallies: Vec<Tally>,
    tallied: Vec<u32>,
    /// Every line that has started, if recorded.
    pub(super) starts: Option<Vec<Start>>,
    pub(super) news: Vec<News>,
    /// Scratch of the arbiter.
    grants: Vec<Grant>,
}

impl Chip {
    /// A chip at rest.
    pub fn new(config: &RingConfig) -> Self {
        let (count, rings) = (config.elements.len(), Rings::new(config));
        Chip {
            arbiter: Arbiter::new(config, &rings),
            units: (0..count).map(|_| Mfc::new(config.queues)).collect(),
            events: TimeQueue::default(),
            coming: Default::default(),
            eager: 0,
            eager_at: u64::MAX,
            look: u64::MAX,
            address_free: 0,
            memory_free_milli: 0,
            reserved: vec![None; count],
            reservations: 0,
            links: LinkTable::new(rings.link_names(&config.elements)),
            lines: 0,
            addresses: 0,
            tallies: vec![Tally::default(); rings.len() * count * count],
            tallied: Vec::new(),
            starts: None,
            news: Vec::new(),
            grants: Vec::new(),
            rings,
            config: config.clone(),
        }
    }

    /// Give `unit` a command at cycle `now`; [`News`] tell the rest.
    pub fn submit(&mut self, now: u64, unit: u8, command: Command) {
        let index = queue_index(command.queue);
        let queue = &mut self.units[usize::from(unit)].queues[index];
        queue.outside.push_back(command);
        if !queue.writing && !queue.blocked {
            self.write(now, unit, index);
        }
    }

    /// The next command outside the queue is written.
    fn write(&mut self, now: u64, unit: u8, index: usize) {
        let queue = &mut self.units[usize::from(unit)].queues[index];
        queue.writing = true;
        queue.began = now;
        let length = [self.config.issue, self.config.mmio][index];
        (self.events).push(TimePs(now + length), Event::Written(unit, index as u8));
    }

    /// A written command enters its queue, if there is room.
    fn enter(&mut self, now: u64, unit: u8, index: usize) {
        let queue = &mut self.units[usize::from(unit)].queues[index];
        queue.writing = false;
        queue.blocked = queue.is_full();
        if queue.blocked {
            return;
        }
        let command = queue.outside.pop_front().expect("it has been written");
        self.news.push(News::Queued(command.handle));
        let fetch = if command.list {
            self.config.list_fetch
        } else {
            0
        };
        let ready = now + self.config.flow_through + fetch + self.config.walk;
        let life = Life {
            issued: queue.began,
            queued: now,
            ..Life::default()
        };
        let requests = command.piece.requests(&self.config);
        queue.insert(command, life, ready, requests);
        let more = !queue.outside.is_empty();
        self.events.push(TimePs(ready), Event::Unroll(unit));
        if more {
            self.write(now, unit, index);
        }
    }

    /// Wake up at `at`, even if nothing happens then.
    pub fn wake_at(&mut self, at: u64) {
        self.events.push(TimePs(at), Event::Wake);
    }

    /// When something happens next.
    #[inline]
    pub fn next(&self) -> Option<u64> {
        let events = self.events.next().map_or(u64::MAX, |at| at.0);
        let coming = self
            .coming
            .iter()
            .map(|queue| queue.front().map_or(u64::MAX, |line| line.0));
        let at = coming.fold(events.min(self.look).min(self.eager_at), u64::min);
        (at != u64::MAX).then_some(at)
    }

    /// Everything that happens at `now`, the time that [`Chip::next`] gave.
    pub fn step(&mut self, now: u64) {
        if self.eager_at == now {
            self.eager_at = u64::MAX;
            let mut left = std::mem::take(&mut self.eager);
            while left != 0 {
                self.unroll(now, left.trailing_zeros() as u8);
                left &= left - 1;
            }
        }
        while let Some(event) = self.events.pop_at(TimePs(now)) {
            match event {
                Event::Written(unit, queue) => self.enter(now, unit, usize::from(queue)),
                Event::Unroll(unit) => self.unroll(now, unit),
                Event::LineDone(unit, queue, slot) => self.line_done(now, unit, queue, slot),
                Event::Complete(unit, queue, slot, held) => {
                    self.complete(now, unit, queue, slot, held);
                }
                Event::Wake => self.news.push(News::Woken),
            }
        }
        for queue in &mut self.coming {
            while queue.front().is_some_and(|line| line.0 <= now) {
                let (_, line) = queue.pop_front().expect("there is one");
                let at = self.arbiter.push(line);
                self.look = self.look.min(at.max(now));
                let port = self.rings.len() * self.units.len() + 2 * usize::from(line.from);
                let peak = &mut self.links.peak[port];
                *peak = self.arbiter.waiting_at(line.from).max(*peak);
            }
        }
        if self.look <= now {
            self.arbitrate(now);
        }
    }

    /// Go on until there is news: when, and what; nothing if nothing more can happen after the time `from`.
    pub fn advance(&mut self, from: u64) -> (u64, Vec<News>) {
        let mut now = from;
        while let Some(next) = self.next() {
            now = next;
            self.step(now);
            if !self.news.is_empty() {
                break;
            }
        }
        (now, std::mem::take(&mut self.news))
    }

    fn arbitrate(&mut self, now: u64) {
        let mut grants = std::mem::take(&mut self.grants);
        self.look = self.arbiter.look(now, &mut self.rings, &mut grants);
        for grant in grants.drain(..) {
            self.start(now, grant);
        }
        self.grants = grants;
    }

    /// A line starts on its ring.
    fn start(&mut self, now: u64, grant: Grant) {
        let line = grant.line;
        let length = u64::from(line.length);
        let (unit, slot) = line.owner;
        let (queue, slot) = (slot >> 5, slot & 31);
        let entry = self.units[usize::from(unit)].queues[usize::from(queue)].entry(slot);
        if entry.life.data == 0 {
            entry.life.data = now;
        }
        let done = now + length + self.config.tail();
        self.events
            .push(TimePs(done), Event::LineDone(unit, queue, slot));
        let count = self.units.len();
        let index = (grant.ring * count + usize::from(line.from)) * count + usize::from(line.to);
        let tally = &mut self.tallies[index];
        if tally.cycles == 0 {
            self.tallied.push(index as u32);
        }
        tally.cycles += length;
        tally.bytes += u64::from(line.bytes);
        self.lines += 1;
        if self.links.bins.is_some() {
            self.watch(now, &grant);
        }
        if let Some(starts) = &mut self.starts {
            starts.push(Start {
                cycle: now,
                ring: grant.ring,
                from: line.from,
                to: line.to,
                length: line.length,
                path: self.rings.segments(grant.ring, line.from, line.to).to_vec(),
            });
        }
    }

    /// The links of a line that starts now are busy for as long as it is, one after the other.
    fn watch(&mut self, now: u64, grant: &Grant) {
        let Some(bins) = &mut self.links.bins else {
            return;
        };
        let (line, period) = (grant.line, self.config.period_ps);
        let way = (grant.ring, line.from, line.to);
        for (link, hops) in links_of(&self.rings, self.units.len(), way) {
            let from = now + hops;
            let to = from + u64::from(line.length);
            bins.add(link, TimePs(from * period), TimePs(to * period));
        }
    }

    /// Make a request, if the unit may and has one.
    fn unroll(&mut self, now: u64, unit: u8) {
        let mfc = &mut self.units[usize::from(unit)];
        if mfc.in_flight >= self.config.in_flight {
            return;
        }
        if mfc.free > now {
            // One request per cycle: it has just made one.
            self.eager |= 1 << unit;
            self.eager_at = now + 1;
            return;
        }
        let Some((queue, slot)) = mfc.select(now) else {
            return;
        };
        mfc.free = now + 1;
        self.request(now, unit, queue, slot);
        if self.units[usize::from(unit)].in_flight < self.config.in_flight {
            self.eager |= 1 << unit;
            self.eager_at = now + 1;
        }
    }

    /// The selected command makes its next request.
    fn request(&mut self, now: u64, unit: u8, queue: usize, slot: u8) {
        let config = &self.config;
        let mfc = &mut self.units[usize::from(unit)];
        let entries = &mut mfc.queues[queue];
        let entry = entries.entry(slot);
        let (kind, other) = (entry.command.kind, entry.command.other);
        let line_of = entry.command.piece.effective / u64::from(config.line_bytes);
        let bytes = entry.command.piece.next_request(config.line_bytes);
        let address = now.max(self.address_free);
        if entry.life.selected == 0 {
            entry.life.selected = now;
            entry.life.requested = address;
        }
        entry.requests -= 1;
        if entry.requests == 0 {
            match entry.command.rest.pop() {
                Some(piece) => {
                    entry.requests = piece.requests(config);
                    entry.command.piece = piece;
                    entry.ready = now + config.list_fetch + config.walk;
                    self.events.push(TimePs(entry.ready), Event::Unroll(unit));
                }
                None => entries.unrolled(slot, direction(kind)),
            }
        }
        self.addresses += 1;
        if let Some(bins) = &mut self.links.bins {
            let (network, period) = (self.links.names.len() - 1, config.period_ps);
            let slot = TimePs(address * period);
            bins.add(network, slot, slot + TimePs(period));
        }
        self.address_free = address + 1;
        let snooped = address + config.snoop;
        if !self.reserve(unit, kind, other, line_of) {
            let lost = Event::Complete(unit, queue as u8, slot, false);
            self.events.push(TimePs(snooped), lost);
            return;
        }
        self.fly(unit, queue, slot, snooped, bytes);
    }

    /// A snooped request waits for the memory's turn and then at its source.
    fn fly(&mut self, unit: u8, queue: usize, slot: u8, snooped: u64, bytes: u32) {
        let config = &self.config;
        let mfc = &mut self.units[usize::from(unit)];
        mfc.in_flight += 1;
        let entry = mfc.queues[queue].entry(slot);
        entry.flying += 1;
        let (put, other) = (direction(entry.command.kind) == 0, entry.command.other);
        let (from, to) = if put { (unit, other) } else { (other, unit) };
        let length = match config.partial_is_whole {
            true => config.line(),
            false => u64::from(bytes.div_ceil(config.width).max(1)),
        };
        let line = Waiting {
            age: 0,
            owner: (unit, (queue as u8) << 5 | slot),
            from,
            to,
            length: length as u8,
            bytes: bytes as u16,
        };
        let (stream, at) = match other == config.memory {
            false => (0, snooped),
            true => {
                let turn = self.memory_free_milli.max(snooped * MILLI);
                self.memory_free_milli = turn + config.memory_line_milli;
                let turn = turn / MILLI;
                if put {
                    (1, turn)
                } else {
                    (2, turn + config.memory_read)
                }
            }
        };
        self.coming[stream].push_back((at, line));
    }

    /// Reservations of lock lines, in the order of address slots; `false` if one was lost.
    fn reserve(&mut self, unit: u8, kind: Kind, other: u8, line: u64) -> bool {
        let own = usize::from(unit);
        match kind {
            Kind::Get => return true,
            Kind::Put if self.reservations == 0 || other != self.config.memory => return true,
            Kind::Put => {}
            Kind::Reserve => {
                self.reserved[own] = Some(line);
                self.reservations += 1;
                return true;
            }
            Kind::Conditional if self.reserved[own] != Some(line) => return false,
            Kind::Conditional => self.reserved[own] = None,
        }
        for (other, reserved) in self.reserved.iter_mut().enumerate() {
            if other != own && *reserved == Some(line) {
                *reserved = None;
            }
        }
        true
    }

    fn line_done(&mut self, now: u64, unit: u8, queue: u8, slot: u8) {
        let mfc = &mut self.units[usize::from(unit)];
        mfc.in_flight -= 1;
        let entry = mfc.queues[usize::from(queue)].entry(slot);
        entry.flying -= 1;
        if entry.flying == 0 && entry.requests == 0 {
            let at = now.max(entry.life.data + self.config.data);
            match at > now {
                true => (self.events).push(TimePs(at), Event::Complete(unit, queue, slot, true)),
                false => self.complete(now, unit, queue, slot, true),
            }
        }
        self.unroll(now, unit);
    }

    fn complete(&mut self, now: u64, unit: u8, queue: u8, slot: u8, held: bool) {
        let entries = &mut self.units[usize::from(unit)].queues[usize::from(queue)];
        let mut entry = entries.remove(slot);
        entry.life.complete = now;
        (self.news).push(News::Complete(entry.command.handle, held, entry.life));
        if entries.blocked {
            self.enter(now, unit, usize::from(queue));
        }
        self.unroll(now, unit);
    }

    /// Bring the load of the links up to date.
    pub fn settle(&mut self) {
        let (count, period) = (self.units.len(), self.config.period_ps);
        for index in std::mem::take(&mut self.tallied) {
            let index = index as usize;
            let tally = std::mem::take(&mut self.tallies[index]);
            let (ring, from, to) = (index / count / count, index / count % count, index % count);
            let links = &mut self.links;
            let mut carry = |link: usize| {
                links.busy_ps[link] += tally.cycles * period;
                links.bytes[link] += tally.bytes;
                links.peak[link] = links.peak[link].max(1);
            };
            links_of(&self.rings, count, (ring, from as u8, to as u8))
                .for_each(|(link, _)| carry(link));
        }
        let network = self.links.busy_ps.len() - 1;
        self.links.busy_ps[network] = self.addresses * period;
    }

    /// Commands in the queues of `unit` and outside them.
    pub fn held(&self, unit: u8) -> usize {
        let queues = &self.units[usize::from(unit)].queues;
        queues
            .iter()
            .map(|queue| queue.used + queue.outside.len())
            .sum()
    }
}

/// Links of the way from one position to another on a ring, among `count` positions, and how many cycles later than at
/// its source a line is there: segments, the port out, the port in.
fn links_of(
    rings: &Rings,
    count: usize,
    (ring, from, to): (usize, u8, u8),
) -> impl Iterator<Item = (usize, u64)> + '_ {
    let segments = rings.segments(ring, from, to);
    let last = (segments.len() as u64).max(1) - 1;
    let ports = rings.len() * count;
    let links = segments
        .iter()
        .map(move |&segment| ring * count + usize::from(segment));
    let ends = [
        (ports + 2 * usize::from(from), 0),
        (ports + 2 * usize::from(to) + 1, last),
    ];
    links.zip(0..).chain(ends)
}
