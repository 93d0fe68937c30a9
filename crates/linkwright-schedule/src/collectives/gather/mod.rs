//! Gather: the root ends with everyone's block.

pub mod binomial;
pub mod linear;
