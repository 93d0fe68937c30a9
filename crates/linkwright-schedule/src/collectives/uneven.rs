//! Uneven exchanges: alltoallv, and the dispatch and combine of mixtures of experts.
//!
//! ```text
//!   direct    every rank sends every other what it has for it; one copy of a token per rank, or per expert (low latency)
//!   pairwise  the same, with one partner after the other
//!   rails     rows of the grid are nodes: GPU g sends a node one copy of each token, to GPU g there (1), which hands
//!             it to all GPUs of its node that need it (2)
//!
//!      node 0   0   1   2   3           a token of rank 1 for ranks 4, 6 and 7: once over rail 1, to rank 5,
//!                   | (1)               and from there three times over links of the node
//!      node 1   4 < 5 > 6 > 7   (2)
//! ```
//!
//!   chunked   rails in parts, with a queue for each target
//!
//! A combine goes the same ways back. By rails, the GPUs of a node hand their results to GPU g, each into a place of its
//! own; it adds them up, and one sum returns to the source. Directly, every result returns by itself.
//!
//! Nothing is sent where there is nothing to send. [`crate::classes`] says how tokens become blocks.

use crate::classes::{Class, Classes, Copies, Places};
use crate::collectives::prelude::*;
use crate::ir::COMPUTE_LANE;

const DEEPEP: &str =
    "Zhao and others, \"DeepEP: an efficient expert-parallel communication library\" (2025)";
const MPICH: &str =
    "Thakur, Rabenseifner and Gropp, \"Optimization of collective communication operations in MPICH\" (IJHPCA 2005)";

algorithm! {
    /// every rank posts to every other rank what it has for it
    ///
    /// No waits and no forwarding; what the fullest rank sends or receives decides.
    pub ALLTOALLV = Alltoallv "linear" {
        cost: "1 round of at most p-1 messages per rank, at most S bytes out of a rank",
        source: MPICH,
        build: |shape| direct(Collective::Alltoallv, shape, Copies::Rank, false),
    }

    /// every rank exchanges with one rank after another
    ///
    /// One message per rank at a time, so ports are free of contention; a round lasts as long as its longest message.
    pub ALLTOALLV_PAIRWISE = Alltoallv "pairwise" {
        cost: "p-1 rounds, at most S bytes out of a rank",
        source: MPICH,
        build: |shape| direct(Collective::Alltoallv, shape, Copies::Rank, true),
    }

    /// blocks cross to the GPU of their rail in the other node, which hands them on
    ///
    /// One message to each other node, on its own rail. Rows of the grid are nodes.
    pub ALLTOALLV_RAILS = Alltoallv "rails" {
        cost: "2 rounds of at most rows-1 and columns messages; each block crosses the network once",
        nodes: Needed,
        source: DEEPEP,
        build: |shape| dispatch(&ALLTOALLV_RAILS, shape, 1),
    }

    /// as rails, in parts of which one crosses the network while others are handed on
    ///
    /// Every node and every GPU of a node has a queue of its own, as in the dispatch of this name.
    pub ALLTOALLV_RAILS_CHUNKED = Alltoallv "rails_chunked" {
        cost: "as rails, each message in at most 32 parts",
        nodes: Needed,
        source: DEEPEP,
        build: |shape| dispatch(&ALLTOALLV_RAILS_CHUNKED, shape, PARTS),
    }

    /// every token goes straight to each rank that owns one of its experts, once
    ///
    /// No forwarding: for GPUs that all reach each other, such as a rack of NVLink.
    pub DISPATCH = Dispatch "direct" {
        cost: "1 round of at most p-1 messages per rank; a token is sent once per rank",
        source: DEEPEP,
        build: |shape| direct(Collective::Dispatch, shape, Copies::Rank, false),
    }

    /// every token goes once to each node that needs it, over its own rail, and is handed on there
    ///
    /// DeepEP's normal mode: the network carries one copy of a token per node, links inside the node the others. Rows
    /// of the grid are nodes.
    pub DISPATCH_RAILS = Dispatch "rails" {
        cost: "2 rounds of at most rows-1 and columns messages; a token crosses the network once per node",
        nodes: Needed,
        source: DEEPEP,
        build: |shape| dispatch(&DISPATCH_RAILS, shape, 1),
    }

    /// as rails, in parts of which one crosses the network while others are handed on
    ///
    /// Every node and every GPU of a node has a queue of its own, so that a slow one stops no other: the NICs of the
    /// fullest node receive all the time. What travels alike is cut in pieces, the largest first, so that parts are
    /// equal and little is left to hand on at the end.
    pub DISPATCH_RAILS_CHUNKED = Dispatch "rails_chunked" {
        cost: "as rails, each message in at most 32 parts",
        nodes: Needed,
        source: DEEPEP,
        build: |shape| dispatch(&DISPATCH_RAILS_CHUNKED, shape, PARTS),
    }

    /// every token goes straight to each of its experts, once per expert
    ///
    /// DeepEP's low-latency mode: nothing is forwarded, counted or sorted first, so that few tokens arrive soonest; two
    /// experts of one rank get two copies.
    pub DISPATCH_LOW_LATENCY = Dispatch "low_latency" {
        cost: "1 round of at most p-1 messages per rank; a token is sent once per expert",
        source: DEEPEP,
        build: |shape| direct(Collective::Dispatch, shape, Copies::Expert, false),
    }

    /// every rank returns what its experts made of a token straight to its source, once
    ///
    /// The source gets one sum from each rank.
    pub COMBINE = Combine "direct" {
        cost: "1 round of at most p-1 messages per rank; a token returns once per rank",
        source: DEEPEP,
        build: |shape| direct(Collective::Combine, shape, Copies::Rank, false),
    }

    /// results of a node are added up on the rail of the source, and one sum returns over the network
    ///
    /// DeepEP's normal mode, the way of the dispatch backwards. Rows of the grid are nodes.
    pub COMBINE_RAILS = Combine "rails" {
        cost: "2 rounds of at most columns-1 and rows-1 messages; a token crosses the network once per node",
        nodes: Needed,
        source: DEEPEP,
        build: |shape| combine(&COMBINE_RAILS, shape, 1),
    }

    /// as rails, in parts of which one crosses the network while others are added up
    ///
    /// Every node and every GPU of a node has a queue of its own, as in the dispatch of this name.
    pub COMBINE_RAILS_CHUNKED = Combine "rails_chunked" {
        cost: "as rails, each message in at most 32 parts",
        nodes: Needed,
        source: DEEPEP,
        build: |shape| combine(&COMBINE_RAILS_CHUNKED, shape, PARTS),
    }

    /// every expert returns its result straight to the source of the token
    ///
    /// DeepEP's low-latency mode: nothing is added up on the way.
    pub COMBINE_LOW_LATENCY = Combine "low_latency" {
        cost: "1 round of at most p-1 messages per rank; a token returns once per expert",
        source: DEEPEP,
        build: |shape| direct(Collective::Combine, shape, Copies::Expert, false),
    }
}

