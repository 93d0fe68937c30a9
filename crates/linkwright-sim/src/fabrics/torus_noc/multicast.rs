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
//! farthest target, then sends. So two multicasts that share a link never hold each other up half
//! way. The reservation ends when the tail has left the last link; *linked* multicasts of one
//! interface to one set keep it until the last of the sequence. Every target acknowledges.
//!
//! Reservations are taken as a whole and in order of request. Only tiles should be targets; a
//! memory channel behind a target place is not simulated.

use linkwright_core::EndpointId;

use super::geometry::{Geometry, Place, Port};
use super::lane::{BROADCAST, DATELINE, LANES};
use super::{event, TorusNoc, NONE};

/// A link of a tree.
pub(super) struct Node {
    pub port: Port,
    /// Whether the route has wrapped in this dimension.
    pub dateline: bool,
    at: Place,
    children: Vec<u32>,
    /// Index in the set, at an interface.
    pub target: u32,
}

pub(super) struct Tree {
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
    fn build(geometry: &Geometry, network: u8, source: Place, targets: &[Place]) -> Tree {
        let root = Node {
            port: Port::Inject,
            dateline: false,
            at: source,
            children: Vec::new(),
            target: 0,
        };
        let mut nodes = vec![root];
        for (index, &target) in targets.iter().enumerate() {
            let (mut node, mut at, mut dateline) = (0, source, false);
            loop {
                let port = geometry.toward(network, at, target);
                dateline &= port.same_axis(nodes[node].port);
                let known = nodes[node].children.iter().copied();
                let known = known.filter(|_| port != Port::Eject);
                let known = { known }.find(|&child| nodes[child as usize].port == port);
                node = match known {
                    Some(child) => child as usize,
                    None => {
                        let child = nodes.len();
                        nodes[node].children.push(child as u32);
                        let children = Vec::new();
                        nodes.push(Node {
                            port,
                            dateline,
                            at,
                            children,
                            target: index as u32,
                        });
                        child
                    }
                };
                if port == Port::Eject {
                    break;
                }
                let (next, wraps) = geometry.step(at, port);
                at = next;
                dateline |= wraps;
            }
        }
        let inner = nodes.iter().filter(|node| node.port != Port::Eject);
        let lanes = inner.map(|node| {
            let channel = BROADCAST + if node.dateline { DATELINE } else { 0 };
            geometry.link(network, node.at, node.port) * LANES + channel as u32
        });
        Tree {
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
        let mut tree = Tree::build(&self.geometry, network, from, &targets);
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
            self.request(packet, now);
        } else {
            self.unreserved.push(packet);
            self.grant_trees(now);
        }
    }

    /// Reserve trees for those who wait, in order, where all lanes are free.
    fn grant_trees(&mut self, now: u64) {
        let mut index = 0;
        while index < self.unreserved.len() {
            let packet = self.unreserved[index];
            let tree = &mut self.trees[self.packets[packet as usize].tree as usize];
            if tree
                .lanes
                .iter()
                .any(|&lane| self.lanes[lane as usize].reserved)
            {
                index += 1;
                continue;
            }
            self.unreserved.remove(index);
            tree.reserved = true;
            tree.passages += tree.nodes.len();
            for &lane in &tree.lanes {
                self.lanes[lane as usize].reserved = true;
            }
            self.calendar
                .push(now + tree.round_trip, event::RESERVED | packet);
        }
    }

    /// The head of a multicast has come to a router: one packet per branch goes on.
    pub(super) fn branch(&mut self, job: u32, packet: u32, now: u64) {
        let original = self.packets[packet as usize];
        let node = &self.trees[original.tree as usize].nodes[original.node as usize];
        let children = node.children.clone();
        self.jobs[job as usize].branches = children.len() as u8;
        let mut branches = vec![packet];
        branches.extend(children[1..].iter().map(|_| self.packets.insert(original)));
        for (&branch, child) in branches.iter().zip(children) {
            self.packets[branch as usize].node = child;
        }
        for branch in branches {
            self.request(branch, now);
        }
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
            self.lanes[lane as usize].reserved = false;
        }
        self.grant_trees(now);
    }

    /// Whether the next message of an interface is a multicast over the same tree.
    fn more_to_send(&self, issuer: u32, tree: u32) -> bool {
        let next = self.interfaces[issuer as usize].next_message();
        next.is_some_and(|id| self.messages[id as usize].tree == tree && tree != NONE)
    }
}
