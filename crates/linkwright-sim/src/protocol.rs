//! How kernels run an allreduce: windows with a signal each, and runs back to back of which one is timed.
//!
//! A path with a [`Protocol`] applies it to an allreduce that consists of puts between ranks and of local operations:
//!
//! | schedule | windows | runs |
//! |---|---|---|
//! | every step is an exchange in pairs: a rank sends to one rank and receives from the same | yes | `repeats` |
//! | other steps: rings, trees, everyone to everyone | no, plain writes | `repeats` |
//! | reads, multicasts, barriers, memories, computes, waits of the author | no, plain writes | 1 |
//! | another collective, a traffic pattern | no, plain writes | 1 |
//!
//! A plain write is what the path does for any transfer, with its signal. [`remark`] says where an allreduce or another
//! reduction gets less than the whole protocol, so that no value hides it.
//!
//! Every allreduce on such a path is timed alike. Of several runs, rank r starts the timed one when its run before has
//! ended, and ends it when its last operation of it has: a transfer when it is handled, for both of its ends. What a
//! sender does once it knows of a completion belongs to its next run. The times of ranks, their slowest and the critical
//! path are those of this run, totals are counted in it, loads of links and the bounds of the schedule are means over
//! all runs. The limit of a problem concerns one run. A user who repeats an allreduce as often as the protocol does gets
//! the same reading; one repeated in another number is timed as a whole, as it would be on any path.

use crate::critical::{CriticalPath, Segment};
use crate::error::SimError;
use crate::fabric::Fabric;
use crate::messages::Messages;
use crate::outcome::{Simulation, Totals, NEVER};
use crate::setup::Setup;
use linkwright_core::machine::{Path, Protocol};
use linkwright_core::{Machine, TimePs};
use linkwright_schedule::ir::{Combine, Op, OpKind, Schedule};
use linkwright_schedule::{transforms, windows::windows, Collective, ScheduleError};

/// How much of a protocol a schedule gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cover {
    Windows,
    Repeats,
    Nothing,
}

/// `schedule` as the protocol of `path` runs it; combinations must be local already. `None`: unchanged.
pub(crate) fn applied(
    schedule: &Schedule,
    path: &Path,
    machine: &Machine,
) -> Result<Option<Schedule>, SimError> {
    let Some((protocol, tile)) = of(path) else {
        return Ok(None);
    };
    match cover(schedule)? {
        Cover::Nothing => Ok(None),
        Cover::Repeats => Ok(Some(transforms::repeat(schedule, protocol.repeats)?)),
        Cover::Windows => {
            check_room(schedule, path, machine)?;
            let tiles = u32::try_from(schedule.size_bytes() / tile)
                .map_err(|_| ScheduleError::TooLarge(schedule.size_bytes()))?
                .max(1);
            let refined = match (tiles / chunks(schedule)).max(1) {
                1 => transforms::repeat(schedule, protocol.repeats)?,
                slices => {
                    transforms::refine(&transforms::repeat(schedule, protocol.repeats)?, slices)?
                }
            };
            Ok(Some(windows(&refined, protocol.windows(tiles))?))
        }
    }
}

/// Refuse a vector that has no room next to its receive buffer: kernels hold both.
fn check_room(schedule: &Schedule, path: &Path, machine: &Machine) -> Result<(), SimError> {
    let bytes = schedule.size_bytes();
    let ranks = machine.endpoints().iter().take(machine.ranks());
    let small = ranks.filter_map(|endpoint| Some((endpoint, endpoint.capacity?.0)));
    match small.min_by_key(|(_, room)| *room) {
        Some((endpoint, room)) if 2 * bytes > room => Err(SimError::NoBuffer {
            bytes,
            endpoint: endpoint.name.clone(),
            room,
            path: path.name.clone(),
        }),
        _ => Ok(()),
    }
}

