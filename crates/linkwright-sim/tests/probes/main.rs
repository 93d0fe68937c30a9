//! Modelled probes, one file per group of models.

mod common;
mod compute;
mod memory;
