//! Chunks of all GPUs, numbered.

use super::plan::{Head, Place, Plan, Space};

/// Numbers for the chunks of all GPUs; input and output share theirs where they are the same memory.
pub(super) struct Cells {
    /// First cell of each space of each GPU.
    first: Vec<[u32; 3]>,
    count: u32,
}

impl Cells {
    /// Cells of a plan, whose sizes are checked.
    pub fn of_plan(plan: &Plan) -> Self {
        let [input, output] = plan.head.lengths().map(|length| length as u32);
        let (mut first, mut count) = (Vec::with_capacity(plan.gpus.len()), 0);
        for gpu in &plan.gpus {
            first.push([count, count + input, count + input + output]);
            count += input + output + gpu.chunks[Space::Scratch as usize];
        }
        Cells { first, count }
    }

    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Cell of a chunk that exists.
    pub fn of(&self, head: &Head, gpu: u32, place: Place) -> u32 {
        let place = head.canonical(gpu, place);
        self.first[gpu as usize][place.space as usize] + place.at
    }

    /// `o[3]` of a cell.
    pub fn name(&self, cell: u32) -> String {
        let gpu = self.first.partition_point(|first| first[0] <= cell) - 1;
        let mut spaces = Space::ALL.iter().rev();
        let space = spaces.find(|&&space| self.first[gpu][space as usize] <= cell);
        let space = space.copied().unwrap_or(Space::Input);
        format!(
            "{}[{}]",
            space.word(),
            cell - self.first[gpu][space as usize]
        )
    }
}
