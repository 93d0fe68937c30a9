//! The time of many schedules on one machine, and nothing else of them.
//!
//! A search asks for the times of thousands of schedules. What [`crate::run()`] does besides, limits and a fresh fabric,
//! would take longer than most of those simulations; a [`Pricer`] keeps its fabrics and resets them. It does not verify
//! either: a schedule that is to be used is run as any other.

use crate::error::SimError;
use crate::fabric::Conditions;
use crate::fabrics::{self, AnyFabric};
use crate::protocol::Timed;
use crate::run::{check, check_room, setup, How};
use linkwright_core::clock::Instant;
use linkwright_core::{Machine, TimePs};
use linkwright_schedule::ir::Schedule;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One machine of known size, and its fabrics by the number of channels that a message stands for.
pub struct Pricer {
    machine: Arc<Machine>,
    fabrics: BTreeMap<Option<u32>, AnyFabric>,
}

impl Pricer {
    /// For schedules on `machine`, whose size is not open.
    pub fn new(machine: Arc<Machine>) -> Self {
        Pricer {
            machine,
            fabrics: BTreeMap::new(),
        }
    }

    /// The makespan of `schedule`, as the machine and its path need it ([`crate::lowered`]); [`SimError::Stopped`]
    /// where it is beyond `stop_at`, or where the clock reaches `until` meanwhile.
    ///
    /// Of an allreduce on a path with a protocol one run among several is timed, and only the clock stops it.
    pub fn time(
        &mut self,
        schedule: &Schedule,
        how: &How,
        stop_at: TimePs,
        until: Option<Instant>,
    ) -> Result<TimePs, SimError> {
        let machine = self.machine.clone();
        check(&machine, schedule.ranks, how)?;
        let placement = (how.placement).place(&machine, schedule.ranks, schedule.memories)?;
        let mut setup = setup(&machine, schedule.ranks, placement, how)?;
        check_room(schedule, &machine, &setup)?;
        setup.until = until;
        let timed = Timed::of(schedule, &setup.path);
        match &timed {
            Some(timed) => {
                setup.record_operations = true;
                let skipped = timed.skipped_per_s(schedule, &setup.path);
                setup.operations_per_s = setup.operations_per_s.or(skipped);
            }
            None => setup.stop_at = stop_at,
        }
        let fabric = self.fabric(how.channels.or(setup.path.channels))?;
        let simulation = crate::simulate(schedule, &mut **fabric, &setup)?;
        Ok(match &timed {
            Some(timed) => {
                timed
                    .read(schedule, (&setup, &**fabric), simulation)
                    .makespan
            }
            None => simulation.makespan,
        })
    }

    fn fabric(&mut self, channels: Option<u32>) -> Result<&mut AnyFabric, SimError> {
        if !self.fabrics.contains_key(&channels) {
            let mut fabric = fabrics::build(&self.machine)?;
            fabric.reset(&Conditions {
                channels,
                ..Conditions::default()
            });
            self.fabrics.insert(channels, fabric);
        }
        Ok(self.fabrics.get_mut(&channels).expect("just inserted"))
    }
}
