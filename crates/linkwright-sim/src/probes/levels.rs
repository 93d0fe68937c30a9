//! The memory that one endpoint sees, level by level: `[probe.memory]` of a machine file.
//!
//! ```toml
//! [[probe.memory.level]]                 # nearest first
//! name = "SRAM"
//! size = { value = 512, unit = "KiB", ... }
//! latency = { value = 6, unit = "cycle", ... }        # from address to data
//! read = { value = 16, unit = "B/cycle", ... }        # per endpoint
//! write = { value = 8, unit = "B/cycle", ... }
//! total = { value = 40, unit = "GB/s", ... }          # all endpoints together; absent: nothing is shared
//! overlap = true                                      # loads and stores of one instant do not wait for each other
//! write_allocate = false                              # a line that is written is fetched first
//! widest = { value = 128, unit = "count", ... }       # bits of the access that reaches `read` and `write`
//! hardware_threads = { value = 6, unit = "count", ... }   # of one endpoint, each with an equal share of its slots
//! pass_start = { value = 162, unit = "cycle", ... }   # before the first access of a pass
//! ```

use super::{section, waived};
use crate::error::SimError;
use linkwright_core::probes::Description;
use linkwright_core::{Bytes, BytesPerSec, Machine, TimePs};

/// One level.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Level {
    pub name: String,
    pub size: Bytes,
    pub latency: TimePs,
    pub read: BytesPerSec,
    pub write: BytesPerSec,
    pub total: Option<BytesPerSec>,
    pub overlap: bool,
    pub write_allocate: bool,
    pub widest_bits: Option<u64>,
    pub hardware_threads: u64,
    pub pass_start: TimePs,
}

/// All levels, nearest first.
pub(super) fn read(machine: &Machine, about: &Description) -> Result<Vec<Level>, SimError> {
    let mut table = section(machine, about)?;
    let mut levels: Vec<Level> = Vec::new();
    for mut s in table.sections("level")? {
        let level = Level {
            name: s.text("name")?,
            size: s.bytes("size")?,
            latency: s.time("latency")?,
            read: s.rate("read")?,
            write: s.rate("write")?,
            total: s.optional_rate("total")?,
            overlap: s.optional_flag("overlap")?.unwrap_or(false),
            write_allocate: s.optional_flag("write_allocate")?.unwrap_or(false),
            widest_bits: s.optional_count("widest")?,
            hardware_threads: s.optional_count("hardware_threads")?.unwrap_or(1),
            pass_start: s.optional_time("pass_start")?.unwrap_or(TimePs::ZERO),
        };
        for (key, number) in [
            ("widest", level.widest_bits.unwrap_or(1)),
            ("hardware_threads", level.hardware_threads),
        ] {
            if number == 0 {
                return Err(s.inconsistent(key, "is 0; give at least 1").into());
            }
        }
        if levels
            .last()
            .is_some_and(|nearer| nearer.size >= level.size)
        {
            let problem = "is no larger than the level before it; list levels nearest first";
            return Err(s.inconsistent("size", problem).into());
        }
        s.finish()?;
        levels.push(level);
    }
    if levels.is_empty() {
        let problem = "has no level; add [[probe.memory.level]]";
        return Err(table.inconsistent("", problem).into());
    }
    table.finish()?;
    Ok(levels)
}

/// The nearest level that holds `bytes`.
pub(super) fn holding(
    machine: &Machine,
    about: &Description,
    bytes: u64,
) -> Result<Level, SimError> {
    let levels = read(machine, about)?;
    let largest = levels.last().map_or(0, |level| level.size.0);
    let found = levels.into_iter().find(|level| level.size.0 >= bytes);
    found.ok_or_else(|| {
        let reason = format!(
            "{bytes} bytes fit into no level of `{}`; its largest has {largest}",
            machine.name()
        );
        waived(about, reason)
    })
}

/// A machine has as many endpoints as are asked for, or waives the question.
pub(super) fn enough_endpoints(
    machine: &Machine,
    about: &Description,
    needed: u64,
) -> Result<(), SimError> {
    let there = machine.ranks() as u64;
    if needed <= there {
        return Ok(());
    }
    let reason = format!("needs {needed} endpoints; `{}` has {there}", machine.name());
    Err(waived(about, reason))
}
