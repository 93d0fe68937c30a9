//! The algorithms: one file each, one line in [`REGISTRY`].
//!
//! A new algorithm is a file in the folder of its collective with a constant of type
//! [`Algorithm`], and one line below. Lists, help, documentation and the tests that sweep all
//! algorithms come from the registry.

mod allgather;
mod allreduce;
mod alltoall;
mod barrier;
mod broadcast;
mod common;
#[cfg(test)]
mod counts;
mod gather;
mod reduce;
mod reduce_scatter;
mod scatter;

use crate::builder::Shape;
use crate::error::{Result, ScheduleError};
use crate::ir::Schedule;
use crate::spec::Collective;
use crate::symmetric::Program;

/// One algorithm; describes itself.
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
    /// Where it was published.
    pub source: &'static str,
    /// Whether the structure depends on the number of bytes.
    pub reads_bytes: bool,
    /// What every rank does, where all do the same: the schedule can then be folded. Waived, too, where
    /// the shape tells ranks apart.
    pub program: Option<fn(&Shape) -> Result<Program>>,
    /// Make the schedule; [`ScheduleError::Waived`] where the shape does not suit.
    pub build: fn(&Shape) -> Result<Schedule>,
}

impl Algorithm {
    /// `collective/name`.
    pub fn key(&self) -> String {
        format!("{}/{}", self.collective.name(), self.name)
    }

    /// The error of an algorithm that cannot serve a shape.
    pub fn waive(&self, reason: impl Into<String>) -> ScheduleError {
        ScheduleError::Waived {
            algorithm: self.key(),
            reason: reason.into(),
        }
    }
}

/// All algorithms, by collective.
pub static REGISTRY: &[&Algorithm] = &[
    &allreduce::ring::ALGORITHM,
    &allreduce::hamiltonian_ring::ALGORITHM,
    &allreduce::hamiltonian_rings::ALGORITHM,
    &allreduce::hamiltonian_rings_bidirectional::ALGORITHM,
    &allreduce::recursive_doubling_latency::ALGORITHM,
    &allreduce::recursive_doubling_bandwidth::ALGORITHM,
    &allreduce::swing_latency::ALGORITHM,
    &allreduce::swing_bandwidth::ALGORITHM,
    &allreduce::shared_memory::ALGORITHM,
    &allreduce::all_pairs::ALGORITHM,
    &allreduce::reduce_broadcast::ALGORITHM,
    &allreduce::hierarchical::ALGORITHM,
    &reduce_scatter::ring::ALGORITHM,
    &reduce_scatter::recursive_halving::ALGORITHM,
    &reduce_scatter::swing::ALGORITHM,
    &reduce_scatter::pairwise::ALGORITHM,
    &allgather::ring::ALGORITHM,
    &allgather::recursive_doubling::ALGORITHM,
    &allgather::swing::ALGORITHM,
    &allgather::bruck::ALGORITHM,
    &allgather::linear::ALGORITHM,
    &broadcast::linear::ALGORITHM,
    &broadcast::binomial::ALGORITHM,
    &broadcast::scatter_allgather::ALGORITHM,
    &broadcast::multicast::ALGORITHM,
    &broadcast::ring::ALGORITHM,
    &reduce::linear::ALGORITHM,
    &reduce::binomial::ALGORITHM,
    &reduce::reduce_scatter_gather::ALGORITHM,
    &reduce::by_rows::ALGORITHM,
    &reduce::ring::ALGORITHM,
    &gather::linear::ALGORITHM,
    &gather::binomial::ALGORITHM,
    &scatter::linear::ALGORITHM,
    &scatter::binomial::ALGORITHM,
    &alltoall::linear::ALGORITHM,
    &alltoall::pairwise::ALGORITHM,
    &alltoall::bruck::ALGORITHM,
    &barrier::dissemination::ALGORITHM,
    &barrier::linear::ALGORITHM,
];

/// The algorithm with this key (`collective/name`).
pub fn find(key: &str) -> Result<&'static Algorithm> {
    REGISTRY
        .iter()
        .copied()
        .find(|a| a.key() == key)
        .ok_or_else(|| ScheduleError::UnknownAlgorithm {
            name: key.to_string(),
            nearest: nearest(key),
        })
}

/// The schedule of algorithm `key` for `shape`; only ring algorithms take rings.
pub fn build(key: &str, shape: &Shape) -> Result<Schedule> {
    shape.check()?;
    let algorithm = find(key)?;
    if !shape.rings.is_empty() && algorithm.name != "ring" {
        return Err(ScheduleError::Shape(format!(
            "{key} does not go round rings; leave them out, or use {}/ring",
            algorithm.collective.name()
        )));
    }
    (algorithm.build)(shape)
}

/// What every rank does in algorithm `key`; waived where ranks differ.
pub fn program(key: &str, shape: &Shape) -> Result<Program> {
    shape.check()?;
    let algorithm = find(key)?;
    match algorithm.program {
        Some(program) => program(shape),
        None => Err(algorithm.waive(
            "its ranks do different things, so that none can stand for all; use an algorithm that \
             folds, or simulate every rank",
        )),
    }
}

/// All algorithms of one collective.
pub fn of(collective: Collective) -> impl Iterator<Item = &'static Algorithm> {
    REGISTRY
        .iter()
        .copied()
        .filter(move |a| a.collective == collective)
}

fn nearest(key: &str) -> Option<String> {
    let scored = REGISTRY
        .iter()
        .map(|a| (strsim::jaro_winkler(key, &a.key()), a.key()));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > 0.8).then_some(best.1)
}