/// Every class straight to its one target, or for a combine back from there.
fn direct(of: Collective, shape: &Shape, copies: Copies, pairwise: bool) -> Result<Schedule> {
    let classes = Classes::of(shape, copies)?;
    let (sources, targets) = (classes.at_sources(), classes.at_targets());
    let back = of == Collective::Combine;
    let mut b = Builder::new(of, &classes.shape(shape));
    let (from, to) = if back {
        (&targets, &sources)
    } else {
        (&sources, &targets)
    };
    let (input, output) = (
        b.buffer(from.buffer("input")?),
        b.buffer(to.buffer("output")?),
    );
    let p = shape.ranks;
    // Classes are sorted by source and target; a list of targets alone is small.
    let to: Vec<u32> = classes.all.iter().map(|class| class.targets[0]).collect();
    let first = |source| classes.all.partition_point(|class| class.source < source);
    let firsts: Vec<usize> = (0..=p).map(first).collect();
    let blocks = targets.blocks(to.len());
    let find = |source: u32, target: u32| {
        let first = firsts[source as usize];
        let found = to[first..firsts[source as usize + 1]].binary_search(&target);
        found.ok().map(|class| (first + class) as u32)
    };
    b.step();
    for ahead in 0..p {
        for from in 0..p {
            let to = match pairwise && p.is_power_of_two() {
                true => from ^ ahead,
                false => (from + ahead) % p,
            };
            let (source, target) = if back { (to, from) } else { (from, to) };
            let Some(class) = find(source, target) else {
                continue;
            };
            let there = blocks[class as usize];
            let (src, dst) = if back { (there, class) } else { (class, there) };
            if ahead == 0 {
                b.local(from, input.at(src), output.at(dst));
                continue;
            }
            let written = b.put(from, input.at(src), to, output.at(dst));
            if pairwise && ahead > 1 {
                written.fenced();
            }
        }
        if pairwise {
            b.step();
        }
    }
    b.finish()
}

/// Classes of one source for one node, which travel together, and the rank of their rail there; of the own node the
/// source itself.
#[derive(Clone, Copy)]
struct Bundle {
    source: u32,
    relay: u32,
    /// First class and their number.
    first: u32,
    count: u32,
}

/// A two-stage exchange over nodes of `columns` ranks.
struct Rails {
    columns: u32,
    rows: u32,
    classes: Classes,
}

