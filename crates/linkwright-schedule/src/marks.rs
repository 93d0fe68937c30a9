//! How the operations of one step meet at a chunk.
//!
//! A step is simultaneous: all its operations read the state before it. So an operation *conflicts* with
//! another one that reads what it writes, or combines into the same chunk; it then goes through scratch. Two
//! that write a chunk and do not both combine are the author's mistake.

use crate::ir::Combine;

const NOBODY: u32 = u32::MAX;
const SEVERAL: u32 = u32::MAX - 1;

/// Who reads and writes a chunk in the current step, by the places of operations in the step.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    step: u32,
    reader: u32,
    writer: u32,
    /// Scratch layers in use for the chunk.
    pub layers: u32,
    replaced: bool,
}

/// An operation overwrites what another one of its step writes.
pub(crate) struct DoubleWrite;

impl Mark {
    /// The mark number `index`, of a table that grows on demand; that of an older step counts as empty.
    pub fn of(marks: &mut Vec<Mark>, index: usize, step: u32) -> &mut Mark {
        let empty = Mark {
            step,
            reader: NOBODY,
            writer: NOBODY,
            layers: 0,
            replaced: false,
        };
        if index >= marks.len() {
            marks.resize(index + 1, empty);
        }
        if marks[index].step != step {
            marks[index] = empty;
        }
        &mut marks[index]
    }

    /// Operation `k` of the step reads the chunk.
    pub fn read(&mut self, k: u32) {
        self.reader = match self.reader == NOBODY || self.reader == k {
            true => k,
            false => SEVERAL,
        };
    }

    /// Operation `k` of the step writes the chunk.
    pub fn write(&mut self, k: u32, combine: Combine) {
        self.replaced |= combine == Combine::Replace;
        self.writer = match self.writer == NOBODY {
            true => k,
            false => SEVERAL,
        };
    }

    /// Whether operation `k`, which writes the chunk, conflicts with another one. Its own read is no conflict
    /// if the same rank performs it (`itself`).
    pub fn conflicts(&self, k: u32, combine: Combine, itself: bool) -> Result<bool, DoubleWrite> {
        let read = self.reader != NOBODY && !(itself && self.reader == k);
        let shared = self.writer != k;
        match shared && (self.replaced || combine == Combine::Replace) {
            true => Err(DoubleWrite),
            false => Ok(read || shared),
        }
    }
}
