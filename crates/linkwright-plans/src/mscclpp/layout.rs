//! Where the units of `i`, `o` and `s` lie in the buffers of a schedule.

use super::json::{OwnBuffer, Space};
use crate::error::{PlanError, Result};
use linkwright_schedule::ir::Buffer;
use linkwright_schedule::{Collective, Spec};

/// Most units of one buffer.
pub(super) const MAX_UNITS: u64 = 1 << 20;

/// The buffers, and where each begins.
pub(super) struct Layout {
    pub buffers: Vec<Buffer>,
    parts: Vec<Spot>,
}

/// Where a buffer lies.
#[derive(Clone, Copy)]
struct Spot {
    space: Space,
    /// First unit.
    base: u32,
    /// Units of a chunk.
    per_chunk: u32,
    units: u32,
}

/// How much there is of everything, in units.
pub(super) struct Sizes {
    pub spec: Spec,
    pub ranks: u32,
    /// Units of a chunk of the plan.
    pub fine: u32,
    pub vector: u32,
    pub scratch: u32,
}

impl Layout {
    /// The buffers of a plan that names none.
    pub fn plain(sizes: &Sizes) -> Result<Self> {
        let buffers = plain_buffers(sizes);
        Self::of(&buffers, sizes)
    }

    /// These buffers.
    pub fn of(buffers: &[Buffer], sizes: &Sizes) -> Result<Self> {
        let mut layout = Layout {
            buffers: Vec::new(),
            parts: Vec::new(),
        };
        let mut scratch = 0;
        for buffer in buffers {
            let space = space(&buffer.name, &sizes.spec);
            let base = if space == Space::Scratch { scratch } else { 0 };
            let spot = Spot {
                space,
                base,
                ..spot(buffer, sizes.vector)?
            };
            if space == Space::Scratch {
                scratch += spot.units;
            }
            if u64::from(scratch) > MAX_UNITS {
                return Err(too_large());
            }
            layout.parts.push(spot);
            layout.buffers.push(buffer.clone());
        }
        Ok(layout)
    }

    /// Units of scratch.
    pub fn scratch(&self) -> u32 {
        let scratch = self
            .parts
            .iter()
            .filter(|spot| spot.space == Space::Scratch);
        scratch.map(|spot| spot.units).sum()
    }

    /// The buffer, its first chunk and their number, where `count` units from `at` on are whole chunks of one.
    pub fn find(&self, space: Space, at: u32, count: u32) -> Option<(usize, u32, u32)> {
        let holds =
            |spot: &Spot| spot.space == space && at >= spot.base && at - spot.base < spot.units;
        let index = self.parts.iter().position(holds)?;
        let spot = self.parts[index];
        let from = at - spot.base;
        let whole = from % spot.per_chunk == 0 && count % spot.per_chunk == 0;
        (whole && count <= spot.units - from).then(|| {
            let per_chunk = spot.per_chunk;
            (index, from / per_chunk, count / per_chunk)
        })
    }

    /// The units of chunks of buffer `index`.
    pub fn units(&self, index: usize, chunk: u32, count: u32) -> (Space, u32, u32) {
        let spot = self.parts[index];
        (
            spot.space,
            spot.base + chunk * spot.per_chunk,
            count * spot.per_chunk,
        )
    }
}

/// Where a collective in place keeps its only vector: where the format has the whole of it.
pub(super) fn only(collective: Collective) -> Space {
    match collective {
        Collective::Allgather => Space::Output,
        _ => Space::Input,
    }
}

/// Whether input and output are one buffer.
pub(super) fn in_place(spec: &Spec) -> bool {
    spec.collective.is_in_place() && !spec.out_of_place
}

fn space(name: &str, spec: &Spec) -> Space {
    match name {
        "input" => Space::Input,
        "output" if in_place(spec) => only(spec.collective),
        "output" => Space::Output,
        _ => Space::Scratch,
    }
}

fn too_large() -> PlanError {
    PlanError::whole(format!(
        "a buffer has more than {MAX_UNITS} chunks, or parts of chunks; use fewer"
    ))
}

fn spot(buffer: &Buffer, vector: u32) -> Result<Spot> {
    let chunks = u64::from(buffer.blocks) * u64::from(buffer.slices);
    let numerator = u64::from(vector) * u64::from(buffer.mul);
    let known = chunks > 0 && chunks <= MAX_UNITS && buffer.div > 0;
    let denominator = if known {
        chunks * u64::from(buffer.div)
    } else {
        0
    };
    if !known || numerator == 0 || numerator % denominator != 0 {
        return Err(PlanError::whole(format!(
            "linkwright: buffer `{}` is not cut into whole chunks of the plan; delete every `linkwright`",
            buffer.name.escape_debug()
        )));
    }
    let per_chunk = numerator / denominator;
    if per_chunk * chunks > MAX_UNITS {
        return Err(too_large());
    }
    Ok(Spot {
        space: Space::Scratch,
        base: 0,
        per_chunk: per_chunk as u32,
        units: (per_chunk * chunks) as u32,
    })
}

/// The buffers of a plan of others: the blocks that its collective counts, cut into units.
fn plain_buffers(sizes: &Sizes) -> Vec<Buffer> {
    let (ranks, vector, fine) = (sizes.ranks, sizes.vector, sizes.fine);
    let named = |name: &str, div: u32, blocks: u32, slices: u32| Buffer {
        div,
        slices,
        ..Buffer::vector(name, blocks)
    };
    let whole = |name: &str| named(name, 1, vector / fine, fine);
    let blocks = |name: &str| named(name, 1, ranks, vector / ranks);
    let block = |name: &str| named(name, ranks, 1, vector / ranks);
    let mut buffers = match (sizes.spec.collective, in_place(&sizes.spec)) {
        (Collective::Allgather | Collective::ReduceScatter, true) => vec![blocks("output")],
        (_, true) => vec![whole("output")],
        (Collective::Allgather, false) => vec![block("input"), blocks("output")],
        (Collective::ReduceScatter, false) => vec![blocks("input"), block("output")],
        (Collective::Alltoall, false) => vec![blocks("input"), blocks("output")],
        (_, false) => vec![whole("input"), whole("output")],
    };
    if sizes.scratch > 0 {
        buffers.push(Buffer {
            mul: sizes.scratch,
            ..named("scratch", vector, sizes.scratch / fine, fine)
        });
    }
    buffers
}

/// The buffer that a plan of ours names.
pub(super) fn own_buffer(own: &OwnBuffer) -> Buffer {
    let buffer = Buffer {
        mul: own.mul,
        div: own.div,
        slices: own.slices,
        ..Buffer::vector(&own.name, own.blocks)
    };
    match own.only_at {
        Some(rank) => buffer.only_at(rank),
        None => buffer,
    }
}
