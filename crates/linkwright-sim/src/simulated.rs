//! What the simulator adds to every fabric.

use crate::error::SimError;
use crate::fabric::Fabric;
use crate::latency;
use crate::outcome::Simulation;
use crate::pass;
use crate::prepared::Prepared;
use linkwright_core::TimePs;

/// A fabric with the inner loops that run over it.
///
/// Every fabric has them. They are methods, and thus compiled for each fabric, because a call of a boxed fabric
/// for every message costs a good part of the time of the simple models.
pub trait SimulatedFabric: Fabric {
    /// The order-free pass with this fabric; called only where [`Character::order_free`](crate::fabric::Character::order_free)
    /// holds, or where all ranks are alike.
    #[doc(hidden)]
    fn pass(&mut self, prepared: &Prepared<'_>) -> Result<Option<Simulation>, SimError>;

    /// The longest chain of empty messages through a schedule.
    #[doc(hidden)]
    fn longest_chain(&self, prepared: &Prepared<'_>) -> TimePs;
}

impl<F: Fabric> SimulatedFabric for F {
    fn pass(&mut self, prepared: &Prepared<'_>) -> Result<Option<Simulation>, SimError> {
        pass::simulate(prepared, self)
    }

    fn longest_chain(&self, prepared: &Prepared<'_>) -> TimePs {
        latency::longest_chain(prepared, self)
    }
}
