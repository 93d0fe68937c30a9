//! What the ranks of an uneven exchange have for one another, in blocks that travel alike.
//!
//! What one rank has for the same ranks is a *class*: it travels alike, so that it is one block. How tokens fall into
//! classes depends on which copies an algorithm sends:
//!
//! ```text
//!   a token of rank 0 for experts on ranks 1, 1, 4 and 5; nodes of 4
//!   once per expert (low latency)    1 twice, 4, 5
//!   once per rank                    1, 4, 5
//!   once per node (two stages)       {1} and {4, 5}
//! ```
//!
//! Every copy has its own place in the sender's `input`. A dispatch brings each class to all ranks that it names; a
//! combine sums what these ranks have of the class where the tokens came from. Copies of a token to several nodes stay
//! several classes, whose partial sums the source adds up itself, which is not part of the exchange.
//!
//! Bounds: at most [`MAX_ROUTES`] routes are drawn.

use crate::builder::Shape;
use crate::error::{Result, ScheduleError};
use crate::exchange::{Draw, Routing, UnevenExchange};
use crate::ir::{Buffer, Owner, Parts, MAX_CHUNKS};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// Most pairs of a token and one of its experts that are drawn.
pub const MAX_ROUTES: u64 = 1 << 27;

/// Most elements of all ranks together.
const MAX_UNITS: u64 = 1 << 44;

/// Ranks of the largest node whose copies are told apart.
pub const MAX_NODE: u32 = 128;

/// Which copies of a token an algorithm sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// One to every expert.
    Expert,
    /// One to every rank with an expert of it.
    Rank,
    /// One to every node of so many ranks.
    Node(u32),
}

/// What one rank has for the same ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Who has it.
    pub source: u32,
    /// Who needs it, ascending; with [`Copies::Node`] all of one node.
    pub targets: Vec<u32>,
    /// How much.
    pub units: u64,
}

/// The classes of an exchange, by source and targets, and what a unit is.
pub struct Classes {
    /// All that are not empty.
    pub all: Vec<Class>,
    /// Units of a vector.
    pub of: u64,
    /// Elements of a vector, a multiple of its units.
    pub elements: u64,
    ranks: u32,
}

fn wrong<T>(text: String) -> Result<T> {
    Err(ScheduleError::Shape(text))
}

impl Classes {
    /// Those of `shape`; without an exchange, every rank has as much for every rank.
    pub fn of(shape: &Shape, copies: Copies) -> Result<Self> {
        shape.check()?;
        let even;
        let exchange = match &shape.exchange {
            Some(exchange) => &**exchange,
            None => {
                let pairs = u64::from(shape.ranks).pow(2);
                if pairs > u64::from(MAX_CHUNKS) {
                    return Err(ScheduleError::TooLarge(MAX_CHUNKS.into()));
                }
                even = UnevenExchange::Counts(vec![1; pairs as usize]);
                &even
            }
        };
        match exchange {
            UnevenExchange::Counts(counts) => of_counts(shape, counts),
            UnevenExchange::Routed(routing) => of_routes(shape, routing, copies),
        }
    }

    /// The same in pieces of at most `most` units, each a class of its own.
    pub fn cut(self, most: u64) -> Self {
        let pieces = |class: Class| {
            let count = class.units.div_ceil(most.max(1));
            (0..count).map(move |piece| Class {
                units: class.units * (piece + 1) / count - class.units * piece / count,
                ..class.clone()
            })
        };
        let all = self.all.into_iter().flat_map(pieces).collect();
        Classes { all, ..self }
    }

    /// Elements that each rank sends each rank straight, row by row; `back`: to where they came from.
    pub fn matrix(&self, back: bool) -> Vec<u64> {
        let p = self.ranks as usize;
        let mut found = vec![0; p * p];
        for class in &self.all {
            for &target in &class.targets {
                let (from, to) = match back {
                    true => (target, class.source),
                    false => (class.source, target),
                };
                found[from as usize * p + to as usize] += class.units * (self.elements / self.of);
            }
        }
        found
    }

