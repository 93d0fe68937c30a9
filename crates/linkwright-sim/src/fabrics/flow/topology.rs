//! Nodes and links, and the resources that a piece of a route uses.
//!
//! ```text
//!   nodes      endpoints of the machine (ranks, memories), then switches
//!   links      one for each direction of an edge, in the order of the file
//!   resources  what data compete for: links; `turn` of a switch, for data that arrive and leave over
//!              links of the same class; `throughput` of a switch, for all that it receives and sends;
//!              `reduces` of a switch, for what it combines;
//!              `sends` and `receives` of a rank of a torus, for its own data; the memory of an endpoint,
//!              for copies inside it
//! ```
//!
//! Endpoints carry other nodes' data only where a transport says so.

use super::rule::{Rule, Stated};
use super::uses::{Fractions, Use};
use crate::network::{Edge, Switch, Wiring};
use linkwright_core::{BytesPerSec, TimePs};
use std::collections::{HashMap, HashSet};

/// One direction of an edge; its number is also that of its resource.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub to: u32,
    /// Index of the class of links that it belongs to.
    pub class: u32,
    pub latency: TimePs,
}

/// What a switch as a whole can do, where that is less than its links can, or more than forwarding.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SwitchLimits {
    /// Bytes per second out of one link, of data that came in over a link of the same class.
    pub turnaround: Option<u64>,
    /// Bytes per second received and sent together.
    pub throughput: Option<u64>,
    /// Whether it copies what comes in once to several links.
    pub multicast: bool,
    /// Whether it combines what comes in over several links.
    pub aggregate: bool,
    /// Bytes per second of combined data that it makes.
    pub aggregate_rate: Option<u64>,
}

/// The network as a graph.
#[derive(Clone, Debug, Default)]
pub(super) struct Topology {
    pub names: Vec<String>,
    by_name: HashMap<String, u32>,
    /// Rank endpoints; memories follow, then switches.
    pub ranks: u32,
    pub endpoints: u32,
    pub links: Vec<Link>,
    /// Node at which each link begins; a list of its own, because following a way backwards needs nothing else.
    pub begins: Vec<u32>,
    /// Name of each class of links, and the rate that the file states for it, if it states one.
    pub classes: Vec<(String, Option<u64>)>,
    /// How messages use equal ways over links of each class.
    pub rules: Vec<Stated>,
    /// Links out of each node.
    out: Vec<Vec<u32>>,
    /// Classes up to the last one that has a link.
    used_classes: usize,
    /// Bytes per second of each resource, links first.
    pub capacity: Vec<u64>,
    pub resource_names: Vec<String>,
    /// Nodes from and to which each resource leads.
    places: Vec<(u32, u32)>,
    turns: HashMap<(u32, u32), u32>,
    throughputs: HashMap<u32, u32>,
    /// Switches that copy.
    copiers: HashSet<u32>,
    /// Switches that combine, with the resource of what they can.
    combiners: HashMap<u32, Option<u32>>,
    locals: Option<u32>,
    injections: Option<u32>,
}

/// What ways may use.
#[derive(Clone, Copy)]
pub(super) struct Terrain<'a> {
    pub topology: &'a Topology,
    /// By class of links, whether they may be used.
    pub classes: &'a [bool],
    /// Whether ranks relay data for others.
    pub relays: bool,
}

impl Terrain<'_> {
    /// Whether `node` passes on data of others.
    pub fn carries(&self, node: u32) -> bool {
        node >= self.topology.endpoints || self.relays && node < self.topology.ranks
    }
}

impl Topology {
    /// A graph without links.
    pub fn new(names: Vec<String>, ranks: u32, endpoints: u32) -> Self {
        Topology {
            out: vec![Vec::new(); names.len()],
            by_name: names.iter().cloned().zip(0..).collect(),
            names,
            ranks,
            endpoints,
            ..Topology::default()
        }
    }

    /// Two links, one for each direction.
    pub fn connect(&mut self, a: u32, b: u32, class: u32, capacity: u64, latency: TimePs) {
        for (from, to) in [(a, b), (b, a)] {
            self.out[from as usize].push(self.links.len() as u32);
            self.begins.push(from);
            self.used_classes = self.used_classes.max(class as usize + 1);
            self.links.push(Link { to, class, latency });
            let name = format!("{} -> {}", self.name(from), self.name(to));
            self.resource(name, (from, to), capacity);
        }
    }

    /// Whether an edge between the two exists in this class.
    pub fn is_connected(&self, a: u32, b: u32, class: u32) -> bool {
        let mut out = self.out[a as usize].iter();
        out.any(|&l| self.links[l as usize].to == b && self.links[l as usize].class == class)
    }

