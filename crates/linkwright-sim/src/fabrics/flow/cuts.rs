//! Minimum cuts of the graph, by maximum flows.
//!
//! ```text
//!   source ==> ranks inside --- links, switches, other endpoints --- ranks outside ==> sink
//! ```
//!
//! What the ranks inside may send to the others is at most the maximum flow from all of them to all of the others (Ford
//! and Fulkerson 1956), where every endpoint may relay. A switch with a `throughput` is two nodes with an edge of half
//! of it, because what passes is received and sent; a `turnaround` is an edge of its own.
//!
//! A torus is halved across each of its axes, which needs no flows. Elsewhere, up to [`FEW`] places are divided in every way. Of more, the cuts between the first place and others are taken, and
//! those that divide the places in order. A cut that is not looked at makes no limit wrong, only lower.

use super::flows::{Flows, Pair};
use super::route::Routing;
use super::topology::Topology;
use super::torus::{Axis, Torus};
use crate::network::NetworkCut;
use linkwright_core::{BytesPerSec, EndpointId};

/// Places of which every division is tried.
const FEW: usize = 8;
/// Pairs of places, and divisions in order, that are tried of more.
const TRIED: usize = 4;
/// More than any flow.
const FREE: u64 = u64::MAX / 1024;

/// Cuts of the endpoints at `places`, where each link carries so many bytes per second.
pub(super) fn of(
    (routing, carried): (&Routing, &[u64]),
    places: &[EndpointId],
    networks: &[u8],
) -> Vec<NetworkCut> {
    if places.len() < 2 {
        return Vec::new();
    }
    let classes = routing.classes(networks);
    let only_torus = (0..).zip(&classes).all(|(i, &used)| used == (i == 0));
    if let Some(torus) = routing.torus.as_ref().filter(|_| only_torus) {
        return halves(torus, &routing.topology, places);
    }
    let network = Network::new(&routing.topology, &classes, carried);
    network.cuts(places, divisions(&network, places))
}

/// Cuts with these `insides`.
pub(super) fn with(
    (routing, carried): (&Routing, &[u64]),
    places: &[EndpointId],
    networks: &[u8],
    insides: Vec<Vec<bool>>,
) -> Vec<NetworkCut> {
    let classes = routing.classes(networks);
    Network::new(&routing.topology, &classes, carried).cuts(places, insides)
}

/// Names of the full links of a maximum flow out of `inside`.
pub(super) fn narrowest(
    (routing, carried): (&Routing, &[u64]),
    places: &[EndpointId],
    networks: &[u8],
    inside: &[bool],
) -> Vec<String> {
    let (topology, classes) = (&routing.topology, routing.classes(networks));
    let network = Network::new(topology, &classes, carried);
    let (_, near) = network.flow(&side(places, inside, true), &side(places, inside, false));
    let full = (0..topology.links.len()).filter(|&link| {
        let to = &topology.links[link];
        let ends = (topology.begins[link] as usize, to.to as usize);
        classes[to.class as usize] && near[ends.0] && !near[ends.1]
    });
    full.map(|link| topology.resource_names[link].clone())
        .collect()
}

/// The `places` that are `inside`, or the others.
fn side(places: &[EndpointId], inside: &[bool], wanted: bool) -> Vec<EndpointId> {
    let sides = places.iter().zip(inside).filter(|(_, &is)| is == wanted);
    sides.map(|(&place, _)| place).collect()
}

/// The halves of a torus across each axis: all links that lead out of the lower one, and no more than its ranks send.
fn halves(torus: &Torus, topology: &Topology, places: &[EndpointId]) -> Vec<NetworkCut> {
    let half = |axis: &Axis| {
        let is_inside = |rank: u32| axis.place(rank) < axis.side / 2;
        let links = topology.links.iter().zip(&topology.begins);
        let leaving = (0..)
            .zip(links)
            .filter(|(_, (link, &from))| is_inside(from) && !is_inside(link.to));
        let crossing: u64 = leaving.map(|(link, _)| topology.capacity[link]).sum();
        let inside: Vec<bool> = places.iter().map(|place| is_inside(place.0)).collect();
        let most = |inside_sends: bool| {
            let own = |wanted: bool, out: bool| {
                let side = places.iter().zip(&inside).filter(|(_, &is)| is == wanted);
                let limits = side.map(|(place, _)| topology.injected(place.0, out));
                limits
                    .map(|limit| limit.map_or(FREE, |limit| topology.capacity[limit as usize]))
                    .fold(0u64, u64::saturating_add)
            };
            let ends = own(inside_sends, true).min(own(!inside_sends, false));
            BytesPerSec(crossing.min(ends) as f64)
        };
        NetworkCut {
            out: most(true),
            into: most(false),
            inside,
        }
    };
    let cuts = torus.axes.iter().filter(|axis| axis.side > 1).map(half);
    cuts.filter(|cut| cut.inside.contains(&true) && cut.inside.contains(&false))
        .collect()
}

