//! Operations on a read machine: its file over parts, many copies on a network, without or with slower links.
//!
//! ```text
//!   file -> parts merged -> [Machine] -> cluster of N nodes on a network -> without, degrade -> [Machine]
//! ```
//!
//! Each works on the tree of the machine. A machine that is composed has a [text](Machine::text) of its own, whose
//! lines its messages count, and which reads back to the same machine.

mod changes;
mod chip;
mod cluster;
mod network;
mod parts;
mod spelled;
mod topologies;

pub use cluster::Cluster;
pub use network::{ClusterNetwork, Listed, ListedLink};

use std::sync::Arc;

use super::ranks::Size;
use super::recorder::Recorder;
use super::section::{Context, Section};
use super::tree::{self, Node, Table, Value};
use super::{text, Machine};
use crate::error::{At, MachineError, VariantError};

/// What messages of a composed machine put before the name of its file.
const COMPOSED: &str = "composed ";

/// A file by the name that messages call it, with its text.
pub struct File {
    /// Without its folder.
    pub name: String,
    /// All of it.
    pub text: String,
}

/// Where the files are that a machine file names.
pub trait Files {
    /// The part of this name, or of this path beside the machine file.
    fn part(&self, name: &str) -> Result<File, MachineError>;
    /// The network of this name, or the file at this path.
    fn network(&self, name: &str) -> Result<File, MachineError>;
    /// The machines that can be nodes.
    fn nodes(&self) -> Vec<String>;
}

/// How a machine differs from its file: how many nodes, on which network, without what, what is slower.
#[derive(Clone, Debug, Default)]
pub struct Variant {
    /// What to call it.
    pub name: String,
    /// Copies of the node that the file describes.
    pub nodes: Option<usize>,
    /// The network between them with its parameters, `ndr-fat-tree,taper=2`.
    pub fabric: Option<String>,
    /// Links, nodes, classes of links and transports that are taken away.
    pub without: Vec<String>,
    /// The same, with the factor of their rates.
    pub degrade: Vec<(String, f64)>,
}

/// A machine that is composed and not yet checked, because messages about it count the lines of its text.
pub struct Draft {
    tree: Table,
    text: Arc<str>,
    context: Context,
    size: Size,
    cluster: Option<Cluster>,
}

impl Draft {
    /// Read a machine file over its parts. A recorder notes what is read, for a schema.
    pub fn read(
        file: File,
        files: &dyn Files,
        recorder: Option<Recorder>,
    ) -> Result<Draft, MachineError> {
        let mut tree = tree::parse(&file.text, &file.name)?;
        let has_parts = parts::merged(&mut tree, &file.name, files)?;
        let context = Context {
            file: file.name,
            clock: None,
            recorder,
        };
        let cluster = take_cluster(&mut tree, &context)?;
        if has_parts || cluster.is_some() {
            return Ok(Draft::composed(tree, context, Size::Unstated, cluster));
        }
        Ok(Draft {
            tree,
            text: file.text.into(),
            context,
            size: Size::Unstated,
            cluster,
        })
    }

    /// A composed tree, whose nodes get the lines of its text.
    fn composed(mut tree: Table, context: Context, size: Size, cluster: Option<Cluster>) -> Draft {
        let first =
            |key: &str| (FIRST.iter().position(|first| *first == key)).unwrap_or(FIRST.len());
        tree.entries.sort_by_key(|(key, _)| first(key));
        let text = text::write(&mut tree).into();
        let context = Context {
            file: format!("{COMPOSED}{}", context.file),
            ..context
        };
        Draft {
            tree,
            text,
            context,
            size,
            cluster,
        }
    }

    /// The text of the machine.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What messages call it.
    pub fn file(&self) -> &str {
        &self.context.file
    }

    /// The machine, checked.
    pub fn machine(&self) -> Result<Machine, MachineError> {
        let mut found =
            Machine::assemble(self.tree.clone(), self.context.clone(), self.size.clone())?;
        found.text = Some(self.text.clone());
        found.cluster.clone_from(&self.cluster);
        Ok(found)
    }
}

impl Machine {
    /// This machine as the variant has it.
    pub fn composed(&self, variant: &Variant, files: &dyn Files) -> Result<Draft, MachineError> {
        let context = self.unrecorded();
        let is_changed = !variant.without.is_empty() || !variant.degrade.is_empty();
        let file = self.plain_file();
        if let (Some(nodes), None) = (variant.nodes, &self.cluster) {
            let able = files.nodes().join(", ");
            return Err(VariantError::refused(format!(
                "--nodes {nodes}: {file} has no [cluster], so it is no node; machines that can be are {able}"
            )));
        }
        let of_chip = is_changed && self.check_changes(variant)?;
        let mut tree = match (variant.nodes, &self.cluster) {
            (Some(nodes), Some(cluster)) => {
                let asked = variant.fabric.as_ref().unwrap_or(&cluster.network);
                let network = ClusterNetwork::asked(asked, |name| files.network(name))?;
                cluster::of(self, &context, cluster, nodes, &network)?
            }
            _ => self.tree.clone(),
        };
        if of_chip {
            chip::remove(&mut tree, &variant.without, file)?;
        } else if is_changed {
            let own = rank_names(self, &context)?;
            let all = match variant.nodes {
                Some(nodes) => (0..nodes)
                    .flat_map(|k| own.iter().map(move |name| format!("node {k} {name}")))
                    .collect(),
                None => own,
            };
            changes::apply(&mut tree, &context, &all, variant)?;
        }
        Ok(self.renamed(tree, variant.name.clone(), None))
    }

