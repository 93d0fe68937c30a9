//! All ports of a torus at once: 2D copies of one exchange, each on its part of the vector.
//!
//! ```text
//!   two dimensions   copy 0   x, y, x, y, ...      copy 2   the mirror image of copy 0
//!                    copy 1   y, x, y, x, ...      copy 3   the mirror image of copy 1
//!
//!   mirrored         place a of an axis is place -a, so what went up goes down
//! ```
//!
//! In every step each copy goes along another axis or the other way round, so a rank sends from all of its
//! 2D ports and no two copies share a link, as long as the sides are equal. Along shorter sides there are
//! fewer steps; the copies then meet on the longer ones.
//!
//! A copy is the product of the [`Line`]s of its axes: a message along one axis goes between two members
//! that agree in all other coordinates, and carries for each block of the line all that both answer for
//! along the others:
//!
//! ```text
//!   blocks of a message   =  (held along axis 0) x ... x (passed along this axis) x ...
//! ```
//!
//! A copy numbers its blocks with its own first axis as the most significant digit.

mod rooted;

use super::line::Line;
use super::Phase;
use crate::collectives::prelude::*;

/// How the steps of a reduce-scatter go over the axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// One step along each axis in turn.
    InTurns,
    /// All steps along an axis before those along the next.
    AxisByAxis,
}

/// One axis with more than one place.
struct Axis {
    side: u32,
    stride: u32,
    ways: [Hint; 2],
    /// As it is, and mirrored.
    lines: [Line; 2],
}

impl Axis {
    /// Which way a message goes between two members: the shorter one; half way round, even ones go ahead.
    fn way(&self, from: u32, to: u32, mirrored: bool) -> Hint {
        let places = &self.lines[usize::from(mirrored)].places;
        let (from_place, to_place) = (places[from as usize], places[to as usize]);
        let distance = 2 * ((to_place + self.side - from_place) % self.side);
        let even = (from % 2 == 0) != mirrored;
        let ahead = distance < self.side || distance == self.side && even;
        self.ways[usize::from(!ahead)]
    }
}

/// The exchange on all ports of a torus.
pub struct Ports {
    axes: Vec<Axis>,
    pace: Pace,
}

/// One of the copies.
struct Copy<'a> {
    /// In the order in which this copy takes them.
    axes: Vec<&'a Axis>,
    mirrored: bool,
    number: u32,
    /// Axis and step of its line, for each step of a reduce-scatter.
    steps: Vec<(usize, usize)>,
}

impl Ports {
    /// The ports of the torus that `shape` describes; ranks in a line are a ring. `line` gives the line of a
    /// side, and what is to become the mirrored one.
    pub fn new(shape: &Shape, line: impl Fn(u32, bool) -> Line, pace: Pace) -> Result<Self> {
        shape.check()?;
        let sides = match &shape.grid[..] {
            [] => std::slice::from_ref(&shape.ranks),
            sides => sides,
        };
        let ways = |axis: usize| [true, false].map(|ahead| Hint::along(axis as u8, ahead));
        let mut stride = 1;
        let mut axes = Vec::new();
        for (number, &side) in sides.iter().enumerate() {
            if side > 1 {
                axes.push(Axis {
                    side,
                    stride,
                    ways: ways(number),
                    lines: [line(side, false), line(side, true).mirrored(side)],
                });
            }
            stride *= side;
        }
        Ok(Ports { axes, pace })
    }

    /// Exchange whole parts of the vector, each copy its own.
    pub fn allreduce_whole(&self, shape: &Shape) -> Result<Schedule> {
        let copies = self.copies();
        let mut b = Builder::new(Collective::Allreduce, shape);
        let data = b.buffer(Buffer::vector("output", copies.len() as u32));
        b.own_scratch();
        fold_in(&mut b, &copies, data, 1);
        for s in 0..self.rounds() {
            b.step();
            for copy in &copies {
                copy.messages(s, |message| {
                    let part = data.at(copy.number);
                    b.put(message.from, part, message.to, part)
                        .reduce()
                        .lane(copy.number as u8)
                        .hint(message.way);
                });
            }
        }
        fold_out(&mut b, &copies, data, 1, None);
        b.finish()
    }

