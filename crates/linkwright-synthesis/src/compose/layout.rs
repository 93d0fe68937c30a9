//! Where the ranks of a part stand: one member number for each stage instead of one rank number.

use super::line::{steps, Passage};
use super::recipe::{Part, Primitive, Stage};
use linkwright_schedule::error::ScheduleError;
use linkwright_schedule::ir::Hint;

/// The ranks of a part by their members along each stage: rank = sum of the offsets.
pub struct Layout<'a> {
    pub part: &'a Part,
    /// Offset of each member in the ranks, by stage.
    offsets: Vec<Vec<u32>>,
}

/// A message of a stage: ranks, the blocks (by their owners' numbers along the stage), the way.
pub struct Passing<'b> {
    pub from: u32,
    pub to: u32,
    pub blocks: &'b [u32],
    pub hint: Hint,
    pub ahead: bool,
    /// Members of all stages that both share; that of the stage itself is 0.
    pub place: &'b [u32],
}

impl<'a> Layout<'a> {
    pub fn new(part: &'a Part) -> Self {
        let offsets = part.stages.iter().map(offsets).collect();
        Layout { part, offsets }
    }

    /// Members of a line of stage `k`.
    pub fn members(&self, k: usize) -> u32 {
        self.offsets[k].len() as u32
    }

    /// Number of stages.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Ranks, where the digits of the stages cover all.
    pub fn ranks(&self) -> u32 {
        self.offsets.iter().map(|o| o.len() as u32).product()
    }

    /// The rank with these members.
    pub fn rank(&self, members: &[u32]) -> u32 {
        let offset = |(members, &m): (&Vec<u32>, &u32)| members[m as usize];
        self.offsets.iter().zip(members).map(offset).sum()
    }

    /// All places whose members are free at the stages `free` and those of `place` elsewhere, the first free stage
    /// varying fastest.
    pub fn places(&self, place: &[u32], free: impl Iterator<Item = usize>) -> Vec<Vec<u32>> {
        let mut places = vec![place.to_vec()];
        for k in free {
            let with = |m: u32| {
                places.iter().map(move |place| {
                    let mut place = place.clone();
                    place[k] = m;
                    place
                })
            };
            places = (0..self.members(k)).flat_map(with).collect();
        }
        places
    }

    /// Number of the block of `place` among those of the stages from `whole` on, the first stage counting least:
    /// what a stage has gathered lies side by side.
    pub fn number(&self, place: &[u32]) -> u32 {
        let stages = (self.part.whole..self.len()).rev();
        stages.fold(0, |number, k| number * self.members(k) + place[k])
    }

    /// The blocks that a rank at `place` has gathered before stage `k`, along it those of `members`.
    pub fn blocks(&self, place: &[u32], k: usize, members: &[u32]) -> Vec<Vec<u32>> {
        let mut all = Vec::new();
        for &member in members {
            let mut place = place.to_vec();
            place[k] = member;
            all.extend(self.places(&place, self.part.whole..k));
        }
        all
    }

    /// Steps of stage `k` with `primitive`, as an allgather.
    pub fn steps(
        &self,
        k: usize,
        primitive: Primitive,
    ) -> Result<Vec<Vec<Passage>>, ScheduleError> {
        steps(primitive, self.members(k), self.part.stages[k].way)
    }

    /// Every message of one step of stage `k`, along all lines.
    pub fn each(&self, k: usize, step: &[Passage], mut each: impl FnMut(Passing<'_>)) {
        let origin = vec![0; self.len()];
        let lines = self.places(&origin, (0..self.len()).filter(|&other| other != k));
        let axis = self.axis(k);
        for passage in step {
            for line in &lines {
                let base = self.rank(line);
                each(Passing {
                    from: base + self.offsets[k][passage.from as usize],
                    to: base + self.offsets[k][passage.to as usize],
                    blocks: &passage.blocks,
                    // In more dimensions than one, the first names the way.
                    hint: Hint::along(axis.unwrap_or(0), passage.ahead),
                    ahead: passage.ahead,
                    place: line,
                });
            }
        }
    }

    /// The dimension of stage `k`, where all of its digits are of one.
    fn axis(&self, k: usize) -> Option<u8> {
        let digits = &self.part.stages[k].digits;
        let axis = digits.first()?.axis;
        digits
            .iter()
            .all(|digit| digit.axis == axis)
            .then_some(axis)
    }
}

/// Offsets of the members of a stage, its first digit varying fastest.
fn offsets(stage: &Stage) -> Vec<u32> {
    let mut offsets = vec![0];
    for digit in &stage.digits {
        let next = |m: u32| offsets.iter().map(move |offset| offset + m * digit.stride);
        offsets = (0..digit.radix).flat_map(next).collect();
    }
    offsets
}
