//! Reduce-scatter: every rank ends with its block of the combination of all vectors.

pub mod pairwise;
pub mod recursive_halving;
pub mod ring;
pub mod swing;
