//! Shapes of communication that several algorithms share.
//!
//! An allreduce is often a reduce-scatter followed by an allgather, and the one is the other
//! reversed, so both phases live here and the files of the algorithms only put them together.

pub(super) mod axis;
pub(super) mod binary;
pub(super) mod bine;
pub(super) mod butterfly;
pub(super) mod butterfly_runs;
pub(super) mod butterfly_schedules;
pub(super) mod cube;
pub(super) mod direct;
pub(super) mod forest;
pub(super) mod hamiltonian;
pub(super) mod line;
pub(super) mod nodes;
pub(super) mod ports;
pub(super) mod ring;
pub(super) mod tree;

use crate::spec::Collective;

/// One direction of an exchange of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Blocks are added on their way to their owner.
    ReduceScatter,
    /// Backwards: blocks are copied on their way from their owner.
    Allgather,
}

/// The phases of an allreduce, or the only one of its halves.
pub fn phases(collective: Collective) -> &'static [Phase] {
    match collective {
        Collective::ReduceScatter => &[Phase::ReduceScatter],
        Collective::Allgather => &[Phase::Allgather],
        _ => &[Phase::ReduceScatter, Phase::Allgather],
    }
}
