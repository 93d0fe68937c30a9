//! All-to-all in stages: along each dimension, everyone gives each member of its line what is for that one's places.
//!
//! ```text
//!   block x of a rank, before stage k    x_i = source's digit i, of stages done; the target's of the others
//!   stage k, to the member j             all blocks with x_k = j; there they are the blocks with x_k = sender
//! ```
//!
//! So a block lies at its target's number at the start and at its source's number in the end, and each stage moves
//! all but one n-th of the vector. A single stage over all digits sends every block straight to its target.
//!
//! Source: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in multiport
//! message-passing systems" (IEEE TPDS 1997); Suh and Shin, "All-to-all personalized communication in multidimensional
//! torus and mesh networks" (IEEE TPDS 2001), for the exchange by dimensions.

use super::blocks::{cells, Cells};
use super::recipe::{Composition, Primitive};
use linkwright_schedule::builder::Slot;
use linkwright_schedule::error::Result;
use linkwright_schedule::ir::{Buffer, Schedule};
use linkwright_schedule::{Builder, Shape};

/// Write the schedule of `recipe`, an all-to-all.
pub fn write(recipe: &Composition, shape: &Shape) -> Result<Schedule> {
    let cells = cells(recipe, shape.ranks)?;
    let parts = cells.len() as u32;
    let mut b = Builder::new(recipe.collective, shape);
    let stages = cells
        .iter()
        .map(|cells| cells.layout.len())
        .max()
        .unwrap_or(0);
    let name = |k: usize| match k {
        0 => "input".to_string(),
        k if k == stages => "output".to_string(),
        k => format!("stage{k}"),
    };
    let buffers: Vec<Slot> = (0..=stages)
        .map(|k| {
            b.buffer(Buffer {
                slices: parts,
                ..Buffer::vector(&name(k), shape.ranks)
            })
        })
        .collect();
    for k in 0..stages {
        b.step();
        for cells in cells.iter().filter(|cells| cells.layout.len() > k) {
            let last = k + 1 == cells.layout.len();
            let to = if last { stages } else { k + 1 };
            pass(&mut b, cells, k, (buffers[k], buffers[to]))?;
        }
    }
    b.finish()
}

fn pass(b: &mut Builder, cells: &Cells<'_>, k: usize, (src, dst): (Slot, Slot)) -> Result<()> {
    let layout = &cells.layout;
    let others = (0..layout.len()).filter(|&other| other != k);
    let blocks = layout.places(&vec![0; layout.len()], others);
    let runs = |read: u32, written: u32| {
        let run = |block: &Vec<u32>| {
            let mut block = block.clone();
            let mut chunk = |member| {
                block[k] = member;
                cells.chunks(std::slice::from_ref(&block))[0]
            };
            (chunk(read), chunk(written), 1)
        };
        let mut runs: Vec<(u32, u32, u32)> = blocks.iter().map(run).collect();
        runs.sort_unstable();
        runs
    };
    for step in layout.steps(k, Primitive::Direct)? {
        for passage in &step {
            let runs = runs(passage.to, passage.from);
            layout.each(k, std::slice::from_ref(passage), |message| {
                b.put_runs(message.from, src, message.to, dst, &runs)
                    .lane(cells.lane(message.ahead))
                    .hint(message.hint);
            });
        }
    }
    for member in 0..layout.members(k) {
        let runs = runs(member, member);
        for place in &blocks {
            let mut place = place.clone();
            place[k] = member;
            b.local_runs(layout.rank(&place), src, dst, &runs);
        }
    }
    Ok(())
}
