//! Allgather, reduce-scatter and allreduce in stages.
//!
//! ```text
//!   allgather        stage 0, 1, ..., each message with all that its sender has gathered
//!   reduce_scatter   the same backwards, with sums
//!   allreduce        both; the first `whole` stages lie between them and exchange what is left as it is
//! ```

use super::layout::Layout;
use super::line::Passage;
use super::recipe::{Composition, Primitive};
use linkwright_schedule::builder::Slot;
use linkwright_schedule::error::{Result, ScheduleError};
use linkwright_schedule::ir::{Buffer, Hint};
use linkwright_schedule::Builder;

/// How a part numbers its chunks.
pub struct Cells<'a> {
    pub layout: Layout<'a>,
    /// Number of the part.
    pub part: u32,
    parts: u32,
    /// Whether chunks belong to ranks, each cut in parts; else parts are cut in blocks as the layout numbers them.
    by_rank: bool,
}

impl Cells<'_> {
    /// The chunks of the blocks, ascending.
    pub fn chunks(&self, places: &[Vec<u32>]) -> Vec<u32> {
        let chunk = |place: &Vec<u32>| match self.by_rank {
            true => self.layout.rank(place) * self.parts + self.part,
            false => self.part * self.each() + self.layout.number(place),
        };
        let mut chunks: Vec<u32> = places.iter().map(chunk).collect();
        chunks.sort_unstable();
        chunks.dedup();
        chunks
    }

    /// Blocks of a part.
    pub fn each(&self) -> u32 {
        let stages = self.layout.part.whole..self.layout.len();
        stages.map(|k| self.layout.members(k)).product()
    }

    /// A lane of its own for each part and way.
    pub fn lane(&self, ahead: bool) -> u8 {
        ((2 * self.part + u32::from(!ahead)) % 255) as u8
    }
}

/// The parts of `recipe`, each with its numbers; what it cannot be over `ranks` ranks is waived.
pub fn cells(recipe: &Composition, ranks: u32) -> Result<Vec<Cells<'_>>> {
    let parts = recipe.parts.len() as u32;
    let by_rank = recipe.collective.is_blocked();
    let cells: Vec<Cells<'_>> = (recipe.parts.iter().zip(0..))
        .map(|(of, part)| Cells {
            layout: Layout::new(of),
            part,
            parts,
            by_rank,
        })
        .collect();
    let waive = |reason: String| {
        Err(ScheduleError::Waived {
            algorithm: "composition".into(),
            reason,
        })
    };
    if let Some(cells) = cells.iter().find(|cells| cells.layout.ranks() != ranks) {
        let covered = cells.layout.ranks();
        return waive(format!(
            "the stages of part {} cover {covered} of {ranks} ranks",
            cells.part
        ));
    }
    if by_rank && recipe.parts.iter().any(|part| part.whole > 0) {
        return waive("whole stages need whole vectors, in an allreduce or a broadcast".into());
    }
    if cells.iter().any(|other| other.each() != cells[0].each()) {
        return waive(
            "parts with different numbers of blocks; scatter along the same dimensions".into(),
        );
    }
    Ok(cells)
}

/// The buffer that the chunks of `cells` cut.
pub fn vector(cells: &[Cells<'_>], ranks: u32) -> Buffer {
    let parts = cells.len() as u32;
    match cells[0].by_rank {
        true => Buffer {
            slices: parts,
            ..Buffer::vector("output", ranks)
        },
        false => Buffer {
            slices: cells[0].each(),
            ..Buffer::vector("output", parts)
        },
    }
}

/// What the stages do at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Scatter,
    Whole,
    Gather,
}

/// One step of a stage of a part.
pub struct Turn {
    pub stage: usize,
    pub step: Vec<Passage>,
}

/// The steps of `phase` of one part, in the order in which they run; `sums`: contributions are added.
pub fn turns(layout: &Layout<'_>, phase: Phase, sums: bool) -> Result<Vec<Turn>> {
    let whole = layout.part.whole;
    let stages = match phase {
        Phase::Whole => 0..whole,
        _ => whole..layout.len(),
    };
    let mut turns = Vec::new();
    for stage in stages {
        let of = &layout.part.stages[stage];
        let primitive = match phase {
            Phase::Scatter if of.scatter == Primitive::Multicast => Primitive::Direct,
            Phase::Scatter => of.scatter,
            _ => of.gather,
        };
        if phase == Phase::Whole && sums && !serves_whole(primitive, layout.members(stage)) {
            return Err(ScheduleError::Waived {
                algorithm: "composition".into(),
                reason: format!(
                    "{} members cannot exchange whole vectors so",
                    layout.members(stage)
                ),
            });
        }
        let steps = layout.steps(stage, primitive)?;
        turns.extend(steps.into_iter().map(|step| Turn { stage, step }));
    }
    if phase == Phase::Scatter {
        turns.reverse();
    }
    Ok(turns)
}

