//! Messages as flows over shared links: the network inside a node, or between nodes.
//!
//! ```text
//!   GPU 0 ---+                            +--- GPU 4        a link per direction, shared
//!   GPU 1 ---+-- riser --- root ---- riser +--- GPU 5       switches forward what passes
//!                           |                               endpoints send, receive, may relay
//!                         memory
//! ```
//!
//! A message of S bytes alone on the machine takes
//!
//! ```text
//!   cut through     start + S / B + latency of the links + one packet per switch
//!   stored once     start + (S + c) / B + ...           c = min(S, chunk); see `phases`
//! ```
//!
//! with B the smallest of the links' bandwidths, what its transport can do, and the limits of
//! switches. Several messages share: `fair`, max-min (see [`fair`]), or `fifo`, one after another
//! (see [`fifo`]). Only bytes are shared; starts and latencies are not. Messages of
//! one pair on one network follow each other as on a connection: the next one moves when the one
//! before has left its source.
//!
//! The source is free when the last byte has left it, the data are delivered a latency later, and
//! acknowledged another latency later. The request of a get travels first; a multicast is one flow
//! per target. Start-ups are constants of the transport, not resources: a driver that handles one
//! copy after another is the path's.
//!
//! Sources: Bertsekas and Gallager, *Data Networks* (1992) for max-min; Casanova, Giersch, Legrand,
//! Quinson and Suter, "Versatile, scalable, and accurate simulation of distributed applications and
//! platforms" (JPDC 2014) for flows in place of packets.

mod fair;
mod fifo;
mod file;
mod job;
mod loads;
mod pairs;
mod phases;
mod route;
mod shared;
#[cfg(test)]
mod tests;
mod topology;

use super::completions::Completions;
use super::FabricKind;
use crate::error::SimError;
use crate::fabric::{Bounds, Done, Event, Fabric, LinkTable, Msg, MsgKind, Stuck, Wanted};
use crate::queue::TimeQueue;
use job::Job;
use linkwright_core::{BytesPerSec, EndpointId, Machine, TimePs};
use loads::Loads;
use pairs::{Key, Pairs};
use phases::{coalesced, nth, Phase, Phases};
use route::{Route, Routing};
use shared::{Shared, Sharing};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Registry entry.
pub static KIND: FabricKind = FabricKind {
    key: "flow",
    summary: "flows over shared links: max-min or first come first served, cut through or staged",
    description: "A graph of endpoints, switches and links. Messages are flows that share links \
                  fairly or queue for them, pass at once or are stored on the way in chunks, by the \
                  first transport that reaches their target. For the inside of a node, such as GPUs on \
                  NVLink and PCIe.",
    source: "Bertsekas and Gallager, Data Networks 1992; Casanova and others, JPDC 2014",
    from_machine,
};

/// Whether the chunks of a transfer are one flow or a job each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkMode {
    Coalesced,
    Each,
}

/// A message to one target.
struct Transfer {
    op: u32,
    target: u32,
    kind: MsgKind,
    bytes: u64,
    wanted: Wanted,
    route: Arc<Route>,
    /// Phases to come; unused where each chunk is a job.
    phases: Phases,
    /// Chunks done by each pass, and whether it is at work; empty unless each chunk is a job.
    done: Vec<(u64, bool)>,
    source_freed: bool,
    /// The connection that it holds or waits for.
    connection: Option<Key>,
}

/// What of a multicast is still to come.
struct Remaining {
    sending: usize,
    missing: usize,
    /// Latest acknowledgement of those that are there.
    acknowledged: TimePs,
}

/// The fabric of one machine.
pub struct Flow {
    routing: Routing,
    sharing: Sharing,
    chunks: ChunkMode,
    routes: RefCell<Pairs<Result<Arc<Route>, String>>>,
    sets: Vec<Vec<EndpointId>>,
    shared: Shared,
    loads: Loads,
    starts: TimeQueue<u32>,
    completions: Completions,
    transfers: Vec<Option<Transfer>>,
    vacant: Vec<u32>,
    multicasts: HashMap<u32, Remaining>,
    /// Transfers of each pair, the one that moves first.
    connections: Pairs<VecDeque<u32>>,
}

