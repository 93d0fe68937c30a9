//! How long a recipe takes, about: it says which recipes are worth a simulation.
//!
//! ```text
//!   step     start + hop (farthest - 1) + message (most of a lane - 1) + bytes
//!   bytes    the most of   load of a link, by axis and way   x byte
//!                          what leaves a rank                x port
//!                          what a rank adds                  x sum
//!   copied   copy_start + bytes that all members of a line have copied   x copy
//!   read     a first step less what it saves, later ones with a start of their own; by message and byte besides
//!   rounds   a start for each time that the slots of a step are used again
//!   recipe   the sum over its steps; parts run side by side, step by step
//! ```
//!
//! All lines of a stage carry the same, so one of them tells the loads of all: on a ring, bytes times places over
//! links.

use super::blocks::{cells, turns, Cells, Phase, Turn};
use super::costs::Costs;
use super::exchange::windows;
use super::layout::Layout;
use super::line::Passage;
use super::recipe::{Composition, Digit, Primitive, Stage, Way};
use super::staging::{adding, arriving, piece};
use linkwright_schedule::error::Result;
use linkwright_schedule::pull::Pulled;
use linkwright_schedule::{Collective, Shape};
use std::collections::BTreeMap;

/// What a recipe comes to, about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Time in ps.
    pub time: f64,
    /// What it would save of that to read initial data, and to read everything.
    pub saved: [f64; 2],
    /// Time in ps of waiting for free slots, on top of `time`.
    pub waits: f64,
    /// Messages of all ranks.
    pub messages: u64,
    /// Pieces in which they go through the slots of the recipe.
    pub pieces: u64,
    /// Chunks that come to a rank to be added, or to be sent on in an all-to-all. With as many slots, none is used
    /// twice.
    pub arrivals: u64,
}

/// What `recipe` comes to; whether messages go from place to place (`hops`) or straight to any rank.
pub fn estimate(
    recipe: &Composition,
    shape: &Shape,
    costs: &Costs,
    hops: bool,
) -> Result<Estimate> {
    let cells = cells(recipe, shape.ranks)?;
    let bytes = shape.elements as f64 * f64::from(shape.element_bytes) / cells.len() as f64;
    let phases: &[Phase] = match recipe.collective {
        Collective::Allgather | Collective::Alltoall => &[Phase::Gather],
        Collective::ReduceScatter => &[Phase::Scatter],
        _ => &[Phase::Scatter, Phase::Whole, Phase::Gather],
    };
    let mut found = Estimate {
        time: 0.0,
        saved: [0.0; 2],
        waits: 0.0,
        messages: 0,
        pieces: 0,
        arrivals: 0,
    };
    let mut begun = false;
    for &phase in phases {
        let turns: Vec<Vec<Turn>> = cells
            .iter()
            .map(|cells| turns(&cells.layout, phase, recipe.collective.reduces()))
            .collect::<Result<_>>()?;
        for s in 0..turns.iter().map(Vec::len).max().unwrap_or(0) {
            let mut step = Step::default();
            for (cells, turns) in cells.iter().zip(&turns) {
                if let Some(turn) = turns.get(s) {
                    step.add(recipe, cells, turn, phase, bytes, hops);
                    let sent = u64::from(shape.ranks / cells.layout.members(turn.stage))
                        * turn.step.len() as u64;
                    found.messages += sent;
                    found.pieces += sent * pieces(recipe, cells, turn, phase);
                    if adding(recipe.collective).contains(&phase) {
                        step.arriving += arriving(cells, turn, phase);
                    }
                }
            }
            let sums = recipe.collective.reduces() && phase != Phase::Gather;
            let time = |which| step.time(costs, sums, Moved::of(which, begun));
            let taken = time(recipe.reads.map(|reads| reads.which));
            found.time += taken;
            for (saved, which) in found.saved.iter_mut().zip(Pulled::ALL) {
                *saved += taken - time(Some(which));
            }
            begun = true;
            // A sender without a free slot waits for a notice.
            let rounds = recipe
                .slots
                .map_or(1, |slots| step.arriving.div_ceil(slots));
            found.waits += f64::from(rounds.max(1) - 1) * costs.start;
            found.arrivals += u64::from(step.arriving);
        }
    }
    if recipe.collective == Collective::Alltoall {
        let stages = cells.iter().map(|cells| cells.layout.len() as u64);
        let between = stages.max().unwrap_or(0).saturating_sub(1);
        found.arrivals = between * u64::from(shape.ranks) * cells.len() as u64;
        let windows = windows(recipe, shape, &cells)?;
        found.pieces *= u64::from(windows);
        found.waits += f64::from(windows - 1) * costs.start;
    }
    Ok(found)
}

