//! One flat table index per chunk that the schedule touches.
//!
//! A buffer that every rank has may be far larger than what most ranks use of it (the output of a
//! gather), so only the range between the first and the last touched chunk gets places.

use super::VerifyError;
use crate::ir::{BufferId, Schedule};
use std::ops::Range;

/// Most chunks that one schedule may touch; beyond, tables of 24 bytes would not fit.
const MAX_CELLS: u64 = 1 << 30;

/// Where the chunks of one buffer of one participant stand.
#[derive(Clone, Copy)]
struct Table {
    /// Index of chunk 0, modulo 2^32.
    shift: u32,
    first: u32,
    end: u32,
}

/// Index of every touched chunk.
pub(super) struct Cells {
    tables: Vec<Table>,
    buffers: usize,
    count: usize,
}

impl Cells {
    /// Find the touched ranges; `schedule` is within bounds.
    pub fn of(schedule: &Schedule) -> Result<Self, VerifyError> {
        let buffers = schedule.buffers.len();
        let participants = (schedule.ranks + schedule.memories) as usize;
        let empty = Table {
            shift: 0,
            first: u32::MAX,
            end: 0,
        };
        let mut cells = Cells {
            tables: vec![empty; participants * buffers],
            buffers,
            count: 0,
        };
        for op in schedule.ops() {
            for (src, dst, count) in schedule.chunk_ranges(op) {
                cells.touch(op.from, op.src_buffer, src..src + count);
                for &target in schedule.targets(op) {
                    cells.touch(target, op.dst_buffer, dst..dst + count);
                }
            }
        }
        let mut total = 0u64;
        for table in &mut cells.tables {
            if table.first < table.end {
                table.shift = (total as u32).wrapping_sub(table.first);
                total += u64::from(table.end - table.first);
            }
            if total > MAX_CELLS {
                return Err(VerifyError::Shape(format!(
                    "the schedule touches more than {MAX_CELLS} chunks; use fewer ranks or slices"
                )));
            }
        }
        cells.count = total as usize;
        Ok(cells)
    }

    fn touch(&mut self, participant: u32, buffer: BufferId, chunks: Range<u32>) {
        if !chunks.is_empty() {
            let table = &mut self.tables[participant as usize * self.buffers + buffer.0 as usize];
            table.first = table.first.min(chunks.start);
            table.end = table.end.max(chunks.end);
        }
    }

    /// Number of places.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Place of a touched chunk.
    #[inline]
    pub fn index(&self, participant: u32, buffer: BufferId, chunk: u32) -> usize {
        let table = &self.tables[participant as usize * self.buffers + buffer.0 as usize];
        table.shift.wrapping_add(chunk) as usize
    }

    /// The chunks of a buffer that have places.
    pub fn touched(&self, participant: u32, buffer: BufferId) -> Range<u32> {
        let table = &self.tables[participant as usize * self.buffers + buffer.0 as usize];
        table.first.min(table.end)..table.end
    }
}
