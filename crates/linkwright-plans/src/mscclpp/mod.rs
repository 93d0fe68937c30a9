//! Execution plans of MSCCL++, in the JSON that its executor reads since version 0.8.
//!
//! ```text
//!   gpus[r].threadblocks[t].ops[k]     what thread block t of GPU r does, in order
//!   channels, remote_buffers           of the GPU; a thread block lists those that it uses, an operation their places
//!   put copy re rre ...                move units between `i`, `o`, `s` and buffers of other GPUs
//!   signal wait flush nop barrier ...  say who waits for whom
//! ```
//!
//! Reading goes through these stages, each of which refuses what it cannot prove:
//!
//! ```text
//!   json, parse   keys, types, bounds                  -> Plan
//!   events        signals meet waits, the plan ends    -> Events
//!   race          its own order suffices for its data
//!   build         a schedule, verified
//! ```

mod build;
mod events;
mod json;
mod parse;
mod plan;
mod race;
mod write;

use crate::error::Result;
use crate::format::Format;
use linkwright_schedule::Schedule;

/// JSON of MSCCL++.
pub static FORMAT: Format = Format {
    key: "mscclpp-json",
    summary: "the execution plans of MSCCL++",
    description: "Holds puts, gets, copies and reductions of thread blocks, with signals and semaphores between them. A \
                  put that combines at its destination is written as a put into scratch and a reduction there. What is \
                  read must end in every execution, and its own waits must order all accesses.",
    source: "https://github.com/microsoft/mscclpp",
    suffix: ".json",
    recognises,
    read: Some(read),
    write: write::write,
};

/// Bytes at the beginning of a file among which the key `gpus` is looked for.
const BEGINNING: usize = 4096;

fn recognises(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let beginning = &text.as_bytes()[..text.len().min(BEGINNING)];
    let key: &[u8] = b"\"gpus\"";
    beginning.starts_with(b"{") && beginning.windows(key.len()).any(|window| window == key)
}

fn read(text: &str) -> Result<Schedule> {
    let file = parse::file(text.trim_start_matches('\u{feff}'))?;
    let plan = parse::plan(&file)?;
    let events = events::events(&plan)?;
    race::check(&plan, &events)?;
    build::schedule(&plan, &events)
}

#[cfg(test)]
mod tests;
