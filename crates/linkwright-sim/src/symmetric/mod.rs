//! Rank-symmetric programs, simulated without a schedule, operation by operation as they are read.
//!
//! A folded program (see `linkwright_schedule::symmetric`) says what every rank does next, so no operations
//! need to be kept. Operation k of all ranks is simulated, then operation k + 1, and of the past only as much
//! is remembered as the longest wait reaches back.
//!
//! ```text
//!   streamed   operation k of ranks 0 .. p-1        window: longest wait x p records
//!   folded     operation k of rank 0                window: longest wait     records
//! ```
//!
//! The rules are those of the order-free pass (`pass/`), and so are the times, the finish of every
//! rank and the shares of the critical path, to the picosecond. Programs that the pass would leave to the
//! engine are refused here.
//!
//! **Folded**, rank 0 is simulated on behalf of all ranks: whenever it sends a message, the corresponding rank sends
//! the same message to it, which arrives exactly when its own does. This needs a fabric whose endpoints are alike
//! ([`Fabric::alike`]), ranks that arrive together, and operations that take equally long at every rank. Totals are
//! those of rank 0 times p.
//!
//! **Streamed**, every rank is simulated, so ranks may arrive at any time and have unequal chunks; the
//! fabric must be order-free ([`Character::order_free`](crate::fabric::Character::order_free)).

mod simulate;
mod trail;

pub use simulate::simulate;

use crate::error::SimError;
use crate::fabric::{Conditions, Fabric, Msg, MsgKind, Times, Wanted};
use crate::mode::Mode;
use crate::outcome::{Simulation, Totals};
use crate::rank::{combines, completes, End, Lane, Rank, ARITHMETIC, MESSAGES};
use crate::setup::Setup;
use linkwright_core::{Bytes, TimePs};
use linkwright_schedule::ir::{Combine, Op, OpKind, COMPUTE_LANE};
use linkwright_schedule::symmetric::Folded;
use trail::{Cause, Record, Spans};

/// One operation at one rank.
#[derive(Clone, Copy)]
struct Step<'a> {
    k: u32,
    op: &'a Op,
    rank: u32,
    bytes: u64,
    runs: u32,
}

struct Streaming<'a, F: ?Sized> {
    folded: &'a Folded,
    setup: &'a Setup,
    fabric: &'a mut F,
    mode: Mode,
    /// Ranks simulated: all, or one on behalf of all.
    count: u32,
    /// Operations remembered of each rank.
    window: u32,
    past: Vec<Record>,
    ranks: Vec<Rank<Option<Cause>>>,
    end: End<Option<Cause>>,
    /// Earliest arrival of a rank.
    first: u64,
    totals: Totals,
    /// Longest chain of messages without data.
    latency: u64,
    /// Bytes and runs of the latest message, and its times on an idle fabric.
    latest: ((u64, u32), (u64, u64)),
}

/// Simulate all ranks of `folded` on `fabric`; also gives its longest chain of messages without data.
fn stream<F: Fabric + ?Sized>(
    folded: &Folded,
    setup: &Setup,
    fabric: &mut F,
    mode: Mode,
) -> Result<(Simulation, TimePs), SimError> {
    let count = match mode {
        Mode::Folded => 1,
        Mode::Streamed => folded.ranks(),
    };
    let start: Vec<u64> = (0..count as usize)
        .map(|rank| setup.arrivals.get(rank).map_or(0, |t| t.0))
        .collect();
    let window = folded.longest_wait() + 1;
    fabric.reset(&Conditions::default());
    let mut streaming = Streaming {
        folded,
        setup,
        fabric,
        mode,
        count,
        window,
        past: vec![Record::default(); window as usize * count as usize],
        ranks: start.iter().map(|&at| Rank::arriving(at)).collect(),
        end: (0, None),
        first: start.iter().copied().min().unwrap_or(0),
        totals: Totals::default(),
        latency: 0,
        latest: ((u64::MAX, 0), (0, 0)),
    };
    streaming.all()?;
    let latency = TimePs(streaming.latency);
    Ok((streaming.outcome(start), latency))
}

