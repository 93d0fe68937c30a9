//! A simulation as a file for people: a trace that Perfetto opens.
//!
//! ```text
//!   critical path    an operation after the other, and within each what its time was spent on
//!   rank 0           what it does: send, receive, wait, reduce
//!     lane 0         operations, for as long as they keep the lane
//!     transfers      from the injection of the data to their delivery; several lines where they overlap
//!   ...
//!   links
//!     NAME           share of the time for which the link is busy, in per cent, by bins
//! ```
//!
//! Arrows lead from what an operation waits for to the operation, and from the issue of a transfer to the transfer.
//! Events are written one by one as they are found, so the trace itself takes no memory; what is found comes from the
//! times of the operations.

mod arrows;
mod perfetto;
mod transfers;

use crate::bins::BinTable;
use crate::critical::Spent;
use crate::error::SimError;
use crate::messages::Messages;
use crate::outcome::{OperationTimes, Simulation};
use crate::setup::Setup;
use crate::states::{State, States};
use arrows::Arrows;
use linkwright_schedule::ir::{Op, OpKind, Schedule, COMPUTE_LANE};
use perfetto::{Perfetto, Slice, Track, BYTES, OPERATION, STEP};
use std::collections::BTreeMap;
use std::io::{self, Write};
use transfers::Transfers;

/// Most bins of the load of a link in a trace.
pub const BINS: u32 = 256;

/// Number of the track of the critical path; ranks follow.
const PATH: u64 = 1;

/// The trace of one simulation, ready to be written.
pub struct Trace<'a> {
    messages: Messages<'a>,
    simulation: &'a Simulation,
    times: &'a OperationTimes,
    states: States,
    links: Option<BinTable>,
    arrows: Arrows,
}

impl<'a> Trace<'a> {
    /// The trace of a simulation of `schedule` by `setup`, which recorded its operations.
    pub fn new(
        schedule: &'a Schedule,
        setup: &'a Setup,
        simulation: &'a Simulation,
    ) -> Result<Self, SimError> {
        let bins = simulation.links.bins.as_ref();
        Ok(Trace {
            messages: Messages::new(schedule, &setup.placement, &setup.networks),
            times: simulation.recorded()?,
            states: States::of(schedule, setup, simulation)?,
            links: bins.map(|bins| bins.as_ref().clone().table(simulation.end_ps())),
            arrows: Arrows::new(schedule),
            simulation,
        })
    }