/// The divisions of `places` to look at, the first place inside.
fn divisions(network: &Network<'_>, places: &[EndpointId]) -> Vec<Vec<bool>> {
    let count = places.len();
    if count <= FEW {
        let sets = 0..(1u32 << (count - 1)) - 1;
        let inside = |set: u32| {
            (0..count)
                .map(|i| i == 0 || set >> (i - 1) & 1 == 1)
                .collect()
        };
        return sets.map(inside).collect();
    }
    let spread = (1..=TRIED).map(|i| i * (count - 1) / TRIED);
    let between = |other: usize| {
        let (_, reached) = network.flow(&places[..1], &places[other..=other]);
        places.iter().map(|place| reached[place.index()]).collect()
    };
    let in_order = (1..TRIED).map(|i| (0..count).map(|at| at < i * count / TRIED).collect());
    let mut divisions: Vec<Vec<bool>> = spread.map(between).chain(in_order).collect();
    divisions.sort_unstable();
    divisions.dedup();
    divisions
}

/// The graph for maximum flows.
struct Network<'a> {
    topology: &'a Topology,
    flows: Flows,
    /// Whether capacities differ by direction.
    one_way: bool,
}

impl<'a> Network<'a> {
    fn new(topology: &'a Topology, classes: &[bool], carried: &[u64]) -> Self {
        let nodes = topology.names.len() as u32;
        let mut count = nodes;
        let mut edges = Vec::with_capacity(topology.links.len() / 2 + 2 * nodes as usize);
        let mut exit = |node: u32| {
            let rate = topology.throughput(node)?;
            edges.push(Pair::new((node, count), (rate / 2, 0)));
            count += 1;
            Some(count - 1)
        };
        let leave: Vec<u32> = (0..nodes).map(|node| exit(node).unwrap_or(node)).collect();
        let mut one_way = false;
        let mut rate = |link: u32| {
            let (to, from) = (
                &topology.links[link as usize],
                topology.begins[link as usize],
            );
            let rate = carried[link as usize];
            // What arrives over another class does not turn, so the limit holds where there is only one.
            let turn = topology.turnaround(link).filter(|_| {
                let out = topology.out(from).iter();
                let class = |&link: &u32| topology.links[link as usize].class;
                (out.map(class).filter(|&class| classes[class as usize]))
                    .all(|class| class == to.class)
            });
            one_way |= turn.is_some() || rate != carried[link as usize ^ 1];
            turn.map_or(rate, |turn| turn.min(rate))
        };
        for forth in (0..topology.links.len() as u32).step_by(2) {
            let to = &topology.links[forth as usize];
            if !classes[to.class as usize] {
                continue;
            }
            let (a, b) = (topology.begins[forth as usize], to.to);
            let rates = (rate(forth), rate(forth ^ 1));
            if leave[a as usize] == a && leave[b as usize] == b {
                edges.push(Pair::new((a, b), rates));
                continue;
            }
            edges.push(Pair::new((leave[a as usize], b), (rates.0, 0)));
            edges.push(Pair::new((leave[b as usize], a), (rates.1, 0)));
        }
        Network {
            topology,
            flows: Flows::new(count, topology.endpoints, edges),
            one_way,
        }
    }

    /// The cuts of `places` with these `insides`.
    fn cuts(&self, places: &[EndpointId], insides: Vec<Vec<bool>>) -> Vec<NetworkCut> {
        let cut = |inside: Vec<bool>| {
            let (ours, others) = (side(places, &inside, true), side(places, &inside, false));
            let (out, _) = self.flow(&ours, &others);
            let into = match self.one_way {
                true => self.flow(&others, &ours).0,
                false => out, // every edge carries the same both ways
            };
            NetworkCut {
                inside,
                out: BytesPerSec(out as f64),
                into: BytesPerSec(into as f64),
            }
        };
        insides.into_iter().map(cut).collect()
    }

    /// Bytes per second that `place` sends of its own or receives for itself.
    fn own(&self, place: EndpointId, out: bool) -> u64 {
        let limit = self.topology.injected(place.0, out);
        limit.map_or(FREE, |limit| self.topology.capacity[limit as usize])
    }

    /// Most bytes per second from all of `from` together to all of `to`, and by node, whether it lies on the near side
    /// of the narrowest cut.
    fn flow(&self, from: &[EndpointId], to: &[EndpointId]) -> (u64, Vec<bool>) {
        let own = |places: &[EndpointId], out: bool| {
            let each = places.iter().map(|&place| (place.0, self.own(place, out)));
            each.collect::<Vec<_>>()
        };
        self.flows.most(&own(from, true), &own(to, false))
    }
}
