//! Broadcast: everyone ends with the root's vector.

pub mod binomial;
pub mod linear;
pub mod multicast;
pub mod ring;
pub mod scatter_allgather;
