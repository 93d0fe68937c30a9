//! Scatter: everyone ends with its block of the root's vector.

pub mod binomial;
pub mod linear;
