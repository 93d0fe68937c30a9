//! Messages between more than two: the branches by which they travel, each worked out once.
//!
//! A *branch* is a flow over a tree of links, and has a route of its own; see [`super::branches`] for the trees.
//! Where no switch on the way can do anything for a multicast, it has none, and goes to each target by itself.

use super::branches::{joined, Branching, Flowing, Stream};
use super::group::{Branch, Group, Reached};
use super::pairs::Key;
use super::routes::Routes;
use super::uses::Use;
use linkwright_core::{EndpointId, TimePs};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// Most often that a byte may use one resource.
const MOST_USES: u64 = 255;

fn nodes(places: &[EndpointId]) -> Vec<u32> {
    places.iter().map(|place| place.0).collect()
}

impl Routes {
    /// The branches of a multicast; none where each target gets a flow of its own.
    pub fn multicast(
        &mut self,
        from: EndpointId,
        targets: &[EndpointId],
        network: u8,
    ) -> Option<Range<u32>> {
        if !self.routing.topology.copies() {
            return None;
        }
        self.branches(Group {
            sources: vec![from.0],
            targets: nodes(targets),
            network,
            combines: false,
        })
    }

    /// The branch of an aggregation; none where no switch can combine the data. Of one source it is a multicast that the
    /// source itself sets off, along its own ways.
    pub fn aggregation(
        &mut self,
        sources: &[EndpointId],
        targets: &[EndpointId],
        network: u8,
    ) -> Option<Range<u32>> {
        let by_itself = sources.len() > 1 || sources.first() == targets.first();
        if !self.routing.topology.combines() || !by_itself {
            return None;
        }
        self.branches(Group {
            sources: nodes(sources),
            targets: nodes(targets),
            network,
            combines: true,
        })
    }

    /// Branch number `number`.
    pub fn branch(&self, number: u32) -> &Branch {
        &self.groups.branches[number as usize]
    }

    fn branches(&mut self, group: Group) -> Option<Range<u32>> {
        let found = match self.groups.known.get(&group) {
            Some(&known) => known,
            None => {
                let first = self.groups.branches.len() as u32;
                let made = self.make(&group);
                let end = self.groups.branches.len() as u32;
                let found = made.map(|()| (first, end));
                self.groups.known.insert(group, found);
                found
            }
        };
        found.map(|(first, end)| first..end)
    }

    fn make(&mut self, group: &Group) -> Option<()> {
        match group.combines {
            true => self.make_aggregation(group),
            false => self.make_multicast(group),
        }
    }

    fn make_multicast(&mut self, group: &Group) -> Option<()> {
        let (transport, branching) =
            self.branching(group.sources[0], &group.targets, group.network)?;
        let wanted = set(&group.targets)?;
        let topology = &self.routing.topology;
        let streams = branching.streams(group.sources[0], &wanted, Flowing::Apart, topology);
        if streams.len() == group.targets.len() || !streams.iter().all(|s| fits(&s.uses)) {
            return None;
        }
        for stream in streams {
            let ends = stream.ends.into_iter().map(|(node, links)| {
                let back = self.latency(&links);
                (place(group, node), links, back)
            });
            let ends = ends.collect();
            self.file((group.network, transport), stream.uses, ends);
        }
        Some(())
    }

