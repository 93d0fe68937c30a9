//! Per chunk: who wrote it last, and who has read it since.
//!
//! Hazards need no more: older accesses were ordered before the last write, and order is transitive.
//! Most chunks have one reader at a time, which stands in the cell itself; only a second one makes a
//! list.

/// No operation; also the end of a list.
pub(crate) const NONE: u32 = u32::MAX;

/// Set in [`Cell::reader`] where it is the head of a list.
const LIST: u32 = 1 << 31;

/// The last writer of a chunk, and its reader or readers since.
#[derive(Clone, Copy)]
struct Cell {
    writer: u32,
    reader: u32,
}

const UNTOUCHED: Cell = Cell {
    writer: NONE,
    reader: NONE,
};

/// Cells by a dense number of their chunks.
pub struct Accesses {
    cells: Vec<Cell>,
    /// Lists of readers: (operation, next).
    lists: Vec<(u32, u32)>,
    free: u32,
}

impl Accesses {
    /// `count` untouched chunks.
    pub fn new(count: usize) -> Self {
        Accesses {
            cells: vec![UNTOUCHED; count],
            lists: Vec::new(),
            free: NONE,
        }
    }

    /// More untouched chunks, up to `count`.
    pub(crate) fn grow(&mut self, count: usize) {
        self.cells.resize(count, UNTOUCHED);
    }

    /// Number of chunks.
    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// The last writer, or [`NONE`].
    #[inline]
    pub fn writer(&self, cell: usize) -> u32 {
        self.cells[cell].writer
    }

    /// `op` reads the chunk.
    #[inline]
    pub fn add_reader(&mut self, cell: usize, op: u32) {
        let before = self.cells[cell].reader;
        self.cells[cell].reader = match before {
            NONE => op,
            // A single reader moves into a list of its own.
            single if single & LIST == 0 => {
                let rest = self.node(single, NONE);
                self.node(op, rest) | LIST
            }
            list => self.node(op, list & !LIST) | LIST,
        };
    }

    /// `op` writes the chunk; its readers so far are given to `each` and forgotten.
    #[inline]
    pub fn write(&mut self, cell: usize, op: u32, mut each: impl FnMut(u32)) {
        let there = &mut self.cells[cell];
        let reader = std::mem::replace(&mut there.reader, NONE);
        there.writer = op;
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

    /// All readers since the last write.
    #[inline]
    pub fn each_reader(&self, cell: usize, mut each: impl FnMut(u32)) {
        let reader = self.cells[cell].reader;
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
            node = next;
        }
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
}
