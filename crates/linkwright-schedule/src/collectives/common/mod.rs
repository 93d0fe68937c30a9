//! Shapes of communication that several algorithms share.
//!
//! An allreduce is often a reduce-scatter followed by an allgather, so the phases live here and
//! the files of the algorithms only put them together.

pub(super) mod butterfly;
pub(super) mod butterfly_schedules;
pub(super) mod cube;
pub(super) mod dissemination;
pub(super) mod hamiltonian;
pub(super) mod ring;
pub(super) mod tree;
