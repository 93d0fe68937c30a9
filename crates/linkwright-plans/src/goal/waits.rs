//! What each put and compute waits for: other puts and computes, as its rank sees them.

use super::matching::NONE;
use super::plan::{Kind, Need, Plan};
use crate::error::{PlanError, Result};

/// Most waits that are looked at, those included that receives pass on.
const MAX_WAITS: usize = 1 << 22;

/// For each operation, the sends and calculations that it waits for, ascending; nothing for receives.
///
/// A schedule has no receives. What requires it waits for the message, and for all that the
/// receive itself waits for.
pub(super) fn of(plan: &Plan, partners: &[u32]) -> Result<Vec<Vec<u32>>> {
    let mut needs: Vec<Need> = plan.needs.clone();
    needs.sort_unstable_by_key(|need| need.waiter);
    let mut first = vec![0; plan.steps.len() + 1];
    for need in &needs {
        first[need.waiter as usize + 1] += 1;
    }
    for at in 1..first.len() {
        first[at] += first[at - 1];
    }
    let mut search = Search {
        plan,
        partners,
        needs: &needs,
        first: &first,
        seen: vec![NONE; plan.steps.len()],
        looked_at: 0,
    };
    (0..plan.steps.len() as u32)
        .map(|index| match plan.steps[index as usize].kind {
            Kind::Recv { .. } => Ok(Vec::new()),
            _ => search.waits(index),
        })
        .collect()
}

struct Search<'a> {
    plan: &'a Plan<'a>,
    partners: &'a [u32],
    /// By waiter; those of operation `i` are `first[i]..first[i + 1]`.
    needs: &'a [Need],
    first: &'a [usize],
    /// The last operation whose search came by here.
    seen: Vec<u32>,
    looked_at: usize,
}

impl Search<'_> {
    /// What operation `index` waits for, by itself or because what it waits for passes it on.
    fn waits(&mut self, index: u32) -> Result<Vec<u32>> {
        let lane = self.plan.steps[index as usize].lane;
        let (mut found, mut passed_on) = (Vec::new(), vec![index]);
        while let Some(at) = passed_on.pop() {
            if std::mem::replace(&mut self.seen[at as usize], index) == index {
                continue;
            }
            let needs = &self.needs[self.first[at as usize]..self.first[at as usize + 1]];
            self.looked_at += needs.len();
            if self.looked_at > MAX_WAITS {
                return Err(self.too_many(index));
            }
            for need in needs {
                let step = &self.plan.steps[need.on as usize];
                match (step.kind, need.start) {
                    (Kind::Recv { .. }, false) => {
                        found.push(self.partners[need.on as usize]);
                        passed_on.push(need.on);
                    }
                    (Kind::Recv { .. }, true) => passed_on.push(need.on),
                    (_, false) => found.push(need.on),
                    // A lane starts its operations one behind the other.
                    (_, true) if step.lane == lane => {}
                    (_, true) => passed_on.push(need.on),
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    fn too_many(&self, index: u32) -> PlanError {
        self.plan.steps[index as usize].error(format!(
            "more than {MAX_WAITS} waits so far, because receives pass on what they require; let a `calc 0` require \
             them, and the operations behind require that"
        ))
    }
}
