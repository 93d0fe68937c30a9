//! Signals meet waits, releases meet acquires, and thread blocks meet at barriers.

use super::Maker;
use crate::error::Result;
use crate::mscclpp::plan::Steps;

impl Maker<'_> {
    /// The k-th wait for a channel or semaphore is for the k-th signal, behind the start value of a semaphore.
    pub(super) fn counts(&mut self) -> Result<()> {
        let plan = self.plan;
        for (name, takes) in std::mem::take(&mut self.takes).iter().enumerate() {
            let end = plan.ends.get(name);
            let (posted, start) = match end {
                Some(end) => (end.other, 0),
                None => (Some(name as u32), plan.semaphores[name - plan.ends.len()]),
            };
            let posts = posted.map(|name| std::mem::take(&mut self.posts[name as usize]));
            let posts = posts.unwrap_or_default();
            let after_start = takes.iter().skip(start as usize);
            for (k, &(take, relaxed)) in after_start.enumerate() {
                let Some(&(post, also)) = posts.get(k) else {
                    let (number, count) = (k + 1, posts.len());
                    let problem = match end {
                        Some(end) => format!(
                            "waits for signal {number} from gpu {}, which sends {count} through this channel; add a \
                             signal there, or remove the wait",
                            end.peer
                        ),
                        None => format!(
                            "waits for release {number} of a semaphore that is released {count} times; add a \
                             sem_release, or remove this"
                        ),
                    };
                    return plan.error(take, problem);
                };
                match relaxed || also {
                    true => self.out.order.later.push((post, take)),
                    false => self.out.order.seen.push((post, take)),
                }
                let signal = self.out.order.owner[post as usize];
                self.out.signals.push((signal, take));
            }
            if let (Some(end), Some(&(extra, _))) = (end, posts.get(takes.len())) {
                let problem = format!(
                    "gpu {} never waits for signal {} of this channel, so the next run would take it for its own; add a \
                     wait there, or remove the signal",
                    end.gpu,
                    takes.len() + 1
                );
                return plan.error(self.out.order.owner[extra as usize], problem);
            }
        }
        match self.posts.iter().find_map(|posts| posts.first()) {
            Some(&(event, _)) => plan.error(
                self.out.order.owner[event as usize],
                "signals a GPU that has no channel back, so it cannot wait; add one there",
            ),
            None => Ok(()),
        }
    }

    pub(super) fn barriers(&mut self) -> Result<()> {
        for (_, needed, came) in self.rounds.values().flatten() {
            if needed.map(|needed| needed as usize) != Some(came.len()) {
                let problem = format!(
                    "{} thread blocks come to this round of the barrier, and num_threadblocks differs; make it as \
                     many, the same at each",
                    came.len()
                );
                return self.plan.error(came[0], problem);
            }
        }
        Ok(())
    }
}
