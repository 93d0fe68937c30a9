//! Allreduce: everyone ends with the combination of all vectors.

pub mod all_pairs;
pub mod hamiltonian_ring;
pub mod hamiltonian_rings;
pub mod hamiltonian_rings_bidirectional;
pub mod hierarchical;
pub mod recursive_doubling_bandwidth;
pub mod recursive_doubling_latency;
pub mod reduce_broadcast;
pub mod ring;
pub mod shared_memory;
pub mod swing_bandwidth;
pub mod swing_latency;
