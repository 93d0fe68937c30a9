//! Repeat a node on a network, which gives one flat machine.
//!
//! ```text
//!   [cluster] ports = "NIC 0..7"       node 0: GPU 0..7 -- ... -- NIC 0..7 --+
//!   --nodes 2 --fabric NAME            node 1: GPU 0..7 -- ... -- NIC 0..7 --+-- leaves -- spine
//! ```
//!
//! `GPU 5` of the node becomes `node 3 GPU 5`. Endpoints are numbered node by node; switches, links, routes of single
//! pairs and staging nodes are repeated. Each network of the node (`simple`, `ll`, ...) gets the transports of its
//! protocol between nodes: first `net_simple` with GPUDirect, then `host_net_simple`, staged through host memory.

use super::network::ClusterNetwork;
use super::spelled::grouped;
use super::topologies::Ports;
use super::{at_edge, rank_names};
use crate::error::{At, MachineError, VariantError};
use crate::machine::edges::{self, ALL};
use crate::machine::endpoints::read_hosts;
use crate::machine::section::{Context, Section};
use crate::machine::tree::{Node, Table, Value};
use crate::machine::Machine;

/// Maximum number of ranks of a cluster, each of which has a name of its own.
const MOST_RANKS: usize = 1 << 20;

/// How a node connects to the networks between nodes: `[cluster]` of its file.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The switches of the node that are its network ports, as written in the file.
    ports: String,
    /// Ports i, i + rails, ... are on rail i; by default each port is a rail.
    rails: Option<usize>,
    /// The default network, with parameters.
    pub network: String,
    /// Classes of links between GPU and port that GPUDirect uses.
    direct: Vec<String>,
    /// Classes of links between GPU and port through host memory.
    staged: Vec<String>,
    /// Classes over which a GPU forwards to a GPU on another rail.
    forward: Vec<String>,
}

impl Cluster {
    pub(in crate::machine) fn read(mut s: Section<'_>) -> Result<Self, MachineError> {
        for (key, meaning) in [
            (
                "ports",
                "the switches of the node that are its network ports, in the order of rails",
            ),
            (
                "rails",
                "ports i, i + rails, ... are on rail i; default: a rail for each port",
            ),
            (
                "network",
                "the network unless --fabric names another, with parameters as there",
            ),
            (
                "direct",
                "classes of links between GPU and port, with GPUDirect",
            ),
            (
                "staged",
                "classes of links between GPU and port by way of host memory",
            ),
            (
                "forward",
                "classes over which a GPU hands on to one on another rail",
            ),
        ] {
            s.meaning(key, meaning);
        }
        let found = Cluster {
            ports: s.text("ports")?,
            rails: s
                .optional_integer("rails")?
                .map(|rails| usize::try_from(rails).unwrap_or(usize::MAX)),
            network: s.text("network")?,
            direct: s.texts("direct")?,
            staged: s.optional_texts("staged")?.unwrap_or_default(),
            forward: s.optional_texts("forward")?.unwrap_or_default(),
        };
        if found.rails == Some(0) {
            return Err(s.inconsistent(
                "rails",
                "a port is on a rail; write a whole number, at least 1",
            ));
        }
        let ports =
            edges::names(&found.ports).map_err(|problem| s.inconsistent("ports", problem))?;
        if let Some(rails) = found.rails.filter(|rails| *rails > ports.len()) {
            let problem = format!(
                "{rails} rails for {} ports; a rail has at least one port",
                ports.len()
            );
            return Err(s.inconsistent("rails", problem));
        }
        s.finish()?;
        Ok(found)
    }

    /// The names of the ports.
    pub fn ports(&self) -> Vec<String> {
        edges::names(&self.ports).expect("checked when the file was read")
    }
}

