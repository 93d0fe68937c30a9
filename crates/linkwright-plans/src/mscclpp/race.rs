//! Whether a plan itself orders all accesses to the same data.
//!
//! A builder adds the order that data need, so it would hide that a plan lacks it; therefore this comes first. For
//! each access it is enough to know that the last write, and the reads since then, come before it. Nearly all do
//! because the threads of a block met between; for the others, a search goes back from the access.

use super::events::{scratch_units, Events, NONE};
use super::json::Space;
use super::parse::letter;
use super::plan::{Action, Place, Plan};
use crate::error::{PlanError, Result};
use crate::order::Rows;

/// Most steps of all searches.
const MAX_STEPS: u64 = 1 << 27;
/// Most entries of the table of GPUs that learn of an event.
const MAX_KNOWN: usize = 1 << 25;

/// Refuse accesses in no order, and transfers that a GPU does not wait for before it ends.
pub(super) fn check(plan: &Plan, events: &Events) -> Result<()> {
    let mut accesses = Accesses::new(plan, events);
    for &node in &events.sequence {
        let op = plan.ops.get(node as usize);
        if let Some(Action::Data(data)) = op.map(|op| op.action) {
            accesses.add(node, data.moves)?;
        }
    }
    ends(plan, events)
}

struct Accesses<'a> {
    plan: &'a Plan,
    events: &'a Events,
    before: Rows,
    /// Place of each node in the sequence.
    place: Vec<u32>,
    /// Search in which a node was last seen.
    seen: Vec<u32>,
    search: u32,
    steps: u64,
    vector: usize,
    scratch: usize,
    /// Last writer of each unit, when it is done.
    writer: Vec<u32>,
    /// Readers since then: the last one's place in `readers`.
    reader: Vec<u32>,
    /// When a reader is done, and the place of the one before.
    readers: Vec<(u32, u32)>,
    /// What must be done before the current operation, and where both meet.
    needs: Vec<(u32, u32, Place)>,
}

impl<'a> Accesses<'a> {
    fn new(plan: &'a Plan, events: &'a Events) -> Self {
        let nodes = events.owner.len();
        let mut place = vec![0; nodes];
        for (at, &node) in (0..).zip(&events.sequence) {
            place[node as usize] = at;
        }
        let ends = plan
            .moves
            .iter()
            .flat_map(|made| [(made.src, made.count), (made.dst, made.count)]);
        let data = ends.filter(|(place, _)| place.space != Space::Scratch);
        let vector = data
            .map(|(place, count)| (place.at + count) as usize)
            .max()
            .unwrap_or(0);
        let scratch = scratch_units(plan);
        let cells = plan.ranks as usize * (2 * vector + scratch);
        Accesses {
            plan,
            events,
            before: Rows::of(nodes, events.seen.iter().map(|edge| (edge.1, edge.0))),
            place,
            seen: vec![0; nodes],
            search: 0,
            steps: 0,
            vector,
            scratch,
            writer: vec![NONE; cells],
            reader: vec![NONE; cells],
            readers: Vec::new(),
            needs: Vec::new(),
        }
    }

    fn cell(&self, gpu: u32, place: Place) -> usize {
        let first = gpu as usize * (2 * self.vector + self.scratch);
        let space = match place.space {
            Space::Input => 0,
            Space::Output => self.vector,
            Space::Scratch => 2 * self.vector,
        };
        first + space + place.at as usize
    }

    fn add(&mut self, op: u32, moves: (u32, u32)) -> Result<()> {
        self.needs.clear();
        for index in moves.0..moves.1 {
            let made = self.plan.moves[index as usize];
            let done = self.events.done[index as usize];
            for k in 0..made.count {
                let at = |place: Place| Place {
                    at: place.at + k,
                    ..place
                };
                self.read(op, done, made.from, at(made.src));
                self.write(op, done, made.to, at(made.dst));
            }
        }
        self.prove(op)
    }

    fn read(&mut self, op: u32, done: u32, gpu: u32, place: Place) {
        let cell = self.cell(gpu, place);
        self.need(op, self.writer[cell], gpu, place);
        self.readers.push((done, self.reader[cell]));
        self.reader[cell] = self.readers.len() as u32 - 1;
    }

    fn write(&mut self, op: u32, done: u32, gpu: u32, place: Place) {
        let cell = self.cell(gpu, place);
        self.need(op, self.writer[cell], gpu, place);
        let mut at = self.reader[cell];
        while at != NONE {
            let (reader, before) = self.readers[at as usize];
            self.need(op, reader, gpu, place);
            at = before;
        }
        self.reader[cell] = NONE;
        self.writer[cell] = done;
    }

    /// `earlier` must be done before `op`, unless both are one, or its threads met between.
    fn need(&mut self, op: u32, earlier: u32, gpu: u32, place: Place) {
        if earlier == NONE {
            return;
        }
        let other = self.events.owner[earlier as usize];
        let block = |op: u32| self.plan.ops[op as usize].block;
        let epoch = |op: u32| self.events.epoch[op as usize];
        let met = other == earlier && block(other) == block(op) && epoch(other) < epoch(op);
        let known = self.needs.last().is_some_and(|need| need.0 == earlier);
        if other != op && !met && !known {
            self.needs.push((earlier, gpu, place));
        }
    }

    /// Go back from `op` until everything needed was met.
    fn prove(&mut self, op: u32) -> Result<()> {
        if self.needs.is_empty() {
            return Ok(());
        }
        self.search += 1;
        let first = self
            .needs
            .iter()
            .map(|need| self.place[need.0 as usize])
            .min();
        let first = first.unwrap_or(0);
        let mut open = vec![op];
        while let Some(node) = open.pop() {
            for &before in self.before.at(node) {
                self.steps += 1;
                let fresh = self.seen[before as usize] != self.search;
                if fresh && self.place[before as usize] >= first {
                    self.seen[before as usize] = self.search;
                    open.push(before);
                }
            }
        }
        if self.steps > MAX_STEPS {
            let problem = "so many operations depend on each other from afar that the proof takes too long; use fewer";
            return Err(PlanError::whole(problem));
        }
        let missing = self
            .needs
            .iter()
            .find(|need| self.seen[need.0 as usize] != self.search);
        match missing {
            Some(&(earlier, gpu, place)) => {
                let problem = format!(
                    "uses `{}` of gpu {gpu} as {} does, one of them writes it, and nothing orders them; add a nop \
                     between them, or a signal and a wait with a nop before and behind",
                    letter(place.space),
                    self.plan.place(self.events.owner[earlier as usize]),
                );
                self.plan.error(op, problem)
            }
            None => Ok(()),
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
