//! From any schedule to GOAL text.
//!
//! | schedule | GOAL |
//! |---|---|
//! | put | `s`: send, `r`: recv; the receive requires nothing |
//! | notice, or a put of 0 B | the same with 1 B |
//! | multicast | one send and recv for each target |
//! | get | `q`: send of 1 B that asks, `a`: recv, `s`: send of the data, `r`: recv |
//! | compute of n operations | `c`: calc n |
//! | local copy or combination | `c`: calc 0, because its time belongs to a machine |
//! | fence | `f`: calc 0 that requires everything before, and is required by everything behind |
//! | barrier | notices, see `barriers` |
//! | acknowledgement awaited | `k`: message of 1 B back, `g`: its recv |
//! | lane | cpu; what a lane issues `irequires` what it issued before |
//! | memory | one more rank |
//!
//! Labels end in the number of the operation, which is also the tag.

use crate::error::{PlanError, Result};
use linkwright_schedule::ir::{Completion, Edge, Op, OpKind, Schedule};
use linkwright_schedule::{aggregations, barriers, Collective, ScheduleError};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Write `schedule`, which is verified.
pub(super) fn write(schedule: &Schedule) -> Result<String> {
    let whole = |error: ScheduleError| PlanError::whole(error.to_string());
    let schedule = match schedule.has(OpKind::Aggregate) {
        true => Cow::Owned(aggregations::gather_and_put(schedule).map_err(whole)?),
        false => Cow::Borrowed(schedule),
    };
    let schedule = match schedule.has(OpKind::Barrier) {
        true => Cow::Owned(barriers::disseminate(&schedule).map_err(whole)?),
        false => schedule,
    };
    let mut writer = Writer::new(&schedule)?;
    for (id, op, edges) in schedule.ops_with_edges() {
        writer.operation(id, op, edges);
    }
    Ok(writer.text())
}

/// What one participant does.
#[derive(Clone, Default)]
struct Part {
    lines: String,
    /// Labels of what it issued since its last fence.
    since: Vec<String>,
    fence: Option<String>,
    /// The last label of each lane.
    last: BTreeMap<u8, String>,
}

struct Writer<'a> {
    schedule: &'a Schedule,
    parts: Vec<Part>,
    /// Operations whose acknowledgement is awaited.
    acknowledged: Vec<bool>,
    /// The cpu that answers gets and sends acknowledgements: one that issues nothing by itself.
    answering: u8,
}

impl<'a> Writer<'a> {
    fn new(schedule: &'a Schedule) -> Result<Self> {
        let mut used = [false; 256];
        schedule
            .ops()
            .iter()
            .for_each(|op| used[usize::from(op.lane)] = true);
        let mut acknowledged = vec![false; schedule.ops().len()];
        for (_, _, edges) in schedule.ops_with_edges() {
            for edge in edges.iter().filter(|edge| edge.is_acknowledged()) {
                acknowledged[edge.op() as usize] = true;
            }
        }
        mark_fenced(schedule, &mut acknowledged);
        let free = (0..=u8::MAX).rev().find(|&lane| !used[usize::from(lane)]);
        let answers = acknowledged.contains(&true) || schedule.has(OpKind::Get);
        if free.is_none() && answers {
            return Err(PlanError::whole(
                "all 256 lanes are in use, and GOAL needs a cpu to answer gets; use fewer lanes",
            ));
        }
        Ok(Writer {
            schedule,
            parts: vec![Part::default(); (schedule.ranks + schedule.memories) as usize],
            acknowledged,
            answering: free.unwrap_or_default(),
        })
    }

    fn operation(&mut self, id: u32, op: &Op, edges: &[Edge]) {
        let rank = op.initiator();
        if op.fenced {
            self.fence(rank, format!("f{id}"), op.lane);
        }
        let mut waits: Vec<String> = Vec::new();
        for &edge in edges {
            self.completion(edge, rank, &mut waits);
        }
        let bytes = self.schedule.op_bytes(op).max(1);
        match op.kind {
            OpKind::Put | OpKind::Notice | OpKind::Multicast => {
                for &target in self.schedule.targets(op) {
                    let label = sent(self.schedule, id, op, target);
                    self.message(
                        op.from,
                        target,
                        bytes,
                        id,
                        (&label, &format!("r{id}")),
                        op.lane,
                    );
                    self.issued(rank, op.lane, label, &waits);
                    self.acknowledge(id, op, target);
                }
            }
            OpKind::Get => {
                self.message(
                    op.to,
                    op.from,
                    1,
                    id,
                    (&format!("q{id}"), &format!("a{id}")),
                    op.lane,
                );
                self.issued(rank, op.lane, format!("q{id}"), &waits);
                let labels = (&*format!("s{id}"), &*format!("r{id}"));
                self.message(op.from, op.to, bytes, id, labels, self.answering);
                self.line(op.from, format_args!("s{id} requires a{id}"));
                self.parts[rank as usize].since.push(format!("r{id}"));
            }
            OpKind::Local | OpKind::Compute => {
                self.calc(rank, &format!("c{id}"), self.schedule.op_work(op), op.lane);
                self.issued(rank, op.lane, format!("c{id}"), &waits);
            }
            OpKind::Fence => {
                self.fence(rank, format!("f{id}"), op.lane);
                self.require(rank, &format!("f{id}"), &waits);
            }
            OpKind::Barrier => unreachable!("barriers have become notices"),
            OpKind::Aggregate => unreachable!("aggregations have become gets and puts"),
        }
    }

