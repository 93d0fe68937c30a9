//! One flat table index per chunk that the schedule touches.
//!
//! A buffer that every rank has may be far larger than what most ranks use of it (the output of a
//! gather), so only the range between the first and the last touched chunk gets places. What a participant
//! only reads stays unchanged and cannot conflict, so such buffers need none.

use super::outcome::VerifyError;
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
    written: bool,
}

/// Index of every touched chunk of a buffer that is written.
pub(super) struct Cells {
    tables: Vec<Table>,
    buffers: usize,
    count: usize,
    /// Chunks moved, counted per operation and target.
    pub moves: u64,
    /// Touched chunks, those included that are only read.
    pub touched: u64,
}

impl Cells {
    /// Find the touched ranges; `schedule` is within bounds.
    pub fn of(schedule: &Schedule) -> Result<Self, VerifyError> {
        let mut cells = Cells::ranges(schedule);
        for table in &mut cells.tables {
            if !table.written {
                (table.first, table.end) = (u32::MAX, 0);
            }
        }
        cells.number()?;
        Ok(cells)
    }

    /// The same with places for what is only read.
    pub fn all(schedule: &Schedule) -> Result<Self, VerifyError> {
        let mut cells = Cells::ranges(schedule);
        cells.number()?;
        Ok(cells)
    }

    fn ranges(schedule: &Schedule) -> Self {
        let buffers = schedule.buffers.len();
        let participants = (schedule.ranks + schedule.memories) as usize;
        let empty = Table {
            shift: 0,
            first: u32::MAX,
            end: 0,
            written: false,
        };
        let mut cells = Cells {
            tables: vec![empty; participants * buffers],
            buffers,
            count: 0,
            moves: 0,
            touched: 0,
        };
        for op in schedule.ops() {
            if op.is_single() {
                cells.touch(op.from, op.src_buffer, op.src..op.src + 1, false);
                cells.touch(op.to, op.dst_buffer, op.dst..op.dst + 1, true);
                cells.moves += 1;
                continue;
            }
            for (src, dst, count) in schedule.chunk_ranges(op) {
                for &source in schedule.sources(op) {
                    cells.touch(source, op.src_buffer, src..src + count, false);
                }
                for &target in schedule.targets(op) {
                    cells.touch(target, op.dst_buffer, dst..dst + count, true);
                    cells.moves += u64::from(count);
                }
            }
        }
        let lengths = cells.tables.iter().map(|t| t.end.saturating_sub(t.first));
        cells.touched = lengths.map(u64::from).sum();
        cells
    }

    fn number(&mut self) -> Result<(), VerifyError> {
        let mut total = 0u64;
        for table in &mut self.tables {
            if table.first < table.end {
                table.shift = (total as u32).wrapping_sub(table.first);
                total += u64::from(table.end - table.first);
            }
        }
        if self.touched > MAX_CELLS {
            return Err(VerifyError::Shape(format!(
                "the schedule touches more than {MAX_CELLS} chunks; use fewer ranks or slices"
            )));
        }
        self.count = total as usize;
        Ok(())
    }

    #[inline]
    fn touch(&mut self, participant: u32, buffer: BufferId, chunks: Range<u32>, writes: bool) {
        if !chunks.is_empty() {
            let table = &mut self.tables[participant as usize * self.buffers + buffer.0 as usize];
            table.first = table.first.min(chunks.start);
            table.end = table.end.max(chunks.end);
            table.written |= writes;
        }
    }

    /// Number of places.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Place of a touched chunk; `None` where its buffer is only read.
    #[inline]
    pub fn read(&self, participant: u32, buffer: BufferId, chunk: u32) -> Option<usize> {
        let table = &self.tables[participant as usize * self.buffers + buffer.0 as usize];
        (table.first < table.end).then_some(table.shift.wrapping_add(chunk) as usize)
    }

    /// Place of a chunk that has one.
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
