//! Multicasts: one packet that is copied where its ways part.
//!
//! The routes from the source to all targets, each in dimension order, form a tree: it runs along
//! the first dimension and branches into the second.
//!
//! ```text
//!   source -> o -> o -> o     x first: the trunk runs east, branches run south
//!             |    |    |
//!             o    o    o
//! ```
//!
//! A multicast reserves the broadcast channel of every link of its tree with one round trip to the
//! farthest target, then sends. So two multicasts that share a link never block each other half
//! way. The reservation ends when the tail has left the last link; *linked* multicasts of one
//! interface to one set keep it until the last of the sequence. Every target acknowledges.
//!
//! Reservations are taken as a whole and in order of request. Only tiles should be targets; a
//! memory channel behind a target place is not simulated.

use linkwright_core::EndpointId;

use super::geometry::{Place, Port, Route};
use super::interface::{initiator_of, Interface};
use super::lane::{BROADCAST, DATELINE, LANES};
use super::link::Link;
use super::{event, TorusNoc, NONE};
use crate::fabric::MsgKind;

/// A link of a tree.
pub(super) struct Node {
    link: u32,
    /// With the dateline bit where the route has wrapped in this dimension.
    channel: u8,
    children: Vec<u32>,
    /// Index in the set, at an interface.
    target: u32,
}

pub(super) struct Tree {
    /// The set of its targets.
    set: u32,
    pub nodes: Vec<Node>,
    /// Broadcast lanes of the tree, without those of interfaces.
    lanes: Vec<u32>,
    /// Time of the reservation.
    round_trip: u64,
    reserved: bool,
    /// Links that packets on their way have still to pass.
    passages: usize,
}

impl Tree {
    /// The tree that begins with link `inject`, each target reached by a route.
    fn build(links: &[Link], set: u32, inject: u32, routes: impl Iterator<Item = Route>) -> Tree {
        let node = |link, channel, target| Node {
            link,
            channel,
            children: Vec::new(),
            target,
        };
        let mut nodes = vec![node(inject, BROADCAST, 0)];
        for (target, mut route) in (0..).zip(routes) {
            let (mut at, mut dateline) = (0, 0);
            while links[nodes[at].link as usize].port != Port::Eject {
                if route.turns() {
                    dateline = 0;
                }
                let link = links[nodes[at].link as usize].beyond + route.onward();
                let known = nodes[at].children.iter().map(|&child| child as usize);
                let to_share = links[link as usize].port != Port::Eject;
                let shared = { known }.find(|&child| to_share && nodes[child].link == link);
                at = shared.unwrap_or_else(|| {
                    let child = nodes.len();
                    nodes[at].children.push(child as u32);
                    nodes.push(node(link, BROADCAST + dateline, target));
                    child
                });
                if links[link as usize].wraps {
                    dateline = DATELINE;
                }
            }
        }
        let inner = nodes
            .iter()
            .filter(|node| links[node.link as usize].port != Port::Eject);
        let lanes = inner.map(|node| node.link * LANES + node.channel as u32);
        Tree {
            set,
            lanes: lanes.collect(),
            nodes,
            round_trip: 0,
            reserved: false,
            passages: 0,
        }
    }
}

impl TorusNoc {
    /// The tree from `source` to the targets of `set`, built at its first use.
    pub(super) fn tree(&mut self, network: u8, source: EndpointId, set: u32) -> u32 {
        if let Some(&known) = self.tree_of.get(&(network, source, set)) {
            return known;
        }
        let from = self.place(source);
        let targets = &self.sets[set as usize];
        assert!(
            !targets.is_empty(),
            "multicast set {set} is empty; give it a target"
        );
        let targets: Vec<Place> = targets.iter().map(|&target| self.place(target)).collect();
        let inject = self.geometry.link(network, from, Port::Inject);
        let routes = targets
            .iter()
            .map(|&to| self.geometry.route(network, from, to));
        let mut tree = Tree::build(&self.links, set, inject, routes);
        let there_and_back = |&target: &Place| {
            2 * self.link_flit as u64
                + self.way(network, from, target)
                + self.way(network, target, from)
        };
        tree.round_trip = targets.iter().map(there_and_back).max().unwrap_or(0);
        let id = self.trees.len() as u32;
        self.trees.push(tree);
        self.tree_of.insert((network, source, set), id);
        id
    }

