//! Buffers and their cut into chunks.

use crate::error::{Result, ScheduleError};
use linkwright_core::Participant;
use std::ops::Range;
use std::sync::Arc;

/// Largest number of chunks of one buffer.
pub const MAX_CHUNKS: u32 = 1 << 24;

/// Largest number of buffers of one schedule.
pub(crate) const MAX_BUFFERS: usize = 256;

/// Index of a buffer within a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(pub u8);

/// Who has a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Every rank has one of its own.
    Ranks,
    /// One participant, such as the root of a gather or a memory.
    One(Participant),
}

impl Owner {
    /// Whether `participant`, one of `ranks` or a memory, has the buffer.
    pub(crate) fn includes(self, participant: u32, ranks: u32) -> bool {
        match self {
            Owner::Ranks => participant < ranks,
            Owner::One(one) => one.0 == participant,
        }
    }
}

/// Blocks of a buffer that have lengths of their own, each at one rank: together they are one long vector, of which every
/// rank has only its own part.
///
/// Lengths are counted in units, of which a vector of the schedule has `of`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Units before each block; the last entry is the sum.
    pub starts: Vec<u64>,
    /// First block of each rank; the last entry is their number.
    pub firsts: Vec<u32>,
    /// What each block holds: blocks of one class hold the same, or contributions to the same sum.
    pub classes: Vec<u32>,
    /// Units of a vector.
    pub of: u64,
}

impl Parts {
    /// The blocks of `rank`.
    pub fn blocks_of(&self, rank: u32) -> Range<u32> {
        let at = |rank: usize| self.firsts.get(rank).copied();
        at(rank as usize)
            .zip(at(rank as usize + 1))
            .map_or(0..0, |(first, end)| first..end)
    }

    /// Elements of the first `units` for vectors of `n` elements.
    fn elements(&self, n: u64, units: u64) -> u64 {
        match n % self.of {
            0 => units * (n / self.of),
            _ => (u128::from(units) * u128::from(n) / u128::from(self.of)) as u64,
        }
    }
}

/// The ranks that have a block of each class.
#[derive(Clone, Debug, Default)]
pub struct Holders {
    starts: Vec<u32>,
    ranks: Vec<u32>,
}

impl Holders {
    /// Those of the blocks of a buffer.
    pub fn of(buffer: Option<&Buffer>) -> Self {
        let Some(parts) = buffer.and_then(|buffer| buffer.parts.as_deref()) else {
            return Holders::default();
        };
        let ranks = 0..parts.firsts.len().saturating_sub(1) as u32;
        let blocks = ranks.flat_map(|rank| parts.blocks_of(rank).map(move |block| (block, rank)));
        let mut held: Vec<(u32, u32)> = blocks
            .map(|(block, rank)| (parts.classes[block as usize], rank))
            .collect();
        held.sort_unstable();
        let classes = held.last().map_or(0, |last| last.0 + 1);
        let start = |class: u32| held.partition_point(|one| one.0 < class) as u32;
        Holders {
            starts: (0..=classes).map(start).collect(),
            ranks: held.iter().map(|one| one.1).collect(),
        }
    }

    /// One more than the highest class.
    pub fn classes(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The ranks that have `class`, in order.
    pub fn at(&self, class: u32) -> &[u32] {
        match self.starts.get(class as usize + 1) {
            Some(&end) => &self.ranks[self.starts[class as usize] as usize..end as usize],
            None => &[],
        }
    }
}

/// A named buffer and its cut into chunks.
///
/// A buffer of a schedule over vectors of `n` elements has `n * mul / div` elements, cut evenly
/// into `blocks` (the first ones get one more where it does not divide), each block cut evenly
/// into `slices`. Chunk `b * slices + s` is slice `s` of block `b`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// `input`, `output`, `scratch`, `scratch1`, ...
    pub name: String,
    /// Who has it.
    pub owner: Owner,
    /// Numerator of the size in vectors.
    pub mul: u32,
    /// Denominator of the size in vectors.
    pub div: u32,
    /// Blocks in the buffer, at least 1.
    pub blocks: u32,
    /// Slices in a block, at least 1.
    pub slices: u32,
    /// Blocks of lengths of their own; size and even cut do not count then.
    pub parts: Option<Arc<Parts>>,
}

impl Buffer {
    /// Number of chunks.
    pub fn chunks(&self) -> u32 {
        self.blocks * self.slices
    }

    /// Whether it holds nothing that the spec knows of, but what is on its way; by its name, as in the text form.
    pub(crate) fn is_scratch(&self) -> bool {
        self.name.starts_with("scratch")
    }

    /// One more scratch buffer besides `others`, cut like this one.
    pub(crate) fn scratch(&self, others: &[Buffer]) -> Self {
        let names = (0..).map(|n| match n {
            0 => "scratch".to_string(),
            n => format!("scratch{n}"),
        });
        let mut free = names.filter(|name| others.iter().all(|buffer| buffer.name != *name));
        Buffer {
            name: free.next().expect("some name is free"),
            ..self.clone()
        }
    }

