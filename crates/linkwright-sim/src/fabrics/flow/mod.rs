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

mod branches;
mod carried;
mod cuts;
mod edges;
mod fair;
mod fifo;
mod file;
mod group;
mod groups;
mod job;
mod loads;
mod minimal;
mod pairs;
mod phases;
mod route;
mod routes;
mod shared;
#[cfg(test)]
mod tests;
mod timing;
mod topology;
mod torus;
mod trees;
mod uses;

use super::completions::Completions;
use super::slab::Slab;
use crate::error::SimError;
use crate::fabric::{
    Done, Event, Fabric, FabricKind, LinkTable, Msg, MsgKind, NetworkCut, PortRates, Wanted, Watch,
    Wire,
};
use crate::queue::TimeQueue;
use job::Job;
use linkwright_core::{BytesPerSec, EndpointId, Machine, MachineError, TimePs};
use pairs::Key;
use phases::{coalesced, nth, Phase};
use routes::Routes;
use shared::{Shared, Sharing};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
pub use topology::Edge;

/// Registry entry.
pub static KIND: FabricKind = FabricKind {
    key: "flow",
    summary: "flows over shared links: max-min or first come first served, cut through or staged",
    description: "A graph of endpoints, switches and links. Messages are flows that share links \
                  fairly or queue for them, pass at once or are stored on the way in chunks, by the \
                  first transport that reaches their target. For the inside of a node, such as GPUs on \
                  NVLink and PCIe.",
    source: "Bertsekas and Gallager, Data Networks 1992; Casanova and others, JPDC 2014",
};

/// The links that the file of a machine of this kind states.
pub fn edges(machine: &Machine) -> Result<Vec<Edge>, MachineError> {
    Ok(file::read(machine)?.routing.topology.edges())
}

/// Whether the chunks of a transfer are one flow or a job each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkMode {
    Coalesced,
    Each,
}

/// A message to one target.
struct Transfer {
    op: u32,
    /// Its place in the set of a multicast; with [`BRANCH`], the branch by which it reaches several.
    target: u32,
    route: u32,
    /// The next transfer of the pair.
    next: u32,
    bytes: u64,
    kind: MsgKind,
    wanted: Wanted,
    source_freed: bool,
    work: Work,
}

/// The rest of a transfer.
enum Work {
    /// Everything, over all passes together.
    Whole,
    /// Phases to come, the last one first.
    Phases(Vec<Phase>),
    /// Each chunk is a job: chunks that each pass has done, and whether the pass is busy.
    Chunks(Vec<(u64, bool)>),
}

/// Transfers of a pair that have started; the first moves.
#[derive(Clone, Copy)]
struct Connection {
    first: u32,
    last: u32,
}

impl Connection {
    const IDLE: Connection = Connection {
        first: NONE,
        last: NONE,
    };
}

/// No transfer.
const NONE: u32 = u32::MAX;

/// Set in [`Transfer::target`] where the rest is the number of a branch.
const BRANCH: u32 = 1 << 31;

/// The rest of a multicast.
struct Remaining {
    sending: usize,
    missing: usize,
    /// Latest acknowledgement so far.
    acknowledged: TimePs,
}

/// The fabric of one machine.
pub struct Flow {
    sharing: Sharing,
    chunks: ChunkMode,
    routes: RefCell<Routes>,
    sets: Vec<Vec<EndpointId>>,
    shared: Shared,
    /// Loads of the resources; dropped when anything changes.
    table: OnceCell<LinkTable>,
    starts: TimeQueue<u32>,
    completions: Completions,
    transfers: Slab<Transfer>,
    multicasts: HashMap<u32, Remaining>,
    /// By route.
    connections: Vec<Connection>,
    watch: Watch,
}

/// The fabric that `machine` describes.
pub(super) fn from_machine(machine: &Machine) -> Result<Flow, SimError> {
    let described = file::read(machine)?;
    let topology = &described.routing.topology;
    let watch = Watch::default();
    let shared = Shared::new(described.sharing, &topology.capacity, watch);
    Ok(Flow {
        table: OnceCell::new(),
        shared,
        sharing: described.sharing,
        chunks: described.chunks,
        routes: RefCell::new(Routes::new(described.routing)),
        sets: Vec::new(),
        starts: TimeQueue::default(),
        completions: Completions::default(),
        transfers: Slab::default(),
        multicasts: HashMap::new(),
        connections: Vec::new(),
        watch,
    })
}

