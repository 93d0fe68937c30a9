//! What a search sees of a machine: links with rates, the links of each route, the cost parts of a message.

use crate::problem::Problem;
use linkwright_core::{EndpointId, TimePs};
use linkwright_sim::fabric::{Msg, MsgKind, Wire};
use linkwright_sim::fabrics::{self, AnyFabric};
use std::sync::{Mutex, PoisonError};

/// The network behind a path of a machine.
pub struct Graph {
    fabric: Mutex<AnyFabric>,
    /// Ranks, which are the first endpoints.
    pub ranks: u32,
    /// Network of messages without a hint.
    pub network: u8,
    /// Bytes per second of each link; empty where the fabric has no links.
    pub capacities: Vec<u64>,
    /// Cost of a message to its initiator before it leaves.
    pub start: TimePs,
    /// Cost of a message to its receiver.
    pub receive: TimePs,
}

impl Graph {
    /// For messages of the problem's path.
    pub fn new(problem: &Problem) -> Self {
        let path = problem.path();
        let mut fabric =
            fabrics::build(&problem.machine).expect("checked when the problem was made");
        if let Some(channels) = path.channels {
            fabric.bundle(channels);
        }
        Graph {
            ranks: problem.shape.ranks,
            network: path.network.unwrap_or(0),
            capacities: fabric.capacities(),
            start: path.start,
            receive: path.receive,
            fabric: Mutex::new(fabric),
        }
    }

    /// How messages go from rank `from` to rank `to`; `None` where they do not, or the fabric has no links.
    pub fn wire(&self, from: u32, to: u32) -> Option<Wire> {
        self.with(|fabric| fabric.wire(EndpointId(from), EndpointId(to), self.network))
    }

    /// Time from the offer to the delivery of a put on an idle machine, without software.
    pub fn quiet(&self, from: u32, to: u32, bytes: u64) -> Option<TimePs> {
        let (from, to) = (EndpointId(from), EndpointId(to));
        let message = Msg {
            network: self.network,
            ..Msg::new(0, MsgKind::Put, from, to, bytes)
        };
        self.with(|fabric| {
            let leads = fabric.no_route(from, to, self.network).is_none();
            leads.then(|| fabric.quiet(&message))
        })
    }

    fn with<T>(&self, ask: impl FnOnce(&AnyFabric) -> T) -> T {
        ask(&self.fabric.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
