//! The path's recipe as durations of operations, in picoseconds.

use crate::error::SimError;
use crate::messages::Messages;
use crate::residence::Moved;
use crate::setup::Setup;
use linkwright_core::machine::Path;
use linkwright_core::Bytes;
use linkwright_schedule::ir::{Combine, Op, OpKind, Schedule};
use linkwright_schedule::ScheduleError;

/// Durations of one run.
#[derive(Clone, Debug)]
pub(crate) struct Costs<'a> {
    path: &'a Path,
    arithmetic: bool,
    ps_per_operation: f64,
    /// Checking a completion.
    pub barrier: u64,
    /// Sending a notice.
    pub notice: u64,
    /// First transfer of a step.
    pub phase: u64,
    /// Handling an arrival, before it is combined.
    pub receive: u64,
    start: u64,
    per_run: u64,
    /// Where ranks move the data themselves, what that costs them.
    moved: Option<Moved>,
}

impl<'a> Costs<'a> {
    /// Durations of `run`, or why its path cannot serve the schedule.
    pub fn new(setup: &'a Setup, messages: &Messages<'_>) -> Result<Self, SimError> {
        let costs = Costs {
            path: &setup.path,
            arithmetic: setup.arithmetic,
            ps_per_operation: setup.operations_per_s.map_or(0.0, |rate| 1e12 / rate),
            barrier: setup.path.barrier.0,
            notice: setup.path.notice_start.0,
            phase: setup.path.phase_start.0,
            receive: setup.path.receive.0
                + setup.path.memory.as_ref().map_or(0, |memory| memory.look.0),
            start: setup.path.start.0,
            per_run: setup.path.per_run.0,
            moved: (setup.path.memory.as_ref()).map(|memory| Moved::new(setup, memory, messages)),
        };
        costs.check(setup, messages.schedule)?;
        Ok(costs)
    }

    /// That the path can serve every operation.
    fn check(&self, setup: &Setup, schedule: &Schedule) -> Result<(), SimError> {
        let computes = setup.operations_per_s.is_some() || !schedule.computes();
        let multicasts = schedule.sets.iter().all(|set| !set.is_empty());
        if setup.path.fused_combine && computes && multicasts {
            return Ok(());
        }
        for (id, op) in (0u32..).zip(schedule.ops()) {
            if op.is_message() && op.combine == Combine::Reduce && !setup.path.fused_combine {
                return Err(SimError::NotFused {
                    op: id,
                    step: op.step,
                    path: setup.path.name.clone(),
                });
            }
            if op.kind == OpKind::Multicast && schedule.targets(op).is_empty() {
                let problem = "a multicast without targets; name at least one".to_string();
                return Err(ScheduleError::Operation {
                    step: op.step,
                    problem,
                }
                .into());
            }
            if op.kind == OpKind::Compute && setup.operations_per_s.is_none() {
                return Err(SimError::NoComputeRate { op: id });
            }
        }
        Ok(())
    }

    /// How long `op` keeps its lane before anything leaves the rank.
    #[inline]
    pub fn issue(&self, op: &Op, messages: &Messages<'_>) -> u64 {
        match op.kind {
            OpKind::Put | OpKind::Get | OpKind::Multicast | OpKind::Aggregate | OpKind::Notice => {
                self.sending(op, messages)
            }
            OpKind::Local => self.local(op.combine, messages.bytes(op)),
            OpKind::Compute => self.compute(op, messages),
            OpKind::Barrier | OpKind::Fence => 0,
        }
    }

    /// The same for a message.
    #[inline]
    pub fn sending(&self, op: &Op, messages: &Messages<'_>) -> u64 {
        match op.kind {
            OpKind::Notice => self.notice,
            _ => self.start + self.per_run * u64::from(messages.schedule.op_runs(op)),
        }
    }

    /// How long a compute lasts.
    pub fn compute(&self, op: &Op, messages: &Messages<'_>) -> u64 {
        let work = messages.schedule.op_work(op) as f64 * self.ps_per_operation;
        self.path.compute_start.0 + work as u64
    }

    /// How long its initiator then moves the data of operation `id`, where ranks do that themselves.
    #[inline]
    pub fn moving(&self, id: u32) -> u64 {
        self.moved
            .as_ref()
            .map_or(0, |moved| moved.issue[id as usize])
    }

    /// How long its receiver moves the data of operation `id` into place, where they came with a notice.
    #[inline]
    pub fn landing(&self, id: u32) -> u64 {
        self.moved
            .as_ref()
            .map_or(0, |moved| moved.landing[id as usize])
    }

    /// How long the arrival of `op` keeps the receiving rank.
    #[inline]
    pub fn arrival(&self, op: &Op, messages: &Messages<'_>) -> u64 {
        if let Some(memory) = &self.path.memory {
            return memory.look.0; // what is left to do is its landing
        }
        let combined = match op.combine {
            Combine::Reduce => self.local(op.combine, messages.bytes(op)),
            Combine::Replace => 0,
        };
        self.receive + combined
    }

    /// How long a rank combines or copies `bytes`.
    pub fn local(&self, combine: Combine, bytes: u64) -> u64 {
        match combine {
            Combine::Reduce => self.path.combine_time(Bytes(bytes), self.arithmetic).0,
            Combine::Replace => self.path.copy_time(Bytes(bytes)).0,
        }
    }
}