fn from_machine(machine: &Machine) -> Result<Box<dyn Fabric + Send>, SimError> {
    let described = file::read(machine)?;
    let topology = &described.routing.topology;
    let shared = Shared::new(described.sharing, &topology.capacity);
    Ok(Box::new(Flow {
        loads: Loads::new(topology.resource_names.clone()),
        shared,
        sharing: described.sharing,
        chunks: described.chunks,
        routes: RefCell::default(),
        sets: Vec::new(),
        starts: TimeQueue::default(),
        completions: Completions::default(),
        transfers: Vec::new(),
        vacant: Vec::new(),
        multicasts: HashMap::new(),
        connections: Pairs::default(),
        routing: described.routing,
    }))
}

fn key(from: EndpointId, to: EndpointId, network: u8) -> Key {
    Key {
        from: from.0,
        to: to.0,
        network,
    }
}

impl Flow {
    /// What `ask` says of the route of a pair, or of why there is none.
    fn look_up<T>(&self, key: Key, ask: impl FnOnce(&Result<Arc<Route>, String>) -> T) -> T {
        let mut routes = self.routes.borrow_mut();
        let route = || self.routing.route(key.from, key.to, key.network);
        ask(routes.entry(key).or_insert_with(|| route().map(Arc::new)))
    }

    /// The route of a message whose schedule has been checked for having one.
    fn known(&self, from: EndpointId, to: EndpointId, network: u8) -> Arc<Route> {
        self.look_up(key(from, to, network), |found| match found {
            Ok(route) => Arc::clone(route),
            Err(problem) => panic!("unchecked message: {problem}"),
        })
    }

    fn begin(&mut self, now: TimePs, m: &Msg, target: u32, to: EndpointId) {
        let route = self.known(m.from, to, m.network);
        let ahead = match m.kind {
            MsgKind::Notice => route.notice,
            MsgKind::Get => route.back() + route.lead(m.bytes),
            _ => route.lead(m.bytes),
        };
        let whole = |last| Phase {
            first: 0,
            last,
            bytes: m.bytes,
        };
        let each = self.chunks == ChunkMode::Each;
        let phases = match route.passes {
            0 => Phases::default(),
            _ if m.bytes == 0 => Phases::default(),
            passes if route.is_inline(m.bytes) => Phases::one(whole(passes - 1)),
            _ if each => Phases::default(),
            1 => Phases::one(whole(0)),
            _ => Phases::list(coalesced(m.bytes, route.chunk, &route.ceilings())),
        };
        let transfer = Transfer {
            op: m.op,
            target,
            kind: m.kind,
            bytes: m.bytes,
            wanted: m.wanted,
            done: match each {
                true => vec![(0, false); route.passes],
                false => Vec::new(),
            },
            route,
            phases,
            source_freed: false,
            connection: (m.bytes > 0).then_some(key(m.from, to, m.network)),
        };
        let slot = self.vacant.pop().unwrap_or(self.transfers.len() as u32);
        match self.transfers.get_mut(slot as usize) {
            Some(place) => *place = Some(transfer),
            None => self.transfers.push(Some(transfer)),
        }
        self.starts.push(now + ahead, slot);
    }

    /// Whether the chunks of this transfer are jobs of their own.
    fn is_serial(&self, slot: u32) -> bool {
        let transfer = self.transfer(slot);
        self.chunks == ChunkMode::Each && !transfer.route.is_inline(transfer.bytes)
    }

    fn transfer(&self, slot: u32) -> &Transfer {
        self.transfers[slot as usize]
            .as_ref()
            .expect("a transfer on its way")
    }

    fn transfer_mut(&mut self, slot: u32) -> &mut Transfer {
        self.transfers[slot as usize]
            .as_mut()
            .expect("a transfer on its way")
    }

    fn enter(&mut self, now: TimePs, slot: u32, first: usize, last: usize, bytes: u64) {
        let span = self.transfer(slot).route.span(first, last);
        let job = Job {
            token: slot,
            pass: first as u32,
            bytes,
            ceiling: span.ceiling,
            uses: span.uses.clone(),
        };
        for &(resource, weight) in job.uses.iter() {
            let before = self.shared.load(resource);
            (self.loads).enter(resource, now, before, bytes * u64::from(weight));
        }
        self.shared.enter(now, job);
    }