    fn make_aggregation(&mut self, group: &Group) -> Option<()> {
        let initiator = *group.targets.first()?;
        let all = group.sources.iter().chain(&group.targets);
        let mut others: Vec<u32> = all.copied().filter(|&node| node != initiator).collect();
        others.sort_unstable();
        others.dedup();
        let (transport, branching) = self.branching(initiator, &others, group.network)?;
        let topology = &self.routing.topology;
        let (sources, targets) = (set(&group.sources)?, set(&group.targets)?);
        let root = branching.root(&sources.union(&targets).copied().collect(), topology)?;
        let ins = branching.streams(root, &sources, Flowing::Together, topology);
        let outs = branching.streams(root, &targets, Flowing::Apart, topology);
        let combined = (ins.len() > 1).then(|| topology.combining(root)).flatten();
        let turns: Vec<Use> = (outs.iter())
            .filter_map(|out| {
                let out = out.ends[0].1[0];
                (ins.iter()).find_map(|one| topology.turning(one.ends[0].1[0] ^ 1, out))
            })
            .collect();
        let (ins, outs) = (joined(ins), joined(outs));
        let uses = [&ins.uses[..], &outs.uses, &turns].concat();
        let uses: Vec<Use> = uses.into_iter().chain(combined).collect();
        if !fits(&uses) {
            return None;
        }
        let farthest = (ins.ends.iter()).max_by_key(|end| self.latency(&end.1))?;
        let up: Vec<u32> = farthest.1.iter().rev().map(|link| link ^ 1).collect();
        let ends = self.answers(group, outs, &up);
        self.file((group.network, transport), uses, ends);
        Some(())
    }

    /// The targets of an aggregation of which the last byte comes over the links `up`, by their places, with
    /// the time until the initiator knows of each.
    fn answers(&self, group: &Group, outs: Stream, up: &[u32]) -> Vec<(u32, Vec<u32>, TimePs)> {
        let own = |end: &&(u32, Vec<u32>)| end.0 == group.targets[0];
        let initiator = outs.ends.iter().find(own);
        let home = initiator.map_or(TimePs::ZERO, |end| self.latency(&end.1));
        let answer = |(node, links): (u32, Vec<u32>)| {
            let back = match node == group.targets[0] {
                true => TimePs::ZERO,
                false => self.latency(&links) + home,
            };
            (place(group, node), [up, &links].concat(), back)
        };
        let mut ends: Vec<_> = outs.ends.into_iter().map(answer).collect();
        ends.sort_by_key(|end| end.0);
        ends
    }

    /// The ways from `from` to all of `others`, which must be those of one transport.
    fn branching(&mut self, from: u32, others: &[u32], network: u8) -> Option<(usize, Branching)> {
        let mut branching = Branching::default();
        let mut transport = None;
        for &to in others {
            let key = Key { from, to, network };
            let used = (self.routing).straight(key, &mut self.trees, &mut self.way)?;
            let same = *transport.get_or_insert(used) == used;
            if !same || !branching.add(&self.way.links, &self.routing.topology) {
                return None;
            }
        }
        Some((transport?, branching))
    }

    fn latency(&self, links: &[u32]) -> TimePs {
        let all = &self.routing.topology.links;
        links.iter().map(|&link| all[link as usize].latency).sum()
    }

    /// Enter a branch with these uses, and by target the links of its last byte.
    fn file(&mut self, carrier: (u8, usize), uses: Vec<Use>, ends: Vec<(u32, Vec<u32>, TimePs)>) {
        let list = self.uses.add(|all| all.extend(uses));
        let mut targets = Vec::with_capacity(ends.len());
        for (place, links, back) in ends {
            let timing = self
                .routing
                .timing_along(carrier, links, (&self.uses, list));
            let timing = self.number(timing);
            targets.push(Reached {
                place,
                timing,
                back,
            });
        }
        let route = self.enter(targets[0].timing, list);
        self.groups.branches.push(Branch { route, targets });
    }
}

/// The place of `node` among the targets of `group`.
fn place(group: &Group, node: u32) -> u32 {
    let place = group.targets.iter().position(|&target| target == node);
    place.expect("a stream ends at targets") as u32
}

/// The nodes, if they are all different.
fn set(nodes: &[u32]) -> Option<FxHashSet<u32>> {
    let set: FxHashSet<u32> = nodes.iter().copied().collect();
    (set.len() == nodes.len()).then_some(set)
}

/// Whether each resource can count how often it is used.
fn fits(uses: &[Use]) -> bool {
    let mut counts: FxHashMap<usize, u64> = FxHashMap::default();
    uses.iter().all(|used| {
        let count = counts.entry(used.resource()).or_default();
        *count += used.weight();
        *count <= MOST_USES
    })
}
