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
//! The rates of a file are those of the widest access. Where the file says how wide that is, a narrower one
//! moves as much less, one access for one access; where it does not, narrower ones are waived. A hardware
//! thread has its share of the endpoint's slots whether the others run or not, and pays the start of a pass.

use super::levels::{self, Level};
use super::{waived, Answer, ModelProbe};
use crate::error::SimError;
use linkwright_core::probes::{Assignment, MEMORY_BANDWIDTH};
use linkwright_core::{Bytes, BytesPerSec, Machine};

/// Registry entry.
pub static PROBE: ModelProbe = ModelProbe {
    about: &MEMORY_BANDWIDTH,
    check: |machine| levels::read(machine, &MEMORY_BANDWIDTH).map(|_| ()),
    answer,
};

fn answer(machine: &Machine, asked: &Assignment) -> Result<Answer, SimError> {
    let (block, threads) = (asked.number("block"), asked.number("threads"));
    let width = asked.word("width");
    let (arrays, read, written) = match asked.word("kernel") {
        "read" => (1, block, 0),
        "write" => (1, 0, block),
        "copy" => (2, block, block),
        _ => (3, 2 * block, block),
    };
    let level = levels::holding(machine, &MEMORY_BANDWIDTH, arrays * block)?;
    let endpoints = threads.div_ceil(level.hardware_threads);
    levels::enough_endpoints(machine, &MEMORY_BANDWIDTH, endpoints)?;
    let (read_rate, write_rate) = rates_of_one_thread(machine, &level, width)?;
    let fetched = if level.write_allocate && width != "non_temporal" {
        written
    } else {
        0
    };
    let reads = read_rate.time(Bytes(read + fetched));
    let writes = write_rate.time(Bytes(written));
    let accesses = if level.overlap {
        reads.max(writes)
    } else {
        reads + writes
    };
    let alone = level.pass_start + accesses;
    let moved = threads * (read + fetched + written);
    let together = level.total.map(|total| total.time(Bytes(moved)));
    Ok(Answer {
        time: together.map_or(alone, |together| together.max(alone)),
        counted_bytes: threads * (read + written),
        moved_bytes: moved,
        ..Answer::default()
    })
}

/// Rates at which one hardware thread reads and writes by accesses of this width.
fn rates_of_one_thread(
    machine: &Machine,
    level: &Level,
    width: &str,
) -> Result<(BytesPerSec, BytesPerSec), SimError> {
    let threads = level.hardware_threads as f64;
    let (read, write) = (level.read.0 / threads, level.write.0 / threads);
    let Ok(bits) = width.parse::<u64>() else {
        return Ok((BytesPerSec(read), BytesPerSec(write)));
    };
    let Some(widest) = level.widest_bits.filter(|&widest| bits <= widest) else {
        let reason = format!(
            "the rates of `{}` are those of the widest access, not of {width} bits; ask for `widest`",
            machine.name()
        );
        return Err(waived(&MEMORY_BANDWIDTH, reason));
    };
    let narrow = read * bits as f64 / widest as f64;
    Ok((BytesPerSec(narrow), BytesPerSec(narrow.min(write))))
}
