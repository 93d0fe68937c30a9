//! Whether the memory of each participant holds what a schedule puts there.
//!
//! Input and output are there as a whole. Of scratch only the chunks count that some operation writes: an author
//! declares a whole vector of it, so that chunk i of one buffer is chunk i of the other, and a ring writes one of its p
//! chunks.

use crate::error::SimError;
use crate::setup::Setup;
use linkwright_core::Machine;
use linkwright_schedule::ir::{Buffer, Owner, Schedule};
use linkwright_schedule::spec::Collective;

/// Refuse a collective that does not fit the memory of a participant.
///
/// Traffic patterns state sizes of messages, and their buffers are a way to write them down.
pub(crate) fn check(schedule: &Schedule, machine: &Machine, setup: &Setup) -> Result<(), SimError> {
    if schedule.spec.collective == Collective::Pattern {
        return Ok(());
    }
    let room = |participant: u32| {
        let place = setup.placement[participant as usize];
        machine
            .endpoint(place)
            .capacity
            .map_or(u64::MAX, |room| room.0)
    };
    let participants = 0..setup.placement.len() as u32;
    let is_short = |participant: &u32| declared(schedule, *participant) > room(*participant);
    if !participants
        .clone()
        .any(|participant| is_short(&participant))
    {
        return Ok(());
    }
    let written = Written::by(schedule, participants.end);
    for participant in participants.filter(is_short) {
        let bytes = written.bytes(schedule, participant);
        if bytes > room(participant) {
            let place = setup.placement[participant as usize];
            return Err(SimError::NoMemory {
                bytes,
                endpoint: machine.endpoint(place).name.clone(),
                room: room(participant),
            });
        }
    }
    Ok(())
}

fn has(schedule: &Schedule, buffer: &Buffer, participant: u32) -> bool {
    match buffer.owner {
        Owner::Ranks => participant < schedule.ranks,
        Owner::One(one) => one.0 == participant,
    }
}

/// Bytes of all buffers of a participant as they are declared: the most that it uses.
fn declared(schedule: &Schedule, participant: u32) -> u64 {
    let its = |buffer: &&Buffer| has(schedule, buffer, participant);
    let buffers = schedule.buffers.iter().filter(its);
    let elements: u64 = buffers
        .map(|buffer| buffer.elements_of(schedule.elements, participant))
        .sum();
    elements * u64::from(schedule.element_bytes)
}

/// Which chunks of each buffer some operation writes, participant by participant.
struct Written {
    buffers: Vec<Vec<bool>>,
}

impl Written {
    fn by(schedule: &Schedule, participants: u32) -> Self {
        let chunks = |buffer: &Buffer| vec![false; (participants * buffer.chunks()) as usize];
        let mut buffers: Vec<_> = schedule.buffers.iter().map(chunks).collect();
        for op in schedule.ops().iter().filter(|op| op.moves_data()) {
            let place = usize::from(op.dst_buffer.0);
            let chunks = schedule.buffers[place].chunks();
            for (target, (_, first, count)) in schedule
                .targets(op)
                .iter()
                .flat_map(|target| schedule.chunk_ranges(op).map(move |range| (target, range)))
            {
                let first = (target * chunks + first) as usize;
                buffers[place][first..first + count as usize].fill(true);
            }
        }
        Written { buffers }
    }

    /// Bytes of input and output, and of the scratch that is written.
    fn bytes(&self, schedule: &Schedule, participant: u32) -> u64 {
        let buffers = schedule.buffers.iter().zip(&self.buffers);
        let its = buffers.filter(|(buffer, _)| has(schedule, buffer, participant));
        let elements = |(buffer, written): (&Buffer, &Vec<bool>)| -> u64 {
            if matches!(buffer.name.as_str(), "input" | "output") {
                return buffer.elements_of(schedule.elements, participant);
            }
            let first = participant * buffer.chunks();
            let held = (0..buffer.chunks()).filter(|chunk| written[(first + chunk) as usize]);
            held.map(|chunk| {
                let span = buffer.span(schedule.elements, chunk..chunk + 1);
                span.end - span.start
            })
            .sum()
        };
        let all: u64 = its.map(elements).sum();
        all * u64::from(schedule.element_bytes)
    }
}
