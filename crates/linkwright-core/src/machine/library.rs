//! The communication library that a machine runs: `[library]`.
//!
//! A library chooses how a collective goes: which way round, in which pieces, on which path. What it chooses
//! belongs to its program, which is in code; which library a machine runs, and what its words mean on this machine,
//! stand here. The library's plan is then the machine's own algorithm.
//!
//! ```text
//! [library]
//! name = "nccl"
//! versions = ["2.27", "2.23"]                          # the first is the one that runs by default
//! modes = { simple = "simple", ll = "ll" }             # mode of the library -> path of this file
//! links = "dma"                                        # optional: where ranks one link apart are neighbours
//! training = "2.23"                                    # optional: the version that frameworks bring along
//! launch = { value = 50, unit = "us", ... }            # optional: to start a collective on every rank
//! source = "section 3.2: NCCL 2.27"
//!
//! [library.hardware]                                   # optional: what the choice depends on, in words of the library
//! gpu = "sm90"
//! host = "intel"
//! source = "data sheet"
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
    /// Number of the network on which ranks one link apart are neighbours, if its rings follow links.
    pub links: Option<u8>,
    /// Mode of the library -> name of the path that it takes.
    pub modes: BTreeMap<String, String>,
    /// What its choice depends on, if the file says so.
    pub hardware: Option<Hardware>,
    /// Which of the versions carries the gradients of a training step.
    pub training: String,
    /// What it takes to start a collective, on every rank.
    pub launch: TimePs,
    /// Where it is stated that this machine runs the library.
    pub source: String,
}

/// What a library knows of a node beyond its links, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hardware {
    /// The generation of the devices, such as `sm90`.
    pub gpu: String,
    /// The maker of the processors, such as `intel`.
    pub host: String,
}

impl Hardware {
    fn read(mut s: Section<'_>) -> Result<Hardware, MachineError> {
        let (gpu, host) = (s.text("gpu")?, s.text("host")?);
        s.text("source")?;
        s.finish()?;
        Ok(Hardware { gpu, host })
    }
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
        let links = s.optional_name("links", &networks)?.map(|n| n as u8);
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
        let hardware = s.optional_section("hardware")?.map(Hardware::read);
        let hardware = hardware.transpose()?;
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
            hardware,
            training,
            launch,
            source,
        })
    }
}
