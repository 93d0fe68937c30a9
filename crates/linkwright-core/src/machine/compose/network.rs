//! Networks between nodes: a file, with parameters that `--fabric NAME,taper=2` can replace.
//!
//! ```text
//! [network]                     topology, routing, summary, sources
//! [network.parameters]          numbers that --fabric may replace: rate of a port, taper, nodes_per_leaf, ...
//! [network.links.CLASS]         share and latency of `port`, `trunk`, `global`
//! [network.transport.PROTOCOL]  a message from GPU to GPU, with GPUDirect
//! [network.staged.PROTOCOL]     the same, staged through host memory at both ends
//! ```

use super::spelled::{short, shortest};
use super::topologies::{Class, NetworkTopology, Ports, Wires, LINKS, TOPOLOGIES};
use super::File;
use crate::error::{MachineError, UnknownName, VariantError};
use crate::machine::number::{Basis, Number, Status};
use crate::machine::recorder::Recorder;
use crate::machine::section::{Context, Section};
use crate::machine::tree::{self, Node, Table, Value};
use crate::machine::unit::{Dimension, Unit};

/// A key with a number: its name, its dimension and its meaning.
type Key = (&'static str, Dimension, &'static str);

const WIRE: [Key; 2] = [
    (
        "share",
        Dimension::Ratio,
        "the part of the rate that carries data",
    ),
    (
        "latency",
        Dimension::Time,
        "of one link, with the switch behind it",
    ),
];
const TRANSPORT: [Key; 11] = [
    ("start", Dimension::Time, "time before the first byte moves"),
    (
        "notice",
        Dimension::Time,
        "the same of a message without data; default: `start`",
    ),
    (
        "long",
        Dimension::Size,
        "messages of so many bytes and more take `long_start` instead of `start`",
    ),
    (
        "long_start",
        Dimension::Time,
        "time before the first byte of a long message moves",
    ),
    (
        "turns",
        Dimension::Size,
        "messages of so many bytes and more between two ends go one at a time, whichever way",
    ),
    (
        "handling",
        Dimension::Time,
        "how long each message of a channel keeps the process busy that sends or receives it",
    ),
    (
        "handling_from",
        Dimension::Size,
        "messages of so many bytes and more do; default: all that carry data",
    ),
    (
        "matching",
        Dimension::Time,
        "the same where processes match messages (`software_matching`), in place of `handling`",
    ),
    (
        "matching_from",
        Dimension::Size,
        "messages of so many bytes and more do; default: all that carry data",
    ),
    ("rate", Dimension::Rate, "the most that one message gets"),
    (
        "channel",
        Dimension::Rate,
        "the most that one channel of a message gets",
    ),
];

/// The values that a parameter may have.
#[derive(Clone, Copy, PartialEq)]
enum Values {
    Switch,
    Whole,
    Any,
}

/// Parameters of every network except `rate`, then those of topologies.
const PARAMETERS: [(&str, Values, &str); 12] = [
    ("ports", Values::Whole, "ports of a node that are connected; 0: all"),
    ("gpudirect", Values::Switch, "0: data go through host memory"),
    ("forwarding", Values::Switch, "0: no message goes by a GPU of its node to another rail"),
    ("spread", Values::Whole, "of a dragonfly: runs of so many nodes are dealt out to groups; 0: they fill group by group"),
    ("spines", Values::Whole, "of a tree: spines, each joined to every leaf; 0: one node stands for all of them"),
    ("software_matching", Values::Switch, "1: processes match messages, not NICs"),
    ("gdrcopy", Values::Switch, "0: where they do, messages below `matching_from` keep them busy, too"),
    ("sharp", Values::Switch, "1: its switches combine and copy"),
    ("taper", Values::Any, "ports below a leaf for each one above it"),
    ("nodes_per_leaf", Values::Whole, "nodes of a leaf, or of a unit of rails"),
    ("group_leaves", Values::Whole, "leaves of a group"),
    ("group_links", Values::Any, "ports between two groups"),
];
const COMMON: usize = 8; // the first ones apply to every topology

/// How messages use equal ways over links of a class: `routing` of networks and of [fabric.links].
pub const ROUTINGS: [&str; 4] = ["single", "hash", "spray", "adaptive"];

