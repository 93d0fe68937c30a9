//! Whether the waits of a plan order every two steps that touch a chunk of which one writes it.
//!
//! A step comes before another if thread-block order, dependencies and messages lead from it to the other. Full
//! connections order steps, too, but only while the data are large, so they count for nothing here.
//!
//! Nearly all pairs are ordered by their thread block or by one dependency, which is seen at once. For the others,
//! the file is walked in running order with clocks that count the steps known of a few thread blocks at a time.

use super::cells::Cells;
use super::links::{Links, NONE};
use super::plan::{Kind, Plan};
use crate::error::{PlanError, Result};

/// Thread blocks whose steps a clock counts.
const COLUMNS: usize = 16;
/// Most entries of clocks that are computed to prove one plan.
const MAX_WORK: usize = 1 << 29;

/// Two steps of one GPU that touch a chunk of which one writes it, the first one first in running order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    earlier: u32,
    later: u32,
    cell: u32,
}

/// Refuse a plan with steps in no order; `order` is one in which it can run.
pub(super) fn check(plan: &Plan, links: &Links, cells: &Cells, order: &[u32]) -> Result<()> {
    let mut pairs = Conflicts::new(plan, links, cells).of(order);
    pairs.sort_unstable();
    let block = |step: u32| links.block_of[step as usize];
    let mut columns: Vec<u32> = pairs.iter().map(|pair| block(pair.earlier)).collect();
    columns.dedup();
    columns.sort_unstable();
    columns.dedup();
    if columns.len() * plan.steps.len() > MAX_WORK {
        let problem = format!(
            "{} thread blocks in {} steps depend on each other only through messages, which takes too long to prove; \
             add dependencies",
            columns.len(),
            plan.steps.len()
        );
        return Err(PlanError::whole(problem));
    }
    let mut unordered: Option<Pair> = None;
    for columns in columns.chunks(COLUMNS) {
        let clocks = clocks(plan, links, order, columns);
        let ordered = |pair: &&Pair| {
            let column = columns.binary_search(&block(pair.earlier));
            column.is_ok_and(|column| clocks[pair.later as usize][column] <= pair.earlier)
        };
        let found = pairs.iter().filter(ordered).min_by_key(|pair| pair.later);
        unordered = unordered
            .into_iter()
            .chain(found.copied())
            .min_by_key(|pair| pair.later);
    }
    match unordered {
        Some(pair) => refuse(plan, cells, pair),
        None => Ok(()),
    }
}

fn refuse<T>(plan: &Plan, cells: &Cells, pair: Pair) -> Result<T> {
    let problem = format!(
        "touches {} as {} does, one of them writes it, and nothing orders them; let one depend on the other",
        cells.name(pair.cell),
        plan.place(pair.earlier)
    );
    plan.error(pair.later, problem)
}

/// For each step, how far the steps of the thread blocks `columns` are known to be done before it: the number of
/// the first step of which that is not known.
fn clocks(plan: &Plan, links: &Links, order: &[u32], columns: &[u32]) -> Vec<[u32; COLUMNS]> {
    let mut clocks = vec![[0; COLUMNS]; plan.steps.len()];
    for &step in order {
        let block = links.block_of[step as usize];
        let mut clock = [0; COLUMNS];
        let before = match plan.blocks[block as usize].steps.start == step {
            true => NONE,
            false => step - 1,
        };
        for other in [
            before,
            links.after[step as usize],
            links.sent_by[step as usize],
        ] {
            if other == NONE {
                continue;
            }
            for (known, &more) in clock.iter_mut().zip(&clocks[other as usize]) {
                *known = more.max(*known);
            }
            // The other step itself is done.
            if let Ok(column) = columns.binary_search(&links.block_of[other as usize]) {
                clock[column] = clock[column].max(other + 1);
            }
        }
        clocks[step as usize] = clock;
    }
    clocks
}

/// Finds the conflicting pairs that neither a thread block nor one dependency orders.
struct Conflicts<'a> {
    plan: &'a Plan,
    links: &'a Links,
    cells: &'a Cells,
    /// Last writer of each chunk.
    writer: Vec<u32>,
    /// Readers of each chunk since then: the last one's place in `readers`.
    reader: Vec<u32>,
    /// A reader, and the place of the one before.
    readers: Vec<(u32, u32)>,
    /// For each thread block and each other of its GPU, the step from which on nothing is known.
    known: Vec<Vec<u32>>,
    pairs: Vec<Pair>,
}

impl<'a> Conflicts<'a> {
    fn new(plan: &'a Plan, links: &'a Links, cells: &'a Cells) -> Self {
        Conflicts {
            plan,
            links,
            cells,
            writer: vec![NONE; cells.count()],
            reader: vec![NONE; cells.count()],
            readers: Vec::new(),
            known: vec![Vec::new(); plan.blocks.len()],
            pairs: Vec::new(),
        }
    }

    fn of(mut self, order: &[u32]) -> Vec<Pair> {
        for &index in order {
            self.learn(index);
            let step = &self.plan.steps[index as usize];
            let gpu = self.plan.blocks[self.links.block_of[index as usize] as usize].gpu;
            let reads_target = step.kind == Kind::Reduce;
            if step.kind.reads() {
                let first = self.cells.of(&self.plan.head, gpu, step.src);
                (first..first + step.count).for_each(|cell| self.read(index, cell));
            }
            if step.kind.writes() {
                let first = self.cells.of(&self.plan.head, gpu, step.dst);
                for cell in first..first + step.count {
                    if reads_target {
                        self.read(index, cell);
                    }
                    self.write(index, cell);
                }
            }
        }
        self.pairs.dedup();
        self.pairs
    }

    /// Take note of the dependency of a step.
    fn learn(&mut self, index: u32) {
        let after = self.links.after[index as usize];
        if after == NONE {
            return;
        }
        let (block, other) = (
            self.links.block_of[index as usize] as usize,
            &self.plan.blocks[self.links.block_of[after as usize] as usize],
        );
        let known = &mut self.known[block];
        let tb = other.tb as usize;
        if known.len() <= tb {
            known.resize(tb + 1, 0);
        }
        known[tb] = known[tb].max(after + 1);
    }

    fn read(&mut self, index: u32, cell: u32) {
        self.meet(self.writer[cell as usize], index, cell);
        self.readers.push((index, self.reader[cell as usize]));
        self.reader[cell as usize] = self.readers.len() as u32 - 1;
    }

    fn write(&mut self, index: u32, cell: u32) {
        self.meet(self.writer[cell as usize], index, cell);
        let mut at = self.reader[cell as usize];
        while at != NONE {
            let (reader, before) = self.readers[at as usize];
            self.meet(reader, index, cell);
            at = before;
        }
        self.reader[cell as usize] = NONE;
        self.writer[cell as usize] = index;
    }

    /// Two steps touch a chunk: note them if they must still be proved to be in order.
    fn meet(&mut self, earlier: u32, later: u32, cell: u32) {
        if earlier == NONE {
            return;
        }
        let block = self.links.block_of[earlier as usize];
        let own = self.links.block_of[later as usize];
        let tb = self.plan.blocks[block as usize].tb as usize;
        let known = self.known[own as usize].get(tb).copied().unwrap_or(0);
        if block != own && known <= earlier {
            let repeated = |last: &Pair| (last.earlier, last.later) == (earlier, later);
            if !self.pairs.last().is_some_and(repeated) {
                self.pairs.push(Pair {
                    earlier,
                    later,
                    cell,
                });
            }
        }
    }
}
