//! The communication library that a machine runs: `[library]`.
//!
//! A library chooses how a collective goes: which way round, in which pieces, on which path. What it chooses
//! belongs to its program, which is in code; which library a machine runs, and what its words mean on this machine,
//! stand here. The library's plan is then the machine's own algorithm.
//!
//! ```text
//! [library]
//! name = "nccl"
//! versions = ["1.3.4", "2.3.5"]                        # the first is the one that runs by default
//! links = "dma"                                        # the network on which ranks one link apart are neighbours
//! modes = { normal = "flags", low_latency = "ll" }     # mode of the library -> path of this file
//! training = "2.3.5"                                   # optional: the version that frameworks bring along
//! launch = { value = 50, unit = "us", ... }            # optional: to start a collective on every rank
//! source = "section 3.2: NCCL 1.3"
//! ```

use std::collections::BTreeMap;

use super::path::Path;
use super::section::Section;
use crate::error::MachineError;
use crate::units::TimePs;

/// A library and what its words mean on one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// Which program it is, such as `nccl`.
    pub name: String,
    /// Its versions, the default first; at least one.
    pub versions: Vec<String>,
    /// Number of the network on which ranks one link apart are neighbours.
    pub links: u8,
    /// Mode of the library -> name of the path that it takes.
    pub modes: BTreeMap<String, String>,
    /// Which of the versions carries the gradients of a training step.
    pub training: String,
    /// What it takes to start a collective, on every rank.
    pub launch: TimePs,
    /// Where it is stated that this machine runs the library.
    pub source: String,
}

impl Library {
    pub(crate) fn read(
        mut s: Section<'_>,
        networks: &[String],
        paths: &[Path],
    ) -> Result<Library, MachineError> {
        let networks: Vec<&str> = networks.iter().map(String::as_str).collect();
        let paths: Vec<&str> = paths.iter().map(|path| path.name.as_str()).collect();
        let name = s.text("name")?;
        let versions = s.texts("versions")?;
        let repeated = (1..versions.len()).any(|i| versions[..i].contains(&versions[i]));
        if versions.is_empty() || repeated {
            return Err(s.inconsistent("versions", "name at least one version, each once"));
        }
        let links = s.name("links", &networks)? as u8;
        let mut table = s.section("modes")?;
        table.keys_are_names();
        let mut modes = BTreeMap::new();
        for mode in table.names() {
            modes.insert(
                mode.to_string(),
                paths[table.name(mode, &paths)?].to_string(),
            );
        }
        table.finish()?;
        let known: Vec<&str> = versions.iter().map(String::as_str).collect();
        let training = s.optional_name("training", &known)?.unwrap_or(0);
        let training = versions[training].clone();
        let launch = s.optional_time("launch")?.unwrap_or(TimePs::ZERO);
        let source = s.text("source")?;
        s.finish()?;
        Ok(Library {
            name,
            versions,
            links,
            modes,
            training,
            launch,
            source,
        })
    }
}
