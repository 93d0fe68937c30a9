//! What an algorithm is asked for, and the buffers that most of them declare.

use crate::error::{Result, ScheduleError};
use crate::exchange::UnevenExchange;
use crate::ir::{Buffer, Owner, MAX_RANKS};
use linkwright_core::Participant;
use std::sync::Arc;

/// Most rings at once: each has a lane, besides the compute lane.
const MAX_RINGS: usize = 255;

/// What an algorithm is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of ranks, at least 1.
    pub ranks: u32,
    /// Root of rooted collectives.
    pub root: u32,
    /// Sides of an arrangement in a grid, the first of neighbouring ranks: columns, rows, ...; empty: ranks in
    /// a line. Rank = x + columns * (y + rows * (z + ...)).
    pub grid: Vec<u32>,
    /// Elements of one vector (S / element size).
    pub elements: u64,
    /// Bytes of one element.
    pub element_bytes: u32,
    /// Orders in which ring algorithms go round the ranks, each with its part of the vector; empty:
    /// rank order.
    pub rings: Vec<Vec<u32>>,
    /// How much every rank has for whom in an uneven exchange; `None`: as much for all.
    pub exchange: Option<Arc<UnevenExchange>>,
}

/// Most bytes of a vector, more than any machine holds; sums over ranks and chunks of it fit into 64 bits.
const MAX_BYTES: u64 = 1 << 50;

impl Shape {
    /// `ranks` ranks in a line, root 0, vectors of `elements` elements of 4 bytes.
    pub fn new(ranks: u32, elements: u64) -> Self {
        Shape {
            ranks,
            root: 0,
            grid: Vec::new(),
            elements,
            element_bytes: 4,
            rings: Vec::new(),
            exchange: None,
        }
    }

    /// The same for ring algorithms that go round `rings`.
    pub fn with_rings(mut self, rings: Vec<Vec<u32>>) -> Self {
        self.rings = rings;
        self
    }

    /// The same for an uneven exchange.
    pub fn with_exchange(mut self, exchange: UnevenExchange) -> Self {
        self.exchange = Some(Arc::new(exchange));
        self
    }

    /// The same with another root.
    pub fn with_root(mut self, root: u32) -> Self {
        self.root = root;
        self
    }

    /// The same on a grid of `columns` x `rows`.
    pub fn with_grid(self, columns: u32, rows: u32) -> Self {
        self.with_sides(&[columns, rows])
    }

    /// The same on a grid of any number of dimensions.
    pub fn with_sides(mut self, sides: &[u32]) -> Self {
        self.grid = sides.to_vec();
        self
    }

    /// The grid as columns and rows, where there is one: what two-dimensional algorithms see. Of more
    /// dimensions, all but the first count as rows.
    pub fn plane(&self) -> Option<(u32, u32)> {
        let (&columns, others) = self.grid.split_first()?;
        Some((columns, others.iter().product()))
    }

    /// Check what no algorithm can serve: no ranks, a root outside, a grid of another size.
    pub fn check(&self) -> Result<()> {
        let error = |text: String| Err(ScheduleError::Shape(text));
        if self.ranks == 0 {
            return error("0 ranks; at least 1 is needed".into());
        }
        if self.ranks > MAX_RANKS {
            return error(format!(
                "{} ranks; at most {MAX_RANKS} are possible, use fewer",
                self.ranks
            ));
        }
        if self.root >= self.ranks {
            return error(format!(
                "root {} does not exist; ranks are 0..{}",
                self.root,
                self.ranks - 1
            ));
        }
        if self.element_bytes == 0 {
            return error("elements of 0 bytes; at least 1 is needed".into());
        }
        let bytes = u128::from(self.elements) * u128::from(self.element_bytes);
        if bytes > u128::from(MAX_BYTES) {
            return error(format!(
                "{} elements of {} bytes; a vector has at most {MAX_BYTES} bytes, ask for fewer",
                self.elements, self.element_bytes
            ));
        }
        self.check_rings()?;
        let places = |sides: &[u32]| {
            let all = sides.iter().map(|&side| u128::from(side));
            all.fold(1, u128::saturating_mul)
        };
        if !self.grid.is_empty() && places(&self.grid) != u128::from(self.ranks) {
            return error(format!(
                "grid {} has {} places for {} ranks; make them equal",
                by(&self.grid),
                places(&self.grid),
                self.ranks
            ));
        }
        Ok(())
    }
}

impl Shape {
    /// Each ring visits each rank once.
    fn check_rings(&self) -> Result<()> {
        let error = |text: String| Err(ScheduleError::Shape(text));
        if self.rings.len() > MAX_RINGS {
            let rings = self.rings.len();
            return error(format!(
                "{rings} rings; at most {MAX_RINGS} are possible, use fewer"
            ));
        }
        let last = self.ranks - 1;
        for (index, ring) in self.rings.iter().enumerate() {
            let mut seen = vec![false; self.ranks as usize];
            for &rank in ring {
                let problem = match seen.get_mut(rank as usize) {
                    None => format!("rank {rank} does not exist"),
                    Some(true) => format!("rank {rank} stands there twice"),
                    Some(seen) => {
                        *seen = true;
                        continue;
                    }
                };
                return error(format!(
                    "ring {index}: {problem}; name each of 0..{last} once"
                ));
            }
            if let Some(rank) = seen.iter().position(|&seen| !seen) {
                return error(format!(
                    "ring {index} does not visit rank {rank}; name each of 0..{last} once"
                ));
            }
        }
        Ok(())
    }
}

/// Sides as people write them: `8x8`.
pub(crate) fn by(sides: &[u32]) -> String {
    let words: Vec<String> = sides.iter().map(u32::to_string).collect();
    words.join("x")
}

impl Buffer {
    /// A buffer of the whole vector in `blocks` blocks, one per rank.
    pub fn vector(name: &str, blocks: u32) -> Self {
        Buffer {
            name: name.into(),
            owner: Owner::Ranks,
            mul: 1,
            div: 1,
            blocks,
            slices: 1,
            parts: None,
        }
    }

    /// A buffer of one block, the vector's `ranks`-th part.
    pub fn block(name: &str, ranks: u32) -> Self {
        Buffer {
            name: name.into(),
            owner: Owner::Ranks,
            mul: 1,
            div: ranks,
            blocks: 1,
            slices: 1,
            parts: None,
        }
    }

    /// The same buffer, at one participant only.
    pub fn only_at(mut self, participant: u32) -> Self {
        self.owner = Owner::One(Participant(participant));
        self
    }

    /// The same buffer without bytes: its chunks are tokens.
    pub fn empty(mut self) -> Self {
        self.mul = 0;
        self
    }
}
