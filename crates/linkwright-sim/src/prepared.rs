//! A schedule with its places and durations, as the engine, the order-free pass and the limits need it.

use crate::costs::Costs;
use crate::error::SimError;
use crate::messages::Messages;
use crate::setup::Setup;
use linkwright_core::EndpointId;
use linkwright_schedule::ir::Schedule;

/// What there is to simulate; the fabric is all that is missing.
pub struct Prepared<'a> {
    pub(crate) messages: Messages<'a>,
    pub(crate) costs: Costs<'a>,
    pub(crate) setup: &'a Setup,
    /// When each rank arrives.
    pub(crate) start: Vec<u64>,
    /// Endpoints of multicasts and barriers.
    pub(crate) sets: Vec<Vec<EndpointId>>,
}

impl<'a> Prepared<'a> {
    /// `schedule` as `run` has it, or why it cannot.
    pub(crate) fn new(schedule: &'a Schedule, setup: &'a Setup) -> Result<Self, SimError> {
        setup.check(schedule.ranks, schedule.memories)?;
        let messages = Messages::new(schedule, &setup.placement, &setup.networks);
        let costs = Costs::new(setup, &messages)?;
        let arrival = |rank: usize| setup.arrivals.get(rank).map_or(0, |t| t.0);
        let sets = (schedule.sets.iter())
            .map(|set| set.iter().map(|&p| messages.endpoint(p)).collect())
            .collect();
        Ok(Prepared {
            sets,
            messages,
            costs,
            setup,
            start: (0..schedule.ranks as usize).map(arrival).collect(),
        })
    }

    /// The latest end that is of interest, in picoseconds.
    pub(crate) fn stop_at(&self) -> u64 {
        let first = self.start.iter().copied().min().unwrap_or(0);
        self.setup.stop_at.0.saturating_add(first)
    }
}
