//! One file for each method.

pub mod library;
