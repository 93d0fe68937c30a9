//! Faults: a machine without some of its links (`--without`), or with slower ones (`--degrade`).
//!
//! ```text
//!   nvlink                 a class of links                 net_simple     a transport
//!   GPU 3 - NVSwitch       the links between two nodes      NIC 3          a switch: all of its links
//! ```
//!
//! In a cluster, a name without its `node 5` prefix means that link or node in every node. Chips have networks instead
//! of links, see [`super::chip`].

use std::collections::{HashMap, HashSet};

use super::spelled::short;
use super::{at_edge, Variant};
use crate::error::{At, MachineError, UnknownName, VariantError};
use crate::machine::edges::{pairs, runs};
use crate::machine::number::Status;
use crate::machine::section::{Context, Section};
use crate::machine::tree::{Node, Table, Value};

type Pair = (String, String);

/// Apply the faults of a variant to the tree of a `flow` machine with these ranks.
pub(super) fn apply(
    tree: &mut Table,
    context: &Context,
    ranks: &[String],
    variant: &Variant,
) -> Result<(), MachineError> {
    let mut graph = Graph::read(tree, context, ranks)?;
    for name in &variant.without {
        graph.remove(name)?;
    }
    if !variant.without.is_empty() {
        graph.check_connected(&variant.without)?;
    }
    for (name, factor) in &variant.degrade {
        graph.degrade(name, *factor)?;
    }
    graph.write();
    Ok(())
}

/// A class of links, or a transport with its links.
struct Named {
    name: String,
    /// The edges of a class, or the classes of a transport.
    list: Vec<String>,
    table: Table,
}

/// The fabric of a machine.
struct Graph<'t> {
    tree: &'t mut Table,
    context: &'t Context,
    ranks: &'t [String],
    links: Vec<Named>,
    transports: Vec<Named>,
}

/// Which links a name means.
enum Chosen {
    Between(String, String),
    Of(String),
}

impl Chosen {
    fn of(name: &str) -> Chosen {
        match name.split_once(" - ") {
            Some((a, b)) => Chosen::Between(a.trim().to_string(), b.trim().to_string()),
            None => Chosen::Of(name.to_string()),
        }
    }

    fn has(&self, (a, b): &Pair) -> bool {
        match self {
            Chosen::Of(name) => [a, b].iter().any(|end| is_called(end, name)),
            Chosen::Between(x, y) => {
                let joins = |a: &str, b: &str| (a == x && b == y) || (a == y && b == x);
                // An end that is named in full keeps its prefix; the other may omit it: `node 3 NIC 0 - GPU 0`.
                let half = |end: &'_ str| {
                    if end == x || end == y {
                        end.to_string()
                    } else {
                        bare(end).to_string()
                    }
                };
                joins(a, b) || joins(bare(a), bare(b)) || joins(&half(a), &half(b))
            }
        }
    }
}

/// The name of a node of the graph without the prefix of its computer: `GPU 5` for `node 3 GPU 5`.
fn bare(name: &str) -> &str {
    let inside = name
        .strip_prefix("node ")
        .and_then(|rest| rest.split_once(' '));
    match inside {
        Some((number, inner))
            if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) =>
        {
            inner
        }
        _ => name,
    }
}

fn is_called(node: &str, name: &str) -> bool {
    node == name || bare(node) == name
}

impl<'t> Graph<'t> {
    fn read(
        tree: &'t mut Table,
        context: &'t Context,
        ranks: &'t [String],
    ) -> Result<Self, MachineError> {
        let mut fabric = Section::root(context, tree).section("fabric")?;
        let links = named(fabric.section("links")?, "edges")?;
        let transports = named(fabric.section("transport")?, "links")?;
        Ok(Graph {
            tree,
            context,
            ranks,
            links,
            transports,
        })
    }

    /// Put classes and transports back into the tree.
    fn write(self) {
        let table = |all: Vec<Named>, key: &str| -> Table {
            let node = |mut one: Named| {
                one.table.set(key, one.list);
                (one.name, Node::from(one.table))
            };
            all.into_iter().map(node).collect()
        };
        if let Some(fabric) = self.tree.table_mut("fabric") {
            fabric.set("links", table(self.links, "edges"));
            fabric.set("transport", table(self.transports, "links"));
        }
    }

