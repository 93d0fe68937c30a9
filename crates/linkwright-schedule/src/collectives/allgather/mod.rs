//! Allgather: every rank ends with everyone's block.

pub mod bruck;
pub mod linear;
pub mod recursive_doubling;
pub mod ring;
pub mod swing;
