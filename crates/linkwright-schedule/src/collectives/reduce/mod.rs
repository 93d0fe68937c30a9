//! Reduce: the root ends with the combination of all vectors.

pub mod binomial;
pub mod by_rows;
pub mod linear;
pub mod reduce_scatter_gather;
pub mod ring;
