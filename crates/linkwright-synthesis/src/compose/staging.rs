//! Contributions through a small buffer, where memory has no room for scratch of their own.
//!
//! ```text
//!   output     [ 0 | 1 | 2 | 3 | ... | 63 ]
//!   staging    [ a | b | c ]                  slots as large as chunks, taken in turn
//!
//!   put chunks 8..10 -> slots c, a            waits until what lay there is added
//!   add slots c, a   -> chunks 8..10
//! ```
//!
//! The builder finds out who must tell whom that a slot is free again. If the contributions of a step need more slots
//! than there are, the step goes in *rounds*. A message longer than half of the slots goes in pieces, so that one lands
//! while another is added. With as many slots as contributions, no rank waits, as with scratch of their own.

use super::blocks::{
    cells, copies, join, messages, steps, vector, walk, Cells, Message, Phase, Turn,
};
use super::recipe::Composition;
use linkwright_schedule::builder::Slot;
use linkwright_schedule::error::{Result, ScheduleError};
use linkwright_schedule::ir::{Buffer, Hint, Schedule};
use linkwright_schedule::{Builder, Collective, Shape};
use std::collections::BTreeMap;

/// Phases in which contributions are added.
pub fn adding(collective: Collective) -> &'static [Phase] {
    match collective {
        Collective::Allreduce => &[Phase::Scatter, Phase::Whole],
        Collective::ReduceScatter => &[Phase::Scatter],
        _ => &[],
    }
}

/// Write the schedule of `recipe`, an allgather, a reduce-scatter or an allreduce.
pub fn write(recipe: &Composition, shape: &Shape) -> Result<Schedule> {
    let cells = cells(recipe, shape.ranks)?;
    let mut b = Builder::new(recipe.collective, shape);
    let data = b.buffer(vector(&cells, shape.ranks));
    let collective = recipe.collective;
    let mut staging = match recipe.slots {
        Some(slots) => Some(Staging::new(&mut b, &cells, shape, slots)?),
        None => {
            b.own_scratch();
            None
        }
    };
    for &phase in adding(collective) {
        match &mut staging {
            Some(staging) => staging.walk(&mut b, &cells, phase, data)?,
            None => walk(&mut b, &cells, phase, data)?,
        }
    }
    if collective != Collective::ReduceScatter {
        walk(&mut b, &cells, Phase::Gather, data)?;
    }
    b.finish()
}

/// The slots for which the `memory` bytes of a rank have room behind its vectors. `None` if `recipe` needs no slots, if
/// there is no room for one, or if chunks are not equal.
pub fn slots(recipe: &Composition, shape: &Shape, memory: u64) -> Result<Option<u32>> {
    let cells = cells(recipe, shape.ranks)?;
    let chunks = u64::from(vector(&cells, shape.ranks).chunks());
    let bytes = shape.elements * u64::from(shape.element_bytes);
    let vectors = match recipe.collective {
        Collective::Alltoall => 2,
        collective if adding(collective).is_empty() => return Ok(None),
        _ => 1,
    };
    let slots = match bytes / chunks {
        chunk if chunk > 0 && shape.elements % chunks == 0 => {
            memory.saturating_sub(vectors * bytes) / chunk
        }
        _ => 0,
    };
    let slots = u32::try_from(slots).unwrap_or(u32::MAX);
    Ok((slots > 0).then_some(slots))
}

/// Most chunks that a turn brings to any rank.
pub fn arriving(cells: &Cells<'_>, turn: &Turn, phase: Phase) -> u32 {
    let layout = &cells.layout;
    if copies(cells, turn, phase) {
        // Every member's copy has a slot at every member, even the receiver's own.
        return layout.members(turn.stage);
    }
    let gathered = (layout.part.whole..turn.stage).map(|k| layout.members(k));
    let block: u32 = gathered.product();
    let mut by_member = vec![0; layout.members(turn.stage) as usize];
    for passage in &turn.step {
        match phase {
            Phase::Scatter => {
                by_member[passage.from as usize] += block * passage.blocks.len() as u32
            }
            _ => by_member[passage.to as usize] += 1,
        }
    }
    by_member.into_iter().max().unwrap_or(0)
}

