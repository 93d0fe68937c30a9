//! Fabrics of a machine, kept for the next run.
//!
//! ```text
//!   lend(machine) --- one that is idle, or else a new one ---> run, which resets it
//!        ^                                                      |
//!        `---------------------- dropped -----------------------'
//! ```
//!
//! Reading a machine of a thousand endpoints and finding its routes takes longer than most simulations on it. What a
//! fabric knows of routes follows from the machine and the number of channels, and
//! [`Fabric::reset`](crate::fabric::Fabric::reset) forgets the rest, so it makes no difference whether a run gets a new
//! fabric. Clones of a machine share what is kept; as many fabrics are kept as
//! were in use at a time.

use super::{build, AnyFabric};
use crate::error::SimError;
use linkwright_core::Machine;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Idle fabrics.
#[derive(Default)]
struct Pool(Mutex<Vec<AnyFabric>>);

impl Pool {
    fn idle(&self) -> MutexGuard<'_, Vec<AnyFabric>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A fabric on loan.
pub struct Lent {
    /// There until it is dropped.
    fabric: Option<AnyFabric>,
    pool: Arc<Pool>,
}

/// An idle fabric of `machine`, under the conditions of who used it last.
pub fn lend(machine: &Machine) -> Result<Lent, SimError> {
    let pool = machine.memo().get(Vec::new(), Pool::default);
    let idle = pool.idle().pop();
    let fabric = Some(idle.map_or_else(|| build(machine), Ok)?);
    Ok(Lent { fabric, pool })
}

impl Deref for Lent {
    type Target = AnyFabric;

    fn deref(&self) -> &AnyFabric {
        self.fabric.as_ref().expect("there until it is dropped")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut AnyFabric {
        self.fabric.as_mut().expect("there until it is dropped")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // Nobody knows what a panic, or a run that failed half way, has left behind.
        let is_idle = |fabric: &AnyFabric| !thread::panicking() && fabric.in_flight() == 0;
        if let Some(fabric) = self.fabric.take().filter(is_idle) {
            self.pool.idle().push(fabric);
        }
    }
}
