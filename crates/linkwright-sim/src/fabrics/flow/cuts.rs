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

use super::route::Routing;
use super::topology::Topology;
use super::torus::{Axis, Torus};
use crate::network::NetworkCut;
use linkwright_core::{BytesPerSec, EndpointId};
use petgraph::algo::dinics;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

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
    let all = |inside: Vec<bool>| {
        let side = |wanted| {
            let sides = places
                .iter()
                .zip(&inside)
                .filter(move |(_, &in_)| in_ == wanted);
            sides.map(|(&place, _)| place).collect::<Vec<_>>()
        };
        let (ours, others) = (side(true), side(false));
        let (out, _) = network.flow(&ours, &others);
        let into = match network.one_way {
            true => network.flow(&others, &ours).0,
            false => out, // every edge carries the same both ways
        };
        NetworkCut {
            inside,
            out: BytesPerSec(out as f64),
            into: BytesPerSec(into as f64),
        }
    };
    divisions(&network, places).into_iter().map(all).collect()
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
    graph: DiGraph<(), u64>,
    /// Whether capacities differ by direction.
    one_way: bool,
}

impl<'a> Network<'a> {
    fn new(topology: &'a Topology, classes: &[bool], carried: &[u64]) -> Self {
        let mut graph = DiGraph::new();
        let nodes = topology.names.len() as u32;
        let arrive: Vec<NodeIndex> = (0..nodes).map(|_| graph.add_node(())).collect();
        let leave = |graph: &mut DiGraph<(), u64>, node: u32| match topology.throughput(node) {
            None => arrive[node as usize],
            Some(rate) => {
                let exit = graph.add_node(());
                graph.add_edge(arrive[node as usize], exit, rate / 2);
                exit
            }
        };
        let leave: Vec<NodeIndex> = (0..nodes).map(|node| leave(&mut graph, node)).collect();
        let mut network = Network {
            topology,
            graph,
            one_way: false,
        };
        for (link, (to, &from)) in (0u32..).zip(topology.links.iter().zip(&topology.begins)) {
            if !classes[to.class as usize] {
                continue;
            }
            let rate = carried[link as usize];
            let (start, end) = (leave[from as usize], arrive[to.to as usize]);
            // What arrives over another class does not turn, so the limit holds where there is only one.
            let turn = topology.turnaround(link).filter(|_| {
                let out = topology.out(from).iter();
                out.clone()
                    .filter(|&&l| classes[topology.links[l as usize].class as usize])
                    .all(|&l| topology.links[l as usize].class == to.class)
            });
            network.one_way |= turn.is_some() || rate != carried[link as usize ^ 1];
            let rate = turn.map_or(rate, |turn| turn.min(rate));
            network.graph.add_edge(start, end, rate);
        }
        network
    }

    /// Bytes per second that `place` sends of its own or receives for itself.
    fn own(&self, place: &EndpointId, out: bool) -> u64 {
        let limit = self.topology.injected(place.0, out);
        limit.map_or(FREE, |limit| self.topology.capacity[limit as usize])
    }

    /// Most bytes per second from all of `from` together to all of `to`, and by node, whether it lies on the near side
    /// of the narrowest cut.
    fn flow(&self, from: &[EndpointId], to: &[EndpointId]) -> (u64, Vec<bool>) {
        let mut graph = self.graph.clone();
        let (source, sink) = (graph.add_node(()), graph.add_node(()));
        for place in from {
            graph.add_edge(source, NodeIndex::new(place.index()), self.own(place, true));
        }
        for place in to {
            graph.add_edge(NodeIndex::new(place.index()), sink, self.own(place, false));
        }
        let (most, flows) = dinics(&graph, source, sink);
        let mut reached = vec![false; graph.node_count()];
        reached[source.index()] = true;
        let mut waiting = vec![source];
        while let Some(node) = waiting.pop() {
            let ahead = graph
                .edges(node)
                .filter(|e| flows[e.id().index()] < *e.weight());
            let back = graph.edges_directed(node, petgraph::Incoming);
            let back = back
                .filter(|e| flows[e.id().index()] > 0)
                .map(|e| e.source());
            for next in ahead.map(|e| e.target()).chain(back) {
                if !std::mem::replace(&mut reached[next.index()], true) {
                    waiting.push(next);
                }
            }
        }
        (most, reached)
    }
}