/// The tree of `count` copies of this node on a network.
pub(super) fn of(
    machine: &Machine,
    context: &Context,
    cluster: &Cluster,
    count: usize,
    network: &ClusterNetwork,
) -> Result<Table, MachineError> {
    let ranks = rank_names(machine, context)?;
    let all = count.saturating_mul(ranks.len());
    if all > MOST_RANKS {
        let (all, most) = (grouped(all), grouped(MOST_RANKS));
        let problem = format!("--nodes {count}: {all} ranks; at most {most} are described");
        return Err(VariantError::refused(problem));
    }
    let ports = network.connected(cluster.ports())?;
    let rails = cluster.rails.unwrap_or(ports.len()).min(ports.len());
    if ports.len() % rails != 0 {
        let at = At {
            file: context.file.clone(),
            line: 0,
            key: "cluster.rails".to_string(),
        };
        let problem = format!(
            "{} ports do not divide into {rails} rails; correct one",
            ports.len()
        );
        return Err(MachineError::Inconsistent { at, problem });
    }
    let mut root = Section::root(context, &machine.tree);
    let mut tree = machine.tree.clone();
    tree.set(
        "endpoints",
        endpoints(root.section("endpoints")?, &ranks, count)?,
    );
    tree.set("level", levels(root.sections("level")?, count)?);
    let copies = Copies {
        count,
        ranks: &ranks,
    };
    let mut fabric = copies.fabric(root.section("fabric")?)?;
    let at = (0..count).map(|k| ports.iter().map(|port| name_in(k, port)).collect());
    let ports = Ports {
        of: at.collect(),
        rails,
    };
    join(&mut fabric, context, network, &ports, cluster)?;
    tree.set("fabric", fabric);
    if network.has("sharp", false) {
        combine(&mut tree);
    }
    let mut head = root.section("machine")?.table().clone();
    head.set(
        "summary",
        format!("{count} x {}; {}", machine.summary(), network.summary),
    );
    head.set("sources", [machine.sources(), &network.sources].concat());
    tree.set("machine", head);
    Ok(tree)
}

/// The name in node `k` of the cluster.
fn name_in(k: usize, name: &str) -> String {
    format!("node {k} {name}")
}

fn endpoints(mut s: Section<'_>, ranks: &[String], count: usize) -> Result<Table, MachineError> {
    let mut found = s.table().clone();
    found.remove("count");
    found.remove("name");
    let all = (0..count).flat_map(|k| ranks.iter().map(move |name| name_in(k, name)));
    found.set("names", all.collect::<Vec<_>>());
    if let Some(hosts) = read_hosts(&mut s, ranks.len())? {
        found.set("hosts", Value::Integer((hosts * count) as u64));
    }
    let mut memories = Vec::new();
    for mut memory in s.sections("memory")? {
        memories.push((memory.text("name")?, memory.table()));
    }
    if !memories.is_empty() {
        let copy = |k: usize, (name, memory): &(String, &Table)| {
            let mut memory = (*memory).clone();
            memory.set("name", name_in(k, name));
            memory
        };
        let all = (0..count).flat_map(|k| memories.iter().map(move |memory| copy(k, memory)));
        found.set("memory", all.collect::<Vec<_>>());
    }
    Ok(found)
}

fn levels(inside: Vec<Section<'_>>, count: usize) -> Result<Vec<Table>, MachineError> {
    let mut node = Table::default();
    node.set("name", "node");
    node.set("count", Value::Integer(count as u64));
    node.set("source", "nodes of the cluster");
    let mut found = vec![node];
    for mut level in inside {
        if level.text("name")? == "node" {
            let problem =
                "`node` is the level of whole nodes in a cluster; give this one another name";
            return Err(level.inconsistent("name", problem));
        }
        found.push(level.table().clone());
    }
    Ok(found)
}

/// Switches with SHARP combine; the library then has NCCL's mode `collnet`.
fn combine(tree: &mut Table) {
    let Some(library) = tree.table_mut("library") else {
        return;
    };
    if let Some(modes) = library.table_mut("modes") {
        if let Some(simple) = modes.get("simple").cloned() {
            modes.set("collnet", simple);
        }
    }
}

/// Copies of a node.
struct Copies<'r> {
    count: usize,
    ranks: &'r [String],
}

