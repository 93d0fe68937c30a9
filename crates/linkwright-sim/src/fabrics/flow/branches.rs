//! Trees of links: a multicast of which one copy goes up, an aggregation of which one copy comes down.
//!
//! ```text
//!   multicast    0 -> switch -> 1        aggregation   0 -> switch -> 3      one flow, one rate over all its links
//!                       |-----> 2                      1 ---> |
//!                       `-----> 3                      2 ---> `
//! ```
//!
//! The shortest ways from one participant to all the others make a tree, and each edge has a link in either
//! direction. A multicast follows it from its source. What leaves a switch over several links came in once
//! if the switch copies, else as often as it leaves. An aggregation turns the tree round: what comes in over several
//! links leaves once if the switch combines. So several *streams* may cross a link, and each uses it.
//!
//! ```text
//!   streams(v) = the streams of all nodes behind v, and one more if v takes part
//!              = one, if v joins streams and has any
//! ```
//!
//! An aggregation needs a switch at which all streams end, its *root*: the one, of those that combine, from which
//! the farthest participants are nearest. From there the result goes to the targets as a multicast does.
//! The streams of a multicast that leave the source are flows of their own; an aggregation is one flow.

use super::topology::Topology;
use super::uses::Use;
use linkwright_core::TimePs;
use rustc_hash::{FxHashMap, FxHashSet};

/// Links of a tree, by the node that they leave, in both directions.
#[derive(Debug, Default)]
pub(super) struct Branching {
    out: FxHashMap<u32, Vec<u32>>,
    /// Nodes in the order in which they were met.
    nodes: Vec<u32>,
}

/// Data that move together over links.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    pub uses: Vec<Use>,
    /// The participants that it reaches, or comes from, each with its way from the root.
    pub ends: Vec<(u32, Vec<u32>)>,
}

/// Which way streams flow, and what joins them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flowing {
    /// From the root; switches that copy join them.
    Apart,
    /// To the root; switches that combine join them.
    Together,
}

impl Branching {
    /// Add the links of a way; false where they close a circle.
    pub fn add(&mut self, links: &[u32], topology: &Topology) -> bool {
        links.iter().all(|&link| {
            let (from, to) = (
                topology.begins[link as usize],
                topology.links[link as usize].to,
            );
            if self.out.get(&from).is_some_and(|out| out.contains(&link)) {
                return true;
            }
            let known = self.out.contains_key(&to);
            if self.nodes.is_empty() {
                self.nodes.push(from);
            }
            self.nodes.push(to);
            self.out.entry(from).or_default().push(link);
            self.out.entry(to).or_default().push(link ^ 1);
            !known
        })
    }

    /// The streams between `root` and the participants in `wanted`.
    pub fn streams(
        &self,
        root: u32,
        wanted: &FxHashSet<u32>,
        flowing: Flowing,
        topology: &Topology,
    ) -> Vec<Stream> {
        let tree = Tree {
            branching: self,
            wanted,
            flowing,
            topology,
        };
        tree.behind(root, None, &mut Vec::new())
    }

    /// The switch that combines and is nearest to the farthest of `places`.
    pub fn root(&self, places: &FxHashSet<u32>, topology: &Topology) -> Option<u32> {
        let combines = |node: &&u32| topology.joins(**node, true);
        let all = self.nodes.iter().filter(combines);
        all.copied()
            .min_by_key(|&node| self.farthest(node, places, topology))
    }

    /// Latency from `root` to the farthest of `places`.
    fn farthest(&self, root: u32, places: &FxHashSet<u32>, topology: &Topology) -> TimePs {
        let mut farthest = TimePs::ZERO;
        let mut open = vec![(root, u32::MAX, TimePs::ZERO)];
        while let Some((node, came, latency)) = open.pop() {
            if places.contains(&node) {
                farthest = farthest.max(latency);
            }
            for &link in self.out.get(&node).into_iter().flatten() {
                if link != came ^ 1 {
                    let next = &topology.links[link as usize];
                    open.push((next.to, link, latency + next.latency));
                }
            }
        }
        farthest
    }
}

/// What a root and a direction make of a branching.
struct Tree<'a> {
    branching: &'a Branching,
    wanted: &'a FxHashSet<u32>,
    flowing: Flowing,
    topology: &'a Topology,
}

impl Tree<'_> {
    /// The streams of `node`, to which the links `way` lead from the root, the last of them `came`.
    fn behind(&self, node: u32, came: Option<u32>, way: &mut Vec<u32>) -> Vec<Stream> {
        let mut streams = Vec::new();
        let mut turn = None;
        if self.wanted.contains(&node) && came.is_some() {
            streams.push(Stream {
                uses: self.own(node).into_iter().collect(),
                ends: vec![(node, way.clone())],
            });
        }
        let out = self.branching.out.get(&node).into_iter().flatten();
        for &link in out.filter(|&&link| Some(link ^ 1) != came) {
            way.push(link);
            let next = self.topology.links[link as usize].to;
            let farther = self.behind(next, Some(link), way);
            way.pop();
            let turns = came.and_then(|came| self.turns(came, link));
            turn = turn.or(turns);
            for mut stream in farther {
                self.cross(link, &mut stream);
                stream.uses.extend(turns);
                streams.push(stream);
            }
        }
        let combines = self.flowing == Flowing::Together;
        if came.is_some() && streams.len() > 1 && self.topology.joins(node, combines) {
            streams = vec![joined(streams)];
            if combines {
                streams[0].uses.extend(self.topology.combining(node));
                // What turned to leave over one link has become one stream.
                let turned = |used: &Use| turn.is_some_and(|t| t.resource() == used.resource());
                streams[0].uses.retain(|used| !turned(used));
                streams[0].uses.extend(turn);
            }
        }
        for stream in &mut streams {
            stream.uses.extend(match came {
                Some(_) => self.topology.passing(node, 1),
                None => self
                    .topology
                    .injected(node, true)
                    .map(|own| Use::new(own, 1)),
            });
        }
        streams
    }

    /// What `node` uses for its own data.
    fn own(&self, node: u32) -> Option<Use> {
        let sends = self.flowing == Flowing::Together;
        let resource = self.topology.injected(node, sends)?;
        Some(Use::new(resource, 1))
    }

    /// What a stream uses that turns between `came`, on the way from the root, and `link`.
    fn turns(&self, came: u32, link: u32) -> Option<Use> {
        match self.flowing {
            Flowing::Apart => self.topology.turning(came, link),
            Flowing::Together => self.topology.turning(link ^ 1, came ^ 1),
        }
    }

    /// `stream` crosses `link` away from the root, or towards it.
    fn cross(&self, link: u32, stream: &mut Stream) {
        let crossed = match self.flowing {
            Flowing::Apart => link,
            Flowing::Together => link ^ 1,
        };
        let node = self.topology.begins[link as usize];
        stream.uses.push(Use::new(crossed, 1));
        stream.uses.extend(self.topology.passing(node, 1));
    }
}

/// The streams as one.
pub(super) fn joined(streams: Vec<Stream>) -> Stream {
    let mut one = Stream::default();
    for stream in streams {
        one.uses.extend(stream.uses);
        one.ends.extend(stream.ends);
    }
    one
}