    /// A send and its receive, by the labels of both.
    fn message(
        &mut self,
        from: u32,
        to: u32,
        bytes: u64,
        tag: u32,
        labels: (&str, &str),
        lane: u8,
    ) {
        let (send, receive) = labels;
        self.line(
            from,
            format_args!("{send}: send {bytes}b to {to} tag {tag}{}", cpu(lane)),
        );
        self.line(
            to,
            format_args!("{receive}: recv {bytes}b from {from} tag {tag}"),
        );
    }

    fn calc(&mut self, rank: u32, label: &str, ns: u64, lane: u8) {
        self.line(rank, format_args!("{label}: calc {ns}{}", cpu(lane)));
    }

    /// `label` was issued in `lane`: it requires `waits` and the last fence, and starts behind what the lane issued.
    fn issued(&mut self, rank: u32, lane: u8, label: String, waits: &[String]) {
        self.require(rank, &label, waits);
        let part = &mut self.parts[rank as usize];
        if let Some(fence) = part.fence.clone() {
            self.require(rank, &label, &[fence]);
        }
        let part = &mut self.parts[rank as usize];
        if let Some(before) = part.last.insert(lane, label.clone()) {
            let _ = writeln!(part.lines, "{label} irequires {before}");
        }
        part.since.push(label);
    }

    /// A calculation of 0 ns behind everything that `rank` has issued.
    fn fence(&mut self, rank: u32, label: String, lane: u8) {
        self.calc(rank, &label, 0, lane);
        let part = &mut self.parts[rank as usize];
        let mut before = std::mem::take(&mut part.since);
        before.extend(part.fence.replace(label.clone()));
        self.require(rank, &label, &before);
    }

    /// The message that says that `op` has arrived at `target`, where its initiator waits for it.
    fn acknowledge(&mut self, id: u32, op: &Op, target: u32) {
        if !self.acknowledged[id as usize] {
            return;
        }
        let back = format!("g{}", &sent(self.schedule, id, op, target)[1..]);
        let labels = (&*format!("k{id}"), &*back);
        self.message(target, op.from, 1, id, labels, self.answering);
        self.line(target, format_args!("k{id} requires r{id}"));
        self.parts[op.from as usize].since.push(back);
    }

    /// The labels of `waiter` that tell it what `edge` waits for.
    fn completion(&self, edge: Edge, waiter: u32, labels: &mut Vec<String>) {
        let (id, op) = (edge.op(), &self.schedule.ops()[edge.op() as usize]);
        let all = |prefix: &str| -> Vec<String> {
            let targets = self.schedule.targets(op).iter();
            let label =
                |&target: &u32| format!("{prefix}{}", &sent(self.schedule, id, op, target)[1..]);
            targets.map(label).collect()
        };
        match (op.kind, self.schedule.completion(edge, waiter)) {
            (OpKind::Put | OpKind::Notice | OpKind::Multicast, _) if edge.is_acknowledged() => {
                labels.extend(all("g"));
            }
            (OpKind::Put | OpKind::Notice | OpKind::Multicast, Some(Completion::SourceFree)) => {
                labels.extend(all("s"));
            }
            (OpKind::Local | OpKind::Compute, _) => labels.push(format!("c{id}")),
            (OpKind::Fence, _) => labels.push(format!("f{id}")),
            _ => labels.push(format!("r{id}")),
        }
    }

    fn require(&mut self, rank: u32, label: &str, waits: &[String]) {
        for wait in waits {
            self.line(rank, format_args!("{label} requires {wait}"));
        }
    }

    fn line(&mut self, rank: u32, line: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.parts[rank as usize].lines, "{line}");
    }

    fn text(self) -> String {
        let Schedule { spec, ranks, .. } = self.schedule;
        let what = match spec.collective {
            Collective::Pattern => "traffic".to_string(),
            collective => format!("{} of {} B", collective.name(), self.schedule.size_bytes()),
        };
        let mut text = format!(
            "// {what} over {ranks} ranks\nnum_ranks {}\n",
            self.parts.len()
        );
        for (rank, part) in self.parts.iter().enumerate() {
            let _ = write!(text, "\nrank {rank} {{\n{}}}\n", part.lines);
        }
        text
    }
}

/// Mark the puts whose arrival a later fence of their initiator waits for.
fn mark_fenced(schedule: &Schedule, acknowledged: &mut [bool]) {
    let mut fenced = vec![false; schedule.ranks as usize];
    for (id, op) in schedule.ops().iter().enumerate().rev() {
        let initiator = &mut fenced[op.initiator() as usize];
        let sends = matches!(op.kind, OpKind::Put | OpKind::Multicast | OpKind::Notice);
        acknowledged[id] |= sends && *initiator;
        *initiator |= op.kind == OpKind::Fence || op.fenced;
    }
}

/// Label of the send of `op` to `target`: `s7`, or `s7_2` where there are several.
fn sent(schedule: &Schedule, id: u32, op: &Op, target: u32) -> String {
    match (
        op.kind,
        schedule.targets(op).iter().position(|&t| t == target),
    ) {
        (OpKind::Multicast, Some(place)) => format!("s{id}_{place}"),
        _ => format!("s{id}"),
    }
}

fn cpu(lane: u8) -> String {
    match lane {
        0 => String::new(),
        lane => format!(" cpu {lane}"),
    }
}
