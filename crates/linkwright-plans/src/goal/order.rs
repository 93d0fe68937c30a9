//! An order of the operations in which each comes behind what it waits for, or the circle that forbids it.
//!
//! Each operation has two moments, its start and its end, which are events of a [`Skeleton`]:
//!
//! ```text
//!   start(x) -> end(x)                 end(y) -> start(x)     where x requires y
//!   start(send) -> end(receive)        start(y) -> start(x)   where x irequires y
//! ```

use super::plan::{Kind, Plan};
use crate::error::Result;
use crate::skeleton::{Rows, Skeleton};

/// Calculation in ns, and number of moments, on the longest way to the start of each operation of `plan`.
pub(super) fn of(plan: &Plan, partners: &[u32]) -> Result<Vec<(u64, u32)>> {
    let count = plan.steps.len() as u32;
    // Every operation has a lane of its own here: what shares one waits by `irequires`.
    let mut skeleton = Skeleton::of((0..count).collect());
    for (index, step) in (0..count).zip(&plan.steps) {
        let end = skeleton.event(index);
        skeleton.seen.push((index, end));
        if matches!(step.kind, Kind::Send { .. }) {
            skeleton
                .seen
                .push((index, count + partners[index as usize]));
        }
    }
    let moment = |on: u32, start: bool| if start { on } else { count + on };
    let needs = plan.needs.iter();
    let needs = needs.map(|need| (moment(need.on, need.start), need.waiter));
    skeleton.seen.extend(needs);
    skeleton.arrange(plan, u64::from, || "; remove one of the waits".into())?;
    let after = Rows::of(2 * count as usize, skeleton.seen.iter().copied());
    let mut before = vec![(0u64, 0u32); 2 * count as usize];
    for &moment in &skeleton.sequence {
        let (start, steps) = before[moment as usize];
        let step = plan.steps.get(moment as usize);
        for &next in after.at(moment) {
            // What only follows the start of a calculation does not follow its work.
            let work = match step.map(|step| step.kind) {
                Some(Kind::Calc { ns }) if next == count + moment => ns,
                _ => 0,
            };
            let known = &mut before[next as usize];
            *known = (
                known.0.max(start.saturating_add(work)),
                known.1.max(steps + 1),
            );
        }
    }
    before.truncate(count as usize);
    Ok(before)
}
