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
        let working: Vec<&Cells<'_>> = cells
            .iter()
            .filter(|cells| cells.layout.len() > k)
            .collect();
        // Near targets of all parts before far ones, so that parts that share a lane take turns.
        let most = working
            .iter()
            .map(|cells| cells.layout.members(k))
            .max()
            .unwrap_or(1);
        for distance in 1..most {
            for cells in &working {
                pass(&mut b, cells, k, distance, ends(&buffers, cells, k))?;
            }
        }
        for cells in &working {
            keep(&mut b, cells, k, ends(&buffers, cells, k));
        }
    }
    b.finish()
}

/// Where the blocks of a part lie before and after stage `k`.
fn ends(buffers: &[Slot], cells: &Cells<'_>, k: usize) -> (Slot, Slot) {
    let last = k + 1 == cells.layout.len();
    let to = if last { buffers.len() - 1 } else { k + 1 };
    (buffers[k], buffers[to])
}

/// Everyone gives the member at the `distance`-th place of its order what is for that one's places.
fn pass(
    b: &mut Builder,
    cells: &Cells<'_>,
    k: usize,
    distance: u32,
    (src, dst): (Slot, Slot),
) -> Result<()> {
    let members = cells.layout.members(k) as usize;
    for step in cells.layout.steps(k, Primitive::Direct)? {
        for passage in step
            .iter()
            .skip((distance as usize - 1) * members)
            .take(members)
        {
            let runs = runs(cells, k, passage.to, passage.from);
            cells
                .layout
                .each(k, std::slice::from_ref(passage), |message| {
                    b.put_runs(message.from, src, message.to, dst, &runs)
                        .lane(cells.lane(message.ahead))
                        .hint(message.hint);
                });
        }
    }
    Ok(())
}

/// Everyone keeps what is for its own place.
fn keep(b: &mut Builder, cells: &Cells<'_>, k: usize, (src, dst): (Slot, Slot)) {
    for member in 0..cells.layout.members(k) {
        let runs = runs(cells, k, member, member);
        for mut place in lines(cells, k) {
            place[k] = member;
            b.local_runs(cells.layout.rank(&place), src, dst, &runs);
        }
    }
}

/// All places of stage `k` at member 0: one for each line.
fn lines(cells: &Cells<'_>, k: usize) -> Vec<Vec<u32>> {
    let layout = &cells.layout;
    let others = (0..layout.len()).filter(|&other| other != k);
    layout.places(&vec![0; layout.len()], others)
}

/// The chunks of all blocks at member `read` of stage `k`, and where they are at member `written`.
fn runs(cells: &Cells<'_>, k: usize, read: u32, written: u32) -> Vec<(u32, u32, u32)> {
    let run = |mut block: Vec<u32>| {
        let mut chunk = |member| {
            block[k] = member;
            cells.chunks(std::slice::from_ref(&block))[0]
        };
        (chunk(read), chunk(written), 1)
    };
    let mut runs: Vec<(u32, u32, u32)> = lines(cells, k).into_iter().map(run).collect();
    runs.sort_unstable();
    runs
}
