//! Jobs on resources, shared one way or the other.

use super::fair::Fair;
use super::fifo::Fifo;
use super::job::Job;
use super::loads;
use super::routes::Routes;
use crate::fabric::{LinkTable, Watch};
use linkwright_core::TimePs;

/// How flows share a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    Fair,
    Fifo,
}

/// The jobs of a run.
#[allow(clippy::large_enum_variant)] // there is one for each fabric
pub(super) enum Shared {
    Fair(Fair),
    Fifo(Fifo),
}

impl Shared {
    pub fn new(sharing: Sharing, routes: &Routes, watch: Watch) -> Self {
        let capacity = &routes.routing.topology.capacity;
        let bins = watch.bins(capacity.len());
        match sharing {
            Sharing::Fair => Shared::Fair(Fair::new(capacity, &routes.uses.fractions, bins)),
            Sharing::Fifo => Shared::Fifo(Fifo::new(capacity.len(), bins)),
        }
    }

    /// A job begins or queues up.
    pub fn enter(&mut self, now: TimePs, job: Job, routes: &Routes) {
        match self {
            Shared::Fair(fair) => {
                fair.learn(&routes.uses.fractions);
                fair.enter(now, job, routes.uses(job.uses));
            }
            Shared::Fifo(fifo) => fifo.enter(now, job, routes.uses(job.uses)),
        }
    }

    /// When the next job ends.
    pub fn next(&mut self, routes: &Routes) -> Option<TimePs> {
        match self {
            Shared::Fair(fair) => fair.next(|job| routes.uses(job.uses)),
            Shared::Fifo(fifo) => fifo.next(),
        }
    }

    /// The job that ends at `at`, the time that [`Shared::next`] gave.
    pub fn pop_at(&mut self, at: TimePs, routes: &Routes) -> Option<Job> {
        let uses = |job: &Job| routes.uses(job.uses);
        match self {
            Shared::Fair(fair) => fair.pop_at(at, uses),
            Shared::Fifo(fifo) => fifo.pop_at(at, uses),
        }
    }

    /// Jobs at a resource, waiting ones included.
    pub fn crowd(&self, resource: u32) -> usize {
        match self {
            Shared::Fair(fair) => fair.crowd(resource),
            Shared::Fifo(fifo) => fifo.crowd(resource),
        }
    }

    /// What each resource carried.
    pub fn loads(&self, names: &[String]) -> LinkTable {
        match self {
            Shared::Fair(fair) => loads::table(names, fair.loads.iter(), &fair.bins),
            Shared::Fifo(fifo) => loads::table(names, fifo.loads(), &fifo.bins),
        }
    }
}
