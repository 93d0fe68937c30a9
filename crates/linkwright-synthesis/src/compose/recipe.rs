//! Recipes: what is done along which digits of the ranks, in words of types.
//!
//! ```text
//!   8 x 8 torus, one part    [x ring both ways] [y direct]    allgather: first along x, then along y
//!   rank = x + 8 y           digits of stride 1 and 8
//! ```
//!
//! The *stages* of a part stand in the order of an allgather; a reduce-scatter takes them backwards.

use crate::reads::Reads;
use linkwright_schedule::Collective;
use std::fmt;

linkwright_core::words! {
    /// How the members of a line exchange.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Primitive {
        /// Everyone to everyone else at once.
        Direct = "direct",
        /// From neighbour to neighbour, once round.
        Ring = "ring",
        /// With partners at distances 1, 2, 4, ...: n a power of two.
        Doubling = "doubling",
        /// With partners at distances 1, 1, 3, 5, 11, ...: n even.
        Swing = "swing",
        /// Everyone to all others in one message that the network copies.
        Multicast = "multicast",
    }
}

linkwright_core::words! {
    /// Which way round a line messages go.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Way {
        /// Towards higher places.
        Ahead = "ahead",
        /// Towards lower places.
        Back = "back",
        /// Half of them each way.
        Both = "both ways",
    }
}

/// A digit of the ranks: `rank / stride % radix`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digit {
    /// Distance of ranks that differ by one.
    pub stride: u32,
    /// Number of values.
    pub radix: u32,
    /// Dimension of the grid that it belongs to.
    pub axis: u8,
}

/// What is done along one line of ranks: those that agree in all other digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stage {
    /// The digits in which the members differ.
    pub digits: Vec<Digit>,
    /// How blocks are added where a reduce-scatter runs, and scattered from a root.
    pub scatter: Primitive,
    /// How blocks are copied to all.
    pub gather: Primitive,
    /// The way round.
    pub way: Way,
}

/// One share of the vector and its stages.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Part {
    /// In the order of an allgather.
    pub stages: Vec<Stage>,
    /// So many of the first stages exchange whole vectors instead of blocks (allreduce and broadcast).
    pub whole: usize,
}

/// How a schedule is composed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Composition {
    /// What is achieved.
    pub collective: Collective,
    /// Equal shares of the vector, side by side.
    pub parts: Vec<Part>,
    /// Pieces in which every message goes, one behind another; 1: it goes whole.
    pub slices: u32,
    /// Slots of the size of a chunk, used in turn: through them go contributions, or what lies between the stages of an
    /// all-to-all. `None`: scratch of their own for all.
    pub slots: Option<u32>,
    /// What is read instead of written.
    pub reads: Option<Reads>,
}

impl Stage {
    /// Number of members of a line.
    pub fn members(&self) -> u32 {
        self.digits.iter().map(|digit| digit.radix).product()
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Digit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.radix, self.stride)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits: Vec<String> = self.digits.iter().map(Digit::to_string).collect();
        write!(f, "{} ", digits.join("x"))?;
        match self.scatter == self.gather {
            true => write!(f, "{}", self.gather.name())?,
            false => write!(f, "{}/{}", self.scatter.name(), self.gather.name())?,
        }
        write!(f, " {}", self.way)
    }
}

impl fmt::Display for Composition {
    /// `2 parts in 4 slices through 27 slots: [8@1 ring ahead, 8@8 direct back] ...`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        write!(f, "{} part{}", self.parts.len(), plural(self.parts.len()))?;
        if self.slices > 1 {
            write!(f, " in {} slices", self.slices)?;
        }
        if let Some(slots) = self.slots {
            write!(f, " through {slots} slot{}", plural(slots as usize))?;
        }
        if let Some(reads) = self.reads {
            write!(f, ", {reads}")?;
        }
        let mut before = ":";
        for part in &self.parts {
            let stages: Vec<String> = part.stages.iter().map(Stage::to_string).collect();
            write!(f, "{before} [{}", stages.join(", "))?;
            match part.whole {
                0 => f.write_str("]")?,
                n => write!(f, "; the first {n} whole]")?,
            }
            before = "";
        }
        Ok(())
    }
}

impl Composition {
    /// Whether some stage has this exchange.
    pub fn uses(&self, primitive: Primitive) -> bool {
        let mut stages = self.parts.iter().flat_map(|part| &part.stages);
        stages.any(|stage| stage.scatter == primitive || stage.gather == primitive)
    }

    /// The same on a grid of `sides` instead of `from`, each a multiple: the last digit of an axis grows.
    pub fn stretched(&self, from: &[u32], sides: &[u32]) -> Composition {
        let mut stretched = self.clone();
        let stages = stretched.parts.iter_mut().flat_map(|part| &mut part.stages);
        for digit in stages.flat_map(|stage| &mut stage.digits) {
            let axis = usize::from(digit.axis);
            let (before, after): (u32, u32) = (
                from[..axis].iter().product(),
                sides[..axis].iter().product(),
            );
            let last = digit.stride * digit.radix == before * from[axis];
            digit.stride = digit.stride / before * after;
            if last {
                digit.radix *= sides[axis] / from[axis];
            }
        }
        stretched
    }
}
