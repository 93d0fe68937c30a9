//! The bound of a schedule: what it cannot beat with its own traffic.
//!
//! | bound | value |
//! |---|---|
//! | latency | its longest chain of messages, each without data on an idle machine |
//! | port | bytes that it moves through the busiest port of a rank / rate of that port |
//! | cut | bytes that it moves across the narrowest cut of the problem / its rate |
//! | memory | the same as `port`, of a memory |
//! | compute | combinations spread over all ranks / rate of their arithmetic; or the busiest rank's computes |

use super::{Limit, Limits};
use crate::costs::Costs;
use crate::fabric::Fabric;
use crate::messages::Messages;
use crate::network::NetworkCut;
use crate::prepared::Prepared;
use crate::setup::Setup;
use linkwright_core::{Bytes, BytesPerSec, EndpointId, TimePs};
use linkwright_schedule::ir::{Combine, OpKind, Schedule};
use std::ops::Range;

/// The bounds of a schedule, or of one of its `repeats` runs. Its longest chain of messages takes `chain`, and `cut` is
/// the narrowest one of its problem.
pub(super) fn limits<F: Fabric + ?Sized>(
    prepared: &Prepared<'_>,
    fabric: &F,
    (chain, repeats): (TimePs, u64),
    cut: Option<&NetworkCut>,
) -> Limits {
    let (messages, setup) = (&prepared.messages, prepared.setup);
    let (ranks, memories) = (messages.schedule.ranks, messages.schedule.memories);
    let moved: Vec<(u64, u64)> = (moved(messages).iter())
        .map(|(out, into)| (out / repeats, into / repeats))
        .collect();
    let networks = setup.networks.all();
    let busiest = |name, participants: Range<u32>| {
        let longest = |&at: &u32| longer_side((at, setup), moved[at as usize], fabric, &networks).0;
        // The first of equals.
        let at = participants.rev().max_by_key(longest)?;
        busier_side(name, (at, setup), moved[at as usize], fabric, &networks)
    };
    let all = [
        Some(longest_chain(TimePs(chain.0 / repeats))),
        busiest("port", 0..ranks),
        cut.and_then(|cut| {
            across(
                messages,
                cut,
                fabric.character().multicasts_are_copies,
                repeats,
            )
        }),
        busiest("memory", ranks..ranks + memories),
        compute(messages, &prepared.costs, setup, repeats),
    ];
    Limits::known(all.into_iter().flatten())
}

/// Time before which the busiest port of a rank cannot have moved the bytes of the schedule.
pub(crate) fn busiest_port<F: Fabric + ?Sized>(prepared: &Prepared<'_>, fabric: &F) -> TimePs {
    let (messages, setup) = (&prepared.messages, prepared.setup);
    let (ranks, networks) = (messages.schedule.ranks, setup.networks.all());
    let moved = moved(messages);
    let longest = |at| longer_side((at, setup), moved[at as usize], fabric, &networks).0;
    (0..ranks).map(longest).max().unwrap_or(TimePs::ZERO)
}

fn longest_chain(chain: TimePs) -> Limit {
    Limit::of_time("latency", "longest chain of messages".to_string(), chain)
}

/// The side of the port of a participant that takes longer, with bytes out and in.
fn busier_side<F: Fabric + ?Sized>(
    name: &'static str,
    place: (u32, &Setup),
    moved: (u64, u64),
    fabric: &F,
    networks: &[u8],
) -> Option<Limit> {
    let (_, side, bytes, rate) = longer_side(place, moved, fabric, networks);
    let what = format!("{side} participant {}", place.0);
    Some(Limit::of_rate(name, what, bytes, rate?))
}

/// The same as time, side, bytes and rate.
fn longer_side<F: Fabric + ?Sized>(
    (participant, setup): (u32, &Setup),
    (out, into): (u64, u64),
    fabric: &F,
    networks: &[u8],
) -> (TimePs, &'static str, u64, Option<BytesPerSec>) {
    let place: EndpointId = setup.placement[participant as usize];
    let port = fabric.network().port(place, networks);
    let time = |bytes, rate: Option<BytesPerSec>| {
        rate.map_or(TimePs::ZERO, |rate| rate.time(Bytes(bytes)))
    };
    let out = (time(out, port.out), "out of", out, port.out);
    let into = (time(into, port.into), "into", into, port.into);
    if into.0 > out.0 {
        into
    } else {
        out
    }
}

