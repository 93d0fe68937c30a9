//! What a schedule's hints mean on this machine: `[hints]`.
//!
//! A schedule may hint that a transfer goes along an axis in a direction, or belongs to a lane. A
//! machine with several networks says here which of them such a transfer takes; any other machine
//! leaves `[hints]` out and everything travels on network 0. Hints change times, never results.
//!
//! ```text
//! [hints]
//! networks = ["NoC 0", "NoC 1"]                       # names of network 0, 1
//! axis = { "+x" = "NoC 0", "-x" = "NoC 1" }           # where the schedule names an axis
//! lane = { "0" = "NoC 0", "1" = "NoC 1" }             # where it names a lane
//! ```

use std::collections::BTreeMap;

use super::section::Section;
use crate::error::{suggest, MachineError};

/// Names of the axes a schedule may hint at, in order.
const AXES: [&str; 3] = ["x", "y", "z"];

/// Which network a hinted transfer takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hints {
    networks: Vec<String>,
    axes: BTreeMap<(u8, bool), u8>,
    lanes: BTreeMap<u8, u8>,
}

impl Default for Hints {
    /// One unnamed network.
    fn default() -> Self {
        Hints {
            networks: vec!["network".to_string()],
            axes: BTreeMap::new(),
            lanes: BTreeMap::new(),
        }
    }
}

impl Hints {
    /// Names of the networks, in the order of their numbers.
    pub fn networks(&self) -> &[String] {
        &self.networks
    }

    /// Network of a transfer along `axis` (0 = x), towards larger coordinates if `positive`.
    pub fn axis(&self, axis: u8, positive: bool) -> u8 {
        self.axes.get(&(axis, positive)).copied().unwrap_or(0)
    }

    /// Network of a transfer on `lane`.
    pub fn lane(&self, lane: u8) -> u8 {
        self.lanes.get(&lane).copied().unwrap_or(0)
    }

    pub(crate) fn read(mut s: Section<'_>) -> Result<Hints, MachineError> {
        let networks = s.texts("networks")?;
        if networks.is_empty() || networks.len() > usize::from(u8::MAX) {
            return Err(s.inconsistent("networks", "name between 1 and 255 networks"));
        }
        let names: Vec<&str> = networks.iter().map(String::as_str).collect();
        let mut axes = BTreeMap::new();
        if let Some(mut table) = s.optional_section("axis")? {
            for key in table.names() {
                let axis = parse_axis(key).ok_or_else(|| MachineError::UnknownKey {
                    at: table.at(key),
                    key: key.to_string(),
                    cure: suggest(key, ["+x", "-x", "+y", "-y", "+z", "-z"]),
                })?;
                axes.insert(axis, table.name(key, &names)? as u8);
            }
            table.finish()?;
        }
        let mut lanes = BTreeMap::new();
        if let Some(mut table) = s.optional_section("lane")? {
            for key in table.names() {
                let lane = key.parse().map_err(|_| MachineError::UnknownKey {
                    at: table.at(key),
                    key: key.to_string(),
                    cure: "a lane is a number from 0 to 255".to_string(),
                })?;
                lanes.insert(lane, table.name(key, &names)? as u8);
            }
            table.finish()?;
        }
        s.finish()?;
        Ok(Hints {
            networks,
            axes,
            lanes,
        })
    }
}

/// `+x` as axis 0, positive.
fn parse_axis(key: &str) -> Option<(u8, bool)> {
    let (sign, name) = key.split_at_checked(1)?;
    let positive = match sign {
        "+" => true,
        "-" => false,
        _ => return None,
    };
    let axis = AXES.iter().position(|a| *a == name)?;
    Some((axis as u8, positive))
}