/// Chunks of each piece of a message of `chunks`.
pub fn piece(chunks: u32, slots: u32) -> u32 {
    let pieces = match chunks <= slots.div_ceil(2) {
        true => 1,
        false => chunks.div_ceil(slots.div_ceil(2)),
    };
    chunks.div_ceil(pieces)
}

/// A buffer whose slots are taken in turn.
pub struct Staging {
    buffer: Slot,
    slots: u32,
    /// Slots taken so far, by rank.
    taken: Vec<u64>,
}

/// Chunks on their way: where they are added once they have landed.
struct Landing {
    ranks: Vec<u32>,
    runs: Vec<Run>,
}

/// A slot, the chunk that lies there, and how many of them.
type Run = (u32, u32, u32);

/// A message and the round in which it goes.
type Sent<'a, 'b> = (u32, &'a Cells<'b>, Message);

impl Staging {
    /// Declare the buffer; waived where chunks are not equal, because no size of slots suits all.
    pub fn new(b: &mut Builder, cells: &[Cells<'_>], shape: &Shape, slots: u32) -> Result<Self> {
        let chunks = vector(cells, shape.ranks).chunks();
        if slots == 0 || shape.elements % u64::from(chunks) != 0 {
            return Err(waived(format!(
                "{slots} slots for {chunks} chunks of {} elements; some slots for equal chunks are needed",
                shape.elements
            )));
        }
        let buffer = b.buffer(Buffer {
            mul: slots,
            div: chunks,
            ..Buffer::vector("staging", slots)
        });
        Ok(Staging {
            buffer,
            slots,
            taken: vec![0; shape.ranks as usize],
        })
    }

    /// Write a phase in which contributions are added.
    pub fn walk(
        &mut self,
        b: &mut Builder,
        cells: &[Cells<'_>],
        phase: Phase,
        data: Slot,
    ) -> Result<()> {
        for step in steps(cells, phase)? {
            let sent = match phase {
                Phase::Whole => self.whole(&step)?,
                _ => self.scattered(&step),
            };
            let rounds = sent.iter().map(|one| one.0 + 1).max().unwrap_or(0);
            for round in 0..rounds {
                self.align(phase);
                b.step();
                let sent = sent.iter().filter(|one| one.0 == round);
                let landings: Vec<Landing> = sent
                    .map(|(_, cells, message)| self.put(b, cells, message, data))
                    .collect();
                self.add(b, landings, data);
            }
        }
        Ok(())
    }

    /// Add what has landed: what comes to one chunk one after another, all else at once.
    fn add(&self, b: &mut Builder, landings: Vec<Landing>, data: Slot) {
        let mut layers: Vec<Vec<(u32, Vec<Run>)>> = Vec::new();
        let mut before: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        for Landing { ranks, runs } in landings {
            for rank in ranks {
                let cells = || runs.iter().map(|&(_, chunk, _)| (rank, chunk));
                let earlier = cells().filter_map(|cell| before.get(&cell)).max();
                let layer = earlier.copied().unwrap_or(0);
                before.extend(cells().map(|cell| (cell, layer + 1)));
                if layer == layers.len() {
                    layers.push(Vec::new());
                }
                layers[layer].push((rank, runs.clone()));
            }
        }
        for layer in layers {
            b.step();
            for (rank, runs) in layer {
                b.local_runs(rank, self.buffer, data, &runs).reduce();
            }
        }
    }

    /// Messages of blocks in pieces; those to a receiver go in as few rounds as its slots allow.
    fn scattered<'a, 'b>(&self, step: &'a [(&'a Cells<'b>, Turn)]) -> Vec<Sent<'a, 'b>> {
        let mut sent = Vec::new();
        let mut full: Vec<(u32, u32)> = vec![(0, 0); self.taken.len()];
        for (cells, turn) in step {
            messages(cells, turn, Phase::Scatter, |message| {
                let piece = piece(message.chunks.len() as u32, self.slots);
                for chunks in message.chunks.chunks(piece as usize) {
                    let full = &mut full[message.targets[0] as usize];
                    let round = self.round(full, chunks.len() as u32);
                    let chunks = chunks.to_vec();
                    let targets = message.targets.clone();
                    let of = Message {
                        chunks,
                        targets,
                        ..message
                    };
                    sent.push((round, *cells, of));
                }
            });
        }
        sent
    }

    /// Messages of what is left. All those of a chunk go in one round, because it must be sent before it is added to.
    fn whole<'a, 'b>(&self, step: &'a [(&'a Cells<'b>, Turn)]) -> Result<Vec<Sent<'a, 'b>>> {
        let mut sent = Vec::new();
        let mut full = (0, 0);
        for (cells, turn) in step {
            let needed = arriving(cells, turn, Phase::Whole);
            if needed > self.slots {
                return Err(waived(format!(
                    "{needed} contributions to a chunk at once; {} slots",
                    self.slots
                )));
            }
            let round = self.round(&mut full, needed);
            let mut copied: Vec<Message> = Vec::new();
            messages(cells, turn, Phase::Whole, |message| {
                match copies(cells, turn, Phase::Whole) {
                    true => join(&mut copied, message),
                    false => sent.push((round, *cells, message)),
                }
            });
            sent.extend(copied.into_iter().map(|message| (round, *cells, message)));
        }
        Ok(sent)
    }

    /// The round in which `more` slots are free; `full` is the current round and the slots taken in it.
    fn round(&self, full: &mut (u32, u32), more: u32) -> u32 {
        if full.1 + more > self.slots {
            *full = (full.0 + 1, 0);
        }
        full.1 += more;
        full.0
    }

    /// Let all ranks go on at the same slot, because a copy lands in the same slots everywhere.
    fn align(&mut self, phase: Phase) {
        if phase == Phase::Whole {
            let most = self.taken.iter().copied().max().unwrap_or(0);
            self.taken.fill(most);
        }
    }

    /// Write a message into the next slots of its targets.
    fn put(
        &mut self,
        b: &mut Builder,
        cells: &Cells<'_>,
        message: &Message,
        data: Slot,
    ) -> Landing {
        let first = (message.targets.iter())
            .map(|&target| self.taken[target as usize])
            .max();
        let first = first.unwrap_or(0);
        let slot = |k: u64| ((first + k) % u64::from(self.slots)) as u32;
        let chunks = (0..).zip(&message.chunks);
        let runs: Vec<(u32, u32, u32)> = chunks.map(|(k, &chunk)| (chunk, slot(k), 1)).collect();
        for &target in &message.targets {
            self.taken[target as usize] = first + runs.len() as u64;
        }
        let (lane, hint) = (cells.lane(message.ahead), message.hint);
        match message.targets[..] {
            [to] => {
                b.put_runs(message.from, data, to, self.buffer, &runs)
                    .lane(lane)
                    .hint(hint);
            }
            _ => self.copy(b, message, &runs, data, (lane, hint)),
        }
        Landing {
            ranks: message.targets.clone(),
            runs: runs.into_iter().map(|(a, b, n)| (b, a, n)).collect(),
        }
    }

    /// Write a message that the network copies, chunk by chunk.
    fn copy(
        &self,
        b: &mut Builder,
        message: &Message,
        runs: &[(u32, u32, u32)],
        data: Slot,
        (lane, hint): (u8, Hint),
    ) {
        for &(chunk, slot, _) in runs {
            let slot = self.buffer.at(slot);
            b.multicast(message.from, data.at(chunk), &message.targets, slot)
                .lane(lane)
                .hint(hint);
        }
    }
}

fn waived(reason: String) -> ScheduleError {
    ScheduleError::Waived {
        algorithm: "composition".into(),
        reason,
    }
}