    /// The start-up of a transfer is over: it moves when its connection is free.
    fn started(&mut self, now: TimePs, slot: u32) {
        let Some(key) = self.transfer(slot).connection else {
            return self.finished(now, slot);
        };
        let queue = self.connections.entry(key).or_default();
        queue.push_back(slot);
        if queue.len() == 1 {
            self.move_first(now, slot);
        }
    }

    fn move_first(&mut self, now: TimePs, slot: u32) {
        match self.is_serial(slot) {
            true => self.feed(now, slot, 0),
            false => self.go_on(now, slot),
        }
    }

    /// The next transfer of the pair may move.
    fn release(&mut self, now: TimePs, key: Key) {
        let queue = self.connections.get_mut(&key).expect("it has a transfer");
        queue.pop_front();
        if let Some(&next) = queue.front() {
            self.move_first(now, next);
        }
    }

    /// The next phase of a coalesced transfer.
    fn go_on(&mut self, now: TimePs, slot: u32) {
        let transfer = self.transfer_mut(slot);
        let next = transfer.phases.take();
        if next.is_none_or(|phase| phase.first > 0) {
            self.source_free(now, slot);
        }
        match next {
            Some(phase) => self.enter(now, slot, phase.first, phase.last, phase.bytes),
            None => self.finished(now, slot),
        }
    }

    /// Let pass number `pass` take its next chunk, if there is one and it is idle.
    fn feed(&mut self, now: TimePs, slot: u32, pass: usize) {
        let transfer = self.transfer(slot);
        let (bytes, chunk) = (transfer.bytes, transfer.route.chunk);
        let there = match pass {
            0 => bytes.div_ceil(chunk),
            _ => transfer.done[pass - 1].0,
        };
        let (done, at_work) = transfer.done[pass];
        if !at_work && done < there {
            let size = nth(bytes, chunk, done);
            self.transfer_mut(slot).done[pass].1 = true;
            self.enter(now, slot, pass, pass, size);
        }
    }

    /// A job of a transfer is done.
    fn ended(&mut self, now: TimePs, job: Job) {
        for &(resource, _) in job.uses.iter() {
            (self.loads).leave(resource, now, self.shared.load(resource));
        }
        let slot = job.token;
        if !self.is_serial(slot) {
            return self.go_on(now, slot);
        }
        let pass = job.pass as usize;
        let transfer = self.transfer_mut(slot);
        transfer.done[pass].0 += 1;
        transfer.done[pass].1 = false;
        let all = transfer.bytes.div_ceil(transfer.route.chunk);
        let (over, last) = (
            transfer.done[pass].0 == all,
            pass + 1 == transfer.route.passes,
        );
        self.feed(now, slot, pass);
        if pass == 0 && over {
            self.source_free(now, slot);
        }
        match last {
            false => self.feed(now, slot, pass + 1),
            true if over => self.finished(now, slot),
            true => {}
        }
    }

    fn source_free(&mut self, now: TimePs, slot: u32) {
        let transfer = self.transfer_mut(slot);
        if std::mem::replace(&mut transfer.source_freed, true) {
            return;
        }
        let (op, connection, wanted) = (transfer.op, transfer.connection, transfer.wanted);
        if let Some(key) = connection {
            self.release(now, key);
        }
        if let Some(remaining) = self.multicasts.get_mut(&op) {
            remaining.sending -= 1;
            if remaining.sending > 0 {
                return;
            }
        }
        if wanted.source_free {
            self.completions.push(now, op, Event::SourceFree, 0);
        }
    }

    fn finished(&mut self, now: TimePs, slot: u32) {
        self.source_free(now, slot);
        let transfer = self.transfers[slot as usize].take().expect("on its way");
        self.vacant.push(slot);
        let (op, route) = (transfer.op, &transfer.route);
        let delivered = now + route.tail(transfer.bytes);
        let is_last = !transfer.wanted.acknowledged && transfer.kind != MsgKind::Multicast;
        if is_last {
            return (self.completions).last(delivered, op, Event::Delivered, transfer.target);
        }
        (self.completions).push(delivered, op, Event::Delivered, transfer.target);
        let back = match transfer.kind {
            MsgKind::Get => TimePs::ZERO,
            _ => route.back(),
        };
        let mut acknowledged = delivered + back;
        if let Some(remaining) = self.multicasts.get_mut(&op) {
            remaining.missing -= 1;
            remaining.acknowledged = remaining.acknowledged.max(acknowledged);
            acknowledged = remaining.acknowledged;
            if remaining.missing > 0 {
                return;
            }
            self.multicasts.remove(&op);
        }
        (self.completions).push(acknowledged, op, Event::Acknowledged, 0);
    }
}

