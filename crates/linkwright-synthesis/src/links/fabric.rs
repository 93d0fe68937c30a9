//! The network of a described machine, as a search sees it.

use super::wires::{Pair, Wires};
use crate::error::{Error, Result};
use linkwright_core::{EndpointId, Machine};
use linkwright_sim::fabric::{Fabric, Msg, MsgKind};
use linkwright_sim::{fabrics, run, Options, Placement};

/// Size of the message from which the latency of a pair is taken: what is stored on the way counts as latency.
const PROBE_BYTES: u64 = 1 << 16;

/// A network, and how many lanes of a rank lead onto it.
pub struct Network {
    /// Its pairs and links.
    pub wires: Wires,
    /// Lanes that a rank may issue in.
    pub lanes: u32,
}

/// What `ranks` ranks on `machine` have on the path called `path`, or the default one.
pub fn network(machine: &Machine, ranks: u32, path: Option<&str>) -> Result<Network> {
    let machine = run::sized(machine, ranks, &[])?;
    let places = Placement::default().place(&machine, ranks, 0)?;
    let options = Options {
        path: path.map(str::to_string),
        ..Options::default()
    };
    run::check(&machine, ranks, &options)?;
    let path = path.and_then(|name| machine.path(name)).unwrap_or_else(|| machine.default_path());
    let of_lane = |lane: u8| path.network.unwrap_or_else(|| machine.hints().lane(lane));
    let lanes = (0..=253).take_while(|&lane| of_lane(lane) == of_lane(0)).count();
    let mut fabric = fabrics::build(&machine)?;
    if let Some(channels) = path.channels {
        fabric.bundle(channels);
    }
    let pairs = pairs(&*fabric, &places, of_lane(0));
    let capacity = fabric.capacities();
    if ranks > 1 && capacity.is_empty() {
        return Err(Error::Network(format!(
            "fabric `{}` of {} does not tell its links; search on links serves machines of fabric `flow`",
            machine.fabric_kind(),
            machine.name(),
        )));
    }
    Ok(Network {
        wires: Wires::new(ranks, capacity, pairs)?,
        lanes: lanes as u32,
    })
}

/// Every pair of `places` that has a route on `network`.
fn pairs(fabric: &dyn Fabric, places: &[EndpointId], network: u8) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (from, &source) in (0..).zip(places) {
        for (to, &target) in (0..).zip(places).filter(|&(to, _)| to != from) {
            let Some(wire) = fabric.wire(source, target, network) else {
                continue;
            };
            let probe = Msg {
                network,
                ..Msg::new(0, MsgKind::Put, source, target, PROBE_BYTES)
            };
            let alone = Pair {
                from,
                to,
                start_ps: wire.start.0,
                latency_ps: 0,
                rate: wire.rate,
                uses: wire.uses,
            };
            pairs.push(Pair {
                latency_ps: fabric.quiet(&probe).0.saturating_sub(alone.time_ps(PROBE_BYTES)),
                ..alone
            });
        }
    }
    pairs
}