    /// Add the resources of a switch; call once all links are connected.
    pub fn limit(&mut self, switch: u32, limits: SwitchLimits) {
        if let Some(rate) = limits.turnaround {
            for link in self.out[switch as usize].clone() {
                let name = format!("{} turn", self.resource_names[link as usize]);
                let ends = (switch, self.links[link as usize].to);
                let resource = self.resource(name, ends, rate);
                self.turns.insert((switch, link), resource);
            }
        }
        if let Some(rate) = limits.throughput {
            let resource = self.resource(self.name(switch).to_string(), (switch, switch), rate);
            self.throughputs.insert(switch, resource);
        }
        if limits.multicast {
            self.copiers.insert(switch);
        }
        if limits.aggregate {
            let name = format!("{} reduces", self.name(switch));
            let resource = limits
                .aggregate_rate
                .map(|rate| self.resource(name, (switch, switch), rate));
            self.combiners.insert(switch, resource);
        }
    }

    /// What each rank may send of its own, and receive for itself, is at most `rate` each.
    pub fn injection(&mut self, rate: u64) {
        self.injections = Some(self.capacity.len() as u32);
        for rank in 0..self.ranks {
            for does in ["sends", "receives"] {
                self.resource(format!("{} {does}", self.name(rank)), (rank, rank), rate);
            }
        }
    }

    /// The resource of what `node` sends of its own or receives for itself, where that is limited.
    pub fn injected(&self, node: u32, out: bool) -> Option<u32> {
        let first = self.injections.filter(|_| node < self.ranks)?;
        Some(first + 2 * node + u32::from(!out))
    }

    /// Copies inside each endpoint at `rate`.
    pub fn local(&mut self, rate: u64) {
        self.locals = Some(self.capacity.len() as u32);
        for endpoint in 0..self.endpoints {
            let name = format!("{} local", self.name(endpoint));
            self.resource(name, (endpoint, endpoint), rate);
        }
    }

    /// The graph with both directions of each link as one edge, at the rate that the file states. Switches come in the
    /// order in which edges reach them.
    pub fn wiring(&self) -> Wiring {
        let edges = || (0..self.links.len()).step_by(2);
        let ends = edges().map(|forth| self.begins[forth]);
        let ends = ends.chain(edges().map(|forth| self.links[forth].to));
        let mut numbers: HashMap<u32, u32> = HashMap::new();
        let mut switches = Vec::new();
        for node in ends.filter(|&node| node >= self.endpoints) {
            numbers.entry(node).or_insert_with(|| {
                let name = self.name(node).to_string();
                switches.push(Switch { name, at: None });
                self.endpoints + switches.len() as u32 - 1
            });
        }
        let number = |node: u32| *numbers.get(&node).unwrap_or(&node);
        let edge = |forth: usize| {
            let (class, stated) = &self.classes[self.links[forth].class as usize];
            Edge {
                class: class.clone(),
                a: number(self.begins[forth]),
                b: number(self.links[forth].to),
                rate: Some(stated.unwrap_or(self.capacity[forth])),
            }
        };
        Wiring {
            edges: edges().map(edge).collect(),
            places: (self.places.iter())
                .map(|&(from, to)| Some((number(from), number(to))))
                .collect(),
            switches,
            ring: Vec::new(),
        }
    }

    fn resource(&mut self, name: String, ends: (u32, u32), capacity: u64) -> u32 {
        self.capacity.push(capacity);
        self.places.push(ends);
        self.resource_names.push(name);
        self.capacity.len() as u32 - 1
    }

    pub fn name(&self, node: u32) -> &str {
        &self.names[node as usize]
    }

