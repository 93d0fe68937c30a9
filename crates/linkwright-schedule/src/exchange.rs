//! Uneven exchanges: how much every rank has for whom.
//!
//! ```text
//!   counts   elements that rank r has for rank q, a row for each r
//!   routed   every rank has as many tokens, each for `topk` of `experts`; rank r owns the experts r e/p .. (r+1) e/p,
//!            unless `owners` places them
//! ```
//!
//! Experts are drawn without replacement, with probability proportional to 1 / k^s for the k-th most wanted (s = 0: all
//! alike); which experts are wanted follows from the seed, as all draws do.

use crate::error::{Result, ScheduleError};
use linkwright_core::random::Random;
use std::cmp::Ordering;

/// How much every rank has for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnevenExchange {
    /// Elements that each rank has for each rank, row by row.
    Counts(Vec<u64>),
    /// Tokens for experts.
    Routed(Routing),
}

/// How tokens choose their experts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routing {
    /// Experts of all ranks together.
    pub experts: u32,
    /// Experts of one token.
    pub topk: u32,
    /// Elements of one token; a vector is the tokens of one rank.
    pub token_elements: u64,
    /// Exponent of the Zipf distribution in thousandths, 0 for uniform.
    pub skew_permille: u32,
    /// Other seeds give other draws.
    pub seed: u64,
    /// Which rank serves each expert, for each rank that has tokens: row by row. Empty: blocks of experts in order.
    pub owners: Vec<u32>,
}

impl Routing {
    /// Refuse experts that `ranks` ranks do not own alike, and tokens that cannot choose among them.
    pub fn check(&self, ranks: u32) -> Result<()> {
        let (experts, topk, given) = (self.experts, self.topk, self.owners.len());
        let pairs = u64::from(ranks) * u64::from(experts);
        let alien = self.owners.iter().find(|&&owner| owner >= ranks);
        Err(ScheduleError::Shape(
            if given > 0 && given as u64 != pairs {
                format!(
                    "{given} owners of experts; give one for each rank and expert, {pairs} in all"
                )
            } else if let Some(owner) = alien {
                let last = ranks - 1;
                format!("rank {owner} owns an expert; there are ranks 0 to {last}")
            } else if experts == 0 || given == 0 && experts % ranks != 0 {
                let nearest = nearest_multiples(experts, ranks);
                format!("{experts} experts are not divisible by {ranks} ranks; each rank owns as many, use {nearest}")
            } else if topk == 0 || topk > experts {
                format!("top-k {topk} of {experts} experts; use 1 to {experts}")
            } else if self.skew_permille > 2000 {
                "a skew above 2; use 0 (uniform) to 2".into()
            } else {
                return Ok(());
            },
        ))
    }

    /// The rank that serves `expert` to the tokens of `source`, one of `ranks`.
    pub fn owner(&self, ranks: u32, source: u32, expert: u32) -> u32 {
        match self.owners.is_empty() {
            true => expert / (self.experts / ranks),
            false => self.owners[source as usize * self.experts as usize + expert as usize],
        }
    }
}

/// The multiple of `ranks` nearest to `experts`, or both that are equally near.
fn nearest_multiples(experts: u32, ranks: u32) -> String {
    let (below, beyond) = (experts - experts % ranks, experts % ranks);
    let above = u64::from(below) + u64::from(ranks);
    match beyond.cmp(&(ranks - beyond)) {
        Ordering::Less if below > 0 => below.to_string(),
        Ordering::Equal if below > 0 => format!("{below} or {above}"),
        _ => above.to_string(),
    }
}

/// Draws the experts of one token after the other.
pub struct Draw<'a> {
    routing: &'a Routing,
    random: Random,
    /// The experts, the most wanted first.
    order: Vec<u32>,
    /// Of the weights of the experts, the sums up to each; empty where all are alike.
    sums: Vec<u64>,
    /// The last token that chose each expert.
    chosen: Vec<u64>,
    token: u64,
    found: Vec<u32>,
}

impl<'a> Draw<'a> {
    /// None drawn yet.
    pub fn new(routing: &'a Routing) -> Self {
        let mut random = Random::new(routing.seed);
        let mut order: Vec<u32> = (0..routing.experts).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last as u64 + 1) as usize);
        }
        let skew = f64::from(routing.skew_permille) / 1000.0;
        let mut sum = 0;
        let weights = (0..routing.experts).map(|k| {
            // Whole numbers, so that sums do not depend on their order.
            sum += ((1u64 << 32) as f64 / f64::from(k + 1).powf(skew)).ceil() as u64;
            sum
        });
        Draw {
            routing,
            random,
            order,
            sums: if skew > 0.0 {
                weights.collect()
            } else {
                Vec::new()
            },
            chosen: vec![0; routing.experts as usize],
            token: 0,
            found: Vec::new(),
        }
    }

    /// Go on with the tokens of `source`.
    pub fn begin(&mut self, source: u32) {
        let mixed = Random::new(u64::from(source) + 1).bits();
        self.random = Random::new(self.routing.seed ^ mixed);
    }

    /// The experts of the next token, as they are drawn.
    pub fn token(&mut self) -> &[u32] {
        self.token += 1;
        self.found.clear();
        while self.found.len() < self.routing.topk as usize {
            let place = match self.sums.last() {
                None => self.random.below(self.routing.experts.into()) as usize,
                Some(&sum) => {
                    let drawn = self.random.below(sum);
                    self.sums.partition_point(|&up_to| up_to <= drawn)
                }
            };
            if self.chosen[place] != self.token {
                self.chosen[place] = self.token;
                self.found.push(self.order[place]);
            }
        }
        &self.found
    }
}
