//! One file for each method.

pub mod composition;
pub mod flows;
pub mod library;
pub mod matching;
pub mod packing;
pub mod portfolio;
mod transformed;
