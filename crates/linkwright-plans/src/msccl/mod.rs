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
//!   deadlock   the plan comes to its end                    -> an order of its steps
//!   race       its own waits order all accesses
//!   compose    messages become transfers                    -> Moves
//!   build      a schedule, verified
//! ```
//!
//! `race` must come before a schedule is built: a builder adds the order that data need, so it would hide that the
//! plan lacks it. `docs/plans.md` says what is kept and what is refused.

mod build;
mod cells;
mod compose;
mod deadlock;
mod layout;
mod limits;
mod links;
mod parse;
mod plan;
mod print;
mod race;
mod write;

use crate::error::{few_enough, PlanError, Result};
use crate::format::Format;
use cells::Cells;
use links::{Links, NONE};
use linkwright_schedule::Schedule;
use plan::{Kind, Plan};

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
    let order = deadlock::run(&plan, &links)?;
    let cells = Cells::of_plan(&plan);
    race::check(&plan, &links, &cells, &order)?;
    let order = match plan.buffers {
        Some(_) => kept_order(&plan, &links)?,
        None => order,
    };
    build::schedule(&plan, &links, &cells, &order)
}

/// The steps in the order of the operations that they were written for.
fn kept_order(plan: &Plan, links: &Links) -> Result<Vec<u32>> {
    let mut ops = vec![0; plan.steps.len()];
    for block in &plan.blocks {
        let mut next = 0;
        for step in block.steps.clone().rev() {
            match (
                plan.steps[step as usize].own,
                plan.steps[step as usize].kind,
            ) {
                (Some(own), _) => next = own.op,
                (None, Kind::Nop) => {}
                (None, _) => {
                    return plan.error(step, "op is missing; add it, or delete <linkwright>")
                }
            }
            ops[step as usize] = next;
        }
    }
    for (index, step) in (0u32..).zip(&plan.steps) {
        let block = &plan.blocks[links.block_of[index as usize] as usize];
        let before = if block.steps.start == index {
            NONE
        } else {
            index - 1
        };
        let op = ops[index as usize];
        let contradicts = |other: u32, strictly: bool| {
            other != NONE && (ops[other as usize] > op || (strictly && ops[other as usize] == op))
        };
        let mixed = |other: u32| {
            let kind = plan.steps[other as usize].kind;
            ops[other as usize] == op
                && kind != step.kind
                && ![kind, step.kind].contains(&Kind::Nop)
        };
        if contradicts(before, false)
            || (before != NONE && mixed(before))
            || contradicts(links.after[index as usize], true)
            || contradicts(links.sent_by[index as usize], false)
        {
            let problem =
                format!("op=\"{op}\" contradicts the order of the steps; delete <linkwright>");
            return plan.error(index, problem);
        }
    }
    let mut order: Vec<u32> = (0..plan.steps.len() as u32).collect();
    order.sort_by_key(|&step| {
        let receives = plan.steps[step as usize].kind.receives();
        (ops[step as usize], receives, step)
    });
    Ok(order)
}

/// Write a schedule, and read it again: what is returned is what a reader accepts.
fn write(schedule: &Schedule) -> Result<String> {
    few_enough(schedule, limits::MAX_STEPS)?; // each is a step at least
    let text = print::print(&write::plan(schedule)?);
    match read(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(PlanError::whole(format!(
            "the format cannot express this schedule: {error}"
        ))),
    }
}

#[cfg(test)]
mod tests;