/// Pieces in which each message of a turn goes; several only where contributions go through few slots.
fn pieces(recipe: &Composition, cells: &Cells<'_>, turn: &Turn, phase: Phase) -> u64 {
    let Some(slots) = recipe.slots.filter(|_| phase == Phase::Scatter) else {
        return 1;
    };
    let longest = turn.step.iter().map(|passage| passage.blocks.len() as u32);
    let gathered = (cells.layout.part.whole..turn.stage).map(|k| cells.layout.members(k));
    let chunks = longest.max().unwrap_or(1) * gathered.product::<u32>();
    u64::from(chunks.div_ceil(piece(chunks, slots)))
}

/// How the messages of a step are moved.
#[derive(Clone, Copy)]
enum Moved {
    Written,
    /// Read at once: the data are initial.
    Read,
    /// Read behind a notice.
    ReadBehind,
}

impl Moved {
    /// Those of the next step, or of the first one where none has `begun`.
    fn of(which: Option<Pulled>, begun: bool) -> Self {
        match which {
            Some(_) if !begun => Moved::Read,
            Some(Pulled::Everything) => Moved::ReadBehind,
            _ => Moved::Written,
        }
    }
}

/// What happens in one step, by rank.
#[derive(Default)]
struct Step {
    /// Bytes on a link, by axis and way.
    links: BTreeMap<(usize, bool), f64>,
    /// Bytes that leave a rank, and as many that come.
    sent: f64,
    /// Bytes of a rank that the network copies along a line, and the members of all such lines.
    copied: f64,
    copies: bool,
    most_messages: f64,
    farthest: u32,
    /// Chunks that come to a rank to be added.
    arriving: u32,
}

impl Step {
    fn add(
        &mut self,
        recipe: &Composition,
        cells: &Cells<'_>,
        turn: &Turn,
        phase: Phase,
        bytes: f64,
        hops: bool,
    ) {
        let layout = &cells.layout;
        let stage = &layout.part.stages[turn.stage];
        let members = f64::from(stage.members());
        let block = match (phase, recipe.collective) {
            (Phase::Whole, _) => bytes / f64::from(cells.each()),
            (_, Collective::Alltoall) => bytes / members,
            _ => {
                let gathered: u32 = (layout.part.whole..turn.stage)
                    .map(|k| layout.members(k))
                    .product();
                bytes / f64::from(cells.each()) * f64::from(gathered)
            }
        };
        let copies = stage.gather == Primitive::Multicast && phase != Phase::Scatter;
        let mut messages = [0.0; 2];
        for passage in &turn.step {
            let carried = match phase {
                Phase::Whole => block,
                _ => block * passage.blocks.len() as f64,
            };
            if copies {
                continue;
            }
            self.sent += carried / members;
            messages[usize::from(passage.ahead)] += 1.0 / members;
            for (digit, (distance, ahead)) in stage.digits.iter().zip(places(passage, stage)) {
                let far = match hops {
                    true => distance * digit.stride / unit(layout, digit.axis),
                    false => distance.min(1),
                };
                self.farthest = self.farthest.max(far);
                let load = carried * f64::from(far) / members;
                *self
                    .links
                    .entry((usize::from(digit.axis), ahead))
                    .or_default() += load;
            }
        }
        if copies {
            self.copies = true;
            self.copied += block * members;
        }
        self.most_messages = messages.into_iter().fold(self.most_messages, f64::max);
    }