    /// Every pair that the edges of a class join.
    fn pairs(&self, class: &Named) -> Result<Vec<Pair>, MachineError> {
        let mut found = Vec::new();
        for edge in &class.list {
            found.extend(self.joined(&class.name, edge)?);
        }
        Ok(found)
    }

    fn joined(&self, class: &str, edge: &str) -> Result<Vec<Pair>, MachineError> {
        pairs(edge, self.ranks)
            .map_err(|problem| at_edge(self.context, class, &format!("edge `{edge}`: {problem}")))
    }

    /// Remove whatever `name` means.
    fn remove(&mut self, name: &str) -> Result<(), MachineError> {
        if self.links.iter().any(|class| class.name == name) {
            self.forget_class(name);
        } else if self
            .transports
            .iter()
            .any(|transport| transport.name == name)
        {
            self.forget_transport(name);
        } else {
            let chosen = self.chosen(name, "--without")?;
            for place in 0..self.links.len() {
                let left = self.rest(&self.links[place], &chosen)?;
                self.links[place].list = left;
            }
            let empty = self.links.iter().filter(|class| class.list.is_empty());
            for class in empty.map(|class| class.name.clone()).collect::<Vec<_>>() {
                self.forget_class(&class);
            }
        }
        Ok(())
    }

    /// Multiply the rates of whatever `name` means.
    fn degrade(&mut self, name: &str, factor: f64) -> Result<(), MachineError> {
        let source = format!("--degrade {name}={}", short(factor));
        if let Some(place) = self.links.iter().position(|class| class.name == name) {
            return self.scale("links", place, "bandwidth", factor, &source);
        }
        if let Some(place) = self
            .transports
            .iter()
            .position(|transport| transport.name == name)
        {
            let table = &self.transports[place].table;
            let limits: Vec<&str> = ["rate", "channel"]
                .into_iter()
                .filter(|key| table.get(key).is_some())
                .collect();
            if limits.is_empty() {
                return Err(VariantError::refused(format!(
                    "{source}: transport {name} states no rate; degrade a class of its links instead"
                )));
            }
            return limits
                .into_iter()
                .try_for_each(|key| self.scale("transport", place, key, factor, &source));
        }
        let chosen = self.chosen(name, "--degrade")?;
        for class in self
            .links
            .iter()
            .map(|class| class.name.clone())
            .collect::<Vec<_>>()
        {
            self.split(&class, &chosen, factor, &source)?;
        }
        Ok(())
    }

    /// Multiply a rate of a class of `links` or of a `transport`.
    fn scale(
        &mut self,
        kind: &str,
        place: usize,
        key: &str,
        factor: f64,
        source: &str,
    ) -> Result<(), MachineError> {
        let one = if kind == "links" {
            &mut self.links[place]
        } else {
            &mut self.transports[place]
        };
        let rate = match one.table.get(key).map(|node| &node.value) {
            Some(Value::Number(rate)) => rate.single().map(|value| (rate, value)),
            _ => None,
        };
        let Some((rate, value)) = rate else {
            let at = At {
                file: self.context.file.clone(),
                line: 0,
                key: format!("fabric.{kind}.{}.{key}", one.name),
            };
            let problem =
                "is no single rate that --degrade could multiply; write a number".to_string();
            return Err(MachineError::Inconsistent { at, problem });
        };
        let source = format!("{source}: of {}", short(value));
        let slower = rate.scaled(value, factor, Status::Assumed, source)?;
        one.table.set(key, slower);
        Ok(())
    }