/// How switches and links of a network are given.
enum Shape {
    Topology(&'static NetworkTopology),
    Listed(Vec<String>, Vec<ListedLink>),
}

/// Links that a description lists: one from each of `names` to `other`, of a class, as wide as `width` ports.
#[derive(Clone, Debug)]
pub struct ListedLink {
    /// The class, `port` or `trunk`, followed by its width if that is not one port.
    pub class: String,
    /// Width in ports.
    pub width: f64,
    /// Ports of nodes, or switches.
    pub names: Vec<String>,
    /// The switch that they are joined to.
    pub other: String,
}

/// A network between nodes, with its parameters.
pub struct ClusterNetwork {
    pub(super) name: String,
    pub(super) summary: String,
    pub(super) sources: Vec<String>,
    shape: Shape,
    parameters: Vec<(String, Number)>,
    /// One of [`ROUTINGS`], with its source.
    routing: Option<Node>,
    links: Table,
    pub(super) transport: Table,
    pub(super) staged: Table,
}

impl ClusterNetwork {
    /// Read the file of a network. A recorder notes its keys.
    pub fn read(file: &File, recorder: Option<&Recorder>) -> Result<ClusterNetwork, MachineError> {
        let context = Context {
            file: file.name.clone(),
            clock: None,
            recorder: recorder.cloned(),
        };
        let tree = tree::parse(&file.text, &file.name)?;
        let mut root = Section::root(&context, &tree);
        root.meaning("network", "a network between nodes");
        let mut s = root.section("network")?;
        for (key, meaning) in [
            ("name", "name of the network, which is that of its file"),
            ("summary", "one line"),
            ("description", "a paragraph"),
            ("sources", "titles of documents"),
            ("topology", "its shape"),
            ("parameters", "numbers that --fabric may replace"),
            (
                "routing",
                "how messages use equal ways through its switches",
            ),
            ("links", "by class of links"),
            ("transport", "by protocol: from GPU to GPU"),
            ("staged", "by protocol: through host memory"),
        ] {
            s.meaning(key, meaning);
        }
        let (name, summary) = (s.text("name")?, s.text("summary")?);
        s.optional_text("description")?;
        let sources = s.texts("sources")?;
        s.optional_choice("routing", &ROUTINGS)?;
        let routing = s.table().get("routing").cloned();
        let topology = &TOPOLOGIES[s.choice("topology", &TOPOLOGIES.each_ref().map(|t| t.name))?];
        let found = ClusterNetwork {
            name,
            summary,
            sources,
            shape: Shape::Topology(topology),
            parameters: parameters(s.section("parameters")?, topology)?,
            routing,
            links: s
                .optional_section("links")?
                .map(links)
                .transpose()?
                .unwrap_or_default(),
            transport: s
                .optional_section("transport")?
                .map(transports)
                .transpose()?
                .unwrap_or_default(),
            staged: s
                .optional_section("staged")?
                .map(transports)
                .transpose()?
                .unwrap_or_default(),
        };
        s.finish()?;
        root.finish()?;
        Ok(found)
    }

    /// The network that a text such as `ndr-fat-tree,taper=2` asks for; `read` finds its file.
    pub(super) fn asked(
        asked: &str,
        read: impl Fn(&str) -> Result<File, MachineError>,
    ) -> Result<ClusterNetwork, MachineError> {
        let mut words = asked.split(',').map(str::trim);
        let name = words.next().unwrap_or_default();
        let mut found = ClusterNetwork::read(&read(name)?, None)?;
        let mut given = Vec::new();
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let (key, value) = (key.trim(), value.trim());
            if given.contains(&key) {
                return Err(VariantError::refused(format!(
                    "--fabric {asked}: {key} is given twice; say it once"
                )));
            }
            given.push(key);
            found.replace(asked, key, value)?;
        }
        if !found.has("gdrcopy", true) && !found.has("software_matching", true) {
            return Err(VariantError::refused(format!(
                "--fabric {asked}: gdrcopy=0 changes nothing where NICs match messages; add `software_matching=1`"
            )));
        }
        Ok(found)
    }

