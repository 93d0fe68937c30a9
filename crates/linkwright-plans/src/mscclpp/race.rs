//! Whether a plan itself orders all accesses to the same data.
//!
//! A builder adds the order that data need, so it would hide that a plan lacks it; therefore this comes first. For
//! each access it is enough to know that the last write, and the reads since then, come before it. Most do because
//! the threads of their block met between. For most others, clocks tell it: how often the threads of a few thread
//! blocks are known to have met before an event. For the rest, which packets and port channels order, a search goes
//! back from the access.

use super::events::{scratch_units, Events, NONE};
use super::json::Space;
use super::parse::letter;
use super::plan::{Action, Place, Plan};
use crate::error::{PlanError, Result};
use crate::order::Rows;
use std::collections::BTreeSet;

/// Most steps of all searches.
const MAX_STEPS: u64 = 1 << 27;
/// Thread blocks that a clock counts.
const COLUMNS: usize = 16;
/// Most entries of all clocks.
const MAX_CLOCKS: usize = 1 << 29;
/// Most entries of the table of GPUs that learn of an event.
const MAX_KNOWN: usize = 1 << 25;

/// Two accesses of which one writes.
#[derive(Clone, Copy)]
struct Pair {
    /// When the first is done.
    earlier: u32,
    /// The operation of the second.
    later: u32,
    cell: u32,
}

/// Refuse accesses in no order, and transfers that a GPU does not wait for before it ends.
pub(super) fn check(plan: &Plan, events: &Events) -> Result<()> {
    let mut accesses = Accesses::new(plan, events);
    for &node in &events.sequence {
        let op = plan.ops.get(node as usize);
        if let Some(Action::Data(data)) = op.map(|op| op.action) {
            accesses.add(node, data.moves);
        }
    }
    let (pairs, spaces) = (accesses.pairs, accesses.spaces);
    let before = Rows::of(
        events.owner.len(),
        events.seen.iter().map(|edge| (edge.1, edge.0)),
    );
    let pairs = by_clocks(plan, events, &before, pairs)?;
    search(plan, events, &before, &pairs, &spaces)?;
    ends(plan, events)
}

/// The pairs that clocks do not prove.
fn by_clocks(
    plan: &Plan,
    events: &Events,
    before: &Rows,
    mut pairs: Vec<Pair>,
) -> Result<Vec<Pair>> {
    // A port channel carries data past the meetings of a thread block.
    let clocked = |pair: &Pair| events.owner[pair.earlier as usize] == pair.earlier;
    let block = |pair: &Pair| plan.ops[events.owner[pair.earlier as usize] as usize].block;
    let columns: BTreeSet<u32> = pairs
        .iter()
        .filter(|pair| clocked(pair))
        .map(block)
        .collect();
    let columns: Vec<u32> = columns.into_iter().collect();
    if columns.len() * events.owner.len() > MAX_CLOCKS {
        return Err(too_long());
    }
    for columns in columns.chunks(COLUMNS) {
        let clocks = clocks(plan, events, before, columns);
        pairs.retain(|pair| {
            let column = columns
                .binary_search(&block(pair))
                .ok()
                .filter(|_| clocked(pair));
            let known = column.map_or(0, |column| clocks[pair.later as usize][column]);
            known <= events.epoch[events.owner[pair.earlier as usize] as usize]
        });
    }
    Ok(pairs)
}

/// For each node, how often the threads of each thread block of `columns` are known to have met before it.
fn clocks(plan: &Plan, events: &Events, before: &Rows, columns: &[u32]) -> Vec<[u32; COLUMNS]> {
    let mut clocks = vec![[0; COLUMNS]; events.owner.len()];
    for &node in &events.sequence {
        let mut clock = [0; COLUMNS];
        for &other in before.at(node) {
            for (known, &more) in clock.iter_mut().zip(&clocks[other as usize]) {
                *known = more.max(*known);
            }
            let op = plan.ops.get(other as usize);
            let Some(op) = op.filter(|op| matches!(op.action, Action::Nop | Action::Barrier(..)))
            else {
                continue;
            };
            if let Ok(column) = columns.binary_search(&op.block) {
                clock[column] = clock[column].max(events.epoch[other as usize] + 1);
            }
        }
        clocks[node as usize] = clock;
    }
    clocks
}

