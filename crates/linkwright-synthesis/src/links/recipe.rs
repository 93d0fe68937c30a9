//! How one schedule was found, in a form that finds it again.

use super::matching;
use super::nets::Net;
use super::order::{arrange, Style, Timed, Urgency};
use super::packing::{self, Growth, Tree};
use super::plan::{down, Plan, Way};
use super::wires::Wires;
use crate::reads::Reads;
use linkwright_schedule::{Collective, Shape};
use std::fmt;

/// Where the plan comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    /// Greedy matching; see [`matching::Wish`].
    Matching {
        /// Slices of each block.
        slices: u32,
        /// Times that a transfer may take of what the fastest pair into its target takes.
        patience: f64,
        /// Transfers of a pair that may be on their way at once.
        window: u32,
        /// Breaks ties.
        seed: u64,
    },
    /// Packed trees; see [`Growth`].
    Packing {
        /// Trees of each root.
        trees: u32,
        /// What depth costs.
        depth: f64,
        /// Pieces that follow each other down each tree.
        pieces: u32,
    },
    /// Paths; see [`super::flows::Wish`].
    Flows {
        /// Slices of what a pair exchanges.
        slices: u32,
        /// What a detour costs.
        detour: f64,
    },
}

/// How one schedule was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recipe {
    /// Endpoints at which data begin or end.
    pub roots: u32,
    /// Which pairs it uses.
    pub net: Net,
    /// Where the plan comes from.
    pub source: Source,
    /// How transfers are issued.
    pub style: Style,
    /// What is read instead of written.
    pub reads: Option<Reads>,
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            Source::Matching {
                slices,
                patience,
                window,
                seed,
            } => write!(
                f,
                "matching of {slices} slices, patience {patience}, window {window}, seed {seed}"
            )?,
            Source::Packing {
                trees,
                depth,
                pieces,
            } => write!(
                f,
                "{trees} trees a root, depth {depth}, {pieces} pieces down each"
            )?,
            Source::Flows { slices, detour } => {
                write!(f, "paths of {slices} slices, detour {detour}")?;
            }
        }
        let Style {
            urgency,
            lanes,
            window,
            ..
        } = self.style;
        let urgency = match urgency {
            Urgency::Tail => "longest chain first",
            Urgency::Age => "first in the plan first",
        };
        let Recipe { net, roots, .. } = self;
        let plural = if lanes == 1 { "" } else { "s" };
        write!(
            f,
            "; {roots} roots; over {net}; {urgency}, {window} at once in {lanes} lane{plural}"
        )?;
        self.reads.map_or(Ok(()), |reads| write!(f, "; {reads}"))
    }
}

/// Most slices of a block that a search tries.
const MOST_SLICES: u32 = 1024;

/// What a collective asks of the links.
#[derive(Clone, Debug)]
pub struct Demand {
    /// The collective.
    pub collective: Collective,
    /// Where blocks begin, or end.
    pub roots: Vec<u32>,
    /// Bytes of a block.
    pub bytes: u64,
    /// Bytes of an element.
    pub element_bytes: u64,
}

/// Roots of an allreduce over many ranks, which may be any.
const FEW_ROOTS: u32 = 8;
/// Bytes of a vector of which few roots are tried first.
const LARGE: u64 = 16 << 20;

impl Demand {
    /// Those of `collective` over `shape`; an allreduce is free to choose its roots.
    pub fn all(collective: Collective, shape: &Shape) -> Vec<Self> {
        let (ranks, element_bytes) = (shape.ranks, u64::from(shape.element_bytes));
        let every = |step: u32| (0..ranks).step_by(step as usize).collect::<Vec<u32>>();
        let roots = match collective {
            Collective::Broadcast | Collective::Reduce => vec![vec![shape.root]],
            Collective::Allreduce if ranks > 2 * FEW_ROOTS => {
                let few = every(ranks.div_ceil(FEW_ROOTS));
                let mut all = vec![every(1), (0..FEW_ROOTS).collect(), few];
                // Of a large vector, the pieces of many roots are more than a search can follow.
                all.rotate_left(usize::from(shape.elements * element_bytes >= LARGE));
                all
            }
            _ => vec![every(1)],
        };
        let demand = |roots: Vec<u32>| Demand {
            collective,
            bytes: shape.elements * element_bytes / roots.len() as u64,
            roots,
            element_bytes,
        };
        roots.into_iter().map(demand).collect()
    }

    /// Whether blocks of this demand can be cut into so many slices of at least an element.
    pub fn divides(&self, slices: u32) -> bool {
        slices == 1 || slices <= MOST_SLICES && u64::from(slices) * self.element_bytes <= self.bytes
    }

    /// Bytes of a slice, at least 1.
    pub fn slice_bytes(&self, slices: u32) -> u64 {
        (self.bytes / u64::from(slices)).max(1)
    }

    /// Who has data for whom, where data have one receiver each.
    pub fn messages(&self, ranks: u32, root: u32) -> Vec<(u32, u32)> {
        let all = (0..ranks).flat_map(|from| (0..ranks).map(move |to| (from, to)));
        let wanted = |&(from, to): &(u32, u32)| {
            from != to
                && match self.collective {
                    Collective::Gather => to == root,
                    Collective::Scatter => from == root,
                    _ => true,
                }
        };
        all.filter(wanted).collect()
    }

    /// Times of a plan for this demand.
    pub fn times(&self, wires: &Wires, plan: &Plan, style: Style) -> Timed {
        arrange(wires, plan, self.slice_bytes(plan.slices), style)
    }

    /// The plan of a matching.
    pub fn matched(&self, wires: &Wires, back: &Wires, wish: matching::Wish) -> Option<Plan> {
        let way = Way::of(self.collective)?;
        let spread = |wires: &Wires, needed: bool| match needed {
            true => matching::spread(wires, &self.roots, wish),
            false => Plan::default(),
        };
        let up = spread(back, way != Way::Spread);
        let down = spread(wires, way != Way::Collect);
        Some(way.plan(&up, &down))
    }

    /// Trees on both networks.
    pub fn packed(&self, wires: &Wires, back: &Wires, growth: Growth) -> Option<Forests> {
        let way = Way::of(self.collective)?;
        let pack = |wires: &Wires, needed: bool| match needed {
            true => packing::pack(wires, &self.roots, growth),
            false => (Vec::new(), 0.0),
        };
        let (up, busy_up) = pack(back, way != Way::Spread);
        let (down, busy_down) = pack(wires, way != Way::Collect);
        Some(Forests {
            way,
            up,
            down,
            busiest: busy_up.max(busy_down),
        })
    }
}

/// Trees on which data are collected and spread.
pub struct Forests {
    way: Way,
    up: Vec<Tree>,
    down: Vec<Tree>,
    /// Seconds for which 1 GB on every tree keeps the busiest link busy, up or down.
    pub busiest: f64,
}

impl Forests {
    /// The plan in which `pieces` pieces follow each other.
    pub fn plan(&self, blocks: u32, pieces: u32) -> Plan {
        let up = down(&self.up, blocks, (0..pieces).rev());
        let down = down(&self.down, blocks, 0..pieces);
        self.way.plan(&up, &down)
    }
}
