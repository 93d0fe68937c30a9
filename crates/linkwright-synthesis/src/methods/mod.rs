//! One file for each method.

pub mod library;

pub mod portfolio;
mod transformed;