    /// So many copies of this node on a network that a description lists, with the software and latencies of `network`
    /// or else of the node's own.
    pub fn joined(
        &self,
        (name, summary, sources): (String, String, &[String]),
        nodes: usize,
        network: Option<&str>,
        listed: Listed,
        files: &dyn Files,
    ) -> Result<Draft, MachineError> {
        let Some(cluster) = &self.cluster else {
            let problem = format!(
                "{}: has no [cluster], so it is no node of one; name another machine",
                self.name()
            );
            return Err(VariantError::refused(problem));
        };
        let base = ClusterNetwork::asked(network.unwrap_or(&cluster.network), |name| {
            files.network(name)
        })?;
        let mut tree = cluster::of(
            self,
            &self.unrecorded(),
            cluster,
            nodes,
            &base.listed(listed)?,
        )?;
        if let Some(head) = tree.table_mut("machine") {
            if let Some(all) = head.list_mut("sources") {
                all.extend(sources.iter().map(|source| Node::from(source.clone())));
            }
        }
        Ok(self.renamed(tree, name, Some(summary)))
    }

    /// This machine with exceptions for pairs of endpoints: (from, to, the nodes between).
    pub fn routed(
        &self,
        routes: Vec<(String, String, Vec<String>)>,
    ) -> Result<Machine, MachineError> {
        let mut tree = self.tree.clone();
        if let Some(fabric) = tree.table_mut("fabric") {
            if fabric.get("pair").is_none() {
                fabric.set("pair", Table::default());
            }
            if let Some(pairs) = fabric.table_mut("pair") {
                for (from, to, route) in routes {
                    let mut pair = Table::default();
                    pair.set("route", route);
                    pairs.set(&format!("{from} -> {to}"), pair);
                }
            }
        }
        self.changed(tree)
    }

    /// The text of the machine: that of its file, or of its tree where it is composed or changed.
    pub fn text(&self) -> Arc<str> {
        match &self.text {
            Some(text) => text.clone(),
            None => text::write(&mut self.tree.clone()).into(),
        }
    }

    /// What the file says that a node is to networks.
    pub fn cluster(&self) -> Option<&Cluster> {
        self.cluster.as_ref()
    }

    fn renamed(&self, mut tree: Table, name: String, summary: Option<String>) -> Draft {
        if let Some(head) = tree.table_mut("machine") {
            head.set("name", name);
            if let Some(summary) = summary {
                head.set("summary", summary);
            }
        }
        let context = Context {
            file: self.plain_file().to_string(),
            ..self.unrecorded()
        };
        Draft::composed(tree, context, self.size.clone(), None)
    }

    /// The name of its file, also where messages count the lines of a composed text.
    fn plain_file(&self) -> &str {
        self.file().trim_start_matches(COMPOSED)
    }

    /// Its context, for readers of what no schema is made of.
    fn unrecorded(&self) -> Context {
        Context {
            recorder: None,
            ..self.context.clone()
        }
    }

    /// Refuse a machine whose fabric is neither a graph of links nor has networks side by side, which it answers.
    fn check_changes(&self, variant: &Variant) -> Result<bool, MachineError> {
        let Some(Value::Table(fabric)) = self.tree.get("fabric").map(|node| &node.value) else {
            return Ok(false);
        };
        let (of_chip, file) = (
            matches!(
                fabric.get("network"),
                Some(Node {
                    value: Value::List(_),
                    ..
                })
            ),
            self.plain_file(),
        );
        let has_links = matches!(
            fabric.get("links"),
            Some(Node {
                value: Value::Table(_),
                ..
            })
        );
        let problem = match of_chip {
            true if variant.degrade.is_empty() => return Ok(true),
            false if self.fabric_kind() == "flow" && has_links => return Ok(false),
            true => "--degrade is for `flow` fabrics with links; --without takes a network away",
            false => "--without and --degrade are for `flow` fabrics with links",
        };
        Err(VariantError::refused(format!("{file}: {problem}")))
    }
}

/// Tables that a reader looks for first.
const FIRST: [&str; 4] = ["machine", "level", "endpoints", "fabric"];

/// Read `[cluster]`, which is no part of the machine itself.
pub(super) fn take_cluster(
    tree: &mut Table,
    context: &Context,
) -> Result<Option<Cluster>, MachineError> {
    let stated = Section::root(context, tree).optional_section("cluster")?;
    let cluster = stated.map(Cluster::read).transpose()?;
    tree.remove("cluster");
    Ok(cluster)
}

/// The names of all ranks of a machine that states them one by one.
fn rank_names(machine: &Machine, context: &Context) -> Result<Vec<String>, MachineError> {
    let ends = Section::root(context, &machine.tree).section("endpoints")?;
    let is_counted = matches!(
        ends.table().get("count"),
        Some(Node {
            value: Value::Integer(_),
            ..
        })
    );
    if !ends.has("names") && !is_counted {
        let at = ends.at("");
        let problem = "a node has `count` endpoints, or `names`; write one of them".to_string();
        return Err(MachineError::Inconsistent { at, problem });
    }
    let ranks = machine.endpoints().iter().take(machine.ranks());
    Ok(ranks.map(|end| end.name.clone()).collect())
}

/// An error at a class of links.
fn at_edge(context: &Context, class: &str, problem: &str) -> MachineError {
    let at = At {
        file: context.file.clone(),
        line: 0,
        key: format!("fabric.links.{class}"),
    };
    MachineError::Inconsistent {
        at,
        problem: problem.to_string(),
    }
}
