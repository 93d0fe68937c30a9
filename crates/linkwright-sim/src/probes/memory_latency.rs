//! Load-to-use latency: that of the nearest level that holds the working set.
//!
//! Order and page size change nothing: the model has no prefetcher and no address translation. Neighbours
//! change nothing where a level is not shared; where it is, the queueing is beyond this model, which waives.

use super::{levels, waived, Answer, ModelProbe};
use crate::error::SimError;
use linkwright_core::probes::{Assignment, MEMORY_LATENCY};
use linkwright_core::Machine;

/// Registry entry.
pub static PROBE: ModelProbe = ModelProbe {
    about: &MEMORY_LATENCY,
    check: |machine| levels::read(machine, &MEMORY_LATENCY).map(|_| ()),
    answer,
};

/// What one load of the chase fetches.
const POINTER_BYTES: u64 = 8;

fn answer(machine: &Machine, asked: &Assignment) -> Result<Answer, SimError> {
    let neighbours = asked.number("neighbours");
    levels::enough_endpoints(machine, &MEMORY_LATENCY, neighbours + 1)?;
    let level = levels::holding(machine, &MEMORY_LATENCY, asked.number("working_set"))?;
    if neighbours > 0 && level.total.is_some() {
        let reason = format!(
            "`{}` is shared, and how its loads queue behind {neighbours} neighbours is not described",
            level.name
        );
        return Err(waived(&MEMORY_LATENCY, reason));
    }
    Ok(Answer {
        time: level.latency,
        counted_bytes: POINTER_BYTES,
        moved_bytes: POINTER_BYTES,
        ..Answer::default()
    })
}