impl Copies<'_> {
    /// The fabric of a node, repeated for each.
    fn fabric(&self, mut s: Section<'_>) -> Result<Table, MachineError> {
        let mut found = s.table().clone();
        found.set(
            "switches",
            self.texts(&s.optional_texts("switches")?.unwrap_or_default()),
        );
        let runs = edges::runs(self.ranks);
        let mut links = s.section("links")?;
        for class in links.names() {
            let mut class_links = links.section(class)?;
            let stated = class_links.optional_texts("edges")?.unwrap_or_default();
            let edges = self
                .edges(&stated, &runs)
                .map_err(|problem| class_links.inconsistent("edges", problem))?;
            let mut table = class_links.table().clone();
            table.set("edges", edges);
            inner(&mut found, "links").set(class, table);
        }
        let mut transports = s.section("transport")?;
        for name in transports.names() {
            let mut transport = transports.section(name)?;
            if let Some(stages) = transport.optional_texts("stage_at")? {
                let mut table = transport.table().clone();
                table.set("stage_at", self.texts(&stages));
                inner(&mut found, "transport").set(name, table);
            }
        }
        s.section("network").map(drop)?; // `join` adds to them
        let rename_pair = |k: usize, pair: &str| {
            let ends: Vec<String> = pair.split("->").map(|end| name_in(k, end.trim())).collect();
            ends.join(" -> ")
        };
        for (key, rename) in [
            ("switch", &name_in as &dyn Fn(usize, &str) -> String),
            ("pair", &rename_pair),
        ] {
            if let Some(tables) = s.optional_section(key)? {
                found.set(key, self.named(tables, rename)?);
            }
        }
        Ok(found)
    }

    /// Repeat tables whose keys are nodes or pairs of nodes, with their routes.
    fn named(
        &self,
        mut s: Section<'_>,
        rename: &dyn Fn(usize, &str) -> String,
    ) -> Result<Table, MachineError> {
        let mut stated = Vec::new();
        for name in s.names() {
            let mut one = s.section(name)?;
            stated.push((name, one.optional_texts("route")?, one.table()));
        }
        let copy = |k: usize, (name, route, table): &(&str, Option<Vec<String>>, &Table)| {
            let mut table = (*table).clone();
            if let Some(route) = route {
                table.set(
                    "route",
                    route
                        .iter()
                        .map(|node| name_in(k, node))
                        .collect::<Vec<_>>(),
                );
            }
            (rename(k, name), Node::from(table))
        };
        Ok((0..self.count)
            .flat_map(|k| stated.iter().map(move |one| (k, one)))
            .map(|(k, one)| copy(k, one))
            .collect())
    }

    /// Repeat names of one node in every node.
    fn texts(&self, names: &[String]) -> Vec<String> {
        (0..self.count)
            .flat_map(|k| names.iter().map(move |name| name_in(k, name)))
            .collect()
    }

    /// Repeat edges of one node in every node; `ranks` are the runs of names that `*` means.
    fn edges(&self, stated: &[String], ranks: &[String]) -> Result<Vec<String>, String> {
        let mut found = Vec::with_capacity(stated.len() * self.count);
        for k in 0..self.count {
            for edge in stated {
                if ranks.len() > 1 && edge.split_whitespace().any(|word| word == ALL) {
                    return Err(format!(
                        "edge `{edge}`: in a cluster `*` needs endpoints of one run of names; write them out"
                    ));
                }
                let rename = |side: &str| name_in(k, if side == ALL { &ranks[0] } else { side });
                found.push(
                    edges::renamed(edge, rename)
                        .map_err(|problem| format!("edge `{edge}`: {problem}"))?,
                );
            }
        }
        Ok(found)
    }
}

/// The table at a key that is known to exist.
fn inner<'t>(table: &'t mut Table, key: &str) -> &'t mut Table {
    table.table_mut(key).expect("a section was read from it")
}

