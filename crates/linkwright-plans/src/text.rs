//! The canonical text of a schedule; `docs/schedules.md` describes it.

use crate::error::{PlanError, Result};
use crate::format::Format;
use linkwright_schedule::{text, Schedule};

/// Our own text form.
pub static FORMAT: Format = Format {
    key: "lw",
    summary: "the canonical text of a schedule, one operation per line",
    description: "Holds everything that a schedule has: its size, buffers, operations, lanes and waits. Reading \
                  what was written gives the same schedule.",
    source: "docs/schedules.md",
    suffix: ".lw",
    recognises: |text| text.trim_start().starts_with("linkwright-schedule"),
    read: Some(read),
    write: |schedule| Ok(text::print(schedule)),
};

/// Unlike plans, a text is not verified on reading: `verify` reports what is wrong with it.
fn read(content: &str) -> Result<Schedule> {
    text::parse(content)
        .map_err(|error| PlanError::at(format!("line {}", error.line), error.problem))
}
