//! One file for each method.

pub mod composition;
pub mod library;
