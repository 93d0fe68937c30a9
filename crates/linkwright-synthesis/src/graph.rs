//! What a search sees of a machine: links with rates, the links of each route, the cost parts of a message.

use crate::problem::Problem;
use linkwright_core::machine::{Engine, Path};
use linkwright_core::{EndpointId, TimePs};
use linkwright_sim::fabric::{Conditions, Msg, MsgKind};
use linkwright_sim::fabrics::{self, AnyFabric};
use linkwright_sim::network::Wire;
use std::sync::{Mutex, PoisonError};

/// The network behind a path of a machine.
pub struct Graph {
    fabric: Mutex<AnyFabric>,
    /// Ranks, which are the first endpoints.
    pub ranks: u32,
    /// Number of memories of the machine, which are the endpoints from [`Graph::memory`] on.
    pub memories: u32,
    /// The endpoint of the first memory.
    pub memory: u32,
    /// Network of messages without a hint.
    pub network: u8,
    /// Bytes per second of each link; empty where the fabric has no links.
    pub capacities: Vec<u64>,
    /// Costs of software at both ends, and how data are combined.
    pub path: Path,
}

impl Graph {
    /// For messages of the problem's path.
    pub fn new(problem: &Problem) -> Self {
        let path = problem.path().clone();
        let mut fabric =
            fabrics::build(&problem.machine).expect("checked when the problem was made");
        fabric.reset(&Conditions {
            channels: path.channels,
            ..Conditions::default()
        });
        Graph {
            ranks: problem.shape.ranks,
            memories: problem.machine.memories() as u32,
            memory: problem.machine.ranks() as u32,
            network: path.network.unwrap_or(0),
            capacities: fabric.network().capacities(),
            fabric: Mutex::new(fabric),
            path,
        }
    }

    /// How messages go from rank `from` to rank `to`; `None` where they do not, or the fabric has no links.
    pub fn wire(&self, from: u32, to: u32) -> Option<Wire> {
        self.with(|fabric| {
            fabric
                .network()
                .wire(EndpointId(from), EndpointId(to), self.network)
        })
    }

    /// Time from the offer to the delivery of a put on an idle machine, without software.
    pub fn quiet(&self, from: u32, to: u32, bytes: u64) -> Option<TimePs> {
        let (from, to) = (EndpointId(from), EndpointId(to));
        let message = Msg {
            network: self.network,
            ..Msg::new(0, MsgKind::Put, from, to, bytes)
        };
        self.with(|fabric| {
            let leads = fabric.network().no_route(from, to, self.network).is_none();
            leads.then(|| fabric.quiet(&message))
        })
    }

    /// What a put in one run costs its initiator before it leaves, and its receiver, combining not included.
    pub fn software(&self) -> (TimePs, TimePs) {
        (self.path.start + self.path.per_run, self.path.receive)
    }

    /// Whether all lanes of a rank are one, because it does one thing at a time.
    pub fn one_lane(&self) -> bool {
        self.path.engine == Engine::Rank
    }

    fn with<T>(&self, ask: impl FnOnce(&AnyFabric) -> T) -> T {
        ask(&self.fabric.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