    /// Write it.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let sink = &mut Perfetto::new(out);
        sink.begin()?;
        self.path(sink)?;
        let mut tracks = self.ranks(sink)?;
        for (id, op) in (0_u32..).zip(self.messages.schedule.ops()) {
            self.operation((id, op), &mut tracks, sink)?;
        }
        self.loads(tracks.next, sink)
    }

    fn path(&self, sink: &mut Perfetto<'_>) -> io::Result<()> {
        top(sink, PATH, "critical path")?;
        let segments = &self.simulation.critical.segments;
        for same in segments.chunk_by(|one, next| one.op == next.op) {
            let (from, to) = (same[0].from_ps, same[same.len() - 1].to_ps);
            let (name, number) = match same[0].op {
                Some(id) => (self.name(id), Some((OPERATION, u64::from(id)))),
                None if same[0].spent == Spent::Overhead => ("launch".into(), None),
                None => ("arrival".into(), None),
            };
            plain(sink, PATH, &name, (from, to), number.as_slice())?;
            for segment in same {
                let within = (segment.from_ps, segment.to_ps);
                plain(sink, PATH, segment.spent.name(), within, &[])?;
            }
        }
        Ok(())
    }

    /// Tracks of the ranks, with what ranks do, and of their lanes.
    fn ranks(&self, sink: &mut Perfetto<'_>) -> io::Result<Tracks> {
        let schedule = self.messages.schedule;
        let mut lanes: BTreeMap<(u32, u8), u64> = BTreeMap::new();
        for (id, op) in (0_u32..).zip(schedule.ops()) {
            if self.keeps_lane(id, op) {
                lanes.insert((op.initiator(), op.lane), 0);
            }
        }
        let mut next = PATH + 1;
        for rank in 0..schedule.ranks {
            top(sink, rank_track(rank), &format!("rank {rank}"))?;
            next += 1;
        }
        for ((rank, lane), track) in &mut lanes {
            let name = match *lane {
                COMPUTE_LANE => "compute".into(),
                lane => format!("lane {lane}"),
            };
            *track = next;
            next += 1;
            below(sink, rank_track(*rank), *track, &name)?;
        }
        let States {
            rank,
            state,
            begin_ps,
            end_ps,
        } = &self.states;
        for (i, &rank) in rank.iter().enumerate() {
            let name = State::ALL[state[i] as usize].name();
            plain(sink, rank_track(rank), name, (begin_ps[i], end_ps[i]), &[])?;
        }
        Ok(Tracks {
            lanes,
            transfers: Transfers::new(schedule.ranks),
            next,
        })
    }

    /// Whether an operation is shown on its lane: what takes no time there would only be in the way.
    fn keeps_lane(&self, id: u32, op: &Op) -> bool {
        let i = id as usize;
        !is_carried(op) || self.times.offered[i] > self.times.issued[i]
    }

    fn operation(
        &self,
        (id, op): (u32, &Op),
        tracks: &mut Tracks,
        sink: &mut Perfetto<'_>,
    ) -> io::Result<()> {
        let i = id as usize;
        let (issued, delivered) = (self.times.issued[i], self.times.delivered[i]);
        let (name, bytes) = (self.name(id), self.messages.bytes(op));
        let (number, step) = ((OPERATION, u64::from(id)), (STEP, u64::from(op.step)));
        let (arriving, leaving) = (self.arrows.arriving_at(id), self.arrows.leaving(id));
        if !is_carried(op) {
            return sink.slice(&Slice {
                track: tracks.lanes[&(op.initiator(), op.lane)],
                name: &name,
                from: issued,
                to: delivered,
                arguments: &[number, step, (BYTES, bytes)],
                leaving,
                arriving,
            });
        }
        let offered = self.times.offered[i];
        let arguments = [number, step, (BYTES, bytes)];
        let track = tracks.transfer(self.owner(op), (offered, delivered), sink)?;
        let mut transfer = Slice {
            track,
            name: &name,
            from: offered,
            to: delivered,
            arguments: &arguments,
            leaving,
            arriving,
        };
        if self.keeps_lane(id, op) {
            let own = self.arrows.own(id);
            sink.slice(&Slice {
                track: tracks.lanes[&(op.initiator(), op.lane)],
                name: &name,
                from: issued,
                to: offered,
                arguments: &[number],
                leaving: &[own],
                arriving: transfer.arriving,
            })?;
            transfer.arriving = own..own + 1;
        }
        sink.slice(&transfer)
    }

    /// The rank on whose track a transfer is shown: where its data leave, or who fetches them from a memory.
    fn owner(&self, op: &Op) -> u32 {
        match op.from < self.messages.schedule.ranks {
            true => op.from,
            false => op.initiator(),
        }
    }

    fn name(&self, id: u32) -> String {
        let op = &self.messages.schedule.ops()[id as usize];
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

    /// The load of each link that is ever busy.
    fn loads(&self, mut next: u64, sink: &mut Perfetto<'_>) -> io::Result<()> {
        let Some(links) = &self.links else {
            return Ok(());
        };
        let group = next;
        top(sink, group, "links")?;
        let names = &self.simulation.links.names;
        for (name, bins) in names.iter().zip(links.busy_ps.chunks(links.count)) {
            if bins.iter().all(|&busy| busy == 0) {
                continue;
            }
            next += 1;
            sink.track(&Track {
                id: next,
                parent: Some(group),
                name,
                counts: true,
            })?;
            let mut before = None;
            for (bin, &busy) in (0_u64..).zip(bins) {
                if before != Some(busy) {
                    let share = 100.0 * busy as f64 / links.width_ps as f64;
                    sink.value(next, bin * links.width_ps, share)?;
                }
                before = Some(busy);
            }
            if before != Some(0) {
                sink.value(next, links.count as u64 * links.width_ps, 0.0)?;
            }
        }
        Ok(())
    }
}

/// Whether an operation goes on after it has left its lane.
fn is_carried(op: &Op) -> bool {
    op.is_message() || op.kind == OpKind::Barrier
}

/// Numbers of tracks.
struct Tracks {
    /// By rank and lane.
    lanes: BTreeMap<(u32, u8), u64>,
    transfers: Transfers,
    next: u64,
}

impl Tracks {
    /// A track of transfers of `rank` that is free in this time.
    fn transfer(
        &mut self,
        rank: u32,
        time: (u64, u64),
        sink: &mut Perfetto<'_>,
    ) -> io::Result<u64> {
        let (track, is_new) = self.transfers.place(rank, time, self.next);
        if is_new {
            self.next += 1;
            below(sink, rank_track(rank), track, "transfers")?;
        }
        Ok(track)
    }
}

fn rank_track(rank: u32) -> u64 {
    PATH + 1 + u64::from(rank)
}

fn top(sink: &mut Perfetto<'_>, id: u64, name: &str) -> io::Result<()> {
    sink.track(&Track {
        id,
        parent: None,
        name,
        counts: false,
    })
}

fn below(sink: &mut Perfetto<'_>, parent: u64, id: u64, name: &str) -> io::Result<()> {
    sink.track(&Track {
        id,
        parent: Some(parent),
        name,
        counts: false,
    })
}

/// A slice without arrows.
fn plain(
    sink: &mut Perfetto<'_>,
    track: u64,
    name: &str,
    (from, to): (u64, u64),
    arguments: &[(usize, u64)],
) -> io::Result<()> {
    sink.slice(&Slice {
        track,
        name,
        from,
        to,
        arguments,
        leaving: &[],
        arriving: 0..0,
    })
}

#[cfg(test)]
mod tests;
