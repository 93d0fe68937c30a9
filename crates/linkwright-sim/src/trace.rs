//! A simulation as files for people: a trace that Perfetto opens, links as a table.
//!
//! The trace is the Chrome trace event format: one thread per lane of a rank with a slice per
//! operation (the time that it keeps the lane), one thread per rank with a slice per arrival, and an
//! arrow from each issue to its arrival. Times are microseconds with picoseconds behind the point.
//!
//! Format: "Trace Event Format" (Chromium project), read by ui.perfetto.dev and chrome://tracing.

use crate::costs::Costs;
use crate::error::SimError;
use crate::fabric::LinkTable;
use crate::messages::Messages;
use crate::outcome::{OperationTimes, Simulation};
use crate::setup::Run;
use linkwright_core::TimePs;
use linkwright_schedule::ir::{Op, OpKind, Schedule, COMPUTE_LANE};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Threads per rank in a trace: 256 lanes and the arrivals.
const THREADS: u64 = 257;
/// Number of the thread of arrivals.
const ARRIVALS: u64 = 256;

/// Write the trace of a simulation of `schedule` that recorded its operations.
pub fn write_trace(
    out: &mut dyn Write,
    schedule: &Schedule,
    run: &Run,
    simulation: &Simulation,
) -> Result<io::Result<()>, SimError> {
    let Some(times) = &simulation.operations else {
        return Err(SimError::Option {
            option: "record_operations",
            problem: "a trace needs the times of all operations; switch it on".to_string(),
        });
    };
    let messages = Messages::new(schedule, &run.placement, &run.networks);
    let costs = Costs::new(run, &messages)?;
    let mut trace = Trace {
        out,
        first: true,
        messages,
        costs,
        times,
    };
    Ok(trace.write())
}

struct Trace<'a> {
    out: &'a mut dyn Write,
    first: bool,
    messages: Messages<'a>,
    costs: Costs<'a>,
    times: &'a OperationTimes,
}

impl Trace<'_> {
    fn write(&mut self) -> io::Result<()> {
        let schedule = self.messages.schedule;
        writeln!(
            self.out,
            "{{\"displayTimeUnit\": \"ns\", \"traceEvents\": ["
        )?;
        self.names()?;
        for (id, op) in (0u32..).zip(schedule.ops()) {
            self.operation(id, op)?;
        }
        writeln!(self.out, "\n]}}")
    }

    /// One event; `body` is the inside of a JSON object.
    fn event(&mut self, body: &str) -> io::Result<()> {
        let separator = if self.first { "" } else { ",\n" };
        self.first = false;
        write!(self.out, "{separator}{{\"pid\": 0, {body}}}")
    }

    fn names(&mut self) -> io::Result<()> {
        let schedule = self.messages.schedule;
        self.event("\"ph\": \"M\", \"name\": \"process_name\", \"args\": {\"name\": \"ranks\"}")?;
        let lanes = schedule.ops().iter().map(|op| (op.initiator(), op.lane));
        for (rank, lane) in lanes.collect::<BTreeSet<_>>() {
            let name = match lane {
                COMPUTE_LANE => format!("rank {rank} compute"),
                lane => format!("rank {rank} lane {lane}"),
            };
            self.thread(u64::from(rank) * THREADS + u64::from(lane), &name)?;
        }
        let receivers = schedule.ops().iter().filter(|op| op.is_message());
        for participant in receivers
            .flat_map(|op| schedule.targets(op).iter().copied())
            .collect::<BTreeSet<_>>()
        {
            let name = match participant.checked_sub(schedule.ranks) {
                Some(memory) => format!("memory {memory} arrivals"),
                None => format!("rank {participant} arrivals"),
            };
            self.thread(u64::from(participant) * THREADS + ARRIVALS, &name)?;
        }
        Ok(())
    }

    fn thread(&mut self, tid: u64, name: &str) -> io::Result<()> {
        self.event(&format!(
            "\"ph\": \"M\", \"tid\": {tid}, \"name\": \"thread_name\", \"args\": {{\"name\": \"{name}\"}}"
        ))?;
        self.event(&format!(
            "\"ph\": \"M\", \"tid\": {tid}, \"name\": \"thread_sort_index\", \"args\": {{\"sort_index\": {tid}}}"
        ))
    }

    fn operation(&mut self, id: u32, op: &Op) -> io::Result<()> {
        let i = id as usize;
        let (issued, delivered) = (self.times.issued[i], self.times.delivered[i]);
        let lane = u64::from(op.initiator()) * THREADS + u64::from(op.lane);
        let name = self.name(op);
        let bytes = self.messages.bytes(op);
        let step = op.step;
        let args =
            format!("\"args\": {{\"operation\": {id}, \"step\": {step}, \"bytes\": {bytes}}}");
        if !op.is_message() {
            return self.slice(lane, &name, issued, delivered, &args);
        }
        let offered = issued + self.costs.issue(op, &self.messages);
        self.slice(lane, &name, issued, offered, &args)?;
        let start = micros(issued);
        self.event(&format!(
            "\"ph\": \"s\", \"id\": {id}, \"tid\": {lane}, \"ts\": {start}, \"cat\": \"message\", \"name\": \"message\""
        ))?;
        // Several targets share one arrival, the last.
        let target = *self.messages.schedule.targets(op).last().unwrap_or(&op.to);
        let tid = u64::from(target) * THREADS + ARRIVALS;
        let visible = self.times.visible[i];
        self.slice(tid, &name, delivered, visible, &args)?;
        let arrival = micros(delivered);
        self.event(&format!(
            "\"ph\": \"f\", \"bp\": \"e\", \"id\": {id}, \"tid\": {tid}, \"ts\": {arrival}, \"cat\": \"message\", \"name\": \"message\""
        ))
    }

    fn slice(&mut self, tid: u64, name: &str, from: u64, to: u64, args: &str) -> io::Result<()> {
        let (start, length) = (micros(from), micros(to - from));
        self.event(&format!(
            "\"ph\": \"X\", \"tid\": {tid}, \"ts\": {start}, \"dur\": {length}, \"name\": \"{name}\", {args}"
        ))
    }

    fn name(&self, op: &Op) -> String {
        let (from, to) = (op.from, op.to);
        match op.kind {
            OpKind::Put => format!("put {from} to {to}"),
            OpKind::Get => format!("get {from} to {to}"),
            OpKind::Multicast => format!("multicast from {from}"),
            OpKind::Notice => format!("notice {from} to {to}"),
            OpKind::Local => format!("local {from}"),
            OpKind::Compute => format!("compute {from}"),
            OpKind::Barrier => format!("barrier {from}"),
            OpKind::Fence => format!("fence {from}"),
        }
    }
}

/// Picoseconds as microseconds, exactly.
fn micros(ps: u64) -> String {
    format!("{}.{:06}", ps / 1_000_000, ps % 1_000_000)
}

/// Write the load of every link, one row each.
pub fn write_links(out: &mut dyn Write, links: &LinkTable, makespan: TimePs) -> io::Result<()> {
    writeln!(out, "link,busy_ns,busy_share,bytes,peak_messages")?;
    for (i, name) in links.names.iter().enumerate() {
        let busy = TimePs(links.busy_ps[i]);
        let share = busy.0 as f64 / makespan.0.max(1) as f64;
        let quoted = name.replace('"', "\"\"");
        writeln!(
            out,
            "\"{quoted}\",{},{share:.6},{},{}",
            busy.as_ns(),
            links.bytes[i],
            links.peak[i]
        )?;
    }
    Ok(())
}
