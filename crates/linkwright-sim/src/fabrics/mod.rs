//! The interconnect models: one file or folder each, one line in [`FABRICS`].
//!
//! A new fabric is a file with a type that implements [`Fabric`] and, where it knows its links and routes,
//! [`Network`](crate::network::Network); a static of type [`FabricKind`], a function `from_machine`, and one line
//! below. Lists, help and documentation come from the registry.

pub mod coherent;
mod completions;
pub mod crossbar;
pub mod exchange;
pub mod flow;
pub mod host_link;
pub mod loggp;
mod pool;
mod slab;
pub mod slotted_ring;
pub mod torus_noc;

use crate::error::SimError;
use crate::fabric::{Fabric, FabricKind};
use crate::simulated::SimulatedFabric;
use linkwright_core::Machine;
pub use pool::{lend, Lent};

/// The fabric of any machine.
pub type AnyFabric = Box<dyn SimulatedFabric + Send>;

/// An interconnect model and the function that reads its parameters in `[fabric]`; every key must be read.
pub struct Entry {
    /// How the model describes itself.
    pub kind: &'static FabricKind,
    build: fn(&Machine) -> Result<AnyFabric, SimError>,
}

/// All interconnect models.
pub static FABRICS: &[Entry] = &[
    entry(&loggp::KIND, |m| boxed(loggp::from_machine(m)?)),
    entry(&crossbar::KIND, |m| boxed(crossbar::from_machine(m)?)),
    entry(&exchange::KIND, |m| boxed(exchange::from_machine(m)?)),
    entry(&torus_noc::KIND, |m| boxed(torus_noc::from_machine(m)?)),
    entry(&host_link::KIND, |m| boxed(host_link::from_machine(m)?)),
    entry(&slotted_ring::KIND, |m| {
        boxed(slotted_ring::from_machine(m)?)
    }),
    entry(&flow::KIND, |m| boxed(flow::from_machine(m)?)),
    entry(&coherent::KIND, |m| boxed(coherent::from_machine(m)?)),
];

const fn entry(
    kind: &'static FabricKind,
    build: fn(&Machine) -> Result<AnyFabric, SimError>,
) -> Entry {
    Entry { kind, build }
}

/// Boxes fabrics here only, so that the order-free pass is compiled for each of them.
fn boxed<F: Fabric + Send + 'static>(fabric: F) -> Result<AnyFabric, SimError> {
    Ok(Box::new(fabric))
}

/// The fabric of a machine.
pub fn build(machine: &Machine) -> Result<AnyFabric, SimError> {
    let names: Vec<&str> = FABRICS.iter().map(|entry| entry.kind.key).collect();
    let mut fabric = machine.fabric_section();
    let chosen = fabric.choice("kind", &names)?;
    let counted = machine.paths().iter().find(|path| path.channels.is_some());
    if let (Some(path), false) = (counted, names[chosen] == flow::KIND.key) {
        let problem = format!(
            "path {} counts `channels`, which only `flow` limits; take them out",
            path.name
        );
        return Err(fabric.inconsistent("kind", problem).into());
    }
    (FABRICS[chosen].build)(machine)
}
