//! Build a machine from its file: merge its parts, repeat a node on a network, remove links or slow them down.
//!
//! ```text
//!   file -> parts merged -> [Machine] -> cluster of N nodes on a network -> without, degrade -> [Machine]
//! ```
//!
//! Each step works on the tree of the machine. A composed machine has a [text](Machine::text) of its own, which reads
//! back to the same machine; line numbers in its messages refer to that text.

mod changes;
mod chip;
mod cluster;
mod network;
mod parts;
mod spelled;
mod topologies;

pub use cluster::Cluster;
pub use network::{ClusterNetwork, Listed, ListedLink, ROUTINGS};

use std::sync::Arc;

use super::ranks::Size;
use super::recorder::Recorder;
use super::section::{Context, Section};
use super::tree::{self, Node, Table, Value};
use super::{text, Machine};
use crate::error::{At, MachineError, VariantError};

/// Prefix of the file name in messages about a composed machine.
const COMPOSED: &str = "composed ";

/// A file: its name in messages, and its text.
pub struct File {
    /// Its name without the folder.
    pub name: String,
    /// Its whole text.
    pub text: String,
}

/// Finds the files that a machine file names.
pub trait Files {
    /// The part of this name, or at this path next to the machine file.
    fn part(&self, name: &str) -> Result<File, MachineError>;
    /// The network of this name, or the file at this path.
    fn network(&self, name: &str) -> Result<File, MachineError>;
    /// The machines that can be nodes.
    fn nodes(&self) -> Vec<String>;
}

/// How a machine differs from its file: number of nodes, network between them, removed and slower links.
#[derive(Clone, Debug, Default)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// Copies of the node that the file describes.
    pub nodes: Option<usize>,
    /// The network between them with its parameters, `ndr-fat-tree,taper=2`.
    pub fabric: Option<String>,
    /// Links, nodes, classes of links and transports to remove.
    pub without: Vec<String>,
    /// Links, nodes, classes of links and transports to slow down, with the factor for their rates.
    pub degrade: Vec<(String, f64)>,
}

/// A machine that is composed but not yet checked. Its text exists before the check, whose messages name lines of it.
pub struct Draft {
    tree: Table,
    text: Arc<str>,
    context: Context,
    size: Size,
    cluster: Option<Cluster>,
}

impl Draft {
    /// Read a machine file and merge it over its parts. A recorder notes the keys read, for a schema.
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

    /// Write the text of a composed tree, and give its nodes their lines there.
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

    /// Its name in messages.
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
    /// Apply a variant to this machine.
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

    /// Join `nodes` copies of this node by the `listed` network, with the software and latencies of `network`, or of
    /// the node's own network if that is `None`.
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

    /// Add routes for single pairs of endpoints: (from, to, the nodes between).
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

    /// The `[cluster]` table of its file, if it can be a node of a cluster.
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

    /// The name of its file, without the prefix of a composed machine.
    fn plain_file(&self) -> &str {
        self.file().trim_start_matches(COMPOSED)
    }

    /// Its context without a recorder, for reads that do not belong in a schema.
    fn unrecorded(&self) -> Context {
        Context {
            recorder: None,
            ..self.context.clone()
        }
    }

    /// Reject a fabric that is neither a graph of links nor a list of networks; return whether it is the latter.
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

/// Tables that come first in the text, because readers look for them first.
const FIRST: [&str; 4] = ["machine", "level", "endpoints", "fabric"];

/// Read and remove `[cluster]`, which is not part of the machine itself.
pub(super) fn take_cluster(
    tree: &mut Table,
    context: &Context,
) -> Result<Option<Cluster>, MachineError> {
    let stated = Section::root(context, tree).optional_section("cluster")?;
    let cluster = stated.map(Cluster::read).transpose()?;
    tree.remove("cluster");
    Ok(cluster)
}

/// The names of all ranks of a machine that states `names` or a `count`.
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
