//! Plans in the XML of MSCCL, which the MSCCL runtimes for NCCL and RCCL execute.
//!
//! ```text
//!   <algo coll="allreduce" nchunksperloop="8" ...>     what is achieved, and into how many chunks data are cut
//!     <gpu id="0" i_chunks="8" o_chunks="8" s_chunks="0">
//!       <tb id="0" send="1" recv="7" chan="0">         a thread block: one peer each way, steps in order
//!         <step s="0" type="s" srcbuf="i" .../>        s r rcs rrs rrc rrcs cpy re nop
//! ```
//!
//! A reader goes through these stages, each of which refuses what it cannot prove:
//!
//! ```text
//!   parse      numbers, gaps, unknown elements              -> Plan
//!   links      sends meet receives, dependencies their step -> Links
//!   events     the plan ends, its waits order all accesses  -> an order of its steps
//!   compose    messages become transfers                    -> Moves
//!   build      a schedule, verified
//! ```
//!
//! `docs/plans.md` says what is kept and what is refused.

mod build;
mod compose;
mod events;
mod limits;
mod links;
mod parse;
mod plan;
mod print;
mod write;

use crate::error::Result;
use crate::express;
use crate::format::Format;
use links::Links;
use linkwright_schedule::Schedule;

/// With which some editors begin a file.
const MARK: char = '\u{feff}';

/// MSCCL XML.
pub static FORMAT: Format = Format {
    key: "msccl-xml",
    summary: "the plans that the MSCCL runtimes for NCCL and RCCL execute",
    description: "Holds the transfers of one collective as steps of thread blocks. It has no memories, no arithmetic, \
                  no multicast and no barrier. What is read must end in every execution, and its own waits must order \
                  all accesses.",
    source: "https://github.com/microsoft/msccl",
    suffix: ".xml",
    recognises,
    read: Some(read),
    write,
};

/// An XML file whose first element is `<algo`, or one with a document type, which the reader refuses by name.
fn recognises(text: &str) -> bool {
    let mut rest = text.trim_start_matches(MARK).trim_start();
    loop {
        let end = match rest {
            _ if rest.starts_with("<?") => "?>",
            _ if rest.starts_with("<!--") => "-->",
            _ if rest.starts_with("<!") => return rest.contains("<algo"),
            _ => return rest.starts_with("<algo"),
        };
        match rest.split_once(end) {
            Some((_, after)) => rest = after.trim_start(),
            None => return false,
        }
    }
}

fn read(text: &str) -> Result<Schedule> {
    let plan = parse::parse(text.trim_start_matches(MARK))?;
    let links = Links::of(&plan)?;
    let skeleton = events::skeleton(&plan, &links)?;
    let cells = plan.cells();
    events::prove(&plan, &skeleton, &cells)?;
    let order = events::order(&plan, &links, &skeleton)?;
    build::schedule(&plan, &links, &cells, &order)
}

/// Write a schedule, and read it again: what is returned is what a reader accepts.
fn write(schedule: &Schedule) -> Result<String> {
    express::check(schedule, limits::MAX_STEPS)?; // each operation is a step at least
    let text = print::print(&write::plan(schedule)?);
    read(&text).map_err(express::cannot)?;
    Ok(text)
}

#[cfg(test)]
mod tests;