fn key(from: EndpointId, to: EndpointId, network: u8) -> Key {
    Key {
        from: from.0,
        to: to.0,
        network,
    }
}

/// The route of a message; routes are checked before a run.
#[inline]
fn known(routes: &mut Routes, from: EndpointId, to: EndpointId, network: u8) -> u32 {
    (routes.find(key(from, to, network))).expect("routes are checked before a run")
}

/// What a message to `target` costs ahead of its data: an aggregation to one target is pulled by it.
fn asked(routes: &Routes, kind: MsgKind, target: u32) -> MsgKind {
    match kind {
        MsgKind::Aggregate if routes.branch(target & !BRANCH).targets.len() == 1 => MsgKind::Get,
        _ => kind,
    }
}

impl Flow {
    fn begin(&mut self, now: TimePs, m: &Msg, target: u32, to: EndpointId) {
        let route = known(self.routes.get_mut(), m.from, to, m.network);
        self.begin_on(now, m, target, route);
    }

    /// A message, or its part to one target or one branch, sets out on `route`.
    fn begin_on(&mut self, now: TimePs, m: &Msg, target: u32, route: u32) {
        let routes = self.routes.get_mut();
        let timing = routes.timing(route);
        let ahead = timing.ahead(asked(routes, m.kind, target), m.bytes);
        let work = match timing.passes {
            _ if m.bytes == 0 => Work::Phases(Vec::new()),
            _ if timing.is_inline(m.bytes) => Work::Whole,
            passes if self.chunks == ChunkMode::Each => Work::Chunks(vec![(0, false); passes]),
            1 => Work::Whole,
            _ => {
                let mut phases = coalesced(m.bytes, timing.chunk, &timing.each());
                phases.reverse();
                Work::Phases(phases)
            }
        };
        let slot = self.transfers.insert(Transfer {
            op: m.op,
            target,
            route,
            next: NONE,
            bytes: m.bytes,
            kind: m.kind,
            wanted: m.wanted,
            source_freed: false,
            work,
        });
        self.starts.push(now + ahead, slot);
    }

    fn enter(&mut self, now: TimePs, slot: u32, phase: Phase) {
        let routes = self.routes.get_mut();
        let route = self.transfers[slot as usize].route;
        let uses = match routes.is_adaptive(route) {
            true => routes.choose(route, |link| self.shared.crowd(link)),
            false => routes.span(route, phase.first, phase.last),
        };
        let job = Job {
            token: slot,
            pass: phase.first as u32,
            bytes: phase.bytes,
            ceiling: routes.timing(route).ceiling(phase.first, phase.last),
            uses,
        };
        self.shared.enter(now, job, routes);
    }

    /// The start-up of a transfer is over: it moves when its connection is free.
    fn started(&mut self, now: TimePs, slot: u32) {
        let transfer = &self.transfers[slot as usize];
        let (route, bytes) = (transfer.route as usize, transfer.bytes);
        if bytes == 0 {
            return self.finished(now, slot);
        }
        if self.connections.len() <= route {
            self.connections.resize(route + 1, Connection::IDLE);
        }
        let connection = &mut self.connections[route];
        let before = std::mem::replace(&mut connection.last, slot);
        if connection.first == NONE {
            connection.first = slot;
            return self.go_on(now, slot);
        }
        self.transfers[before as usize].next = slot;
    }

    /// The source of `slot` is free: the next transfer of the pair may move.
    fn release(&mut self, now: TimePs, slot: u32) {
        let transfer = &self.transfers[slot as usize];
        let (next, route) = (transfer.next, transfer.route as usize);
        self.connections[route].first = next;
        if next != NONE {
            self.go_on(now, next);
        }
    }

