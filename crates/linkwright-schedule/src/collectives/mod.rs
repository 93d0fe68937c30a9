//! The algorithms: one file for each idea, one line for each algorithm in [`REGISTRY`].
//!
//! An idea often serves several collectives: a reduce-scatter is an allgather reversed, an
//! allreduce is both. A new algorithm is an entry of `algorithm!` in the file of its idea, one
//! line below and one row of counts in `tests.rs`. Lists, help, documentation and the tests
//! that sweep all algorithms come from the registry.

mod algorithm;
mod all_pairs;
mod alltoall_by_axis;
mod alltoall_by_rounds;
mod alltoall_by_shifts;
mod binary_tree;
mod bine;
mod bine_multiport;
mod binomial;
mod bucket;
mod bucket_multiport;
mod by_rows;
mod chain;
mod collnet;
mod common;
mod direct;
mod dissemination;
mod double_binary_tree;
mod hamiltonian;
mod hierarchical;
mod hierarchical_blocks;
mod hierarchical_rooted;
mod mirrored_doubling;
mod neighbor_exchange;
mod nvls;
mod nvls_tree;
mod pat;
mod prelude;
mod rails;
mod recursive_doubling;
mod ring;
#[cfg(test)]
mod samples;
mod shared_memory;
mod shots;
mod star;
mod swing;
mod swing_multiport;
#[cfg(test)]
mod tests;
mod two_tree;
mod uneven;

pub use algorithm::{Algorithm, NodeUse};
#[cfg(test)]
pub(crate) use samples::samples;

use crate::builder::Shape;
use crate::error::{nearest, Result, ScheduleError};
use crate::ir::Schedule;
use crate::spec::Collective;
use crate::symmetric::Program;

/// All algorithms, by collective.
pub static REGISTRY: &[&Algorithm] = &[
    &ring::ALLREDUCE,
    &hamiltonian::ONE_RING,
    &hamiltonian::TWO_RINGS,
    &hamiltonian::FOUR_RINGS,
    &recursive_doubling::ALLREDUCE_LATENCY,
    &recursive_doubling::ALLREDUCE_BANDWIDTH,
    &swing::ALLREDUCE_LATENCY,
    &swing::ALLREDUCE_BANDWIDTH,
    &bine::ALLREDUCE,
    &swing_multiport::LATENCY,
    &swing_multiport::BANDWIDTH,
    &mirrored_doubling::LATENCY,
    &mirrored_doubling::BANDWIDTH,
    &bucket_multiport::ALLREDUCE,
    &shared_memory::ALGORITHM,
    &all_pairs::ALGORITHM,
    &shots::ONE_SHOT,
    &shots::TWO_SHOT,
    &nvls::ONE_SHOT,
    &binomial::ALLREDUCE,
    &double_binary_tree::ALGORITHM,
    &nvls::ALLREDUCE,
    &nvls_tree::ALGORITHM,
    &collnet::DIRECT,
    &collnet::CHAIN,
    &hierarchical::ALGORITHM,
    &ring::REDUCE_SCATTER,
    &recursive_doubling::REDUCE_SCATTER,
    &swing::REDUCE_SCATTER,
    &bine::REDUCE_SCATTER,
    &bucket::REDUCE_SCATTER,
    &direct::REDUCE_SCATTER,
    &pat::REDUCE_SCATTER,
    &nvls::REDUCE_SCATTER,
    &hierarchical_blocks::REDUCE_SCATTER,
    &ring::ALLGATHER,
    &recursive_doubling::ALLGATHER,
    &swing::ALLGATHER,
    &bine::ALLGATHER,
    &bine::ALLGATHER_TWO_RUNS,
    &bucket::ALLGATHER,
    &dissemination::ALLGATHER,
    &neighbor_exchange::ALGORITHM,
    &direct::ALLGATHER,
    &pat::ALLGATHER,
    &nvls::ALLGATHER,
    &hierarchical_blocks::ALLGATHER,
    &star::BROADCAST,
    &binomial::BROADCAST,
    &binomial::BROADCAST_LARGE,
    &bine::BROADCAST,
    &bine::BROADCAST_LARGE,
    &bine_multiport::BROADCAST,
    &binary_tree::BROADCAST,
    &two_tree::BROADCAST,
    &star::MULTICAST,
    &chain::BROADCAST,
    &hierarchical_rooted::BROADCAST,
    &star::REDUCE,
    &binomial::REDUCE,
    &recursive_doubling::REDUCE,
    &bine::REDUCE,
    &bine::REDUCE_LARGE,
    &bine_multiport::REDUCE,
    &binary_tree::REDUCE,
    &two_tree::REDUCE,
    &by_rows::ALGORITHM,
    &chain::REDUCE,
    &hierarchical_rooted::REDUCE,
    &star::GATHER,
    &binomial::GATHER,
    &bine::GATHER,
    &star::SCATTER,
    &binomial::SCATTER,
    &bine::SCATTER,
    &direct::ALLTOALL,
    &direct::ALLTOALL_PAIRWISE,
    &dissemination::ALLTOALL,
    &rails::ALLTOALL,
    &alltoall_by_axis::ALGORITHM,
    &alltoall_by_shifts::ALGORITHM,
    &alltoall_by_rounds::ALGORITHM,
    &uneven::ALLTOALLV,
    &uneven::ALLTOALLV_PAIRWISE,
    &uneven::ALLTOALLV_RAILS,
    &uneven::ALLTOALLV_RAILS_CHUNKED,
    &uneven::DISPATCH,
    &uneven::DISPATCH_RAILS,
    &uneven::DISPATCH_RAILS_CHUNKED,
    &uneven::DISPATCH_LOW_LATENCY,
    &uneven::COMBINE,
    &uneven::COMBINE_RAILS,
    &uneven::COMBINE_RAILS_CHUNKED,
    &uneven::COMBINE_LOW_LATENCY,
    &dissemination::BARRIER,
    &star::BARRIER,
];

/// The algorithm with this key (`collective/name`).
pub fn find(key: &str) -> Result<&'static Algorithm> {
    REGISTRY
        .iter()
        .copied()
        .find(|a| a.key() == key)
        .ok_or_else(|| ScheduleError::UnknownAlgorithm {
            name: key.to_string(),
            nearest: nearest(key, REGISTRY.iter().map(|a| a.key())),
        })
}

/// Names of the algorithms that take rings.
const TAKE_RINGS: [&str; 3] = ["ring", "double_binary_tree", "collnet_chain"];

/// The schedule of algorithm `key` for `shape`; only those of [`TAKE_RINGS`] take rings.
pub fn build(key: &str, shape: &Shape) -> Result<Schedule> {
    shape.check()?;
    let algorithm = find(key)?;
    if shape.exchange.is_some() && !algorithm.collective.is_uneven() {
        return Err(ScheduleError::Shape(format!(
            "{key} moves equal blocks; leave the counts out, or use alltoallv"
        )));
    }
    if !shape.rings.is_empty() && !TAKE_RINGS.contains(&algorithm.name) {
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
             folds, or fewer ranks",
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
