//! How an algorithm describes itself.

use crate::builder::Shape;
use crate::error::{Result, ScheduleError};
use crate::ir::Schedule;
use crate::spec::Collective;
use crate::symmetric::Program;

/// Makes the program of every rank.
pub type OfRank = fn(&Shape) -> Result<Program>;

/// One algorithm, declared by `algorithm!`.
pub struct Algorithm {
    /// What it achieves.
    pub collective: Collective,
    /// Name within the collective, in snake case.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What it does and when it is good, in a few sentences.
    pub description: &'static str,
    /// Rounds and bytes per rank, as a formula in p and S.
    pub cost: &'static str,
    /// What it demands of a shape, in words; empty when nothing.
    pub needs: &'static str,
    /// Whether it uses the nodes of a machine.
    pub nodes: NodeUse,
    /// Where it was published.
    pub source: &'static str,
    /// What every rank does, where all do the same: the schedule can then be folded. Waived, too, where
    /// the shape tells ranks apart.
    pub program: Option<OfRank>,
    /// Make the schedule; [`ScheduleError::Waived`] where the shape does not suit.
    pub build: fn(&Shape) -> Result<Schedule>,
}

impl Algorithm {
    /// `collective/name`.
    pub fn key(&self) -> String {
        format!("{}/{}", self.collective.name(), self.name)
    }

    /// GPUs of a node and nodes, of an algorithm that needs a grid of them.
    pub fn nodes_of(&self, shape: &Shape) -> Result<(u32, u32)> {
        shape.check()?;
        let line = "ranks in a line have no nodes; use a grid, such as 8x4 for four nodes of eight";
        shape.plane().ok_or_else(|| self.waive(line))
    }

    /// The error of an algorithm that cannot serve a shape.
    pub fn waive(&self, reason: impl Into<String>) -> ScheduleError {
        ScheduleError::Waived {
            algorithm: self.key(),
            reason: reason.into(),
        }
    }
}

/// How an algorithm uses the nodes of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeUse {
    /// It does not distinguish them.
    Unused,
    /// They can be the rows of its grid.
    Rows,
    /// They have to be the rows of its grid.
    Needed,
}

impl NodeUse {
    pub(crate) const fn needs(self) -> &'static str {
        match self {
            NodeUse::Needed => "a grid: devices of a node x nodes",
            NodeUse::Unused | NodeUse::Rows => "",
        }
    }
}

/// Declares algorithms. The doc comment of each is its text: the first paragraph, one line, is the summary, and the rest
/// is the description.
macro_rules! algorithm {
    ($(
        #[doc = $summary:literal]
        $(#[doc = $description:literal])+
        pub $static:ident = $collective:ident $name:literal {
            cost: $cost:expr,
            $(needs: $needs:expr,)?
            $(nodes: $nodes:ident,)?
            source: $source:expr,
            $(program: $program:expr,)?
            build: $build:expr $(,)?
        }
    )+) => {$(
        #[doc = concat!(stringify!($collective), " `", $name, "`:", $summary, ".")]
        $(#[doc = $description])+
        pub static $static: $crate::collectives::Algorithm = $crate::collectives::Algorithm {
            collective: $crate::spec::Collective::$collective,
            name: $name,
            summary: $summary.trim_ascii(),
            description: concat!($($description),+).trim_ascii(),
            cost: $cost,
            needs: [$($needs,)? $($crate::collectives::NodeUse::$nodes.needs(),)? ""][0],
            nodes: [$($crate::collectives::NodeUse::$nodes,)? $crate::collectives::NodeUse::Unused][0],
            source: $source,
            program: {
                let given: &[Option<$crate::collectives::algorithm::OfRank>] = &[$(Some($program),)? None];
                given[0]
            },
            build: $build,
        };
    )+};
}
pub(crate) use algorithm;