/// Go back from each later operation until everything that must come before it was met.
fn search(
    plan: &Plan,
    events: &Events,
    before: &Rows,
    pairs: &[Pair],
    spaces: &Spaces,
) -> Result<()> {
    let mut place = vec![0u32; events.owner.len()];
    for (at, &node) in (0..).zip(&events.sequence) {
        place[node as usize] = at;
    }
    let (mut seen, mut steps, mut open) = (vec![NONE; place.len()], 0, Vec::new());
    for needs in pairs.chunk_by(|a, b| a.later == b.later) {
        let op = needs[0].later;
        let first = needs
            .iter()
            .map(|pair| place[pair.earlier as usize])
            .min()
            .unwrap_or(0);
        open.push(op);
        while let Some(node) = open.pop() {
            for &other in before.at(node) {
                steps += 1;
                if seen[other as usize] != op && place[other as usize] >= first {
                    seen[other as usize] = op;
                    open.push(other);
                }
            }
            if steps > MAX_STEPS {
                return Err(too_long());
            }
        }
        if let Some(pair) = needs.iter().find(|pair| seen[pair.earlier as usize] != op) {
            let (gpu, space) = spaces.of(pair.cell);
            let problem = format!(
                "uses `{}` of gpu {gpu} as {} does, one of them writes it, and nothing orders them; add a nop between \
                 them, or a signal and a wait with a nop before and behind",
                letter(space),
                plan.place(events.owner[pair.earlier as usize]),
            );
            return plan.error(op, problem);
        }
    }
    Ok(())
}

fn too_long() -> PlanError {
    PlanError::whole(
        "its operations depend on each other from so far that the proof takes too long; use fewer",
    )
}

/// Numbers of all units of all GPUs.
struct Spaces {
    vector: u32,
    scratch: u32,
}

impl Spaces {
    fn new(plan: &Plan) -> Self {
        let ends = plan
            .moves
            .iter()
            .flat_map(|made| [(made.src, made.count), (made.dst, made.count)]);
        let data = ends.filter(|(place, _)| place.space != Space::Scratch);
        Spaces {
            vector: data
                .map(|(place, count)| place.at + count)
                .max()
                .unwrap_or(0),
            scratch: scratch_units(plan) as u32,
        }
    }

    fn of_gpu(&self) -> u32 {
        2 * self.vector + self.scratch
    }

    fn cell(&self, gpu: u32, place: Place) -> u32 {
        let space = match place.space {
            Space::Input => 0,
            Space::Output => self.vector,
            Space::Scratch => 2 * self.vector,
        };
        gpu * self.of_gpu() + space + place.at
    }

    fn of(&self, cell: u32) -> (u32, Space) {
        let space = match cell % self.of_gpu() {
            at if at < self.vector => Space::Input,
            at if at < 2 * self.vector => Space::Output,
            _ => Space::Scratch,
        };
        (cell / self.of_gpu(), space)
    }
}

/// Finds the pairs of which each thread block does not know by itself that they are in order.
struct Accesses<'a> {
    plan: &'a Plan,
    events: &'a Events,
    spaces: Spaces,
    /// Last writer of each unit, when it is done.
    writer: Vec<u32>,
    /// Readers since then: the last one's place in `readers`.
    reader: Vec<u32>,
    /// When a reader is done, and the place of the one before.
    readers: Vec<(u32, u32)>,
    pairs: Vec<Pair>,
}

