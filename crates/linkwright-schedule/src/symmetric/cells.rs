//! The chunks of rank 0: by which operation each was written last, and by which it was read since.

use crate::ir::BufferId;

pub(super) const NONE: u32 = u32::MAX;

/// Last writer of a chunk of rank 0, and its readers since.
#[derive(Clone, Copy)]
pub(super) struct Cell {
    pub writer: u32,
    readers: u32,
}

/// Cells of all chunks of rank 0 touched so far.
pub(super) struct Cells {
    tables: Vec<Vec<Cell>>,
    /// Linked lists of readers: (operation, next).
    readers: Vec<(u32, u32)>,
    free: u32,
}

impl Cells {
    pub fn new(buffers: usize) -> Self {
        Cells {
            tables: vec![Vec::new(); buffers],
            readers: Vec::new(),
            free: NONE,
        }
    }

    #[inline]
    pub fn cell(&mut self, buffer: BufferId, chunk: u32) -> &mut Cell {
        let table = &mut self.tables[buffer.0 as usize];
        let untouched = Cell {
            writer: NONE,
            readers: NONE,
        };
        if chunk as usize >= table.len() {
            table.resize(chunk as usize + 1, untouched);
        }
        &mut table[chunk as usize]
    }

    #[inline]
    pub fn add_reader(&mut self, buffer: BufferId, chunk: u32, op: u32) {
        let head = self.cell(buffer, chunk).readers;
        let node = match self.free {
            NONE => {
                self.readers.push((op, head));
                self.readers.len() as u32 - 1
            }
            node => {
                self.free = std::mem::replace(&mut self.readers[node as usize], (op, head)).1;
                node
            }
        };
        self.cell(buffer, chunk).readers = node;
    }

    #[inline]
    pub fn set_writer(&mut self, buffer: BufferId, chunk: u32, op: u32) {
        let cell = self.cell(buffer, chunk);
        let mut node = std::mem::replace(&mut cell.readers, NONE);
        cell.writer = op;
        while node != NONE {
            let next = std::mem::replace(&mut self.readers[node as usize].1, self.free);
            self.free = node;
            node = next;
        }
    }

    /// Everyone who read a chunk since it was written.
    #[inline]
    pub fn readers(&self, cell: Cell, mut each: impl FnMut(u32)) {
        let mut node = cell.readers;
        while node != NONE {
            let (reader, next) = self.readers[node as usize];
            each(reader);
            node = next;
        }
    }
}
