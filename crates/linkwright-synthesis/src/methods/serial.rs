//! Schedules that need no concurrent starts: the other methods once more, where the transfers of a rank start one after
//! another.
//!
//! A search on the machine as described cuts messages as finely as concurrent starts allow, and on a machine that has
//! none loses all of its gain, or takes a thousand times as long. So where the incumbent gains over the best known
//! algorithm, but not with serial starts, the methods look for something that does both:
//!
//! ```text
//!   limit         1.1 times the incumbent's time
//!   serial limit  what a win may take with serial starts: the time of the best known there / 1.02
//!   price         max(time, time with serial starts * limit / serial limit)
//! ```
//!
//! Whatever keeps both limits has a price below the first one, and whatever breaks one a price above: so the methods
//! are led towards fewer starts until it is a win, and then towards less time. What keeps both is offered. The choice
//! among finalists ([`crate::lasting`]) prefers it to what wins as described only.

use crate::candidate::Draft;
use crate::judge::Judge;
use crate::lasting::serial_limits;
use crate::method::Method;
use crate::problem::Problem;
use crate::Result;
use linkwright_core::TimePs;

/// The method.
pub static METHOD: Method = Method {
    key: "serial",
    weight: 4,
    serves: |problem| !problem.serial_starts,
    summary: "the other methods once more, for gains with serial starts, too",
    description: "Where the best so far gains nothing if no rank can start two transfers at once: searches with all \
                  other methods once more, pricing candidates with serial starts, too, and offers the fastest of \
                  those that gain in both.",
    source: "linkwright",
    propose,
};

fn propose(_: &Problem, judge: &mut Judge) -> Result<()> {
    let Some((limit, serial_limit)) = serial_limits(judge) else {
        return Ok(());
    };
    let mut beside = judge.beside_serial(limit.0 as f64 / serial_limit.0 as f64);
    // This method serves no problem with serial starts, so it does not search beside that.
    judge.search_beside(&mut beside)?;
    let offered = |draft: &Draft| Draft {
        method: METHOD.key,
        ..draft.clone()
    };
    let finalists = beside.shortlist().iter().filter(|one| one.time <= limit);
    let finalists: Vec<Draft> = finalists.map(|one| offered(&one.draft)).collect();
    judge.consider_within(&finalists, TimePs::MAX);
    Ok(())
}
