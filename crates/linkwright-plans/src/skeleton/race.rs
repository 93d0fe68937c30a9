//! Prove that a plan itself orders all conflicting accesses.
//!
//! For each access it suffices that the last write, and the reads since then, come before it. Most pairs are ordered
//! because one thread block made both accesses and synchronized in between, or waited for the other's block. For most
//! others, clocks prove it: how often the threads of a few thread blocks must have synchronized before an event. The
//! rest, data that does not arrive through a thread block, takes a search backwards from the access.

use super::{Cells, Rows, Skeleton, Steps, NONE};
use crate::error::{PlanError, Result};
use linkwright_schedule::Accesses;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Maximum steps of all searches together.
const MAX_STEPS: u64 = 1 << 27;
/// Number of thread blocks in a clock.
const COLUMNS: usize = 16;
/// Maximum entries of all clocks together.
const MAX_CLOCKS: usize = 1 << 29;

/// Some cells that a step reads or writes.
pub(crate) struct Access {
    pub cells: Range<u32>,
    pub writes: bool,
    /// The event that completes it.
    pub done: u32,
}

/// Two accesses to a cell, at least one of which writes.
#[derive(Clone, Copy)]
struct Pair {
    /// When the first is done.
    earlier: u32,
    /// The step of the second.
    later: u32,
    cell: u32,
}

impl Skeleton {
    /// Reject a plan with unordered accesses; `accesses` lists those of a step.
    pub fn prove<I: Iterator<Item = Access>>(
        &self,
        plan: &impl Steps,
        cells: &Cells,
        accesses: impl Fn(u32) -> I,
        cure: &str,
    ) -> Result<()> {
        // Events that matter only for the end have the highest numbers.
        let ends = self.seen.iter().map(|edge| edge.0.max(edge.1) as usize + 1);
        let mut proof = Proof {
            skeleton: self,
            before: Rows::of(self.owner.len(), self.seen.iter().map(|e| (e.1, e.0))),
            events: ends.max().unwrap_or(0).max(self.block.len()),
            met: BTreeMap::new(),
            pairs: Vec::new(),
        };
        proof.find(cells, accesses);
        proof.by_clocks()?;
        match proof.search()? {
            None => Ok(()),
            Some(pair) => {
                let problem = format!(
                    "touches {} as {} does, one of them writes it, and nothing orders them; {cure}",
                    cells.name(pair.cell),
                    plan.place(self.owner[pair.earlier as usize]),
                );
                plan.error(pair.later, problem)
            }
        }
    }
}

struct Proof<'a> {
    skeleton: &'a Skeleton,
    /// By event, the events whose data it sees.
    before: Rows,
    /// Events that data depend on.
    events: usize,
    /// (block, other block) -> how often the other block had synchronized before `block` last did, as far as the waits
    /// of `block` show.
    met: BTreeMap<(u32, u32), u32>,
    /// What is still to be proved, in order.
    pairs: Vec<Pair>,
}