    /// Move the chosen links of a class to a new, slower class.
    fn split(
        &mut self,
        class: &str,
        chosen: &Chosen,
        factor: f64,
        source: &str,
    ) -> Result<(), MachineError> {
        let place = self
            .links
            .iter()
            .position(|one| one.name == class)
            .expect("a class of this graph");
        let joined = self.pairs(&self.links[place])?;
        let slower: Vec<String> = joined
            .iter()
            .filter(|pair| chosen.has(pair))
            .map(as_edge)
            .collect();
        if slower.is_empty() {
            return Ok(());
        }
        let left = self.rest(&self.links[place], chosen)?;
        if left.is_empty() {
            self.links[place].list = slower;
            return self.scale("links", place, "bandwidth", factor, source);
        }
        self.links[place].list = left;
        let is_free = |name: &String| self.links.iter().all(|one| one.name != *name);
        let name = (1..)
            .map(|i| format!("{class}_slower_{i}"))
            .find(is_free)
            .expect("names do not end");
        let split = Named {
            name: name.clone(),
            list: slower,
            table: self.links[place].table.clone(),
        };
        // The new class goes next to the old one, because the order of links breaks ties between routes.
        self.links.insert(place + 1, split);
        for transport in self
            .transports
            .iter_mut()
            .filter(|one| one.list.iter().any(|used| used == class))
        {
            transport.list.push(name.clone());
        }
        self.scale("links", place + 1, "bandwidth", factor, source)
    }

    /// The edges of a class without the chosen pairs; an edge that contains none of them is unchanged.
    fn rest(&self, class: &Named, chosen: &Chosen) -> Result<Vec<String>, MachineError> {
        let mut found = Vec::new();
        for edge in &class.list {
            let joined = self.joined(&class.name, edge)?;
            if joined.iter().any(|pair| chosen.has(pair)) {
                found.extend(joined.iter().filter(|pair| !chosen.has(pair)).map(as_edge));
            } else {
                found.push(edge.clone());
            }
        }
        Ok(found)
    }

    fn chosen(&self, name: &str, option: &str) -> Result<Chosen, MachineError> {
        let chosen = Chosen::of(name);
        let mut all = Vec::new();
        for class in &self.links {
            all.extend(self.pairs(class)?);
        }
        if !all.iter().any(|pair| chosen.has(pair)) {
            return Err(self.unknown(name, option, &all));
        }
        let is_node = matches!(chosen, Chosen::Of(_));
        if option == "--without" && is_node && self.ranks.iter().any(|rank| is_called(rank, name)) {
            return Err(VariantError::refused(format!(
                "--without {name}: is a rank; take fewer ranks with --ranks, or name one of its links"
            )));
        }
        Ok(chosen)
    }

    /// The error for an unknown name, with similar names, or else with all classes, transports and nodes.
    fn unknown(&self, name: &str, option: &str, all: &[Pair]) -> MachineError {
        let names = |all: &[Named]| all.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
        let (classes, transports) = (names(&self.links), names(&self.transports));
        let ends = all.iter().flat_map(|(a, b)| [bare(a), bare(b)]);
        let mut nodes: Vec<String> = ends
            .map(String::from)
            .collect::<HashSet<_>>()
            .into_iter()
            .collect();
        nodes.sort();
        let joined = all
            .iter()
            .map(|(a, b)| format!("{} - {}", bare(a), bare(b)));
        let joined = joined.filter(|_| name.contains(" - "));
        let known = [classes.clone(), transports.clone(), nodes.clone()]
            .into_iter()
            .flatten()
            .chain(joined)
            .collect();
        let listed = format!(
            "classes of links: {}; transports: {}; nodes: {}",
            classes.join(", "),
            transports.join(", "),
            runs(&nodes).join(", ")
        );
        MachineError::Variant(VariantError::from(UnknownName {
            at: option.to_string(),
            what: "link, node or transport".to_string(),
            name: name.to_string(),
            known,
            otherwise: Some(format!(
                "{option} {name}: is no link, node or transport of this machine; {listed}"
            )),
        }))
    }

    fn forget_class(&mut self, class: &str) {
        self.links.retain(|one| one.name != class);
        let mut idle = Vec::new();
        for transport in &mut self.transports {
            transport.list.retain(|used| used != class);
            if transport.list.is_empty() {
                idle.push(transport.name.clone());
            }
        }
        for name in idle {
            self.forget_transport(&name);
        }
    }