    /// The first chunks of a transfer, or the next phase of a coalesced one.
    fn go_on(&mut self, now: TimePs, slot: u32) {
        let transfer = &mut self.transfers[slot as usize];
        let next = match &mut transfer.work {
            Work::Chunks(_) => return self.feed(now, slot, 0),
            Work::Phases(phases) => phases.pop(),
            Work::Whole => {
                transfer.work = Work::Phases(Vec::new());
                let last = self.routes.get_mut().timing(transfer.route).passes - 1;
                let (first, bytes) = (0, transfer.bytes);
                Some(Phase { first, last, bytes })
            }
        };
        if next.is_none_or(|phase| phase.first > 0) {
            self.source_free(now, slot);
        }
        match next {
            Some(phase) => self.enter(now, slot, phase),
            None => self.finished(now, slot),
        }
    }

    /// Let an idle pass take its next chunk, if there is one.
    fn feed(&mut self, now: TimePs, slot: u32, pass: usize) {
        let chunk = self.chunk(slot);
        let transfer = &mut self.transfers[slot as usize];
        let (bytes, Work::Chunks(passes)) = (transfer.bytes, &mut transfer.work) else {
            return;
        };
        let there = match pass {
            0 => bytes.div_ceil(chunk),
            _ => passes[pass - 1].0,
        };
        let (done, at_work) = &mut passes[pass];
        if !*at_work && *done < there {
            *at_work = true;
            let phase = Phase {
                first: pass,
                last: pass,
                bytes: nth(bytes, chunk, *done),
            };
            self.enter(now, slot, phase);
        }
    }

    /// Chunk size of a transfer that is stored on the way.
    fn chunk(&mut self, slot: u32) -> u64 {
        let route = self.transfers[slot as usize].route;
        self.routes.get_mut().timing(route).chunk
    }

    /// A job of a transfer is done.
    fn ended(&mut self, now: TimePs, job: Job) {
        let (slot, pass) = (job.token, job.pass as usize);
        let chunk = self.chunk(slot);
        let transfer = &mut self.transfers[slot as usize];
        let Work::Chunks(passes) = &mut transfer.work else {
            return self.go_on(now, slot);
        };
        passes[pass].0 += 1;
        passes[pass].1 = false;
        let over = passes[pass].0 == transfer.bytes.div_ceil(chunk);
        let last = pass + 1 == passes.len();
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
        let transfer = &mut self.transfers[slot as usize];
        if std::mem::replace(&mut transfer.source_freed, true) {
            return;
        }
        let (op, bytes, wanted) = (transfer.op, transfer.bytes, transfer.wanted);
        if bytes > 0 {
            self.release(now, slot);
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
        self.transfers.remove(slot);
        let transfer = &self.transfers[slot as usize];
        if transfer.target & BRANCH != 0 {
            return self.reached(now, slot);
        }
        let (op, target, kind) = (transfer.op, transfer.target, transfer.kind);
        let timing = self.routes.get_mut().timing(transfer.route);
        let delivered = now + timing.tail(transfer.bytes);
        let is_last = !transfer.wanted.acknowledged && kind != MsgKind::Multicast;
        if is_last {
            return (self.completions).last(delivered, op, Event::Delivered, target);
        }
        (self.completions).push(delivered, op, Event::Delivered, target);
        let back = match kind {
            MsgKind::Get => TimePs::ZERO,
            _ => timing.latency,
        };
        self.acknowledge(op, 1, delivered + back);
    }

    /// The last byte of a branch has left: it reaches one target after another.
    fn reached(&mut self, now: TimePs, slot: u32) {
        let transfer = &self.transfers[slot as usize];
        let (op, bytes) = (transfer.op, transfer.bytes);
        let routes = self.routes.get_mut();
        let branch = routes.branch(transfer.target & !BRANCH);
        let (mut latest, targets) = (now, branch.targets.len());
        for reached in &branch.targets {
            let delivered = now + routes.timing_number(reached.timing).tail(bytes);
            (self.completions).push(delivered, op, Event::Delivered, reached.place);
            latest = latest.max(delivered + reached.back);
        }
        self.acknowledge(op, targets, latest);
    }

    /// Some targets of a message have got all of it, as its initiator knows at `at`; it is over when all have.
    fn acknowledge(&mut self, op: u32, targets: usize, at: TimePs) {
        let mut acknowledged = at;
        if let Some(remaining) = self.multicasts.get_mut(&op) {
            remaining.missing -= targets;
            remaining.acknowledged = remaining.acknowledged.max(acknowledged);
            acknowledged = remaining.acknowledged;
            if remaining.missing > 0 {
                return;
            }
            self.multicasts.remove(&op);
        }
        (self.completions).push(acknowledged, op, Event::Acknowledged, 0);
    }

    /// The branches of `m`, where it does not go to each target by itself.
    fn branches(&self, m: &Msg) -> Option<Range<u32>> {
        let set = |set: u32| self.sets.get(set as usize).map_or(&[][..], |set| &set[..]);
        let mut routes = self.routes.borrow_mut();
        match m.kind {
            MsgKind::Multicast => routes.multicast(m.from, set(m.set), m.network),
            MsgKind::Aggregate => {
                let found = routes.aggregation(set(m.sources), set(m.set), m.network);
                Some(found.expect("aggregations are checked before a run"))
            }
            _ => None,
        }
    }

    /// Send `m` over all its branches.
    fn begin_branches(&mut self, now: TimePs, m: &Msg, branches: Range<u32>) {
        let remaining = Remaining {
            sending: branches.len(),
            missing: self.sets[m.set as usize].len(),
            acknowledged: TimePs::ZERO,
        };
        self.multicasts.insert(m.op, remaining);
        for branch in branches {
            let route = self.routes.get_mut().branch(branch).route;
            self.begin_on(now, m, branch | BRANCH, route);
        }
    }
}

impl Fabric for Flow {
    fn reset(&mut self, _seed: u64, sets: &[Vec<EndpointId>]) {
        self.sets = sets.to_vec();
        let topology = &self.routes.get_mut().routing.topology;
        self.shared = Shared::new(self.sharing, &topology.capacity, self.watch);
        self.table.take();
        self.starts.clear();
        self.completions.clear();
        self.transfers.clear();
        self.multicasts.clear();
        self.connections.clear();
    }

