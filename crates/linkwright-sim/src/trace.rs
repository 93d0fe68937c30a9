//! A simulation as a file for people: a trace that Perfetto opens.
//!
//! The trace is the Chrome trace event format: one thread per lane of a rank with a slice per
//! operation (the time that it keeps the lane), one thread per rank with a slice per arrival, and an
//! arrow from each issue to its arrival. Times are microseconds with picoseconds behind the point.
//!
//! Format: "Trace Event Format" (Chromium project), read by ui.perfetto.dev and chrome://tracing.

use crate::costs::Costs;
use crate::error::SimError;
use crate::messages::Messages;
use crate::outcome::{OperationTimes, Simulation};
use crate::setup::Setup;
use linkwright_schedule::ir::{Op, OpKind, Schedule, COMPUTE_LANE};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Threads per rank in a trace: 256 lanes and the arrivals.
const THREADS: u64 = 257;
/// Number of the thread of arrivals.
const ARRIVALS: u64 = 256;

/// The trace of one simulation, ready to be written.
pub struct Trace<'a> {
    messages: Messages<'a>,
    costs: Costs<'a>,
    times: &'a OperationTimes,
}

impl<'a> Trace<'a> {
    /// The trace of a simulation of `schedule` by `run`, which recorded its operations.
    pub fn new(
        schedule: &'a Schedule,
        setup: &'a Setup,
        simulation: &'a Simulation,
    ) -> Result<Self, SimError> {
        let Some(times) = &simulation.operations else {
            return Err(SimError::Option {
                option: "record_operations",
                problem: "a trace needs the times of all operations; switch it on".to_string(),
            });
        };
        let messages = Messages::new(schedule, &setup.placement, &setup.networks);
        Ok(Trace {
            costs: Costs::new(setup, &messages)?,
            messages,
            times,
        })
    }

    /// Write it as JSON.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut events = Events { out, first: true };
        writeln!(
            events.out,
            "{{\"displayTimeUnit\": \"ns\", \"traceEvents\": ["
        )?;
        self.names(&mut events)?;
        for (id, op) in (0u32..).zip(self.messages.schedule.ops()) {
            self.operation(id, op, &mut events)?;
        }
        writeln!(events.out, "\n]}}")
    }

    fn names(&self, events: &mut Events<'_>) -> io::Result<()> {
        let schedule = self.messages.schedule;
        events
            .event("\"ph\": \"M\", \"name\": \"process_name\", \"args\": {\"name\": \"ranks\"}")?;
        let lanes = schedule.ops().iter().map(|op| (op.initiator(), op.lane));
        for (rank, lane) in lanes.collect::<BTreeSet<_>>() {
            let name = match lane {
                COMPUTE_LANE => format!("rank {rank} compute"),
                lane => format!("rank {rank} lane {lane}"),
            };
            events.thread(u64::from(rank) * THREADS + u64::from(lane), &name)?;
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
            events.thread(u64::from(participant) * THREADS + ARRIVALS, &name)?;
        }
        Ok(())
    }

    fn operation(&self, id: u32, op: &Op, events: &mut Events<'_>) -> io::Result<()> {
        let i = id as usize;
        let (issued, delivered) = (self.times.issued[i], self.times.delivered[i]);
        let lane = u64::from(op.initiator()) * THREADS + u64::from(op.lane);
        let name = self.name(op);
        let bytes = self.messages.bytes(op);
        let step = op.step;
        let args =
            format!("\"args\": {{\"operation\": {id}, \"step\": {step}, \"bytes\": {bytes}}}");
        if !op.is_message() {
            return events.slice(lane, &name, issued, delivered, &args);
        }
        let offered = issued + self.costs.issue(op, &self.messages) + self.costs.moving(id);
        events.slice(lane, &name, issued, offered, &args)?;
        let start = micros(issued);
        events.event(&format!(
            "\"ph\": \"s\", \"id\": {id}, \"tid\": {lane}, \"ts\": {start}, \"cat\": \"message\", \"name\": \"message\""
        ))?;
        // Several targets share one arrival, the last.
        let target = *self.messages.schedule.targets(op).last().unwrap_or(&op.to);
        let tid = u64::from(target) * THREADS + ARRIVALS;
        let visible = self.times.visible[i];
        events.slice(tid, &name, delivered, visible, &args)?;
        let arrival = micros(delivered);
        events.event(&format!(
            "\"ph\": \"f\", \"bp\": \"e\", \"id\": {id}, \"tid\": {tid}, \"ts\": {arrival}, \"cat\": \"message\", \"name\": \"message\""
        ))
    }

    fn name(&self, op: &Op) -> String {
        let (from, to) = (op.from, op.to);
        match op.kind {
            OpKind::Put => format!("put {from} to {to}"),
            OpKind::Get => format!("get {from} to {to}"),
            OpKind::Multicast => format!("multicast from {from}"),
            OpKind::Aggregate => format!("aggregate to {from}"),
            OpKind::Notice => format!("notice {from} to {to}"),
            OpKind::Local => format!("local {from}"),
            OpKind::Compute => format!("compute {from}"),
            OpKind::Barrier => format!("barrier {from}"),
            OpKind::Fence => format!("fence {from}"),
        }
    }
}