impl Fabric for Flow {
    fn reset(&mut self, _seed: u64, sets: &[Vec<EndpointId>]) {
        self.sets = sets.to_vec();
        self.shared = Shared::new(self.sharing, &self.routing.topology.capacity);
        self.loads.clear();
        self.starts.clear();
        self.completions.clear();
        self.transfers.clear();
        self.vacant.clear();
        self.multicasts.clear();
        self.connections.clear();
    }

    fn offer(&mut self, now: TimePs, released: &[Msg]) {
        for m in released {
            self.completions.begin();
            if m.kind != MsgKind::Multicast {
                self.begin(now, m, 0, m.to);
                continue;
            }
            let set = std::mem::take(&mut self.sets[m.set as usize]);
            let remaining = Remaining {
                sending: set.len(),
                missing: set.len(),
                acknowledged: TimePs::ZERO,
            };
            self.multicasts.insert(m.op, remaining);
            for (target, &to) in (0u32..).zip(&set) {
                self.begin(now, m, target, to);
            }
            self.sets[m.set as usize] = set;
        }
    }

    fn next(&mut self) -> Option<TimePs> {
        let times = [
            self.starts.next(),
            self.shared.next(),
            self.completions.next(),
        ];
        times.into_iter().flatten().min()
    }

    fn advance(&mut self, until: TimePs, out: &mut Vec<Done>) -> TimePs {
        loop {
            let limit = self.completions.next().map_or(until, |at| at.min(until));
            let own = [self.shared.next(), self.starts.next()];
            let at = match own.into_iter().flatten().min() {
                Some(at) if at <= limit => at,
                _ => return self.completions.advance(until, out),
            };
            while let Some(job) = self.shared.pop_at(at) {
                self.ended(at, job);
            }
            while let Some(slot) = self.starts.pop_at(at) {
                self.started(at, slot);
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.completions.in_flight()
    }

    fn stuck(&self) -> Stuck {
        Stuck::default()
    }

    fn quiet(&self, m: &Msg) -> TimePs {
        let each = self.chunks == ChunkMode::Each;
        let one = |to: EndpointId| {
            let route = self.known(m.from, to, m.network);
            let ahead = match m.kind {
                MsgKind::Notice => route.notice,
                MsgKind::Get => route.back() + route.lead(m.bytes),
                _ => route.lead(m.bytes),
            };
            ahead + route.alone(m.bytes, each) + route.tail(m.bytes)
        };
        match m.kind {
            MsgKind::Multicast => {
                let targets = self.sets.get(m.set as usize).into_iter().flatten();
                targets.map(|&to| one(to)).min().unwrap_or(TimePs::ZERO)
            }
            _ => one(m.to),
        }
    }

    fn hops(&self, from: EndpointId, to: EndpointId, network: u8) -> u32 {
        self.known(from, to, network).hops
    }

    fn no_route(&self, from: EndpointId, to: EndpointId, network: u8) -> Option<String> {
        self.look_up(key(from, to, network), |found| {
            found.as_ref().err().cloned()
        })
    }

    fn links(&self) -> &LinkTable {
        self.loads.table()
    }

    fn bounds(&self) -> Bounds {
        let topology = &self.routing.topology;
        let (ranks, all) = (topology.ranks, topology.endpoints);
        let most = |nodes: std::ops::Range<u32>, out| {
            let rate = topology.port(nodes, out);
            (rate > 0).then_some(BytesPerSec(rate as f64))
        };
        Bounds {
            rank_out: most(0..ranks, true),
            rank_in: most(0..ranks, false),
            memory_out: most(ranks..all, true),
            memory_in: most(ranks..all, false),
            halves: None,
        }
    }
}
