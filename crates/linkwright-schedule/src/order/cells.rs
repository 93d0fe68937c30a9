//! A dense number for every chunk touched so far, before it is known which ones will be.
//!
//! A buffer may be far larger than what is used of it (the output of a gather, at all but the root), so the
//! chunks of a participant get numbers a page at a time, when the first of the page is touched:
//!
//! ```text
//!   pages of the buffer   [participant * pages each + chunk / page size] -> number of the page's first chunk
//! ```
//!
//! Beside the numbers stand the accesses of each chunk and a byte that says how the current step uses it.

use crate::accesses::Accesses;
use crate::ir::{Buffer, BufferId, Owner, Schedule};

/// Chunks of one page, where the buffer has as many.
const PAGE: u32 = 64;

/// Most pages that one buffer has; beyond, pages are larger.
const MOST_PAGES: u64 = 1 << 26;

/// Most chunks that are numbered: their accesses take 16 GB, more than can be verified.
const MOST_CELLS: usize = 1 << 31;

/// Where the pages of one buffer are.
struct Directory {
    /// Number of the first chunk of each page, plus one; 0 where there is no such page.
    pages: Vec<u32>,
    /// Pages of one participant; 0 where only one has the buffer.
    each: usize,
    /// Logarithm of the page size.
    shift: u32,
}

impl Directory {
    fn new(buffer: &Buffer, ranks: u32) -> Self {
        let chunks = buffer.chunks().max(1);
        let owners = match buffer.owner {
            Owner::Ranks => ranks,
            Owner::One(_) => 1,
        };
        let mut shift = PAGE.min(chunks).next_power_of_two().ilog2();
        let pages = |shift: u32| u64::from((chunks - 1) >> shift) + 1;
        while pages(shift) * u64::from(owners) > MOST_PAGES && pages(shift) > 1 {
            shift += 1;
        }
        let each = pages(shift) as usize;
        Directory {
            pages: vec![0; each * owners as usize],
            each: match buffer.owner {
                Owner::Ranks => each,
                Owner::One(_) => 0,
            },
            shift,
        }
    }
}

/// Numbers, accesses and uses of all chunks touched so far.
pub(super) struct Cells {
    directories: Vec<Directory>,
    pub accesses: Accesses,
    /// How the current step uses a chunk: `step` where it reads it, `step + 1` where it writes it.
    uses: Vec<u8>,
    step: u8,
}

impl Cells {
    pub fn new() -> Self {
        Cells {
            directories: Vec::new(),
            accesses: Accesses::new(0),
            uses: Vec::new(),
            step: 0,
        }
    }

    /// Take in what buffers have been declared since.
    pub fn extend(&mut self, schedule: &Schedule) {
        for buffer in &schedule.buffers[self.directories.len()..] {
            self.directories
                .push(Directory::new(buffer, schedule.ranks));
        }
    }

    /// Number of a chunk that exists.
    #[inline]
    pub fn at(&mut self, participant: u32, buffer: BufferId, chunk: u32) -> usize {
        let directory = &self.directories[buffer.0 as usize];
        let page = participant as usize * directory.each + (chunk >> directory.shift) as usize;
        let within = chunk & ((1 << directory.shift) - 1);
        match directory.pages[page] {
            0 => self.open(buffer, page) + within as usize,
            first => (first - 1 + within) as usize,
        }
    }

    #[cold]
    fn open(&mut self, buffer: BufferId, page: usize) -> usize {
        let directory = &mut self.directories[buffer.0 as usize];
        let first = self.accesses.len();
        assert!(first < MOST_CELLS, "more than {MOST_CELLS} chunks are used");
        self.accesses.grow(first + (1 << directory.shift));
        directory.pages[page] = first as u32 + 1;
        first
    }

    /// Forget the uses of the step before.
    pub fn begin_step(&mut self) {
        self.uses.resize(self.accesses.len(), 0);
        match self.step {
            254 => {
                self.uses.fill(0);
                self.step = 2;
            }
            _ => self.step += 2,
        }
    }

    /// An operation of the step reads chunk `cell`; whether another one, or itself, writes it.
    #[inline]
    pub fn reads(&mut self, cell: usize) -> bool {
        let step = self.step;
        let used = self.used(cell);
        let written = *used == step + 1;
        if !written {
            *used = step;
        }
        written
    }

    /// An operation of the step writes chunk `cell`; whether any reads or writes it, too.
    #[inline]
    pub fn writes(&mut self, cell: usize) -> bool {
        let step = self.step;
        let used = self.used(cell);
        let before = std::mem::replace(used, step + 1);
        before == step || before == step + 1
    }

    #[inline]
    fn used(&mut self, cell: usize) -> &mut u8 {
        if cell >= self.uses.len() {
            self.uses.resize(self.accesses.len(), 0);
        }
        &mut self.uses[cell]
    }
}
