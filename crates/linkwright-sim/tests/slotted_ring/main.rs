//! The slotted ring: hand-derived times, what no run may violate, fairness.

mod common;
mod invariants;
mod programs;
mod timing;