    /// Elements of the whole buffer for vectors of `n` elements.
    pub fn elements(&self, n: u64) -> u64 {
        match &self.parts {
            None => n * u64::from(self.mul) / u64::from(self.div),
            Some(parts) => parts.elements(n, parts.starts[self.blocks as usize]),
        }
    }

    /// The chunks that `participant`, which has the buffer, has of it: all, or its own part.
    pub fn held(&self, participant: u32) -> Range<u32> {
        match &self.parts {
            None => 0..self.chunks(),
            Some(parts) => {
                let blocks = parts.blocks_of(participant);
                blocks.start * self.slices..blocks.end * self.slices
            }
        }
    }

    /// Class and slice of a chunk that `participant` has, of a buffer with parts.
    #[inline]
    pub fn class_at(&self, participant: u32, chunk: u32) -> Option<u32> {
        let parts = self.parts.as_ref()?;
        let class = *parts.classes.get((chunk / self.slices) as usize)?;
        let held = self.held(participant).contains(&chunk);
        held.then_some(class * self.slices + chunk % self.slices)
    }

    /// First element of chunk `chunk`; `chunk == self.chunks()` gives the end of the buffer.
    pub fn offset(&self, n: u64, chunk: u32) -> u64 {
        if let Some(parts) = &self.parts {
            return self.uneven_offset(n, parts, chunk);
        }
        let total = self.elements(n);
        let (block, slice) = (chunk / self.slices, chunk % self.slices);
        let start = even_offset(total, self.blocks, block);
        if slice == 0 {
            return start;
        }
        let length = even_offset(total, self.blocks, block + 1) - start;
        start + even_offset(length, self.slices, slice)
    }

    fn uneven_offset(&self, n: u64, parts: &Parts, chunk: u32) -> u64 {
        let (block, slice) = ((chunk / self.slices) as usize, chunk % self.slices);
        let start = parts.elements(n, parts.starts[block]);
        match slice {
            0 => start,
            _ => {
                let length = parts.elements(n, parts.starts[block + 1]) - start;
                start + even_offset(length, self.slices, slice)
            }
        }
    }

    /// Elements of the chunks `range`, as a range of the buffer.
    pub fn span(&self, n: u64, range: Range<u32>) -> Range<u64> {
        self.offset(n, range.start)..self.offset(n, range.end)
    }

    /// Elements that `participant`, which has the buffer, has of it.
    pub fn elements_of(&self, n: u64, participant: u32) -> u64 {
        match self.parts {
            None => self.elements(n),
            Some(_) => {
                let span = self.span(n, self.held(participant));
                span.end - span.start
            }
        }
    }

    /// Whether chunk `i` of both buffers has the same length for every `n`.
    pub fn same_cut(&self, other: &Buffer) -> bool {
        (self.mul, self.div, self.blocks, self.slices)
            == (other.mul, other.div, other.blocks, other.slices)
            && match (&self.parts, &other.parts) {
                (None, None) => true,
                (Some(one), Some(two)) => Arc::ptr_eq(one, two) || one.starts == two.starts,
                _ => false,
            }
    }
}

/// Start of part `i` when `total` is cut into `parts`, the first `total % parts` one longer.
fn even_offset(total: u64, parts: u32, i: u32) -> u64 {
    let (parts, i) = (u64::from(parts), u64::from(i));
    i * (total / parts) + i.min(total % parts)
}

/// Add a scratch buffer cut like `buffer`.
pub(crate) fn add_scratch(buffers: &mut Vec<Buffer>, buffer: BufferId) -> Result<BufferId> {
    if buffers.len() >= MAX_BUFFERS {
        return Err(ScheduleError::TooLarge(MAX_BUFFERS as u64));
    }
    let scratch = buffers[buffer.0 as usize].scratch(buffers);
    buffers.push(scratch);
    Ok(BufferId((buffers.len() - 1) as u8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(mul: u32, div: u32, blocks: u32, slices: u32) -> Buffer {
        let name = "output".to_string();
        Buffer {
            name,
            owner: Owner::Ranks,
            mul,
            div,
            blocks,
            slices,
            parts: None,
        }
    }

    #[test]
    fn first_chunks_get_one_more() {
        // 10 elements in 4 blocks: 3 3 2 2
        let buffer = cut(1, 1, 4, 1);
        let starts: Vec<u64> = (0..=4).map(|c| buffer.offset(10, c)).collect();
        assert_eq!(starts, [0, 3, 6, 8, 10]);
    }

    #[test]
    fn slices_nest_in_blocks() {
        // blocks of 4, 3, 3 elements, each in two slices: 2 2 | 2 1 | 2 1
        let buffer = cut(1, 1, 3, 2);
        let starts: Vec<u64> = (0..=6).map(|c| buffer.offset(10, c)).collect();
        assert_eq!(starts, [0, 2, 4, 6, 7, 9, 10]);
    }

    #[test]
    fn empty_chunks_are_allowed() {
        let buffer = cut(1, 1, 4, 1);
        assert_eq!(buffer.span(2, 2..4), 2..2);
        assert_eq!(buffer.span(0, 0..4), 0..0);
    }
}
