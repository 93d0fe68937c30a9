//! Signals meet waits, releases meet acquires, and thread blocks meet at barriers.

use super::Maker;
use crate::error::Result;
use crate::mscclpp::plan::Steps;

impl Maker<'_> {
    pub(super) fn channels(&mut self) -> Result<()> {
        for end in 0..self.plan.ends.len() {
            let waits = std::mem::take(&mut self.waits[end].list);
            let (gpu, peer) = (self.plan.ends[end].gpu, self.plan.ends[end].peer);
            let other = self.plan.ends[end].other;
            let signals = match other {
                Some(other) => std::mem::take(&mut self.signals[other as usize].list),
                None => Vec::new(),
            };
            for (k, &(wait, relaxed)) in waits.iter().enumerate() {
                let Some(&(signal, also)) = signals.get(k) else {
                    let sent = signals.len();
                    return self.plan.error(
                        wait,
                        format!(
                            "waits for signal {} from gpu {peer}, which sends {sent} through this channel; add a signal \
                             there, or remove the wait",
                            k + 1
                        ),
                    );
                };
                match relaxed || also {
                    true => self.out.order.later.push((signal, wait)),
                    false => self.out.order.seen.push((signal, wait)),
                }
                self.out
                    .signals
                    .push((self.out.order.owner[signal as usize], wait));
            }
            if let Some(&(extra, _)) = signals.get(waits.len()) {
                return self.plan.error(
                    self.out.order.owner[extra as usize],
                    format!(
                        "gpu {gpu} never waits for signal {} of this channel, so the next run would take it for its \
                         own; add a wait there, or remove the signal",
                        waits.len() + 1
                    ),
                );
            }
        }
        match self.signals.iter().find_map(|uses| uses.list.first()) {
            Some(&(node, _)) => {
                let op = self.out.order.owner[node as usize];
                self.plan.error(
                    op,
                    "signals a GPU that has no channel back, so it cannot wait; add one there",
                )
            }
            None => Ok(()),
        }
    }

    pub(super) fn semaphores(&mut self) -> Result<()> {
        for (index, &start) in self.plan.semaphores.iter().enumerate() {
            let releases = std::mem::take(&mut self.releases[index].list);
            for (k, &(acquire, _)) in (0u64..).zip(&self.acquires[index].list) {
                let Some(k) = k.checked_sub(u64::from(start)) else {
                    continue;
                };
                let Some(&(release, _)) = releases.get(k as usize) else {
                    let problem = format!(
                        "waits for release {} of a semaphore that is released {} times; add a sem_release, or remove this",
                        k + 1,
                        releases.len()
                    );
                    return self.plan.error(acquire, problem);
                };
                self.out.order.seen.push((release, acquire));
                self.out.signals.push((release, acquire));
            }
        }
        Ok(())
    }

    pub(super) fn barriers(&mut self) -> Result<()> {
        for rounds in self.rounds.values() {
            for (_, needed, came) in rounds {
                if *needed as usize != came.len() {
                    let problem = format!(
                        "{} thread blocks come to this round of the barrier, and num_threadblocks differs; make it as \
                         many, the same at each",
                        came.len()
                    );
                    return self.plan.error(came[0], problem);
                }
            }
        }
        Ok(())
    }
}
