//! Broadcast in stages: whole along the first ones, scattered and gathered along the others.
//!
//! A scatter takes the messages of a reduce-scatter that lead from the root, and a whole stage those of an allgather
//! that carry what the root's line has: trees.

use super::blocks::{
    cells, copies, join, messages, multicast, turns, vector, Cells, Message, Phase, Turn,
};
use super::recipe::Composition;
use linkwright_schedule::builder::Slot;
use linkwright_schedule::error::Result;
use linkwright_schedule::ir::Schedule;
use linkwright_schedule::{Builder, Shape};

/// Write the schedule of `recipe`, a broadcast.
pub fn write(recipe: &Composition, shape: &Shape) -> Result<Schedule> {
    let cells = cells(recipe, shape.ranks)?;
    let mut b = Builder::new(recipe.collective, shape);
    let buffer = vector(&cells, shape.ranks);
    let chunks = buffer.chunks();
    let data = b.buffer(buffer);
    let mut has = Holders::new(chunks, shape);
    for phase in [Phase::Scatter, Phase::Whole, Phase::Gather] {
        let turns: Vec<Vec<Turn>> = cells
            .iter()
            .map(|cells| turns(&cells.layout, phase, false))
            .collect::<Result<_>>()?;
        for s in 0..turns.iter().map(Vec::len).max().unwrap_or(0) {
            b.step();
            has.arrive();
            for (cells, turns) in cells.iter().zip(&turns) {
                if let Some(turn) = turns.get(s) {
                    pass(&mut b, cells, turn, phase, data, &mut has);
                }
            }
        }
    }
    b.finish()
}

/// Write what of a turn's messages brings the receiver something that it lacks.
fn pass(
    b: &mut Builder,
    cells: &Cells<'_>,
    turn: &Turn,
    phase: Phase,
    data: Slot,
    has: &mut Holders,
) {
    let mut copied: Vec<Message> = Vec::new();
    messages(cells, turn, phase, |mut message| {
        let to = message.targets[0];
        message
            .chunks
            .retain(|&chunk| has.pass(message.from, to, chunk));
        if message.chunks.is_empty() {
            return;
        }
        if copies(cells, turn, phase) {
            return join(&mut copied, message);
        }
        b.put_blocks(message.from, data, to, data, &message.chunks)
            .lane(cells.lane(message.ahead))
            .hint(message.hint);
    });
    multicast(b, cells, &copied, data, false);
}

/// When each rank got which chunks of the root's vector.
struct Holders {
    chunks: usize,
    /// Step in which a chunk came, by rank and chunk.
    since: Vec<u32>,
    now: u32,
}

const NEVER: u32 = u32::MAX;

impl Holders {
    fn new(chunks: u32, shape: &Shape) -> Self {
        let chunks = chunks as usize;
        let mut since = vec![NEVER; chunks * shape.ranks as usize];
        since[shape.root as usize * chunks..][..chunks].fill(0);
        Holders {
            chunks,
            since,
            now: 0,
        }
    }

    /// What was sent in the step before is there.
    fn arrive(&mut self) {
        self.now += 1;
    }

    /// Whether `from` had `chunk` before this step and `to` lacks it; then it is sent.
    fn pass(&mut self, from: u32, to: u32, chunk: u32) -> bool {
        let cell = |rank: u32| rank as usize * self.chunks + chunk as usize;
        let passes = self.since[cell(from)] < self.now && self.since[cell(to)] == NEVER;
        if passes {
            self.since[cell(to)] = self.now;
        }
        passes
    }
}