    /// `packet` wants its tree: at once if the reservation stands, else after a round trip.
    pub(super) fn reserve_tree(&mut self, packet: u32, now: u64) {
        let tree = self.packets[packet as usize].tree as usize;
        if self.trees[tree].reserved && self.config.multicast_linked {
            self.trees[tree].passages += self.trees[tree].nodes.len();
            self.request_node(packet, now);
        } else {
            self.unreserved.push(packet);
            self.grant_trees(now);
        }
    }

    /// Reserve trees for waiting packets, in order, if all lanes are free.
    fn grant_trees(&mut self, now: u64) {
        let mut index = 0;
        while index < self.unreserved.len() {
            let packet = self.unreserved[index];
            let tree = &mut self.trees[self.packets[packet as usize].tree as usize];
            let links = &mut self.links;
            let taken = |&lane: &u32| links[(lane / LANES) as usize].reserved & bit(lane) != 0;
            if tree.lanes.iter().any(taken) {
                index += 1;
                continue;
            }
            self.unreserved.remove(index);
            tree.reserved = true;
            tree.passages += tree.nodes.len();
            for &lane in &tree.lanes {
                links[(lane / LANES) as usize].reserved |= bit(lane);
            }
            self.calendar
                .push(now + tree.round_trip, event::RESERVED | packet);
        }
    }

    /// The head of a multicast has come to a router: one packet per branch goes on.
    pub(super) fn branch(&mut self, packet: u32, now: u64) {
        let original = self.packets[packet as usize];
        let node = &self.trees[original.tree as usize].nodes[original.node as usize];
        let children = node.children.clone();
        let job = &mut self.jobs[original.head as usize];
        (job.ungranted, job.unpassed) = (children.len() as u8, children.len() as u8);
        let mut branches = vec![packet];
        branches.extend(children[1..].iter().map(|_| self.packets.insert(original)));
        for (&branch, child) in branches.iter().zip(children) {
            self.packets[branch as usize].node = child;
        }
        for branch in branches {
            self.request_node(branch, now);
        }
    }

    /// A packet asks for the lane of its node.
    pub(super) fn request_node(&mut self, id: u32, now: u64) {
        let packet = &mut self.packets[id as usize];
        let node = &self.trees[packet.tree as usize].nodes[packet.node as usize];
        packet.channel = node.channel;
        self.request(id, node.link, now);
    }

    /// Index in its set of the target that packet `id` has come to.
    pub(super) fn target_index(&self, id: u32) -> u32 {
        let packet = &self.packets[id as usize];
        self.trees[packet.tree as usize].nodes[packet.node as usize].target
    }

    /// The target that packet `id` has come to.
    pub(super) fn target_of(&self, id: u32) -> EndpointId {
        let tree = &self.trees[self.packets[id as usize].tree as usize];
        self.sets[tree.set as usize][self.target_index(id) as usize]
    }

    /// A packet has passed one link of its tree.
    pub(super) fn passed(&mut self, packet: u32, now: u64) {
        let id = self.packets[packet as usize].tree;
        let tree = &mut self.trees[id as usize];
        tree.passages -= 1;
        let issuer = self.messages[self.packets[packet as usize].message as usize].issuer;
        if tree.passages > 0 || self.config.multicast_linked && self.more_to_send(issuer, id) {
            return;
        }
        let tree = &mut self.trees[id as usize];
        tree.reserved = false;
        for &lane in &tree.lanes {
            self.links[(lane / LANES) as usize].reserved &= !bit(lane);
        }
        self.grant_trees(now);
    }

    /// Whether the next multicast of an interface uses the same tree, given that all earlier ones have passed. A
    /// multicast already issued waits for another tree.
    fn more_to_send(&self, issuer: u32, tree: u32) -> bool {
        let &Interface { current, busy, .. } = &self.interfaces[issuer as usize];
        let issued = busy & 1 << initiator_of(MsgKind::Multicast) != 0;
        !issued && current != NONE && self.messages[current as usize].tree == tree
    }
}

/// The bit of a lane among those of its link.
fn bit(lane: u32) -> u16 {
    1 << (lane % LANES)
}