    fn watch(&mut self, watch: Watch) {
        self.watch = watch;
    }

    fn bundle(&mut self, channels: Option<u32>) {
        self.routes.get_mut().bundle(channels);
    }

    fn offer(&mut self, now: TimePs, released: &[Msg]) {
        for m in released {
            self.completions.begin();
            if !matches!(m.kind, MsgKind::Multicast | MsgKind::Aggregate) {
                self.begin(now, m, 0, m.to);
                continue;
            }
            if let Some(branches) = self.branches(m) {
                self.begin_branches(now, m, branches);
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
            self.shared.next(self.routes.get_mut()),
            self.completions.next(),
        ];
        times.into_iter().flatten().min()
    }

    fn advance(&mut self, until: TimePs, out: &mut Vec<Done>) -> TimePs {
        self.table.take();
        loop {
            let limit = self.completions.next().map_or(until, |at| at.min(until));
            let routes = self.routes.get_mut();
            let own = [self.shared.next(routes), self.starts.next()];
            let at = match own.into_iter().flatten().min() {
                Some(at) if at <= limit => at,
                _ => return self.completions.advance(until, out),
            };
            while let Some(job) = self.shared.pop_at(at, self.routes.get_mut()) {
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

    fn quiet(&self, m: &Msg) -> TimePs {
        let each = self.chunks == ChunkMode::Each;
        let one = |to: EndpointId| {
            let mut routes = self.routes.borrow_mut();
            let route = known(&mut routes, m.from, to, m.network);
            let timing = routes.timing(route);
            timing.ahead(m.kind, m.bytes) + timing.alone(m.bytes, each) + timing.tail(m.bytes)
        };
        if let Some(branches) = self.branches(m) {
            let routes = self.routes.borrow();
            let times = branches.map(|number| {
                let branch = routes.branch(number);
                let timing = routes.timing(branch.route);
                let ahead = timing.ahead(asked(&routes, m.kind, number | BRANCH), m.bytes);
                let tails = branch.targets.iter();
                let tails = tails.map(|reached| routes.timing_number(reached.timing).tail(m.bytes));
                ahead + timing.alone(m.bytes, each) + tails.min().unwrap_or(TimePs::ZERO)
            });
            return times.min().unwrap_or(TimePs::ZERO);
        }
        match m.kind {
            MsgKind::Multicast => {
                let targets = self.sets.get(m.set as usize).into_iter().flatten();
                targets.map(|&to| one(to)).min().unwrap_or(TimePs::ZERO)
            }
            _ => one(m.to),
        }
    }

    fn hops(&self, from: EndpointId, to: EndpointId, network: u8) -> u32 {
        let mut routes = self.routes.borrow_mut();
        let route = known(&mut routes, from, to, network);
        routes.timing(route).hops
    }

    fn wire(&self, from: EndpointId, to: EndpointId, network: u8) -> Option<Wire> {
        let mut routes = self.routes.borrow_mut();
        let route = routes.find(key(from, to, network))?;
        let timing = routes.timing(route);
        let (start, rate, passes) = (timing.start, timing.whole, timing.passes);
        let latency = timing.latency;
        let all = routes.span(route, 0, passes - 1);
        let uses = routes.uses(all).iter();
        Some(Wire {
            start,
            rate,
            latency,
            uses: uses
                .map(|one| (one.resource() as u32, one.weight() as u32))
                .collect(),
        })
    }

    fn start_up(&self, m: &Msg) -> TimePs {
        let to = match m.kind {
            MsgKind::Multicast | MsgKind::Aggregate => {
                let targets = self.sets.get(m.set as usize);
                targets.and_then(|all| all.first().copied()).unwrap_or(m.to)
            }
            _ => m.to,
        };
        let mut routes = self.routes.borrow_mut();
        let route = routes.find(key(m.from, to, m.network));
        route.map_or(TimePs::ZERO, |route| routes.timing(route).lead(m.bytes))
    }

    fn ends(&self, from: EndpointId, to: EndpointId, network: u8) -> (TimePs, TimePs) {
        let mut routes = self.routes.borrow_mut();
        let route = routes.find(key(from, to, network));
        route.map_or((TimePs::ZERO, TimePs::ZERO), |route| {
            let timing = routes.timing(route);
            (timing.least_lead(), timing.latency)
        })
    }

    fn capacities(&self) -> Vec<u64> {
        self.routes.borrow().routing.topology.capacity.clone()
    }

    fn no_route(&self, from: EndpointId, to: EndpointId, network: u8) -> Option<String> {
        (self.routes.borrow_mut()).problem(key(from, to, network))
    }

    fn links(&self) -> &LinkTable {
        self.table.get_or_init(|| {
            let routes = self.routes.borrow();
            self.shared.loads(&routes.routing.topology.resource_names)
        })
    }

    fn port(&self, endpoint: EndpointId, networks: &[u8]) -> PortRates {
        let mut routes = self.routes.borrow_mut();
        let classes = routes.routing.classes(networks);
        let carried = routes.carried(networks);
        let rate = |out| {
            let topology = &routes.routing.topology;
            let rate = topology.port(endpoint.0, (&classes, &carried), out);
            (rate > 0).then_some(BytesPerSec(rate as f64))
        };
        PortRates {
            out: rate(true),
            into: rate(false),
        }
    }

    fn cuts(&self, places: &[EndpointId], networks: &[u8]) -> Vec<NetworkCut> {
        let mut routes = self.routes.borrow_mut();
        let carried = routes.carried(networks);
        cuts::of((&routes.routing, &carried), places, networks)
    }

    fn multicasts_are_copies(&self) -> bool {
        let topology = &self.routes.borrow().routing.topology;
        !topology.copies() && !topology.combines()
    }

    fn aggregates(&self, sources: &[EndpointId], targets: &[EndpointId], network: u8) -> bool {
        let mut routes = self.routes.borrow_mut();
        routes.aggregation(sources, targets, network).is_some()
    }

    fn combines_on_the_way(&self) -> bool {
        self.routes.borrow().routing.topology.combines()
    }
}