/// Whether every contribution comes once where whole vectors are exchanged.
fn serves_whole(primitive: Primitive, members: u32) -> bool {
    match primitive {
        Primitive::Direct | Primitive::Multicast => true,
        Primitive::Doubling | Primitive::Swing => members.is_power_of_two(),
        Primitive::Ring => false,
    }
}

/// Step s of all parts, for each s: what goes on at once.
pub fn steps<'a, 'b>(
    cells: &'a [Cells<'b>],
    phase: Phase,
) -> Result<Vec<Vec<(&'a Cells<'b>, Turn)>>> {
    let mut steps: Vec<Vec<(&Cells<'_>, Turn)>> = Vec::new();
    for cells in cells {
        for (s, turn) in turns(&cells.layout, phase, true)?.into_iter().enumerate() {
            if s == steps.len() {
                steps.push(Vec::new());
            }
            steps[s].push((cells, turn));
        }
    }
    Ok(steps)
}

/// Write a phase.
pub fn walk(b: &mut Builder, cells: &[Cells<'_>], phase: Phase, data: Slot) -> Result<()> {
    for step in steps(cells, phase)? {
        b.step();
        for (cells, turn) in &step {
            pass(b, cells, turn, phase, data);
        }
    }
    Ok(())
}

fn pass(b: &mut Builder, cells: &Cells<'_>, turn: &Turn, phase: Phase, data: Slot) {
    let mut copied: Vec<Message> = Vec::new();
    messages(cells, turn, phase, |message| {
        if copies(cells, turn, phase) {
            return join(&mut copied, message);
        }
        let written = b.put_blocks(
            message.from,
            data,
            message.targets[0],
            data,
            &message.chunks,
        );
        let written = written.lane(cells.lane(message.ahead)).hint(message.hint);
        if phase != Phase::Gather {
            written.reduce();
        }
    });
    multicast(b, cells, &copied, data, phase != Phase::Gather);
}

/// Whether the messages of a turn are copied by the network.
pub fn copies(cells: &Cells<'_>, turn: &Turn, phase: Phase) -> bool {
    phase != Phase::Scatter && cells.layout.part.stages[turn.stage].gather == Primitive::Multicast
}

/// Who sends which chunks to whom.
pub struct Message {
    pub from: u32,
    pub targets: Vec<u32>,
    pub chunks: Vec<u32>,
    pub hint: Hint,
    pub ahead: bool,
}

/// Every message of a turn.
pub fn messages(cells: &Cells<'_>, turn: &Turn, phase: Phase, mut each: impl FnMut(Message)) {
    let layout = &cells.layout;
    let scatters = phase == Phase::Scatter;
    layout.each(turn.stage, &turn.step, |message| {
        let chunks = match phase {
            // What is left of the part: the block of this place.
            Phase::Whole => cells.chunks(&[message.place.to_vec()]),
            _ => cells.chunks(&layout.blocks(message.place, turn.stage, message.blocks)),
        };
        let ends = (message.from, message.to);
        let (from, to) = if scatters { (ends.1, ends.0) } else { ends };
        each(Message {
            from,
            targets: vec![to],
            chunks,
            hint: if scatters {
                message.hint.opposite()
            } else {
                message.hint
            },
            ahead: message.ahead != scatters,
        });
    });
}

/// Write messages that the network copies, each run of chunks by itself.
pub fn multicast(b: &mut Builder, cells: &Cells<'_>, copied: &[Message], data: Slot, sums: bool) {
    for message in copied {
        for (first, count) in runs(&message.chunks) {
            let chunks = data.chunks(first, count);
            let written = b.multicast(message.from, chunks, &message.targets, chunks);
            let written = written.lane(cells.lane(message.ahead)).hint(message.hint);
            if sums {
                written.reduce();
            }
        }
    }
}

/// Let `message` be part of a multicast of the same chunks the same way.
pub fn join(copied: &mut Vec<Message>, message: Message) {
    let same = |c: &&mut Message| {
        c.from == message.from && c.ahead == message.ahead && c.chunks == message.chunks
    };
    match copied.iter_mut().find(same) {
        Some(found) => found.targets.extend(message.targets),
        None => copied.push(message),
    }
}

/// Ascending chunks as runs (first, count).
fn runs(chunks: &[u32]) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &chunk in chunks {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == chunk => *count += 1,
            _ => runs.push((chunk, 1)),
        }
    }
    runs
}
