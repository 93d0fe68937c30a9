//! What cores compute: pieces of work whose operations are counted exactly.
//!
//! [`fma`] finds the most floating-point operations that the cores can do, the limit of every product and
//! every convolution; [`generators`] fills blocks with random numbers. Neither measures: each does its
//! work n times, and whoever calls it holds the clock.

pub mod fma;
pub mod generators;
