//! Alltoall: everyone ends with one block from everyone.

pub mod bruck;
pub mod linear;
pub mod pairwise;