    /// The shape whose vector has whole units.
    pub fn shape(&self, shape: &Shape) -> Shape {
        Shape {
            elements: self.elements,
            ..shape.clone()
        }
    }

    /// Each class at its source: block c is class c.
    pub fn at_sources(&self) -> Places {
        let all = (0u32..).zip(&self.all);
        Places::of(self, all.map(|(c, class)| (class.source, c)).collect())
    }

    /// Each class at every rank that it is for.
    pub fn at_targets(&self) -> Places {
        self.at(|class| class.targets.clone())
    }

    /// Each class at the ranks that `of` names.
    pub fn at(&self, of: impl Fn(&Class) -> Vec<u32>) -> Places {
        let all = (0u32..).zip(&self.all);
        let held = all.flat_map(|(c, class)| of(class).into_iter().map(move |rank| (rank, c)));
        Places::of(self, held.collect())
    }
}

/// Where the blocks of a buffer are: (rank, class), sorted.
pub struct Places {
    held: Vec<(u32, u32)>,
    parts: Arc<Parts>,
}

impl Places {
    fn of(classes: &Classes, mut held: Vec<(u32, u32)>) -> Self {
        held.sort_unstable();
        let mut starts = Vec::with_capacity(held.len() + 1);
        let mut units = 0;
        for &(_, class) in &held {
            starts.push(units);
            units += classes.all[class as usize].units;
        }
        starts.push(units);
        let first = |rank: u32| held.partition_point(|one| one.0 < rank) as u32;
        let parts = Parts {
            starts,
            firsts: (0..=classes.ranks).map(first).collect(),
            classes: held.iter().map(|one| one.1).collect(),
            of: classes.of,
        };
        Places {
            held,
            parts: Arc::new(parts),
        }
    }

    /// Whether there is no block.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The buffer.
    pub fn buffer(&self, name: &str) -> Result<Buffer> {
        let blocks = self.held.len();
        if blocks > MAX_CHUNKS as usize {
            return Err(ScheduleError::TooLarge(MAX_CHUNKS.into()));
        }
        Ok(Buffer {
            name: name.into(),
            owner: Owner::Ranks,
            mul: 1,
            div: 1,
            blocks: blocks as u32,
            slices: 1,
            parts: Some(self.parts.clone()),
        })
    }

    /// Of each of `classes` classes, the last block.
    pub fn blocks(&self, classes: usize) -> Vec<u32> {
        let mut blocks = vec![0; classes];
        for (block, &(_, class)) in (0u32..).zip(&self.held) {
            blocks[class as usize] = block;
        }
        blocks
    }

    /// The block of `class` at `rank`, which has it.
    pub fn block(&self, rank: u32, class: u32) -> u32 {
        let found = self.held.binary_search(&(rank, class));
        found.expect("the rank has a block of the class") as u32
    }
}

fn of_counts(shape: &Shape, counts: &[u64]) -> Result<Classes> {
    let ranks = shape.ranks as usize;
    if counts.len() != ranks * ranks {
        return wrong(format!(
            "{} counts for {ranks} ranks; give one for each pair, {} in all",
            counts.len(),
            ranks * ranks
        ));
    }
    let sum = |row: &[u64]| row.iter().try_fold(0u64, |sum, &one| sum.checked_add(one));
    let fullest = counts
        .chunks(ranks)
        .map(sum)
        .try_fold(0, |most, row| Some(row?.max(most)));
    let of = match fullest {
        Some(0) => return wrong("all counts are 0; state what at least one rank sends".into()),
        Some(most) if most <= MAX_UNITS / ranks as u64 => most,
        _ => {
            return wrong(format!(
                "a rank has more than {} elements; ask for fewer",
                MAX_UNITS / ranks as u64
            ))
        }
    };
    let pairs = counts.iter().enumerate().filter(|(_, &units)| units > 0);
    let all = pairs.map(|(pair, &units)| Class {
        source: (pair / ranks) as u32,
        targets: vec![(pair % ranks) as u32],
        units,
    });
    Ok(Classes {
        all: all.collect(),
        of,
        elements: shape.elements / of * of,
        ranks: shape.ranks,
    })
}