    /// Reduce-scatter and allgather, in blocks of which every member owns one in each copy.
    pub fn allreduce_blocks(&self, shape: &Shape) -> Result<Schedule> {
        let copies = self.copies();
        let blocks = copies[0].blocks();
        let mut b = Builder::new(Collective::Allreduce, shape);
        let data = b.buffer(Buffer {
            slices: blocks,
            ..Buffer::vector("output", copies.len() as u32)
        });
        b.own_scratch();
        fold_in(&mut b, &copies, data, blocks);
        for s in 0..self.rounds() {
            b.step();
            copies
                .iter()
                .for_each(|copy| copy.pass(&mut b, data, s, Phase::ReduceScatter));
        }
        for s in (0..self.rounds()).rev() {
            b.step();
            copies
                .iter()
                .for_each(|copy| copy.pass(&mut b, data, s, Phase::Allgather));
        }
        fold_out(&mut b, &copies, data, blocks, None);
        b.finish()
    }

    /// Steps of an exchange, or of a reduce-scatter.
    fn rounds(&self) -> usize {
        self.axes.iter().map(|axis| axis.lines[0].steps.len()).sum()
    }

    fn copies(&self) -> Vec<Copy<'_>> {
        let dimensions = self.axes.len();
        let copy = |number: usize| {
            let (first, mirrored) = (number % dimensions.max(1), number >= dimensions);
            let (before, from) = self.axes.split_at(first);
            let axes: Vec<&Axis> = from.iter().chain(before).collect();
            Copy {
                steps: steps(&axes, self.pace),
                axes,
                mirrored,
                number: number as u32,
            }
        };
        (0..(2 * dimensions).max(1)).map(copy).collect()
    }
}

fn steps(axes: &[&Axis], pace: Pace) -> Vec<(usize, usize)> {
    let of = |axis: usize| (0..axes[axis].lines[0].steps.len()).map(move |s| (axis, s));
    let mut steps: Vec<(usize, usize)> = (0..axes.len()).flat_map(of).collect();
    if pace == Pace::InTurns {
        // The sort keeps the first axis first.
        steps.sort_by_key(|&(_, s)| s);
    }
    steps
}

/// A message of an exchange of whole parts.
struct Message {
    from: u32,
    to: u32,
    way: Hint,
}

