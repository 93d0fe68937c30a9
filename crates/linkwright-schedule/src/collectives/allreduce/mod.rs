//! Allreduce: everyone ends with the combination of all vectors.

pub mod recursive_doubling_latency;
pub mod ring;
