//! No race: every two accesses to a chunk, at least one of them a write, are ordered.
//!
//! OpenHazards again from the operations alone, with no help from what made the edges. Per chunk it is
//! enough to look at the last write and the reads since: older accesses were ordered before that
//! write, and order is transitive.

use super::cells::Cells;
use super::happens::Happens;
use super::hazard::{Hazard, Need};
use super::order::Barriers;
use super::outcome::{participant, Verified, VerifyError};
use crate::accesses::{Accesses, NONE};
use crate::ir::{BufferId, Schedule};

/// Prove all hazards of `schedule`.
pub(super) fn check(
    schedule: &Schedule,
    cells: &Cells,
    barriers: &Barriers,
    report: &mut Verified,
) -> Result<(), VerifyError> {
    let mut used = Used {
        cells,
        accesses: Accesses::new(cells.count()),
    };
    let mut happens = Happens::new(schedule, barriers);
    let mut open = Vec::new();
    let mut postponed = Vec::new();
    for (id, op, edges) in schedule.ops_with_edges() {
        happens.append(id, op, edges);
        if !op.moves_data() {
            continue;
        }
        open.clear();
        let mut hazards = OpenHazards {
            id,
            happens: &happens,
            open: &mut open,
            last: (NONE, Need::SourceFree),
            count: 0,
        };
        if op.is_single() {
            used.read(&mut hazards, op.from, op.src_buffer, op.src);
            used.write(&mut hazards, op.to, op.dst_buffer, op.dst);
        } else {
            for (src, dst, count) in schedule.chunk_ranges(op) {
                for k in 0..count {
                    for &source in schedule.sources(op) {
                        used.read(&mut hazards, source, op.src_buffer, src + k);
                    }
                    for &target in schedule.targets(op) {
                        used.write(&mut hazards, target, op.dst_buffer, dst + k);
                    }
                }
            }
        }
        report.hazards += hazards.count;
        if !open.is_empty() {
            happens.prove_shortly(id, &mut open);
        }
        if !open.is_empty() {
            postponed.push((id, open.clone()));
        }
    }
    report.long_searches = postponed.len() as u64;
    happens.prove(&mut postponed);
    match postponed.first() {
        Some((id, hazards)) => Err(race(schedule, *id, &hazards[0])),
        None => Ok(()),
    }
}

/// Who has used the chunks so far.
struct Used<'a> {
    cells: &'a Cells,
    accesses: Accesses,
}

impl Used<'_> {
    #[inline]
    fn read(&mut self, hazards: &mut OpenHazards, from: u32, buffer: BufferId, chunk: u32) {
        // Reading a chunk that no operation writes cannot conflict.
        if let Some(cell) = self.cells.read(from, buffer, chunk) {
            let writer = self.accesses.writer(cell);
            hazards.add(writer, Need::DeliveredAt(from), (from, buffer, chunk));
            self.accesses.add_reader(cell, hazards.id);
        }
    }

    #[inline]
    fn write(&mut self, hazards: &mut OpenHazards, target: u32, buffer: BufferId, chunk: u32) {
        let place = (target, buffer, chunk);
        let cell = self.cells.index(target, buffer, chunk);
        let writer = self.accesses.writer(cell);
        hazards.add(writer, Need::DeliveredAt(target), place);
        self.accesses.write(cell, hazards.id, |reader| {
            hazards.add(reader, Need::SourceFree, place);
        });
    }
}

/// The hazards of one operation that its own edges do not settle.
struct OpenHazards<'a, 'b> {
    id: u32,
    happens: &'a Happens<'b>,
    open: &'a mut Vec<Hazard>,
    last: (u32, Need),
    count: u64,
}

impl OpenHazards<'_, '_> {
    #[inline]
    fn add(&mut self, op: u32, need: Need, (participant, buffer, chunk): (u32, BufferId, u32)) {
        if op == NONE || op == self.id {
            return;
        }
        self.count += 1;
        // Neighbouring chunks mostly come from the same operation.
        if self.last == (op, need) {
            return;
        }
        self.last = (op, need);
        if !self.happens.at_once(self.id, op, need) {
            self.open.push(Hazard {
                op,
                need,
                buffer: buffer.0,
                participant,
                chunk,
            });
        }
    }
}

#[cold]
fn race(schedule: &Schedule, id: u32, hazard: &Hazard) -> VerifyError {
    let op = &schedule.ops()[id as usize];
    let earlier = &schedule.ops()[hazard.op as usize];
    let here = participant(schedule, hazard.participant);
    let (state, moment) = match hazard.need {
        Need::SourceFree => ("may still read it", "source of"),
        Need::DeliveredAt(_) => ("may still write it", "delivery of"),
    };
    let problem = format!(
        "is accessed by t{id} while t{} of step {} {state}; let rank {} wait for the {moment} t{}, \
         by an edge where it can see that, else by a notice",
        hazard.op,
        earlier.step,
        op.initiator(),
        hazard.op
    );
    VerifyError::Race {
        step: op.step,
        earlier: hazard.op,
        later: id,
        participant: hazard.participant,
        place: here,
        buffer: schedule.buffers[hazard.buffer as usize].name.clone(),
        chunk: hazard.chunk,
        problem,
    }
}