    /// Replace a parameter of the file by the value in `--fabric`.
    fn replace(&mut self, asked: &str, key: &str, text: &str) -> Result<(), MachineError> {
        let Shape::Topology(topology) = self.shape else {
            unreachable!("a file names a topology");
        };
        if key == "routing" {
            if !ROUTINGS.contains(&text) {
                return Err(VariantError::refused(format!(
                    "--fabric {asked}: routing is `{text}`; write {}",
                    ROUTINGS.join(", ")
                )));
            }
            self.routing = Some(Node {
                basis: Some(Basis {
                    status: Status::Assumed,
                    source: format!("as `{asked}` says"),
                }),
                ..Node::from(text)
            });
            return Ok(());
        }
        let names = self.parameters.iter().map(|(name, _)| name.clone());
        let known = names.chain(["routing".to_string()]).collect();
        let Some((_, number)) = self.parameters.iter_mut().find(|(name, _)| name == key) else {
            return Err(MachineError::Variant(VariantError::from(UnknownName {
                at: format!("--fabric {asked}"),
                what: format!("parameter of {}", self.name),
                name: key.to_string(),
                known,
                otherwise: None,
            })));
        };
        let values = PARAMETERS
            .iter()
            .find(|(name, ..)| *name == key)
            .map_or(Values::Any, |(_, v, _)| *v);
        let value = text.parse().unwrap_or(f64::NAN);
        let positive = key == "rate" || topology.parameters.contains(&key);
        if !(value.is_finite() && (value > 0.0 || !positive && value == 0.0)) {
            let least = if positive { "above 0" } else { "at least 0" };
            let usual = if values == Values::Switch { 1 } else { 2 };
            return Err(VariantError::refused(format!(
                "--fabric {asked}: {key} is `{text}`; write a number {least}, such as `{key}={usual}`"
            )));
        }
        let wanted = match values {
            Values::Switch if value != 0.0 && value != 1.0 => "0 or 1",
            Values::Whole if value.fract() != 0.0 => "a whole number",
            _ => "",
        };
        if !wanted.is_empty() {
            return Err(VariantError::refused(format!(
                "--fabric {asked}: {key} is `{text}`; write {wanted}"
            )));
        }
        let text = match value.fract() == 0.0 {
            true => format!("{value:.0}"),
            false => shortest(value),
        };
        let source = format!("as `{asked}` says");
        *number = Number::computed(text, number.unit, Status::Assumed, source)?;
        Ok(())
    }

    /// Replace the topology by the switches, links and ports of a description, and the rate of a port, if it states
    /// one.
    pub(super) fn listed(mut self, listed: Listed) -> Result<ClusterNetwork, MachineError> {
        let count = Unit::find("count").expect("things are counted");
        let ports = Number::computed(
            listed.ports.to_string(),
            count,
            Status::Documented,
            listed.name.clone(),
        )?;
        self.summary = format!("network of {}, software of {}", listed.name, self.name);
        self.name = listed.name;
        self.shape = Shape::Listed(listed.switches, listed.links);
        self.parameters
            .retain(|(key, _)| key != "ports" && (key != "rate" || listed.rate.is_none()));
        self.parameters
            .extend(listed.rate.map(|rate| ("rate".to_string(), rate)));
        self.parameters.push(("ports".to_string(), ports));
        Ok(self)
    }

    /// The value of a parameter.
    pub(super) fn number(&self, key: &str) -> Option<f64> {
        let number = self.parameters.iter().find(|(name, _)| name == key);
        number.and_then(|(_, number)| number.single())
    }

    /// Whether a parameter switches something on; `usual` is the default.
    pub(super) fn has(&self, what: &str, usual: bool) -> bool {
        self.number(what).map_or(usual, |value| value != 0.0)
    }

    /// The first ports of a node, as many as the network uses.
    pub(super) fn connected(&self, mut ports: Vec<String>) -> Result<Vec<String>, MachineError> {
        let wanted = self.number("ports").unwrap_or(0.0) as usize;
        if wanted > ports.len() {
            let (name, has) = (&self.name, ports.len());
            return Err(VariantError::refused(format!(
                "{name}: {wanted} ports of a node that has {has}; ask for fewer"
            )));
        }
        if wanted > 0 {
            ports.truncate(wanted);
        }
        Ok(ports)
    }

    /// The switches and links that it adds between nodes with these ports.
    pub(super) fn wires(&self, ports: &Ports) -> Wires {
        match &self.shape {
            Shape::Topology(topology) => topology.wires(ports, &|key| self.number(key)),
            Shape::Listed(switches, links) => {
                let mut wires = Wires::default();
                wires.switches.clone_from(switches);
                for link in links {
                    wires.join(&link.class, link.width, &link.names, &link.other);
                }
                wires
            }
        }
    }

    /// The table of a class of links.
    pub(super) fn class(&self, class: &Class) -> Result<Table, MachineError> {
        let base = class.name.split(' ').next().unwrap_or_default(); // `trunk 20` is a trunk
        let what = LINKS
            .iter()
            .find(|(name, _)| *name == base)
            .map_or("", |(_, what)| what);
        let mut found = Table::default();
        found.set("edges", class.edges.clone());
        found.set("source", format!("{}: {what}", self.name));
        found.set("bandwidth", self.rate(class.width, what)?);
        if let Some(routing) = &self.routing {
            found.set("routing", routing.clone());
        }
        if let Some(Node {
            value: Value::Table(stated),
            ..
        }) = self.links.get(base)
        {
            for (key, node) in &stated.entries {
                found.set(key, node.clone());
            }
        }
        Ok(found)
    }