/// What the user of a reduction must know that gets less than the whole protocol of `path`.
pub fn remark(schedule: &Schedule, path: &Path) -> Result<Option<String>, ScheduleError> {
    if path.protocol.is_none() || schedule.ranks < 2 || !schedule.spec.collective.reduces() {
        return Ok(None);
    }
    let name = &path.name;
    Ok(match cover(schedule)? {
        Cover::Windows => None,
        Cover::Repeats => Some(format!(
            "plain writes: the windows of path {name} are for ranks that exchange in pairs"
        )),
        Cover::Nothing if schedule.spec.repeats > 1 => Some(format!(
            "plain writes: the protocol of path {name} is for a schedule that does not repeat itself"
        )),
        Cover::Nothing => Some(format!(
            "one run of plain writes: the protocol of path {name} is for an allreduce of puts between ranks"
        )),
    })
}

/// The protocol of a path and the bytes of its tile.
fn of(path: &Path) -> Option<(&Protocol, u64)> {
    path.protocol
        .as_ref()
        .zip(path.combine_tile.map(|tile| tile.0))
}

fn cover(schedule: &Schedule) -> Result<Cover, ScheduleError> {
    let served = |op: &Op| match op.kind {
        OpKind::Put | OpKind::Notice => op.from.max(op.to) < schedule.ranks,
        OpKind::Local => true,
        _ => false,
    };
    let suits = schedule.spec.collective == Collective::Allreduce
        && schedule.spec.repeats == 1
        && schedule.ops().iter().any(Op::is_message)
        && schedule.ops().iter().all(served)
        && !transforms::has_own_waits(schedule)?;
    Ok(match suits {
        false => Cover::Nothing,
        true if exchanges(schedule) => Cover::Windows,
        true => Cover::Repeats,
    })
}

/// Whether in every step each rank that sends or receives has one partner, for both.
fn exchanges(schedule: &Schedule) -> bool {
    let puts = (schedule.ops().iter()).filter(|op| op.kind == OpKind::Put);
    let mut sent: Vec<(u32, u32, u32)> = puts.map(|op| (op.step, op.from, op.to)).collect();
    sent.sort_unstable();
    sent.dedup();
    let one_partner = sent
        .windows(2)
        .all(|two| (two[0].0, two[0].1) != (two[1].0, two[1].1));
    let answered =
        |&(step, from, to): &(u32, u32, u32)| sent.binary_search(&(step, to, from)).is_ok();
    one_partner && sent.iter().all(answered)
}

/// Chunks of the vector that is combined.
fn chunks(schedule: &Schedule) -> u32 {
    let combined = schedule
        .ops()
        .iter()
        .filter(|op| op.combine == Combine::Reduce);
    let chunks = combined.map(|op| schedule.buffer(op.dst_buffer).chunks());
    chunks.max().unwrap_or(1)
}

/// One of several runs that is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timed {
    repeats: u32,
    evaluated: u32,
    /// Steps of a run.
    steps: u32,
}

impl Timed {
    /// Which run of `schedule` is timed on `path`; `None`: all that it does.
    pub fn of(schedule: &Schedule, path: &Path) -> Option<Self> {
        let protocol = path.protocol?;
        let (collective, repeats) = (schedule.spec.collective, schedule.spec.repeats);
        let evaluated = match repeats {
            1 => 1,
            all if all == protocol.repeats => protocol.evaluated,
            _ => return None,
        };
        let last = schedule.ops().iter().map(|op| op.step).max()?;
        (collective == Collective::Allreduce).then_some(Timed {
            repeats,
            evaluated,
            steps: (last + repeats) / repeats,
        })
    }

    /// Runs that all are alike.
    pub fn repeats(timed: Option<Self>) -> u64 {
        timed.map_or(1, |timed| u64::from(timed.repeats))
    }