    pub fn find(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// What a copy inside `endpoint` uses, where the machine describes such copies.
    pub fn local_use(&self, endpoint: u32) -> Option<Use> {
        self.locals.map(|first| Use::new(first + endpoint, 1))
    }

    /// Whether data compete for nothing but links on the way from one endpoint to another.
    pub fn has_only_links(&self) -> bool {
        self.turns.is_empty() && self.throughputs.is_empty() && self.injections.is_none()
    }

    /// Append what one byte uses on its way over `links`, from where it is stored to where it is stored.
    pub fn uses(&self, links: &[u32], uses: &mut Vec<Use>) {
        uses.extend(links.iter().map(|&link| Use::new(link, 1)));
        let ends = links.first().zip(links.last());
        if let Some((&first, &last)) = ends {
            let ends = [self.begins[first as usize], self.links[last as usize].to];
            let limited = ends.iter().filter_map(|node| self.throughputs.get(node));
            uses.extend(limited.map(|&resource| Use::new(resource, 1)));
            let own = [self.injected(ends[0], true), self.injected(ends[1], false)];
            uses.extend(own.iter().flatten().map(|&resource| Use::new(resource, 1)));
        }
        for pair in links.windows(2) {
            let (a, b) = (&self.links[pair[0] as usize], &self.links[pair[1] as usize]);
            if let Some(&resource) = self.throughputs.get(&a.to) {
                uses.push(Use::new(resource, 2));
            }
            if let Some(&resource) = self.turns.get(&(a.to, pair[1])) {
                if a.class == b.class {
                    uses.push(Use::new(resource, 1));
                }
            }
        }
    }

    /// Whether any switch copies data.
    pub fn copies(&self) -> bool {
        !self.copiers.is_empty()
    }

    /// Whether any switch combines data.
    pub fn combines(&self) -> bool {
        !self.combiners.is_empty()
    }

    /// Whether `node` is a switch that copies, or one that combines.
    pub fn joins(&self, node: u32, combines: bool) -> bool {
        match combines {
            true => self.combiners.contains_key(&node),
            false => self.copiers.contains(&node),
        }
    }

    /// The resource of all that `node` receives and sends, where that is limited.
    pub fn throughput_of(&self, node: u32) -> Option<u32> {
        self.throughputs.get(&node).copied()
    }

    /// The resource of what turns at `switch` into `link`, where that is limited.
    pub fn turn_of(&self, switch: u32, link: u32) -> Option<u32> {
        self.turns.get(&(switch, link)).copied()
    }

    /// What combining at `node` uses, where that is limited.
    pub fn combining(&self, node: u32) -> Option<Use> {
        let resource = (*self.combiners.get(&node)?)?;
        Some(Use::new(resource, 1))
    }

    /// What `streams` streams into or out of `node` use of its throughput, where that is limited.
    pub fn passing(&self, node: u32, streams: u32) -> Option<Use> {
        let resource = self.throughputs.get(&node)?;
        Some(Use::new(*resource, streams))
    }

    /// What data use that turn at a switch, from link `a` to link `b`.
    pub fn turning(&self, a: u32, b: u32) -> Option<Use> {
        let (from, to) = (&self.links[a as usize], &self.links[b as usize]);
        let resource = self
            .turns
            .get(&(from.to, b))
            .filter(|_| from.class == to.class)?;
        Some(Use::new(*resource, 1))
    }

    /// Fractions for messages that use parts of links.
    pub fn fractions(&self) -> Fractions {
        let sprays = self.rules.iter().any(|rule| rule.rule == Rule::Spray);
        let spread = sprays && self.has_circles(&vec![true; self.classes.len()]);
        Fractions::new(&self.capacity, spread)
    }

    /// Whether a seed decides which ways messages take.
    pub fn draws(&self) -> bool {
        // What is stored on the way does not choose, but draws.
        let draws = |rule: &Stated| matches!(rule.rule, Rule::Hash | Rule::Adaptive);
        self.rules.iter().any(draws)
    }

    /// Bytes per second that one flow can have over all of `uses`.
    pub fn most(&self, uses: &[Use], fractions: &Fractions) -> u64 {
        let least = |least: u64, each: &Use| {
            let capacity = self.capacity[each.resource()];
            least.min(fractions.most(capacity, *each))
        };
        uses.iter().fold(u64::MAX, least)
    }

    /// Links out of `node`.
    pub fn out(&self, node: u32) -> &[u32] {
        &self.out[node as usize]
    }

    /// The links of a way given by its nodes, of any class that `classes` allows.
    pub fn along(&self, nodes: &[u32], classes: &[bool]) -> Result<Vec<u32>, (u32, u32)> {
        let hop = |pair: &[u32]| {
            let link = self.out[pair[0] as usize].iter().copied().find(|&l| {
                let link = &self.links[l as usize];
                link.to == pair[1] && classes[link.class as usize]
            });
            link.ok_or((pair[0], pair[1]))
        };
        nodes.windows(2).map(hop).collect()
    }

    /// All classes of links, for ways over any of them.
    pub fn every_class(&self) -> Vec<bool> {
        vec![true; self.used_classes]
    }

    /// Most bytes per second over all links of these classes into or out of `node`, of which each carries so many.
    pub fn port(&self, node: u32, (classes, carried): (&[bool], &[u64]), out: bool) -> u64 {
        // Every edge has a link each way.
        let there = self.out[node as usize].iter().map(|&link| link as usize);
        let used = there.filter(|&link| classes[self.links[link].class as usize]);
        let links = used
            .map(|link| carried[if out { link } else { link ^ 1 }])
            .sum();
        let own = self.injected(node, out);
        own.map_or(links, |own| self.capacity[own as usize].min(links))
    }

    /// Bytes per second that a switch receives and sends together, where it has such a limit.
    pub fn throughput(&self, node: u32) -> Option<u64> {
        let resource = self.throughputs.get(&node)?;
        Some(self.capacity[*resource as usize])
    }

    /// Bytes per second over `link` of what its switch received over links of the same class, where it has such a limit.
    pub fn turnaround(&self, link: u32) -> Option<u64> {
        let resource = self.turns.get(&(self.begins[link as usize], link))?;
        Some(self.capacity[*resource as usize])
    }
}

/// A rate in whole bytes per second, as links count it.
pub(super) fn whole(rate: BytesPerSec) -> u64 {
    (rate.0 as u64).max(1)
}