/// The list of events of a trace.
struct Events<'a> {
    out: &'a mut dyn Write,
    first: bool,
}

impl Events<'_> {
    /// One event; `body` is the inside of a JSON object.
    fn event(&mut self, body: &str) -> io::Result<()> {
        let separator = if self.first { "" } else { ",\n" };
        self.first = false;
        write!(self.out, "{separator}{{\"pid\": 0, {body}}}")
    }

    fn thread(&mut self, tid: u64, name: &str) -> io::Result<()> {
        self.event(&format!(
            "\"ph\": \"M\", \"tid\": {tid}, \"name\": \"thread_name\", \"args\": {{\"name\": \"{name}\"}}"
        ))?;
        self.event(&format!(
            "\"ph\": \"M\", \"tid\": {tid}, \"name\": \"thread_sort_index\", \"args\": {{\"sort_index\": {tid}}}"
        ))
    }

    fn slice(&mut self, tid: u64, name: &str, from: u64, to: u64, args: &str) -> io::Result<()> {
        let (start, length) = (micros(from), micros(to - from));
        self.event(&format!(
            "\"ph\": \"X\", \"tid\": {tid}, \"ts\": {start}, \"dur\": {length}, \"name\": \"{name}\", {args}"
        ))
    }
}

/// Picoseconds as microseconds, exactly.
fn micros(ps: u64) -> String {
    format!("{}.{:06}", ps / 1_000_000, ps % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabrics::crossbar::Crossbar;
    use linkwright_core::machine::Path;
    use linkwright_core::{BytesPerSec, TimePs};
    use linkwright_schedule::builder::{Builder, Shape};
    use linkwright_schedule::{Buffer, Collective};

    fn simulated(record: bool) -> (Schedule, Setup, Simulation) {
        let mut b = Builder::new(Collective::Pattern, &Shape::new(2, 250));
        let data = b.buffer(Buffer::vector("output", 1));
        b.step();
        b.put(0, data.at(0), 1, data.at(0));
        let schedule = b.finish().unwrap();
        let path = Path {
            start: TimePs(100_000),
            receive: TimePs(50_000),
            ..Path::default()
        };
        let mut setup = Setup::new(2, path);
        setup.record_operations = record;
        let mut fabric = Crossbar::new(TimePs(500_001), BytesPerSec(1e9), 2);
        let simulation = crate::simulate(&schedule, &mut fabric, &setup).unwrap();
        (schedule, setup, simulation)
    }

    #[test]
    fn one_message_is_two_slices_and_an_arrow() {
        let (schedule, setup, simulation) = simulated(true);
        let mut text = Vec::new();
        let trace = Trace::new(&schedule, &setup, &simulation).unwrap();
        trace.write(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let expected = r#"{"pid": 0, "ph": "X", "tid": 0, "ts": 0.000000, "dur": 0.100000, "name": "put 0 to 1", "args": {"operation": 0, "step": 1, "bytes": 1000}},
{"pid": 0, "ph": "s", "id": 0, "tid": 0, "ts": 0.000000, "cat": "message", "name": "message"},
{"pid": 0, "ph": "X", "tid": 513, "ts": 1.600001, "dur": 0.050000, "name": "put 0 to 1", "args": {"operation": 0, "step": 1, "bytes": 1000}},
{"pid": 0, "ph": "f", "bp": "e", "id": 0, "tid": 513, "ts": 1.600001, "cat": "message", "name": "message"}
]}
"#;
        assert!(text.ends_with(expected), "{text}");
        assert!(
            text.contains(r#""args": {"name": "rank 1 arrivals"}"#),
            "{text}"
        );
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }

    #[test]
    fn a_trace_needs_recorded_operations() {
        let (schedule, setup, simulation) = simulated(false);
        let error = Trace::new(&schedule, &setup, &simulation).err().unwrap();
        assert!(error.to_string().contains("switch it on"), "{error}");
    }
}