impl Rails {
    fn of(algorithm: &Algorithm, shape: &Shape, parts: u64) -> Result<Self> {
        let (columns, rows) = algorithm.nodes_of(shape)?;
        let mut classes = Classes::of(shape, Copies::Node(columns))?;
        if parts > 1 {
            let most = classes.of / (2 * parts);
            classes = classes.cut(most);
        }
        Ok(Rails {
            columns,
            rows,
            classes,
        })
    }

    fn relay(&self, class: &Class) -> u32 {
        let node = class.targets[0] / self.columns;
        match class.source / self.columns == node {
            true => class.source,
            false => node * self.columns + class.source % self.columns,
        }
    }

    /// The bundles, those for the nodes right behind each source first.
    fn bundles(&self) -> Vec<Bundle> {
        let mut found: Vec<Bundle> = Vec::new();
        for (c, class) in (0u32..).zip(&self.classes.all) {
            let relay = self.relay(class);
            match found.last_mut() {
                Some(last) if (last.source, last.relay) == (class.source, relay) => last.count += 1,
                _ => found.push(Bundle {
                    source: class.source,
                    relay,
                    first: c,
                    count: 1,
                }),
            }
        }
        found.sort_by_key(|one| {
            let nodes =
                (one.relay / self.columns + self.rows - one.source / self.columns) % self.rows;
            (nodes, one.source)
        });
        found
    }

    /// The bundles in at most `parts` of about as many units each: the first parts of all, then the second ones.
    fn cut(&self, parts: u64) -> Vec<Vec<Bundle>> {
        let mut found: Vec<Vec<Bundle>> = vec![Vec::new(); parts as usize];
        for whole in self.bundles() {
            let all = whole.first..whole.first + whole.count;
            let units = |class: u32| self.classes.all[class as usize].units;
            let total: u64 = all.clone().map(units).sum();
            let (mut before, mut last) = (0, parts);
            for first in all {
                let part = before * parts / total;
                before += units(first);
                if part == last {
                    found[part as usize]
                        .last_mut()
                        .expect("a part begins")
                        .count += 1;
                } else {
                    let one = Bundle {
                        first,
                        count: 1,
                        ..whole
                    };
                    found[part as usize].push(one);
                    last = part;
                }
            }
        }
        found
    }

    /// The queue of what goes to GPU `gpu` of the node, or to `node`: 0 and 1, or in `parts` one for each.
    fn queue(&self, parts: u64, gpu: Option<u32>, node: u32) -> u8 {
        match (parts, gpu) {
            (1, _) => gpu.is_some().into(),
            (_, Some(gpu)) => (gpu % u32::from(COMPUTE_LANE)) as u8,
            _ => ((self.columns + node) % u32::from(COMPUTE_LANE)) as u8,
        }
    }

    /// Where classes are on their way between nodes.
    fn relayed(&self) -> Places {
        self.classes.at(|class| {
            let relay = self.relay(class);
            let crosses = relay != class.source;
            crosses.then_some(relay).into_iter().collect()
        })
    }

    /// The classes of `bundle` that `member` of its node needs.
    fn of_member(&self, bundle: &Bundle, member: u32) -> Vec<u32> {
        let classes = bundle.first..bundle.first + bundle.count;
        let needs = |c: &u32| {
            self.classes.all[*c as usize]
                .targets
                .binary_search(&member)
                .is_ok()
        };
        classes.filter(needs).collect()
    }

    /// The ranks of the node of `relay`, beginning with it.
    fn node(&self, relay: u32) -> impl Iterator<Item = u32> + '_ {
        let (node, gpu) = (relay / self.columns, relay % self.columns);
        (0..self.columns).map(move |k| node * self.columns + (gpu + k) % self.columns)
    }
}

/// Declare a buffer that may have no blocks.
fn declared(b: &mut Builder, places: &Places, name: &str) -> Result<Option<Slot>> {
    match places.is_empty() {
        true => Ok(None),
        false => Ok(Some(b.buffer(places.buffer(name)?))),
    }
}

/// Parts of a bundle that overlap its stages.
const PARTS: u64 = 32;