    /// The rate of a link as wide as `width` ports.
    fn rate(&self, width: f64, what: &str) -> Result<Number, MachineError> {
        let rate = self.parameters.iter().find(|(name, _)| name == "rate");
        let (_, port) = rate.expect("checked when the file was read");
        if width == 1.0 {
            return Ok(port.clone());
        }
        let value = self.number("rate").expect("checked when the file was read");
        let source = format!("{} ports of {}: {what}", short(width), self.name);
        port.scaled(value, width, Status::Derived, source)
    }
}

/// A network as a description lists it.
pub struct Listed {
    /// Name of the description.
    pub name: String,
    /// Rate of a port, if it states one.
    rate: Option<Number>,
    /// How many ports of each node are connected, from the first on.
    pub ports: usize,
    /// All of its switches.
    pub switches: Vec<String>,
    /// All of its links.
    pub links: Vec<ListedLink>,
}

impl Listed {
    /// The network of a description, whose ports have a rate of (value, unit, status, source).
    pub fn new(
        name: String,
        rate: Option<(String, &str, &str, String)>,
        ports: usize,
        switches: Vec<String>,
        links: Vec<ListedLink>,
    ) -> Result<Listed, MachineError> {
        let rate = rate.map(|(value, unit, status, source)| {
            let unit = Unit::find(unit)
                .ok_or_else(|| VariantError::refused(format!("unknown unit `{unit}`")))?;
            let status = Status::from_name(status).unwrap_or(Status::Derived);
            Number::computed(value, unit, status, source)
        });
        Ok(Listed {
            name,
            rate: rate.transpose()?,
            ports,
            switches,
            links,
        })
    }
}

fn parameters(
    mut s: Section<'_>,
    topology: &NetworkTopology,
) -> Result<Vec<(String, Number)>, MachineError> {
    s.meaning("rate", "of a port");
    s.stated("rate", &[Dimension::Rate])?;
    for (place, (key, _, meaning)) in PARAMETERS.into_iter().enumerate() {
        let needed = topology.parameters.contains(&key);
        if !needed && place >= COMMON {
            continue;
        }
        s.meaning(key, meaning);
        let kinds = [Dimension::Count, Dimension::Ratio];
        match needed {
            true => s.stated(key, &kinds).map(Some)?,
            false => s.optional_stated(key, &kinds)?,
        };
    }
    let mut found = Vec::new();
    for (key, node) in s.entries() {
        if let Value::Number(number) = &node.value {
            if topology.parameters.contains(&key)
                && number.values.iter().any(|value| value.is_zero())
            {
                return Err(s.inconsistent(
                    key,
                    "is zero, and divides something; write a number above 0",
                ));
            }
            found.push((key.to_string(), number.clone()));
        }
    }
    s.finish()?;
    Ok(found)
}

fn links(mut s: Section<'_>) -> Result<Table, MachineError> {
    let mut found = Table::default();
    for (class, meaning) in LINKS {
        s.meaning(class, meaning);
        if let Some(wire) = s.optional_section(class)? {
            found.set(class, numbers(wire, &WIRE, "")?);
        }
    }
    s.finish()?;
    Ok(found)
}

fn transports(mut s: Section<'_>) -> Result<Table, MachineError> {
    let mut found = Table::default();
    for name in s.names() {
        let stated = numbers(s.section(name)?, &TRANSPORT, "start")?;
        for (time, from) in [("handling", "handling_from"), ("matching", "matching_from")] {
            if stated.get(from).is_some() && stated.get(time).is_none() {
                let problem = format!("`{from}` changes nothing without `{time}`; give that, too");
                return Err(s.inconsistent(name, problem));
            }
        }
        found.set(name, stated);
    }
    s.finish()?;
    Ok(found)
}

/// The numbers of a table in the order of `keys`; the key `required` must be present.
fn numbers(mut s: Section<'_>, keys: &[Key], required: &str) -> Result<Table, MachineError> {
    let mut found = Table::default();
    for &(key, dimension, meaning) in keys {
        s.meaning(key, meaning);
        let node = match key == required {
            true => Some(s.stated(key, &[dimension])?),
            false => s.optional_stated(key, &[dimension])?,
        };
        if let Some(node) = node {
            found.set(key, node.clone());
        }
    }
    s.finish()?;
    Ok(found)
}