/// Add the network to the fabric of all nodes.
fn join(
    fabric: &mut Table,
    context: &Context,
    network: &ClusterNetwork,
    ports: &Ports,
    cluster: &Cluster,
) -> Result<(), MachineError> {
    let wires = network.wires(ports);
    if let Some(switches) = fabric.list_mut("switches") {
        switches.extend(wires.switches.iter().map(|name| Node::from(name.clone())));
    }
    if network.has("sharp", false) {
        let mut limits = Table::default();
        limits.set("multicast", Value::Flag(true));
        limits.set("aggregate", Value::Flag(true));
        if fabric.get("switch").is_none() {
            fabric.set("switch", Table::default());
        }
        for name in &wires.switches {
            inner(fabric, "switch").set(name, limits.clone());
        }
    }
    for class in &wires.classes {
        let links = inner(fabric, "links");
        if links.get(&class.name).is_some() {
            return Err(at_edge(
                context,
                &class.name,
                "is a class of the network's links; rename the node's",
            ));
        }
        links.set(&class.name, network.class(class)?);
    }
    let outside: Vec<String> = wires
        .classes
        .iter()
        .map(|class| class.name.clone())
        .collect();
    let added = transports(fabric, network, cluster, &outside);
    let named = |name: &str| {
        added
            .iter()
            .find(|(protocol, _)| protocol == name)
            .map(|(_, ways)| ways)
    };
    let Some(usual) = named("simple").or(added.first().map(|(_, ways)| ways)) else {
        return Err(MachineError::Inconsistent {
            at: At {
                file: network.name.clone(),
                line: 0,
                key: String::new(),
            },
            problem: "no transport leads from node to node; add [network.transport.simple]"
                .to_string(),
        });
    };
    let is_staged = |way: &&String| way.starts_with("host_net_");
    for (name, node) in &mut inner(fabric, "network").entries {
        let Value::Table(one) = &mut node.value else {
            continue; // the reader of the fabric refuses it
        };
        let mut ways = named(name).unwrap_or(usual).clone();
        // If no NIC reaches a GPU, a protocol without a staged transport of its own uses the default one.
        if !ways.iter().any(|way| is_staged(&way)) {
            ways.extend(usual.iter().filter(is_staged).cloned());
        }
        let mut all = match one.get("transports").map(|node| &node.value) {
            Some(Value::List(own)) => own.clone(),
            _ => Vec::new(),
        };
        all.extend(ways.into_iter().map(Node::from));
        one.set("transports", Value::List(all));
    }
    Ok(())
}

/// Add the transports over the network, and return those of each protocol.
fn transports(
    fabric: &mut Table,
    network: &ClusterNetwork,
    cluster: &Cluster,
    outside: &[String],
) -> Vec<(String, Vec<String>)> {
    let mut added: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |protocol: &str, prefix: &str, head: Table, stated: &Node| {
        let name = format!("{prefix}{protocol}");
        let mut transport = head;
        transport.set("across", Value::Flag(true));
        if let Value::Table(stated) = &stated.value {
            transport.entries.extend(stated.entries.iter().cloned());
        }
        // Without the parameter the file's own transport decides: `matching` applies wherever it is stated.
        let matched = [
            transport.remove("matching"),
            transport.remove("matching_from"),
        ];
        if let ([Some(time), from], true) = (matched, network.has("software_matching", true)) {
            transport.set("handling", time);
            transport.remove("handling_from");
            if let (Some(from), true) = (from, network.has("gdrcopy", true)) {
                transport.set("handling_from", from);
            }
        }
        inner(fabric, "transport").set(&name, transport);
        match added.iter_mut().find(|(known, _)| known == protocol) {
            Some((_, ways)) => ways.push(name),
            None => added.push((protocol.to_string(), vec![name])),
        }
    };
    let forward: &[String] = if network.has("forwarding", true) {
        &cluster.forward
    } else {
        &[]
    };
    if network.has("gpudirect", true) {
        for (protocol, stated) in &network.transport.entries {
            let mut head = Table::default();
            head.set("links", [forward, &cluster.direct, outside].concat());
            if !forward.is_empty() {
                head.set("relays", "forward");
            }
            add(protocol, "net_", head, stated);
        }
    }
    if !cluster.staged.is_empty() {
        for (protocol, stated) in &network.staged.entries {
            let mut head = Table::default();
            head.set("links", [cluster.staged.as_slice(), outside].concat());
            add(protocol, "host_net_", head, stated);
        }
    }
    added
}