impl<'a> Accesses<'a> {
    fn new(plan: &'a Plan, events: &'a Events) -> Self {
        let spaces = Spaces::new(plan);
        let cells = (plan.ranks * spaces.of_gpu()) as usize;
        Accesses {
            plan,
            events,
            spaces,
            writer: vec![NONE; cells],
            reader: vec![NONE; cells],
            readers: Vec::new(),
            pairs: Vec::new(),
        }
    }

    fn add(&mut self, op: u32, moves: (u32, u32)) {
        for index in moves.0..moves.1 {
            let made = self.plan.moves[index as usize];
            let done = self.events.done[index as usize];
            let src = self.spaces.cell(made.from, made.src);
            let dst = self.spaces.cell(made.to, made.dst);
            for k in 0..made.count {
                self.read(op, done, src + k);
                self.write(op, done, dst + k);
            }
        }
    }

    fn read(&mut self, op: u32, done: u32, cell: u32) {
        self.meet(op, self.writer[cell as usize], cell);
        self.readers.push((done, self.reader[cell as usize]));
        self.reader[cell as usize] = self.readers.len() as u32 - 1;
    }

    fn write(&mut self, op: u32, done: u32, cell: u32) {
        self.meet(op, self.writer[cell as usize], cell);
        let mut at = self.reader[cell as usize];
        while at != NONE {
            let (reader, before) = self.readers[at as usize];
            self.meet(op, reader, cell);
            at = before;
        }
        self.reader[cell as usize] = NONE;
        self.writer[cell as usize] = done;
    }

    /// `earlier` must be done before `op`, unless both are one, or its threads met between.
    fn meet(&mut self, op: u32, earlier: u32, cell: u32) {
        if earlier == NONE {
            return;
        }
        let other = self.events.owner[earlier as usize];
        let block = |op: u32| self.plan.ops[op as usize].block;
        let epoch = |op: u32| self.events.epoch[op as usize];
        let met = other == earlier && block(other) == block(op) && epoch(other) < epoch(op);
        let known = self
            .pairs
            .last()
            .is_some_and(|pair| (pair.earlier, pair.later) == (earlier, op));
        if other != op && !met && !known {
            self.pairs.push(Pair {
                earlier,
                later: op,
                cell,
            });
        }
    }
}

/// A GPU must not end while others write its data or read them: something of its own comes behind each such move.
fn ends(plan: &Plan, events: &Events) -> Result<()> {
    let (nodes, words) = (events.owner.len(), (plan.ranks as usize).div_ceil(64));
    if nodes * words > MAX_KNOWN {
        return Err(PlanError::whole(format!(
            "{} operations of {} GPUs take too long to prove; use fewer",
            plan.ops.len(),
            plan.ranks
        )));
    }
    let edges = events.seen.iter().chain(&events.later).copied();
    let after = Rows::of(nodes, edges);
    let mut known = vec![0u64; nodes * words];
    for &node in events.sequence.iter().rev() {
        let own = node as usize * words;
        let op = events.owner[node as usize];
        // An event of a channel or barrier belongs to no GPU until something follows it.
        if op == node {
            let gpu = plan.blocks[plan.ops[op as usize].block as usize].gpu as usize;
            known[own + gpu / 64] |= 1 << (gpu % 64);
        }
        for &next in after.at(node) {
            for word in 0..words {
                known[own + word] |= known[next as usize * words + word];
            }
        }
    }
    for (op, known_op) in (0..).zip(&plan.ops) {
        let Action::Data(data) = known_op.action else {
            continue;
        };
        let own = plan.blocks[known_op.block as usize].gpu;
        for index in data.moves.0..data.moves.1 {
            let made = plan.moves[index as usize];
            let done = events.done[index as usize] as usize;
            let learns = |gpu: u32| known[done * words + gpu as usize / 64] >> (gpu % 64) & 1 == 1;
            for gpu in [made.from, made.to] {
                if gpu != own && !learns(gpu) {
                    let problem = format!(
                        "gpu {gpu} may end before this is done; signal it behind this, and let it wait for that"
                    );
                    return plan.error(op, problem);
                }
            }
        }
    }
    Ok(())
}