impl Proof<'_> {
    /// Collect the pairs that are not immediately known to be ordered.
    fn find<I: Iterator<Item = Access>>(&mut self, cells: &Cells, accesses: impl Fn(u32) -> I) {
        let mut known = Accesses::new(cells.count());
        for step in self.skeleton.steps() {
            self.learn(step);
            let mut last = NONE;
            let mut meet = |proof: &mut Self, earlier: u32, cell: u32| {
                // Neighbouring chunks mostly have the same history.
                if earlier != NONE && std::mem::replace(&mut last, earlier) != earlier {
                    proof.meet(step, earlier, cell);
                }
            };
            for access in accesses(step) {
                for cell in access.cells {
                    meet(self, known.writer(cell as usize), cell);
                    match access.writes {
                        true => known.write(cell as usize, access.done, |reader| {
                            meet(self, reader, cell)
                        }),
                        false => known.add_reader(cell as usize, access.done),
                    }
                }
            }
        }
    }

    /// Record the waits of a step at which the threads of its block synchronize.
    fn learn(&mut self, step: u32) {
        let s = self.skeleton;
        if !s.meets[step as usize] {
            return;
        }
        let block = s.block[step as usize];
        for &other in self.before.at(step) {
            if let Some(epoch) = self
                .over(other)
                .filter(|_| s.block[other as usize] != block)
            {
                let met = self
                    .met
                    .entry((block, s.block[other as usize]))
                    .or_default();
                *met = epoch.max(*met);
            }
        }
    }

    /// How often the threads of its block have synchronized once an event is done, if they synchronize there.
    fn over(&self, event: u32) -> Option<u32> {
        let meets = self.skeleton.meets.get(event as usize) == Some(&true);
        meets.then(|| self.skeleton.epoch[event as usize] + 1)
    }

    /// Require `earlier` before `step`: record the pair unless both are the same step or it is already proved.
    fn meet(&mut self, step: u32, earlier: u32, cell: u32) {
        let s = self.skeleton;
        let other = s.owner[earlier as usize];
        let (block, by) = (s.block[step as usize], s.block[other as usize]);
        let met = match block == by {
            true => s.epoch[step as usize],
            false => self.met.get(&(block, by)).copied().unwrap_or(0),
        };
        if other != step && (other != earlier || met <= s.epoch[other as usize]) {
            self.pairs.push(Pair {
                earlier,
                later: step,
                cell,
            });
        }
    }

    /// Drop the pairs that clocks prove.
    fn by_clocks(&mut self) -> Result<()> {
        let s = self.skeleton;
        // Events without a step of their own do not pass the synchronization of a thread block.
        let column = |pair: &Pair| {
            s.is_step(pair.earlier)
                .then(|| s.block[pair.earlier as usize])
        };
        let columns: BTreeSet<u32> = self.pairs.iter().filter_map(column).collect();
        let columns: Vec<u32> = columns.into_iter().collect();
        if columns.len() * self.events > MAX_CLOCKS {
            return Err(too_long());
        }
        for columns in columns.chunks(COLUMNS) {
            let clocks = self.clocks(columns);
            self.pairs.retain(|pair| {
                let at = column(pair).and_then(|block| columns.binary_search(&block).ok());
                let met = at.map_or(0, |at| clocks[pair.later as usize][at]);
                met <= s.epoch[s.owner[pair.earlier as usize] as usize]
            });
        }
        Ok(())
    }

    /// For each event, how often the threads of each block in `columns` must have synchronized before it.
    fn clocks(&self, columns: &[u32]) -> Vec<[u32; COLUMNS]> {
        let s = self.skeleton;
        let mut clocks = vec![[0; COLUMNS]; self.events];
        let events = s.sequence.iter().copied();
        for event in events.filter(|&event| (event as usize) < self.events) {
            let mut clock = [0; COLUMNS];
            for &other in self.before.at(event) {
                for (met, &more) in clock.iter_mut().zip(&clocks[other as usize]) {
                    *met = more.max(*met);
                }
                let Some(epoch) = self.over(other) else {
                    continue;
                };
                if let Ok(column) = columns.binary_search(&s.block[other as usize]) {
                    clock[column] = clock[column].max(epoch);
                }
            }
            clocks[event as usize] = clock;
        }
        clocks
    }

    /// Search back from each later step for everything that must precede it; return an unordered pair.
    fn search(&self) -> Result<Option<Pair>> {
        if self.pairs.is_empty() {
            return Ok(None);
        }
        let sequence = &self.skeleton.sequence;
        let mut place = vec![0u32; sequence.len()];
        for (at, &event) in (0..).zip(sequence) {
            place[event as usize] = at;
        }
        let (mut seen, mut steps, mut open) = (vec![NONE; place.len()], 0, Vec::new());
        for needs in self.pairs.chunk_by(|a, b| a.later == b.later) {
            let step = needs[0].later;
            let places = needs.iter().map(|pair| place[pair.earlier as usize]);
            let first = places.min().unwrap_or(0);
            open.push(step);
            while let Some(event) = open.pop() {
                for &other in self.before.at(event) {
                    steps += 1;
                    if seen[other as usize] != step && place[other as usize] >= first {
                        seen[other as usize] = step;
                        open.push(other);
                    }
                }
                if steps > MAX_STEPS {
                    return Err(too_long());
                }
            }
            let missed = |pair: &&Pair| seen[pair.earlier as usize] != step;
            if let Some(pair) = needs.iter().find(missed) {
                return Ok(Some(*pair));
            }
        }
        Ok(None)
    }
}

fn too_long() -> PlanError {
    PlanError::whole(
        "its steps depend on each other from so far that the proof takes too long; use fewer, or wait for them directly",
    )
}