impl Copy<'_> {
    /// The rank at these places along the axes of the copy.
    fn rank(&self, places: impl Iterator<Item = u32>) -> u32 {
        let axes = self.axes.iter().zip(places);
        axes.map(|(axis, place)| place * axis.stride).sum()
    }

    /// Members and exchange of one of its axes.
    fn line<'b>(&self, axis: &'b Axis) -> &'b Line {
        &axis.lines[usize::from(self.mirrored)]
    }

    /// Number of blocks: one for each member.
    fn blocks(&self) -> u32 {
        let members = self.axes.iter().map(|axis| self.line(axis).members());
        members.product()
    }

    /// The rank of the members `coordinates`, but of `member` along `axis`.
    fn member(&self, coordinates: &[u32], axis: usize, member: u32) -> u32 {
        let lines = self.axes.iter().zip(coordinates).enumerate();
        self.rank(lines.map(|(number, (along, &other))| {
            let member = if number == axis { member } else { other };
            self.line(along).places[member as usize]
        }))
    }

    /// Coordinates of all lines of members along `axis`, 0 along it.
    fn lines(&self, axis: usize) -> impl Iterator<Item = Vec<u32>> {
        let length = |(number, along): (usize, &&Axis)| match number == axis {
            true => 1,
            false => self.line(along).members(),
        };
        tuples(self.axes.iter().enumerate().map(length).collect())
    }

    fn messages(&self, step: usize, mut each: impl FnMut(Message)) {
        let (axis, s) = self.steps[step];
        let along = self.axes[axis];
        for others in self.lines(axis) {
            for passage in &self.line(along).steps[s] {
                each(Message {
                    from: self.member(&others, axis, passage.from),
                    to: self.member(&others, axis, passage.to),
                    way: along.way(passage.from, passage.to, self.mirrored),
                });
            }
        }
    }

    /// Step `step` of a reduce-scatter, or the one of an allgather that reverses it.
    fn pass(&self, b: &mut Builder, data: Slot, step: usize, phase: Phase) {
        let (axis, s) = self.steps[step];
        let along = self.axes[axis];
        let held = self.held(step);
        let first = self.number * self.blocks();
        for others in self.lines(axis) {
            for passage in &self.line(along).steps[s] {
                let sets = held.iter().zip(&others).enumerate();
                let sets = sets.map(|(number, (held, &member))| match number == axis {
                    true => &passage.blocks,
                    false => &held[member as usize],
                });
                let blocks = self.chunks(first, sets);
                let (from, to) = match phase {
                    Phase::ReduceScatter => (passage.to, passage.from),
                    Phase::Allgather => (passage.from, passage.to),
                };
                let ends = [from, to].map(|member| self.member(&others, axis, member));
                let written = b.put_blocks(ends[0], data, ends[1], data, &blocks);
                let written =
                    written
                        .lane(self.number as u8)
                        .hint(along.way(from, to, self.mirrored));
                if phase == Phase::ReduceScatter {
                    written.reduce();
                }
            }
        }
    }

    /// What the members of each axis answer for along it before step `step`; nothing of the axis of the
    /// step itself, of which passages tell.
    fn held(&self, step: usize) -> Vec<Vec<Vec<u32>>> {
        let (axis, _) = self.steps[step];
        let held = |(number, along): (usize, &&Axis)| {
            let before = self.steps[..step].iter().filter(|done| done.0 == number);
            match number == axis {
                true => vec![Vec::new()],
                false => self.line(along).held(before.count()),
            }
        };
        self.axes.iter().enumerate().map(held).collect()
    }

    /// The chunks of all blocks with a coordinate of each set, ascending.
    fn chunks<'b>(&self, first: u32, sets: impl Iterator<Item = &'b Vec<u32>>) -> Vec<u32> {
        let mut blocks = vec![0];
        for (axis, set) in self.axes.iter().zip(sets) {
            let members = self.line(axis).members();
            let next = |&block: &u32| {
                let coordinate = move |member: &u32| block * members + member;
                set.iter().map(coordinate)
            };
            blocks = blocks.iter().flat_map(next).collect();
        }
        blocks.iter_mut().for_each(|block| *block += first);
        blocks
    }

    /// Pairs (rank, the one that acts for it) of the places that fold along the axis number `fold`, once
    /// those along the axes before have.
    fn folded(&self, fold: usize) -> Vec<(u32, u32)> {
        let Some(along) = self.axes.get(fold) else {
            return Vec::new();
        };
        let places = |(number, axis): (usize, &&Axis)| match number.cmp(&fold) {
            std::cmp::Ordering::Less => self.line(axis).places.clone(),
            std::cmp::Ordering::Equal => vec![0],
            std::cmp::Ordering::Greater => (0..axis.side).collect(),
        };
        let places: Vec<Vec<u32>> = self.axes.iter().enumerate().map(places).collect();
        let lengths = places.iter().map(|places| places.len() as u32).collect();
        let rank = |indices: &[u32], here: u32| {
            let others = indices.iter().zip(&places).enumerate();
            self.rank(
                others.map(|(number, (&index, places))| match number == fold {
                    true => here,
                    false => places[index as usize],
                }),
            )
        };
        let mut pairs = Vec::new();
        for others in tuples(lengths) {
            let pair = |&(place, home)| (rank(&others, place), rank(&others, home));
            pairs.extend(self.line(along).folded.iter().map(pair));
        }
        pairs
    }
}

/// All tuples of numbers below `lengths`, in lexical order.
fn tuples(lengths: Vec<u32>) -> impl Iterator<Item = Vec<u32>> {
    (0..lengths.iter().product::<u32>()).map(move |number| {
        let mut rest = number;
        let mut tuple: Vec<u32> = lengths
            .iter()
            .rev()
            .map(|length| {
                let digit = rest % length;
                rest /= length;
                digit
            })
            .collect();
        tuple.reverse();
        tuple
    })
}

fn fold_in(b: &mut Builder, copies: &[Copy], data: Slot, blocks: u32) {
    for fold in 0..copies[0].axes.len() {
        b.step();
        for copy in copies {
            let part = data.chunks(copy.number * blocks, blocks);
            for (surplus, home) in copy.folded(fold) {
                b.put(surplus, part, home, part)
                    .reduce()
                    .lane(copy.number as u8);
            }
        }
    }
}

fn fold_out(b: &mut Builder, copies: &[Copy], data: Slot, blocks: u32, but: Option<u32>) {
    for fold in (0..copies[0].axes.len()).rev() {
        b.step();
        for copy in copies {
            let part = data.chunks(copy.number * blocks, blocks);
            let lacking = copy
                .folded(fold)
                .into_iter()
                .filter(|pair| Some(pair.0) != but);
            for (surplus, home) in lacking {
                b.put(home, part, surplus, part).lane(copy.number as u8);
            }
        }
    }
}