    /// Rate at which elements are skipped, where the schedule skips some: whole tiles are handled and not combined.
    pub fn skipped_per_s(&self, schedule: &Schedule, path: &Path) -> Option<f64> {
        let (_, tile) = of(path)?;
        let elements = tile as f64 / f64::from(schedule.element_bytes);
        let seconds = path.tile_handling.0 as f64 / 1e12;
        let windows = schedule.computes() && transforms::has_own_waits(schedule).ok()?;
        windows.then(|| elements / seconds)
    }

    fn run_of(&self, op: &Op) -> u32 {
        op.step / self.steps + 1
    }

    /// What `whole` says of the timed run; its operations must have been recorded.
    pub fn read<F: Fabric + ?Sized>(
        &self,
        schedule: &Schedule,
        (setup, fabric): (&Setup, &F),
        whole: Simulation,
    ) -> Simulation {
        let runs = self.ends(schedule, &whole);
        let evaluated = self.evaluated as usize;
        let (start, finish) = (runs[evaluated - 1].clone(), runs[evaluated].clone());
        let each = (start.iter().zip(&finish)).map(|(start, finish)| (finish - start, *finish));
        let (makespan, end) = each.max().unwrap_or((0, 0));
        let share = |all: &mut Vec<u64>| all.iter_mut().for_each(|n| *n /= u64::from(self.repeats));
        let mut links = whole.links;
        share(&mut links.busy_ps);
        share(&mut links.bytes);
        Simulation {
            makespan: TimePs(makespan),
            totals: self.totals(schedule, setup, fabric),
            links,
            critical: between(&whole.critical, end - makespan, end),
            start,
            finish,
            runs,
            operations: whole.operations,
        }
    }

    /// When each rank arrived, and when it had ended each run.
    fn ends(&self, schedule: &Schedule, whole: &Simulation) -> Vec<Vec<u64>> {
        let times = (whole.operations.as_ref()).expect("the run was asked to record operations");
        let mut ends = vec![vec![0; whole.start.len()]; self.repeats as usize + 1];
        ends[0].clone_from(&whole.start);
        for (id, op) in schedule.ops().iter().enumerate() {
            // Notices are never handled by a target; what counts is their arrival.
            let done = match times.visible[id] {
                NEVER => times.delivered[id],
                visible => visible,
            };
            let run = &mut ends[self.run_of(op) as usize];
            let targets = match op.kind {
                OpKind::Barrier => &[],
                _ => schedule.targets(op),
            };
            for &participant in targets.iter().chain([&op.from]) {
                if let Some(end) = run.get_mut(participant as usize) {
                    *end = done.max(*end);
                }
            }
        }
        // A rank without a part in a run has ended it when it begins it.
        for run in 1..ends.len() {
            for rank in 0..ends[run].len() {
                ends[run][rank] = ends[run][rank].max(ends[run - 1][rank]);
            }
        }
        ends
    }

    /// Messages of the timed run.
    fn totals<F: Fabric + ?Sized>(&self, schedule: &Schedule, setup: &Setup, fabric: &F) -> Totals {
        let messages = Messages::new(schedule, &setup.placement, &setup.networks);
        let mut totals = Totals::default();
        let timed = |(_, op): &(u32, &Op)| op.is_message() && self.run_of(op) == self.evaluated;
        for (id, op) in (0u32..).zip(schedule.ops()).filter(timed) {
            totals.count(&messages.message(id), fabric, &messages);
            if setup.path.signal && messages.is_announced(op) {
                totals.count(&messages.signal(id), fabric, &messages);
            }
        }
        totals
    }
}

/// The part of a critical path between two moments.
fn between(path: &CriticalPath, from: u64, to: u64) -> CriticalPath {
    let cut = |segment: &Segment| Segment {
        from_ps: segment.from_ps.clamp(from, to),
        to_ps: segment.to_ps.clamp(from, to),
        ..*segment
    };
    let segments = path.segments.iter().map(cut);
    CriticalPath {
        segments: segments
            .filter(|segment| segment.from_ps < segment.to_ps)
            .collect(),
    }
}