fn dispatch(algorithm: &Algorithm, shape: &Shape, parts: u64) -> Result<Schedule> {
    let rails = Rails::of(algorithm, shape, parts)?;
    let (relayed, targets) = (rails.relayed(), rails.classes.at_targets());
    let mut b = Builder::new(algorithm.collective, &rails.classes.shape(shape));
    let input = b.buffer(rails.classes.at_sources().buffer("input")?);
    let output = b.buffer(targets.buffer("output")?);
    let relay = declared(&mut b, &relayed, "relay")?;
    let bundles = rails.cut(parts).concat();
    b.step();
    for bundle in bundles.iter().filter(|one| one.relay != one.source) {
        let relay = relay.ok_or(ScheduleError::TooLarge(0))?;
        let place = relayed.block(bundle.relay, bundle.first);
        let sent = input.chunks(bundle.first, bundle.count);
        let there = relay.chunks(place, bundle.count);
        b.put(bundle.source, sent, bundle.relay, there)
            .lane(rails.queue(parts, None, bundle.relay / rails.columns));
    }
    b.step();
    for bundle in &bundles {
        let crossed = relay.filter(|_| bundle.relay != bundle.source);
        for member in rails.node(bundle.relay) {
            let run = |c: u32| {
                let from = crossed.map_or(c, |_| relayed.block(bundle.relay, c));
                (from, targets.block(member, c), 1)
            };
            let runs: Vec<_> = rails
                .of_member(bundle, member)
                .into_iter()
                .map(run)
                .collect();
            let from = crossed.unwrap_or(input);
            match (runs.is_empty(), member == bundle.relay) {
                (true, _) => {}
                (_, true) => drop(b.local_runs(member, from, output, &runs)),
                _ => drop(
                    b.put_runs(bundle.relay, from, member, output, &runs)
                        .lane(rails.queue(parts, Some(member % rails.columns), 0)),
                ),
            }
        }
    }
    b.finish()
}

fn combine(algorithm: &Algorithm, shape: &Shape, parts: u64) -> Result<Schedule> {
    let rails = Rails::of(algorithm, shape, parts)?;
    let (relayed, holders) = (rails.relayed(), rails.classes.at_targets());
    // Where the result of each other member of the node lands: the places of one member together.
    let staged: Vec<Places> = (1..rails.columns)
        .map(|k| {
            rails.classes.at(|class| {
                let relay = rails.relay(class);
                let member = rails.node(relay).nth(k as usize).unwrap_or(relay);
                let needs = class.targets.binary_search(&member).is_ok();
                needs.then_some(relay).into_iter().collect()
            })
        })
        .collect();
    let mut b = Builder::new(Collective::Combine, &rails.classes.shape(shape));
    let input = b.buffer(holders.buffer("input")?);
    let output = b.buffer(rails.classes.at_sources().buffer("output")?);
    let relay = declared(&mut b, &relayed, "relay")?;
    let mut stages = Vec::new();
    for (k, places) in (1..).zip(&staged) {
        stages.push(declared(&mut b, places, &format!("stage{k}"))?);
    }
    let bundles = rails.cut(parts);
    b.step();
    for bundle in bundles.iter().flatten() {
        for (k, member) in rails.node(bundle.relay).enumerate().skip(1) {
            let run = |c: u32| {
                (
                    holders.block(member, c),
                    staged[k - 1].block(bundle.relay, c),
                    1,
                )
            };
            let runs: Vec<_> = rails
                .of_member(bundle, member)
                .into_iter()
                .map(run)
                .collect();
            if let Some(stage) = stages[k - 1].filter(|_| !runs.is_empty()) {
                b.put_runs(member, input, bundle.relay, stage, &runs)
                    .lane(rails.queue(parts, Some(bundle.relay % rails.columns), 0));
            }
        }
    }
    for part in &bundles {
        for k in 0..rails.columns as usize {
            b.step();
            for bundle in part {
                let member = rails.node(bundle.relay).nth(k).unwrap_or(bundle.relay);
                let crossed = relay.filter(|_| bundle.relay != bundle.source);
                let (mut first, mut further) = (Vec::new(), Vec::new());
                for c in rails.of_member(bundle, member) {
                    let from = match k {
                        0 => holders.block(member, c),
                        _ => staged[k - 1].block(bundle.relay, c),
                    };
                    let to = crossed.map_or(c, |_| relayed.block(bundle.relay, c));
                    let targets = &rails.classes.all[c as usize].targets;
                    let mut before = rails.node(bundle.relay).take(k);
                    let follows = before.any(|other| targets.binary_search(&other).is_ok());
                    let list = if follows { &mut further } else { &mut first };
                    list.push((from, to, 1));
                }
                let from = if k == 0 { Some(input) } else { stages[k - 1] };
                let (Some(from), to) = (from, crossed.unwrap_or(output)) else {
                    continue;
                };
                if !first.is_empty() {
                    b.local_runs(bundle.relay, from, to, &first);
                }
                if !further.is_empty() {
                    b.local_runs(bundle.relay, from, to, &further).reduce();
                }
            }
        }
        b.step();
        for bundle in part.iter().filter(|one| one.relay != one.source) {
            let relay = relay.ok_or(ScheduleError::TooLarge(0))?;
            let place = relayed.block(bundle.relay, bundle.first);
            let sums = relay.chunks(place, bundle.count);
            let there = output.chunks(bundle.first, bundle.count);
            b.put(bundle.relay, sums, bundle.source, there)
                .lane(rails.queue(parts, None, bundle.source / rails.columns));
        }
    }
    b.finish()
}
