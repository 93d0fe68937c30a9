//! Computation: work whose operations are counted exactly.
//!
//! [`fma`] reaches the peak floating-point rate of the cores, the limit of every product and convolution;
//! [`generators`] fills blocks with random numbers. Neither measures: each does its work n times, and the
//! caller holds the clock.

pub mod fma;
pub mod generators;
