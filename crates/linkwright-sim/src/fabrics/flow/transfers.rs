//! The way of a transfer: it starts, enters its links phase by phase or chunk by chunk, frees its source, is delivered
//! and acknowledged.

use super::job::Job;
use super::phases::{coalesced, nth, Phase};
use super::routes::Routes;
use super::{key, ChunkMode, Flow};
use crate::fabric::{Event, Msg, MsgKind, Wanted};
use linkwright_core::{EndpointId, TimePs};
use std::ops::Range;

/// A message to one target.
pub(super) struct Transfer {
    op: u32,
    /// Its place in the set of a multicast; with [`BRANCH`], the branch by which it reaches several.
    target: u32,
    route: u32,
    /// Who receives it; [`NONE`] of a branch.
    to: u32,
    /// The next transfer of the pair.
    next: u32,
    /// Whom it takes turns with: the smaller route of both ways, or [`NONE`].
    turn: u32,
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
pub(super) struct Connection {
    first: u32,
    last: u32,
}

impl Connection {
    const IDLE: Connection = Connection {
        first: NONE,
        last: NONE,
    };
}

/// Both ways between two ends, of which one message moves at a time: the first transfers of their connections.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    moves: u32,
    waits: u32,
}

impl Turn {
    const IDLE: Turn = Turn {
        moves: NONE,
        waits: NONE,
    };
}

/// No transfer.
const NONE: u32 = u32::MAX;

/// Set in [`Transfer::target`] where the rest is the number of a branch.
pub(super) const BRANCH: u32 = 1 << 31;

/// The rest of a multicast.
pub(super) struct Remaining {
    pub(super) sending: usize,
    pub(super) missing: usize,
    /// Latest acknowledgement so far.
    pub(super) acknowledged: TimePs,
}

/// The route of a message; routes are checked before a run.
#[inline]
pub(super) fn known(routes: &mut Routes, from: EndpointId, to: EndpointId, network: u8) -> u32 {
    (routes.find(key(from, to, network))).expect("routes are checked before a run")
}

/// What a message to `target` costs ahead of its data: an aggregation to one target is pulled by it.
pub(super) fn asked(routes: &Routes, kind: MsgKind, target: u32) -> MsgKind {
    match kind {
        MsgKind::Aggregate if routes.branch(target & !BRANCH).targets.len() == 1 => MsgKind::Get,
        _ => kind,
    }
}

/// When the process of an endpoint starts on a message that is ready at `ready`; it is then busy for `handling`.
fn handle(busy_until: &mut Vec<TimePs>, ready: TimePs, endpoint: u32, handling: TimePs) -> TimePs {
    if handling == TimePs::ZERO {
        return ready;
    }
    let at = endpoint as usize;
    if busy_until.len() <= at {
        busy_until.resize(at + 1, TimePs::ZERO);
    }
    let begins = busy_until[at].max(ready);
    busy_until[at] = begins + handling;
    begins
}

impl Flow {
    pub(super) fn begin(&mut self, now: TimePs, m: &Msg, target: u32, to: EndpointId) {
        let routes = self.routes.get_mut();
        let route = known(routes, m.from, to, m.network);
        let turn = match m.bytes < routes.timing(route).turns {
            true => NONE,
            false => {
                let back = routes.find(key(to, m.from, m.network));
                back.map_or(NONE, |back| route.min(back))
            }
        };
        self.begin_on(now, m, (target, to.0), (route, turn));
    }

    /// A message, or its part to one target or one branch, sets out on a route.
    fn begin_on(
        &mut self,
        now: TimePs,
        m: &Msg,
        (target, to): (u32, u32),
        (route, turn): (u32, u32),
    ) {
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
            to,
            next: NONE,
            turn,
            bytes: m.bytes,
            kind: m.kind,
            wanted: m.wanted,
            source_freed: false,
            work,
        });
        let handling = timing.handling(m.bytes);
        self.starts.push(
            handle(&mut self.busy_until, now, m.from.0, handling) + ahead,
            slot,
        );
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
    pub(super) fn started(&mut self, now: TimePs, slot: u32) {
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
            return self.comes_first(now, slot);
        }
        self.transfers[before as usize].next = slot;
    }

    /// The first transfer of a connection moves when it is its turn.
    fn comes_first(&mut self, now: TimePs, slot: u32) {
        let at = self.transfers[slot as usize].turn as usize;
        if at == NONE as usize {
            return self.go_on(now, slot);
        }
        if self.turns.len() <= at {
            self.turns.resize(at + 1, Turn::IDLE);
        }
        let turn = &mut self.turns[at];
        if turn.moves != NONE {
            turn.waits = slot;
            return;
        }
        turn.moves = slot;
        self.go_on(now, slot);
    }

    /// The source of `slot` is free: one that waits for its turn may move, then the next transfer of the pair.
    fn release(&mut self, now: TimePs, slot: u32) {
        let transfer = &self.transfers[slot as usize];
        let (next, route, turn) = (transfer.next, transfer.route as usize, transfer.turn);
        self.connections[route].first = next;
        if turn != NONE {
            let turn = &mut self.turns[turn as usize];
            turn.moves = std::mem::replace(&mut turn.waits, NONE);
            let waited = turn.moves;
            if waited != NONE {
                self.go_on(now, waited);
            }
        }
        if next != NONE {
            self.comes_first(now, next);
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
    pub(super) fn ended(&mut self, now: TimePs, job: Job) {
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
        let handling = timing.handling(transfer.bytes);
        let arrived = now + timing.tail(transfer.bytes);
        let delivered = handle(&mut self.busy_until, arrived, transfer.to, handling);
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
    pub(super) fn branches(&self, m: &Msg) -> Option<Range<u32>> {
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
    pub(super) fn begin_branches(&mut self, now: TimePs, m: &Msg, branches: Range<u32>) {
        let remaining = Remaining {
            sending: branches.len(),
            missing: self.sets[m.set as usize].len(),
            acknowledged: TimePs::ZERO,
        };
        self.multicasts.insert(m.op, remaining);
        for branch in branches {
            let route = self.routes.get_mut().branch(branch).route;
            self.begin_on(now, m, (branch | BRANCH, NONE), (route, NONE));
        }
    }
}
