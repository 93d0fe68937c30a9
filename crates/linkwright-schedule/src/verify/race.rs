//! No race: every two accesses to a chunk, at least one of them a write, are ordered.
//!
//! Found again from the operations alone, with no help from what made the edges. Per chunk it is
//! enough to look at the last write and the reads since: older accesses were ordered before that
//! write, and order is transitive.

use super::cells::Cells;
use super::happens::{Happens, Hazard, Need};
use super::order::Barriers;
use super::{participant, Verified, VerifyError};
use crate::ir::{BufferId, Schedule};

const NONE: u32 = u32::MAX;

/// Set in [`Cell::reader`] where it is the head of a list.
const LIST: u32 = 1 << 31;

/// The last writer of a chunk, and its reader or readers since.
#[derive(Clone, Copy)]
struct Cell {
    writer: u32,
    reader: u32,
}

struct Accesses {
    cells: Vec<Cell>,
    /// Lists of readers: (operation, next). Only the second reader of a chunk needs one.
    lists: Vec<(u32, u32)>,
    free: u32,
}

/// Prove all hazards of `schedule`.
pub(super) fn check(
    schedule: &Schedule,
    cells: &Cells,
    barriers: &Barriers,
    report: &mut Verified,
) -> Result<(), VerifyError> {
    let mut accesses = Accesses::new(cells.count());
    let mut happens = Happens::new(schedule, barriers);
    let mut open = Vec::new();
    let mut postponed = Vec::new();
    for (id, op) in (0u32..).zip(schedule.ops()) {
        happens.append(id, op);
        if !op.moves_data() {
            continue;
        }
        open.clear();
        let mut found = Found {
            id,
            happens: &happens,
            open: &mut open,
            last: (NONE, Need::SourceFree),
            count: 0,
        };
        for (src, dst, count) in schedule.chunk_ranges(op) {
            for k in 0..count {
                let place = (op.from, op.src_buffer, src + k);
                let read = cells.index(op.from, op.src_buffer, src + k);
                found.add(
                    accesses.cells[read].writer,
                    Need::DeliveredAt(op.from),
                    place,
                );
                accesses.add_reader(read, id);
                for &target in schedule.targets(op) {
                    let place = (target, op.dst_buffer, dst + k);
                    let written = cells.index(target, op.dst_buffer, dst + k);
                    let need = Need::DeliveredAt(target);
                    found.add(accesses.cells[written].writer, need, place);
                    accesses.take_readers(written, |reader| {
                        found.add(reader, Need::SourceFree, place);
                    });
                    accesses.cells[written].writer = id;
                }
            }
        }
        report.hazards += found.count;
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

/// The hazards of one operation that its own edges do not settle.
struct Found<'a, 'b> {
    id: u32,
    happens: &'a Happens<'b>,
    open: &'a mut Vec<Hazard>,
    last: (u32, Need),
    count: u64,
}

impl Found<'_, '_> {
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

impl Accesses {
    fn new(count: usize) -> Self {
        let untouched = Cell {
            writer: NONE,
            reader: NONE,
        };
        Accesses {
            cells: vec![untouched; count],
            lists: Vec::new(),
            free: NONE,
        }
    }

    #[inline]
    fn add_reader(&mut self, cell: usize, op: u32) {
        let before = self.cells[cell].reader;
        if before == NONE {
            self.cells[cell].reader = op;
            return;
        }
        // A single reader moves into a list of its own.
        let rest = match before & LIST {
            0 => self.node(before, NONE),
            _ => before & !LIST,
        };
        self.cells[cell].reader = self.node(op, rest) | LIST;
    }

    fn node(&mut self, op: u32, next: u32) -> u32 {
        if self.free == NONE {
            self.lists.push((op, next));
            return self.lists.len() as u32 - 1;
        }
        let node = self.free;
        self.free = std::mem::replace(&mut self.lists[node as usize], (op, next)).1;
        node
    }

    #[inline]
    fn take_readers(&mut self, cell: usize, mut each: impl FnMut(u32)) {
        let reader = std::mem::replace(&mut self.cells[cell].reader, NONE);
        if reader == NONE {
            return;
        }
        if reader & LIST == 0 {
            return each(reader);
        }
        let mut node = reader & !LIST;
        while node != NONE {
            let (op, next) = self.lists[node as usize];
            each(op);
            self.lists[node as usize].1 = self.free;
            self.free = node;
            node = next;
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
