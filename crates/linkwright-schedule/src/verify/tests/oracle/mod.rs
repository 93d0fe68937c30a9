//! The judge of verify: runs schedules event by event and watches the chunks.
//!
//! An operation starts, frees its source, delivers to each target, and is acknowledged, as separate
//! events. An event may happen whenever the rules of the machine allow it: a start when the waits
//! of the operation and the start before it in its lane have happened, a delivery when the source
//! is free (of a multicast, whenever), an acknowledgement when all is delivered. While data are
//! read or written their chunk is in use; whoever writes a chunk in use, or reads one being
//! written, has failed, and so has who reads a chunk that holds nothing.
//!
//! Three ways to look at the executions of a schedule:
//!
//! - [`judge`]: once by id, to see that it gives what the spec demands, and once per completion
//!   that withholds this completion until nothing else can happen. If any execution lets two
//!   accesses collide, then so does the one that withholds the end of the first: everything that
//!   may start before that end does start, and nothing that happens can prevent anything else.
//! - [`exhaust`]: all executions, of the smallest schedules; the judge of the judge.
//! - [`try_at_random`]: executions with random choices.

mod machine;

use crate::ir::Schedule;
use machine::{well_formed, Event, Machine, Verdict};
use std::collections::HashSet;

/// Whether every execution is right.
pub fn judge(schedule: &Schedule) -> Verdict {
    look(schedule, true)
}

/// Whether no execution lets two accesses collide, whatever the chunks contain.
pub fn judge_order(schedule: &Schedule) -> Verdict {
    look(schedule, false)
}

fn look(schedule: &Schedule, with_contents: bool) -> Verdict {
    well_formed(schedule)?;
    let mut by_id = Machine::new(schedule)?;
    by_id.with_contents = with_contents;
    let mut before = by_id.clone();
    by_id.run_by_id()?;
    if with_contents {
        by_id.check_result()?;
    }
    // The contents are right if no accesses collide. Where the operations before have run does
    // not matter: they do not wait for this one.
    before.with_contents = false;
    for op in 0..schedule.ops().len() {
        let places = before.status[op].delivered.len();
        let deliveries = (0..places).map(|place| Event::Delivered(op, place));
        if schedule.ops()[op].moves_data() {
            for withheld in deliveries.chain([Event::SourceFree(op)]) {
                before.clone().run_without(op, withheld)?;
            }
        }
        before.run_next(op)?;
    }
    Ok(())
}

/// Whether all executions, one after another, are right. At most 64 events.
pub fn exhaust(schedule: &Schedule) -> Verdict {
    well_formed(schedule)?;
    let fresh = Machine::new(schedule)?;
    fresh.clone().run_by_id()?;
    let events = fresh.events();
    assert!(events.len() <= 64, "too many events to try all orders");
    // Without a collision the state follows from which events have happened.
    let mut seen = HashSet::new();
    let mut open = vec![(0u64, fresh)];
    while let Some((happened, machine)) = open.pop() {
        let mut stuck = true;
        for (index, &event) in events.iter().enumerate() {
            if happened >> index & 1 == 0 && machine.may(event) {
                stuck = false;
                let next = happened | 1 << index;
                if seen.insert(next) {
                    let mut machine = machine.clone();
                    machine.fire(event)?;
                    open.push((next, machine));
                }
            }
        }
        if stuck {
            machine.check_result()?;
        }
    }
    Ok(())
}

/// Whether one execution with random choices is right.
pub fn try_at_random(schedule: &Schedule, mut random: impl FnMut(usize) -> usize) -> Verdict {
    well_formed(schedule)?;
    let mut machine = Machine::new(schedule)?;
    let mut left = machine.events();
    while !left.is_empty() {
        let may: Vec<usize> = (0..left.len()).filter(|&i| machine.may(left[i])).collect();
        if may.is_empty() {
            return Err("stuck".to_string());
        }
        let event = left.swap_remove(may[random(may.len())]);
        machine.fire(event)?;
    }
    machine.check_result()
}
