//! Ranks as threads of this process, one core each, that write into each other's memory.

pub mod flags;
pub mod lot;
mod sync;
