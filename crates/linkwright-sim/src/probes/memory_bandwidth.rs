//! Streaming bandwidth: bytes over the rates of the nearest level that holds the blocks of one thread.
//!
//! ```text
//!   kernel   arrays  read R   written W        with write-allocate R += W, unless non-temporal
//!   read       1       b         0
//!   write      1       0         b             time of one thread = R/r + W/w, or with overlap the larger
//!   copy       2       b         b             time of all       >= threads (R + W) / total
//!   triad      3      2b         b
//! ```
//!
//! The rates of a file are those of the widest access, so narrower ones are waived.

use super::{levels, waived, Answer, ModelProbe};
use crate::error::SimError;
use linkwright_core::probes::{Assignment, MEMORY_BANDWIDTH};
use linkwright_core::{Bytes, Machine};

/// Registry entry.
pub static PROBE: ModelProbe = ModelProbe {
    about: &MEMORY_BANDWIDTH,
    check: |machine| levels::read(machine, &MEMORY_BANDWIDTH).map(|_| ()),
    answer,
};

fn answer(machine: &Machine, asked: &Assignment) -> Result<Answer, SimError> {
    let (block, threads) = (asked.number("block"), asked.number("threads"));
    let width = asked.word("width");
    if !["widest", "non_temporal"].contains(&width) {
        let reason = format!("the rates of `{}` are those of the widest access, not of {width} bits; ask for `widest`", machine.name());
        return Err(waived(&MEMORY_BANDWIDTH, reason));
    }
    levels::enough_endpoints(machine, &MEMORY_BANDWIDTH, threads)?;
    let (arrays, read, written) = match asked.word("kernel") {
        "read" => (1, block, 0),
        "write" => (1, 0, block),
        "copy" => (2, block, block),
        _ => (3, 2 * block, block),
    };
    let level = levels::holding(machine, &MEMORY_BANDWIDTH, arrays * block)?;
    let fetched = if level.write_allocate && width != "non_temporal" {
        written
    } else {
        0
    };
    let reads = level.read.time(Bytes(read + fetched));
    let writes = level.write.time(Bytes(written));
    let alone = if level.overlap {
        reads.max(writes)
    } else {
        reads + writes
    };
    let moved = threads * (read + fetched + written);
    let together = level.total.map(|total| total.time(Bytes(moved)));
    Ok(Answer {
        time: together.map_or(alone, |together| together.max(alone)),
        counted_bytes: threads * (read + written),
        moved_bytes: moved,
        ..Answer::default()
    })
}
