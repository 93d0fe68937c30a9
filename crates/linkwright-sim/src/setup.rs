//! What a simulation adds to a schedule: places, costs, issue policy, arrival times.

use crate::error::SimError;
use crate::fabric::{Conditions, Watch};
use crate::messages::Networks;
use linkwright_core::clock::Instant;
use linkwright_core::machine::{Nearness, Noise, Path};
pub use linkwright_core::Issue;
use linkwright_core::{EndpointId, TimePs};

/// Everything that the engine needs besides the schedule and the fabric.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Endpoint of each participant, ranks first.
    pub placement: Vec<EndpointId>,
    /// Software costs.
    pub path: Path,
    /// Policy of every lane.
    pub issue: Issue,
    /// Networks of the machine by hint.
    pub networks: Networks,
    /// When each rank arrives; empty when all arrive at zero.
    pub arrivals: Vec<TimePs>,
    /// Whether combinations pay for their arithmetic, not only for the handling around it.
    pub arithmetic: bool,
    /// Rate of [`linkwright_schedule::ir::OpKind::Compute`], where the schedule computes.
    pub operations_per_s: Option<f64>,
    /// Equal channels that every message stands for; not counted where absent.
    pub channels: Option<u32>,
    /// The most that one message carries from node to node, bytes of data per second.
    pub across: Option<u64>,
    /// Messages of a library that every message from node to node stands for; one where absent.
    pub sends: Option<f64>,
    /// Seed of the ways that a network draws for pairs of endpoints, and of noise.
    pub seed: u64,
    /// What delays the run at random; `None`: nothing.
    pub noise: Option<Noise>,
    /// Whether the busy time of links is told by bins of time.
    pub watch: Watch,
    /// Whether to keep the times of every operation.
    pub record_operations: bool,
    /// Which ranks are near each other.
    pub nearness: Nearness,
    /// Sets of buffers between which repetitions alternate, where ranks move data themselves.
    pub buffer_sets: u32,
    /// Whether the start-ups of a rank's transfers wait for each other, whatever their lanes.
    pub serial_starts: bool,
    /// Number of ranks that all do the same at the same instants, where those of the schedule stand for them; see
    /// `linkwright-sim/src/symmetric.rs`.
    pub alike: Option<u32>,
    /// Makespan beyond which the simulation stops with [`SimError::Stopped`]; a slower schedule is of no interest then.
    pub stop_at: TimePs,
    /// When, by the clock on the wall, the simulation stops in the same way; nobody waits for it any longer then.
    pub until: Option<Instant>,
}

impl Setup {
    /// Participant `i` on endpoint `i`, blocking, everyone at zero.
    pub fn new(participants: u32, path: Path) -> Self {
        Setup {
            placement: (0..participants).map(EndpointId).collect(),
            path,
            issue: Issue::default(),
            networks: Networks::default(),
            arrivals: Vec::new(),
            arithmetic: true,
            operations_per_s: None,
            channels: None,
            across: None,
            sends: None,
            seed: 0,
            noise: None,
            watch: Watch::default(),
            record_operations: false,
            nearness: Nearness::default(),
            buffer_sets: 1,
            serial_starts: false,
            alike: None,
            stop_at: TimePs::MAX,
            until: None,
        }
    }

    /// What the run asks of its fabric, for these sets of endpoints.
    pub fn conditions<'a>(&self, sets: &'a [Vec<EndpointId>]) -> Conditions<'a> {
        Conditions {
            sets,
            channels: self.channels,
            across: self.across,
            sends: self.sends,
            seed: self.seed,
            watch: self.watch,
            alike: self.alike.is_some(),
        }
    }

    /// Whether nobody waits for the simulation any longer; looked up in one of 256 turns.
    #[inline]
    pub(crate) fn abandoned(&self, turn: u32) -> bool {
        turn % 256 == 0 && self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// Sizes that fit the schedule.
    pub(crate) fn check(&self, ranks: u32, memories: u32) -> Result<(), SimError> {
        let option = |option, problem| Err(SimError::Option { option, problem });
        let participants = (ranks + memories) as usize;
        if self.placement.len() != participants {
            let places = self.placement.len();
            return option(
                "placement",
                format!("{places} places for {participants} participants; give one for each"),
            );
        }
        if !self.arrivals.is_empty() && self.arrivals.len() != ranks as usize {
            let times = self.arrivals.len();
            return option(
                "skew",
                format!("{times} arrival times for {ranks} ranks; give one for each"),
            );
        }
        if matches!(self.issue, Issue::Window(0) | Issue::Batch(0)) {
            return option("issue", "0 transfers at once; at least 1 is needed".into());
        }
        Ok(())
    }
}
