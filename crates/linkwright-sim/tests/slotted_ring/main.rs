//! The slotted ring: hand-derived times, invariants, fairness.

mod arbitration;
mod common;
#[path = "../files/mod.rs"]
mod files;
mod invariants;
mod timing;
