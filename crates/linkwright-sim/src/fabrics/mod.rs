//! The interconnect models: one file or folder each, one line in [`FABRICS`].
//!
//! A new fabric is a file with a type that implements [`Fabric`], a static of type [`FabricKind`],
//! and one line below. Lists, help and documentation come from the registry.

pub mod coherent;
mod completions;
pub mod crossbar;
pub mod exchange;
pub mod flow;
pub mod host_link;
pub mod loggp;
mod slab;
pub mod slotted_ring;
pub mod torus_noc;

use crate::error::SimError;
use crate::fabric::Fabric;
use linkwright_core::Machine;

/// One interconnect model; describes itself.
pub struct FabricKind {
    /// `kind` in a machine file's `[fabric]`.
    pub key: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What it models and what it leaves out, in a few sentences.
    pub description: &'static str,
    /// Where the model was published or documented.
    pub source: &'static str,
    /// Read the parameters in `[fabric]`; every key must be read.
    pub from_machine: fn(&Machine) -> Result<Box<dyn Fabric + Send>, SimError>,
}

/// All interconnect models.
pub static FABRICS: &[&FabricKind] = &[
    &loggp::KIND,
    &crossbar::KIND,
    &exchange::KIND,
    &torus_noc::KIND,
    &host_link::KIND,
    &slotted_ring::KIND,
    &flow::KIND,
    &coherent::KIND,
];

/// The fabric of a machine.
pub fn build(machine: &Machine) -> Result<Box<dyn Fabric + Send>, SimError> {
    let names: Vec<&str> = FABRICS.iter().map(|fabric| fabric.key).collect();
    let chosen = machine.fabric_section().choice("kind", &names)?;
    (FABRICS[chosen].from_machine)(machine)
}
