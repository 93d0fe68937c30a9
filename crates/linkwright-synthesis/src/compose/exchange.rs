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
//! Where memory has no room for all that lies between two stages, the vector goes through them in equal *windows*. Each
//! window is one stage behind the one before it, so two at a time lie between two stages.
//!
//! Source: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in multiport
//! message-passing systems" (IEEE TPDS 1997); Suh and Shin, "All-to-all personalized communication in multidimensional
//! torus and mesh networks" (IEEE TPDS 2001), for the exchange by dimensions.

use super::blocks::{cells, Cells};
use super::recipe::{Composition, Primitive};
use linkwright_schedule::builder::Slot;
use linkwright_schedule::error::{Result, ScheduleError};
use linkwright_schedule::ir::{Buffer, Schedule};
use linkwright_schedule::{Builder, Shape};

/// Windows that memory holds between two stages at a time: one comes while another goes on.
const KEPT: u32 = 2;

/// Write the schedule of `recipe`, an all-to-all.
pub fn write(recipe: &Composition, shape: &Shape) -> Result<Schedule> {
    let cells = cells(recipe, shape.ranks)?;
    let mut b = Builder::new(recipe.collective, shape);
    let stages = most_stages(&cells);
    let windows = windows(recipe, shape, &cells)?;
    let name = |k: usize| match k {
        0 => "input".to_string(),
        k if k == stages => "output".to_string(),
        k => format!("stage{k}"),
    };
    let buffers: Vec<Store> = (0..=stages)
        .map(|k| {
            let between = k > 0 && k < stages;
            let kept = if between { KEPT.min(windows) } else { windows };
            let slot = b.buffer(Buffer {
                mul: kept,
                div: windows,
                slices: cells.len() as u32 * kept,
                ..Buffer::vector(&name(k), shape.ranks)
            });
            Store { slot, kept }
        })
        .collect();
    for time in 0..windows as usize + stages.max(1) - 1 {
        b.step();
        // What goes on makes room for what comes.
        for k in (0..stages).rev() {
            let window = time.checked_sub(k).filter(|&w| w < windows as usize);
            if let Some(window) = window {
                stage(&mut b, &cells, &buffers, (k, window as u32))?;
            }
        }
    }
    b.finish()
}

fn most_stages(cells: &[Cells<'_>]) -> usize {
    let stages = cells.iter().map(|cells| cells.layout.len());
    stages.max().unwrap_or(0)
}

/// Number of windows in which the vector goes through the stages, so that what lies between them fits into the slots.
pub fn windows(recipe: &Composition, shape: &Shape, cells: &[Cells<'_>]) -> Result<u32> {
    let chunks = u64::from(shape.ranks) * cells.len() as u64;
    let between = most_stages(cells).saturating_sub(1) as u64 * chunks;
    let Some(slots) = recipe.slots.filter(|&slots| u64::from(slots) < between) else {
        return Ok(1);
    };
    let least = (u64::from(KEPT) * between).div_ceil(u64::from(slots.max(1)));
    let chunk = shape.elements / chunks;
    let fits = |windows: &u64| shape.elements % chunks == 0 && chunk % windows == 0;
    let windows = (least..=chunk).find(fits).ok_or(ScheduleError::Waived {
        algorithm: "composition".into(),
        reason: format!("{least} equal windows of {chunk} elements"),
    })?;
    Ok(windows as u32)
}

/// A buffer and how many windows it holds.
#[derive(Clone, Copy)]
struct Store {
    slot: Slot,
    kept: u32,
}

impl Store {
    /// Where `window` of a chunk lies.
    fn at(self, chunk: u32, window: u32) -> u32 {
        chunk * self.kept + window % self.kept
    }
}

/// Write stage `k` of a window.
fn stage(
    b: &mut Builder,
    cells: &[Cells<'_>],
    buffers: &[Store],
    (k, window): (usize, u32),
) -> Result<()> {
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
            pass(b, cells, k, distance, ends(buffers, cells, k), window)?;
        }
    }
    for cells in &working {
        keep(b, cells, k, ends(buffers, cells, k), window);
    }
    Ok(())
}

/// Where the blocks of a part lie before and after stage `k`.
fn ends(buffers: &[Store], cells: &Cells<'_>, k: usize) -> (Store, Store) {
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
    (src, dst): (Store, Store),
    window: u32,
) -> Result<()> {
    let members = cells.layout.members(k) as usize;
    for step in cells.layout.steps(k, Primitive::Direct)? {
        for passage in step
            .iter()
            .skip((distance as usize - 1) * members)
            .take(members)
        {
            let runs = runs(cells, (k, passage.to, passage.from), (src, dst), window);
            cells
                .layout
                .each(k, std::slice::from_ref(passage), |message| {
                    b.put_runs(message.from, src.slot, message.to, dst.slot, &runs)
                        .lane(cells.lane(message.ahead))
                        .hint(message.hint);
                });
        }
    }
    Ok(())
}

/// Everyone keeps what is for its own place.
fn keep(b: &mut Builder, cells: &Cells<'_>, k: usize, (src, dst): (Store, Store), window: u32) {
    for member in 0..cells.layout.members(k) {
        let runs = runs(cells, (k, member, member), (src, dst), window);
        for mut place in lines(cells, k) {
            place[k] = member;
            b.local_runs(cells.layout.rank(&place), src.slot, dst.slot, &runs);
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
fn runs(
    cells: &Cells<'_>,
    (k, read, written): (usize, u32, u32),
    (src, dst): (Store, Store),
    window: u32,
) -> Vec<(u32, u32, u32)> {
    let run = |mut block: Vec<u32>| {
        let mut chunk = |member| {
            block[k] = member;
            cells.chunks(std::slice::from_ref(&block))[0]
        };
        let (from, to) = (chunk(read), chunk(written));
        (src.at(from, window), dst.at(to, window), 1)
    };
    let mut runs: Vec<(u32, u32, u32)> = lines(cells, k).into_iter().map(run).collect();
    runs.sort_unstable();
    runs
}