    fn time(&self, costs: &Costs, sums: bool, moved: Moved) -> f64 {
        let reads = &costs.reads;
        let (start, message, byte) = match moved {
            // Nothing but what the network copies, which is always written.
            _ if self.sent == 0.0 => (costs.start, costs.message, 0.0),
            Moved::Written => (costs.start, costs.message, 0.0),
            Moved::Read => (costs.start - reads.saved, reads.message, reads.byte),
            // A notice stands before each.
            Moved::ReadBehind => (reads.start, 2.0 * reads.message, reads.byte),
        };
        let link = |(&(axis, _), load): (&(usize, bool), &f64)| {
            load * costs.byte.get(axis).copied().unwrap_or(0.0)
        };
        let links = self.links.iter().map(link).fold(0.0, f64::max);
        let sum = if sums { self.sent * costs.sum } else { 0.0 };
        let hops = f64::from(self.farthest.saturating_sub(1));
        let messages = (self.most_messages - 1.0).max(0.0);
        start
            + costs.hop * hops
            + message * messages
            + links.max(self.sent * costs.port)
            + self.sent * byte
            + sum
    }
}

/// Stride of neighbours along an axis: the least of its digits.
fn unit(layout: &Layout<'_>, axis: u8) -> u32 {
    let digits = layout.part.stages.iter().flat_map(|stage| &stage.digits);
    let strides = digits
        .filter(|digit| digit.axis == axis)
        .map(|digit| digit.stride);
    strides.min().unwrap_or(1)
}

/// Places that a passage goes along each digit of its stage, and whether ahead.
fn places(passage: &Passage, stage: &Stage) -> Vec<(u32, bool)> {
    let (mut from, mut to) = (passage.from, passage.to);
    let place = |digit: &Digit| {
        let distance = (to % digit.radix + digit.radix - from % digit.radix) % digit.radix;
        (from, to) = (from / digit.radix, to / digit.radix);
        let ahead = match (stage.digits.len(), stage.way) {
            (1, _) => passage.ahead,
            (_, Way::Both) => 2 * distance <= digit.radix,
            (_, way) => way == Way::Ahead,
        };
        match ahead {
            true => (distance, true),
            false => ((digit.radix - distance) % digit.radix, false),
        }
    };
    stage.digits.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::costs::ReadCosts;
    use crate::compose::{Composition, Part};
    use crate::reads::Reads;

    fn costs() -> Costs {
        Costs {
            start: 100.0,
            hop: 10.0,
            message: 1.0,
            byte: vec![1.0, 2.0],
            port: 0.5,
            sum: 0.0,
            copy_start: 0.0,
            copy: 0.0,
            reads: ReadCosts {
                saved: 60.0,
                start: 70.0,
                message: 2.0,
                byte: 0.5,
            },
        }
    }

    fn one(primitive: Primitive, way: Way) -> Composition {
        let digit = Digit {
            stride: 1,
            radix: 8,
            axis: 0,
        };
        let stage = Stage {
            digits: vec![digit],
            scatter: primitive,
            gather: primitive,
            way,
        };
        let part = Part {
            stages: vec![stage],
            whole: 0,
        };
        Composition {
            collective: Collective::Allgather,
            parts: vec![part],
            slices: 1,
            slots: None,
            reads: None,
        }
    }

    /// Blocks of 40 bytes. Ring: 7 steps of 100 + 40. Both ways: 4 steps with 40 bytes on a link either way, of 80
    /// bytes at the port but in the last. Directly: farthest 7; 7 messages; on each link 1 + 2 + ... + 7 blocks.
    #[test]
    fn a_line_of_eight() {
        let shape = Shape::new(8, 80);
        let time = |primitive, way| {
            estimate(&one(primitive, way), &shape, &costs(), true)
                .unwrap()
                .time
        };
        assert_eq!(time(Primitive::Ring, Way::Ahead), 7.0 * 140.0);
        assert_eq!(time(Primitive::Ring, Way::Both), 4.0 * 140.0);
        assert_eq!(
            time(Primitive::Direct, Way::Ahead),
            100.0 + 60.0 + 6.0 + 28.0 * 40.0
        );
    }

    /// The first step takes 60 less, the others 70 instead of 100 where all are read; 20 ps more for the 40 bytes.
    #[test]
    fn a_ring_that_reads() {
        let time = |which| {
            let recipe = Composition {
                reads: Some(Reads {
                    which,
                    aside: false,
                }),
                ..one(Primitive::Ring, Way::Ahead)
            };
            let shape = Shape::new(8, 80);
            estimate(&recipe, &shape, &costs(), true).unwrap().time
        };
        let first = 40.0 + 40.0 + 20.0;
        assert_eq!(time(Pulled::Initial), first + 6.0 * 140.0);
        assert_eq!(time(Pulled::Everything), first + 6.0 * (70.0 + 40.0 + 20.0));
    }
}