/// Bytes out of and into each participant, between different ones.
fn moved(messages: &Messages<'_>) -> Vec<(u64, u64)> {
    let schedule = messages.schedule;
    let mut moved = vec![(0, 0); (schedule.ranks + schedule.memories) as usize];
    for op in schedule.ops().iter().filter(|op| op.is_message()) {
        let bytes = messages.bytes(op);
        if op.kind == OpKind::Aggregate {
            // Also what a participant has for itself goes to the switch that combines it, and comes from there.
            (schedule.sources(op).iter()).for_each(|&from| moved[from as usize].0 += bytes);
            (schedule.targets(op).iter()).for_each(|&to| moved[to as usize].1 += bytes);
            continue;
        }
        let others = schedule.targets(op).iter().filter(|&&t| t != op.from);
        let sent = others.map(|&t| moved[t as usize].1 += bytes).count();
        moved[op.from as usize].0 += if sent > 0 { bytes } else { 0 };
    }
    moved
}

/// What the messages carry across a cut of the ranks.
fn across(messages: &Messages<'_>, cut: &NetworkCut, copies: bool, repeats: u64) -> Option<Limit> {
    let schedule = messages.schedule;
    // A memory may be on either side.
    let side = |participant: u32| cut.inside.get(participant as usize).copied();
    let (mut out, mut into) = (0, 0);
    for op in schedule.ops().iter().filter(|op| op.is_message()) {
        let Some(home) = side(op.from) else { continue };
        if op.kind == OpKind::Aggregate {
            // Something crosses to each side with a target that the other side has a source for.
            for (there, crossed) in [(false, &mut out), (true, &mut into)] {
                let on = |all: &[u32], here| all.iter().any(|&p| side(p) == Some(here));
                let crosses = on(schedule.targets(op), there) && on(schedule.sources(op), !there);
                *crossed += u64::from(crosses) * messages.bytes(op);
            }
            continue;
        }
        let targets = schedule.targets(op).iter().filter_map(|&to| side(to));
        let crossing = targets.filter(|&there| there != home).count() as u64;
        let times = if copies { crossing } else { crossing.min(1) };
        *(if home { &mut out } else { &mut into }) += times * messages.bytes(op);
    }
    let limit = |what: &str, bytes, rate| {
        Limit::of_rate("cut", format!("{what} the narrowest cut"), bytes, rate)
    };
    let (out, into) = (out / repeats, into / repeats);
    let sides = [limit("out of", out, cut.out), limit("into", into, cut.into)];
    sides.into_iter().max_by_key(|limit| limit.time)
}

fn compute(
    messages: &Messages<'_>,
    costs: &Costs<'_>,
    setup: &Setup,
    repeats: u64,
) -> Option<Limit> {
    let schedule = messages.schedule;
    if !schedule.computes() && !schedule.spec.collective.reduces() {
        return None;
    }
    // Lanes that compute, and whether ranks combine in their arithmetic unit, on arrival, or both.
    let mut lanes = [false; 256];
    let (mut in_unit, mut on_arrival) = (false, false);
    let mut work = vec![0u64; schedule.ranks as usize];
    let mut by_ranks = true;
    for op in schedule.ops() {
        match (op.kind, op.combine) {
            (OpKind::Compute, _) => {
                work[op.from as usize] += costs.issue(op, messages);
                lanes[op.lane as usize] = true;
            }
            // What combines on the way need not be a rank.
            (OpKind::Aggregate, _) => by_ranks = false,
            (OpKind::Local, Combine::Reduce) => in_unit = true,
            (_, Combine::Reduce) => on_arrival = true,
            _ => {}
        }
    }
    let used = lanes.iter().filter(|&&used| used).count().max(1) as u64;
    let most = work.into_iter().max().unwrap_or(0) / used / repeats;
    let computes = Limit::of_time(
        "compute",
        "computes of the busiest rank".into(),
        TimePs(most),
    );
    let units = u64::from(in_unit) + u64::from(on_arrival);
    let combined = combined(schedule, setup, units.max(1)).filter(|_| by_ranks);
    let both = [Some(computes), combined];
    both.into_iter().flatten().max_by_key(|limit| limit.time)
}

/// The least time in which ranks combine their shares, each in `units` places: its arithmetic unit, the handling of its
/// arrivals, or both.
fn combined(schedule: &Schedule, setup: &Setup, units: u64) -> Option<Limit> {
    let size = schedule.size_bytes();
    let p = u64::from(setup.alike.unwrap_or(schedule.ranks));
    let collective = schedule.spec.collective;
    // A combine that sends every result by itself adds nothing up.
    if !collective.reduces() || collective.is_uneven() || p < 2 || size == 0 {
        return None;
    }
    let bytes = (p - 1) * size / p / units;
    let time = setup.path.combine_time(Bytes(bytes), setup.arithmetic);
    let what = match units {
        1 => "combined by each rank".to_string(),
        _ => "combined by each rank, half of it as it arrives".to_string(),
    };
    Some(Limit {
        bytes,
        ..Limit::of_time("compute", what, time)
    })
}
