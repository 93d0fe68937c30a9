//! What the methods that search on links have in common: batches of plans, until the time is over.

use super::fabric::{network, with_memories};
use super::search::{Found, Kind, Search};
use crate::reads::Reads;
use crate::{Candidate, Draft, Judge, Problem, Recipe, Result};
use linkwright_core::Issue;
use std::sync::Arc;

/// Give the judge what a search of this kind finds. A fabric that does not tell its links is left to other methods.
pub(crate) fn propose(
    method: &'static str,
    kind: Kind,
    problem: &Problem,
    judge: &mut Judge,
) -> Result<()> {
    if !kind.serves(problem.collective) || problem.shape.ranks < 2 {
        return Ok(());
    }
    let Some((wires, lanes)) = network(problem, judge.graph())? else {
        return Ok(());
    };
    let what = (problem.collective, &problem.shape);
    let mut search = Search::new(
        kind,
        what,
        (&wires, lanes),
        (problem.seed, problem.serial_starts),
    );
    if let Some(wires) = with_memories(judge.graph(), &wires) {
        search.relay(wires);
    }
    loop {
        if let Some(winner) = judge.incumbent() {
            search.beat(winner.time);
        }
        let Some(found) = search.next_batch(&|| judge.time_left()) else {
            return Ok(());
        };
        let mut drafts = Vec::new();
        for found in found? {
            if problem.path().signal {
                drafts.push(read(method, &found)?);
            }
            drafts.push(draft(method, found));
        }
        judge.consider_drafts(&drafts);
    }
}

fn draft(method: &'static str, found: Found) -> Draft {
    Draft::from(Candidate {
        method,
        recipe: Recipe::new(found.recipe),
        schedule: Arc::new(found.schedule),
        issue: found.issue,
        path: None,
    })
}

/// The same with reads of initial data, which need no signals; what bounds the signals under way may then be left out.
fn read(method: &'static str, found: &Found) -> Result<Draft> {
    let reads = Reads::INITIAL;
    let mut recipe = found.recipe;
    recipe.reads = Some(reads);
    let schedule = reads.apply(&found.schedule)?;
    let mut read = draft(
        method,
        Found {
            recipe,
            schedule,
            issue: found.issue,
        },
    );
    read.issues.push(Issue::Unlimited);
    Ok(read)
}
