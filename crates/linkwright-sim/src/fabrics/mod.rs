//! The interconnect models, one file or folder each.

pub mod torus_noc;