    /// Remove a transport, and the networks and paths that had no other.
    fn forget_transport(&mut self, name: &str) {
        self.transports.retain(|one| one.name != name);
        let mut gone = Vec::new();
        if let Some(networks) = inner(self.tree, &["fabric", "network"]) {
            networks.entries.retain_mut(|(key, network)| {
                let Value::Table(network) = &mut network.value else {
                    return true;
                };
                let Some(ways) = network.list_mut("transports") else {
                    return true;
                };
                ways.retain(|way| !way.is_text(name));
                if ways.is_empty() {
                    gone.push(key.clone());
                }
                !ways.is_empty()
            });
        }
        if !gone.is_empty() {
            forget_networks(self.tree, &gone);
        }
        if !self
            .transports
            .iter()
            .any(|one| one.table.get("channel").is_some())
        {
            for path in inner(self.tree, &["path"])
                .into_iter()
                .flat_map(|paths| &mut paths.entries)
            {
                if let Value::Table(path) = &mut path.1.value {
                    path.remove("channels");
                }
            }
        }
    }

    /// Reject a machine some of whose ranks can no longer reach each other.
    fn check_connected(&self, without: &[String]) -> Result<(), MachineError> {
        let mut joined = Vec::new();
        for class in &self.links {
            joined.extend(self.pairs(class)?);
        }
        let mut near: HashMap<&str, Vec<&str>> = HashMap::new();
        for (a, b) in &joined {
            near.entry(a).or_default().push(b);
            near.entry(b).or_default().push(a);
        }
        let Some(first) = self.ranks.first() else {
            return Ok(());
        };
        let (mut seen, mut border) = (HashSet::from([first.as_str()]), vec![first.as_str()]);
        while let Some(node) = border.pop() {
            let others = near.get(node).into_iter().flatten().copied();
            border.extend(others.filter(|other| seen.insert(other)));
        }
        let mut lost = self
            .ranks
            .iter()
            .filter(|rank| !seen.contains(rank.as_str()));
        let Some(one) = lost.next() else {
            return Ok(());
        };
        let others = match lost.count() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Err(VariantError::refused(format!(
            "--without {}: {one}{others} cannot be reached from {first} any more; leave a way between them",
            without.join(", ")
        )))
    }
}

fn as_edge((a, b): &Pair) -> String {
    format!("{a} - {b}")
}

/// The tables in a section, each with the list under `key`.
fn named(mut s: Section<'_>, key: &str) -> Result<Vec<Named>, MachineError> {
    let table = s.table();
    let one = |name: &str| {
        let mut one = s.section(name)?;
        Ok(Named {
            name: name.to_string(),
            list: one.optional_texts(key)?.unwrap_or_default(),
            table: one.table().clone(),
        })
    };
    table.keys().map(one).collect()
}

/// The table at a path of keys, if there is one.
fn inner<'t>(table: &'t mut Table, path: &[&str]) -> Option<&'t mut Table> {
    path.iter()
        .try_fold(table, |table, key| table.table_mut(key))
}

/// Remove networks from hints, the paths that used them, and the library modes of those paths.
fn forget_networks(tree: &mut Table, gone: &[String]) {
    let is_gone = |node: &Node| gone.iter().any(|name| node.is_text(name));
    if tree.get("hints").is_none() {
        tree.set("hints", Table::default());
    }
    if let Some(hints) = inner(tree, &["hints"]) {
        match hints.get_mut("networks").map(|node| &mut node.value) {
            Some(Value::List(networks)) => networks.retain(|name| !is_gone(name)),
            Some(_) => {}
            None => hints.set("networks", Vec::<String>::new()),
        }
    }
    let mut lost = Vec::new();
    if let Some(paths) = inner(tree, &["path"]) {
        paths.entries.retain(|(key, path)| {
            let is_lost = matches!(&path.value, Value::Table(path) if path.get("network").is_some_and(is_gone));
            if is_lost {
                lost.push(key.clone());
            }
            !is_lost
        });
    }
    if let Some(modes) = inner(tree, &["library", "modes"]) {
        modes
            .entries
            .retain(|(_, path)| !lost.iter().any(|name| path.is_text(name)));
    }
}