/// The tokens of each rank, whose number is limited.
fn check(shape: &Shape, routing: &Routing) -> Result<u64> {
    routing.check(shape.ranks)?;
    let (topk, token_elements) = (routing.topk, routing.token_elements);
    let tokens = shape.elements.checked_div(token_elements).unwrap_or(0);
    if tokens == 0 || shape.elements % token_elements != 0 {
        return wrong(format!(
            "{} elements are not whole tokens of {token_elements}; use a multiple, at least one",
            shape.elements
        ));
    }
    let routes = u128::from(tokens) * u128::from(topk) * u128::from(shape.ranks);
    match routes > u128::from(MAX_ROUTES) {
        true => wrong(format!(
            "{tokens} tokens of {} ranks for {topk} experts each are {routes} routes; at most {MAX_ROUTES} are drawn, \
             use fewer tokens",
            shape.ranks
        )),
        false => Ok(tokens),
    }
}

/// Tokens of each rank (rows) that want each expert.
pub fn expert_loads(shape: &Shape, routing: &Routing) -> Result<Vec<u64>> {
    shape.check()?;
    let tokens = check(shape, routing)?;
    let experts = routing.experts as usize;
    let mut found = vec![0; shape.ranks as usize * experts];
    let mut draw = Draw::new(routing);
    for (source, row) in (0..shape.ranks).zip(found.chunks_mut(experts)) {
        draw.begin(source);
        for _ in 0..tokens {
            draw.token().iter().for_each(|&one| row[one as usize] += 1);
        }
    }
    Ok(found)
}

fn of_routes(shape: &Shape, routing: &Routing, copies: Copies) -> Result<Classes> {
    let tokens = check(shape, routing)?;
    if let Copies::Node(node) = copies {
        if node > MAX_NODE {
            return wrong(format!(
                "nodes of {node} ranks; at most {MAX_NODE} are told apart, use another grid"
            ));
        }
    }
    let mut all = Vec::new();
    let mut draw = Draw::new(routing);
    for source in 0..shape.ranks {
        let mut counts: HashMap<(u32, u128), u64> = HashMap::new();
        let mut ranks = Vec::new();
        let mut even = vec![0u64; shape.ranks as usize];
        draw.begin(source);
        for _ in 0..tokens {
            ranks.clear();
            let owner = |&expert: &u32| routing.owner(shape.ranks, source, expert);
            ranks.extend(draw.token().iter().map(owner));
            if copies != Copies::Expert {
                ranks.sort_unstable();
                ranks.dedup();
            }
            match copies {
                Copies::Node(node) => {
                    for one in ranks.chunk_by(|a, b| a / node == b / node) {
                        let mask = one
                            .iter()
                            .fold(0u128, |mask, rank| mask | 1 << (rank % node));
                        *counts.entry((one[0] / node, mask)).or_default() += 1;
                    }
                }
                _ => ranks.iter().for_each(|&rank| even[rank as usize] += 1),
            }
        }
        let single = (0u32..).zip(even).filter(|one| one.1 > 0);
        let mut found: Vec<(Vec<u32>, u64)> = single.map(|(rank, n)| (vec![rank], n)).collect();
        if let Copies::Node(node) = copies {
            found.extend(counts.into_iter().map(|((at, mask), units)| {
                let members = (0..node).filter(|member| mask >> member & 1 == 1);
                (members.map(|member| at * node + member).collect(), units)
            }));
            // What goes to one node is contiguous, the fullest classes first: in parts, the last ones are small then.
            let key = |one: &(Vec<u32>, u64)| (one.0[0] / node, Reverse(one.1), one.0.clone());
            found.sort_by_cached_key(key);
        }
        all.extend(found.into_iter().map(|(targets, units)| Class {
            source,
            targets,
            units,
        }));
    }
    Ok(Classes {
        all,
        of: tokens,
        elements: shape.elements,
        ranks: shape.ranks,
    })
}
