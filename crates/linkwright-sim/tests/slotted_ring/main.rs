//! The slotted ring: hand-derived times, what no run may violate, fairness.

mod common;
#[path = "../files/mod.rs"]
mod files;
mod invariants;
mod programs;
mod timing;