impl<F: Fabric + ?Sized> Streaming<'_, F> {
    fn all(&mut self) -> Result<(), SimError> {
        let folded = self.folded;
        for (k, op) in (0u32..).zip(folded.ops()) {
            let same = folded.same_size(op);
            let mut size = folded.size_at(op, 0);
            for i in 0..self.count {
                let rank = match self.mode {
                    Mode::Folded => 0,
                    Mode::Streamed => folded.performer(op, i),
                };
                if !same && self.mode == Mode::Streamed {
                    size = folded.size_at(op, rank);
                }
                let step = Step {
                    k,
                    op,
                    rank,
                    bytes: size.0,
                    runs: size.1,
                };
                self.step(step)?;
            }
        }
        for rank in &mut self.ranks {
            rank.end_batch(self.setup.path.barrier.0, &mut self.end);
        }
        Ok(())
    }

    /// Index of the rank `ahead` of `rank` among those simulated.
    #[inline]
    fn at(&self, rank: u32, ahead: u32) -> u32 {
        match self.mode {
            Mode::Folded => 0,
            Mode::Streamed => self.folded.group().act(rank, ahead),
        }
    }

    #[inline]
    fn place(&self, k: u32, rank: u32) -> usize {
        (k % self.window) as usize * self.count as usize + rank as usize
    }

    fn step(&mut self, step: Step<'_>) -> Result<(), SimError> {
        let Step { k, op, rank, .. } = step;
        let lane = match op.kind == OpKind::Local && op.lane == COMPUTE_LANE {
            true => ARITHMETIC,
            false => MESSAGES,
        };
        if lane == MESSAGES && combines(op) {
            return Err(self.unsuited("it combines in a lane of messages"));
        }
        let (waits, edge, earliest) = self.waits(k, rank);
        let known = &mut self.ranks[rank as usize];
        if lane == MESSAGES {
            let policy = (self.setup.issue, self.setup.path.barrier.0);
            let room = known.make_room(op, waits, policy, &mut self.end);
            if room.is_err() {
                return Err(self.unsuited("a batch ends at the instant of an issue"));
            }
        }
        let (ready, cause) = known.ready(lane, (waits, edge));
        let leaves = ready + self.issue(&step);
        let spans = match cause {
            Some(cause) => {
                let acknowledged = self.folded.after(k).iter().any(|wait| {
                    let earlier = (wait.op(), self.at(rank, wait.rank()));
                    wait.is_acknowledged() && earlier == cause.of.instance
                });
                cause.spans_until(ready, acknowledged, &self.setup.path)
            }
            None => Spans::waiting(ready - self.first),
        };
        let mut record = Record {
            instance: (k, rank),
            kind: op.kind,
            issued: ready,
            offered: leaves,
            delivered: leaves,
            visible: leaves,
            source_free: leaves,
            acknowledged: leaves,
            earliest: (earliest, earliest),
            spans,
            ..Record::default()
        };
        match op.is_message() {
            true => self.send(step, leaves, &mut record)?,
            false => {
                let known = &mut self.ranks[rank as usize];
                known.lanes[lane] = Lane {
                    free_at: leaves,
                    cause: Some(Cause::edge(record)),
                };
                known.busy_until(leaves, &mut self.end, || Some(Cause::edge(record)));
            }
        }
        let place = self.place(k, rank);
        self.past[place] = record;
        Ok(())
    }

    /// When the last of what operation `k` of `rank` waits for is over, what that is, and the earliest
    /// issue if messages had no data.
    #[inline]
    fn waits(&self, k: u32, rank: u32) -> (u64, Option<Cause>, u64) {
        let (mut latest, mut earliest) = (0, 0);
        let mut cause: Option<Cause> = None;
        for &wait in self.folded.after(k) {
            let performer = self.at(rank, wait.rank());
            let record = &self.past[self.place(wait.op(), performer)];
            let message = matches!(record.kind, OpKind::Put | OpKind::Notice);
            let to = self.folded.ops()[wait.op() as usize].to;
            let arrives = self.folded.group().act(wait.rank(), to) == 0;
            let (at, known) = match (wait.is_acknowledged(), message, arrives) {
                (true, true, _) => (record.acknowledged, record.earliest.1),
                (false, true, false) => (record.source_free, record.earliest.0),
                (_, true, true) => {
                    let delivered = record.earliest.1 + self.setup.path.receive.0;
                    (record.visible, delivered)
                }
                _ => (record.visible, record.earliest.0),
            };
            earliest = earliest.max(known);
            // Ranks have no order in a program: among several ranks that perform one operation, the lowest id decides.
            let held = cause.is_some_and(|c| self.precedes(&c.of, record));
            if at > latest || at == latest && !held {
                (latest, cause) = (at, Some(Cause::edge(*record)));
            }
        }
        (latest, cause, earliest)
    }

    /// Whether `a` is the same operation as `b` and has a lower id.
    #[inline]
    fn precedes(&self, a: &Record, b: &Record) -> bool {
        let (group, k) = (self.folded.group(), a.instance.0);
        if k != b.instance.0 {
            return false;
        }
        let first = group.back(self.folded.ops()[k as usize].from);
        group.act(a.instance.1, first) < group.act(b.instance.1, first)
    }

    /// How long an operation keeps its lane before anything leaves the rank.
    #[inline]
    fn issue(&self, step: &Step<'_>) -> u64 {
        let path = &self.setup.path;
        match step.op.kind {
            OpKind::Put => path.start.0 + path.per_run.0 * u64::from(step.runs),
            OpKind::Notice => path.notice_start.0,
            OpKind::Local => self.local(step),
            _ => 0,
        }
    }

    fn local(&self, step: &Step<'_>) -> u64 {
        let bytes = Bytes(step.bytes);
        match step.op.combine {
            Combine::Reduce => self.setup.path.combine_time(bytes, self.setup.arithmetic).0,
            Combine::Replace => self.setup.path.copy_time(bytes).0,
        }
    }

    fn message(&self, step: &Step<'_>) -> Msg {
        let to = self.folded.group().act(step.rank, step.op.to);
        let (from, to) = match self.mode {
            Mode::Folded => (
                self.setup.placement[0],
                self.setup.placement[to.min(1) as usize],
            ),
            Mode::Streamed => {
                let endpoint = |rank: u32| self.setup.placement[rank as usize];
                (endpoint(step.rank), endpoint(to))
            }
        };
        Msg {
            op: step.k,
            from,
            to,
            bytes: step.bytes,
            runs: step.runs,
            kind: match step.op.kind {
                OpKind::Notice => MsgKind::Notice,
                _ => MsgKind::Put,
            },
            network: self
                .setup
                .networks
                .of(&self.folded.hinted(step.op, step.rank)),
            set: 0,
            sources: 0,
            wanted: Wanted::ALL,
        }
    }

    #[inline]
    fn send(&mut self, step: Step<'_>, leaves: u64, record: &mut Record) -> Result<(), SimError> {
        let message = self.message(&step);
        let times = self.answer(leaves, &message)?;
        let target = self.at(step.rank, step.op.to);
        let path = &self.setup.path;
        let combine = match step.op.combine {
            Combine::Reduce => self.local(&step),
            Combine::Replace => 0,
        };
        record.delivered = times.delivered.0;
        record.source_free = times.source_free.0;
        record.acknowledged = times.acknowledged.0;
        record.combine = combine;
        (record.latency, record.serialisation) = self.quiet(&message);
        let early = record.earliest.0 + (leaves - record.issued) + record.latency;
        record.earliest.1 = early;
        self.latency = self.latency.max(early + path.receive.0);
        let (arrived, sent) = (times.delivered.0, leaves);
        let cost = path.receive.0 + combine;
        let receiver = &mut self.ranks[target as usize].receiver;
        let visible = receiver.handle(arrived, sent, cost);
        record.visible = visible.map_err(|_| self.unsuited(OUT_OF_ORDER))?;
        self.ranks[step.rank as usize].lanes[MESSAGES] = Lane {
            free_at: leaves,
            cause: Some(Cause::edge(*record)),
        };
        let handled = || Some(Cause::edge(*record));
        self.ranks[target as usize].busy_until(record.visible, &mut self.end, handled);
        if step.op.kind == OpKind::Put {
            let completes = completes(path.completion, &times);
            let sender = &mut self.ranks[step.rank as usize];
            sender.complete(*record, completes, self.setup.issue, &mut self.end);
        }
        Ok(())
    }

    /// On an idle fabric, the time of `message` without its data, and what they add.
    #[inline]
    fn quiet(&mut self, message: &Msg) -> (u64, u64) {
        // Between endpoints that are alike only the size matters, and most are as long as the one before.
        let size = (message.bytes, message.runs);
        if self.mode == Mode::Folded && self.latest.0 == size {
            return self.latest.1;
        }
        let without = Msg {
            bytes: 0,
            ..*message
        };
        let (empty, full) = (self.fabric.quiet(&without).0, self.fabric.quiet(message).0);
        self.latest = (size, (empty, full.saturating_sub(empty)));
        self.latest.1
    }

    fn answer(&mut self, leaves: u64, message: &Msg) -> Result<Times, SimError> {
        if message.kind == MsgKind::Notice {
            self.totals.notices += 1;
        } else {
            let hops = self
                .fabric
                .network()
                .hops(message.from, message.to, message.network);
            self.totals.add(message.bytes, hops);
        }
        let answer = match self.mode {
            Mode::Folded => self.fabric.alike(TimePs(leaves), message),
            Mode::Streamed => self.fabric.answer(TimePs(leaves), message),
        };
        answer.ok_or_else(|| self.unsuited("its fabric cannot tell the times of a message at once"))
    }

    fn unsuited(&self, problem: &str) -> SimError {
        let mode = self.mode;
        let problem = format!("{problem}; simulate every rank");
        SimError::Unsuited { mode, problem }
    }

    fn outcome(self, start: Vec<u64>) -> Simulation {
        let (end, cause) = self.end;
        let spans = match cause {
            Some(cause) => cause.spans_until(end, false, &self.setup.path),
            None => Spans::waiting(end.max(self.first) - self.first),
        };
        let finish = self.ranks.iter().map(|rank| rank.finish).collect();
        let mut links = self.fabric.links().clone();
        let (mut start, mut finish, mut totals) = (start, finish, self.totals);
        if self.mode == Mode::Folded {
            let p = self.folded.ranks() as usize;
            (start, finish) = (vec![start[0]; p], vec![self.ranks[0].finish; p]);
            totals = totals.times(p as u64);
            // The links of one rank represent those of all, so they have no names.
            links.names.clear();
        }
        Simulation {
            makespan: TimePs(end.max(self.first) - self.first),
            start,
            finish,
            runs: Vec::new(),
            totals,
            links,
            critical: spans.as_path(self.first),
            operations: None,
        }
    }
}

const OUT_OF_ORDER: &str =
    "messages arrive in another order than they are sent, and handling them takes time";
