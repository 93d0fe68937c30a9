//! A plan as the file states it: GPUs, their thread blocks, and the steps that each runs in order.

pub(super) use crate::skeleton::{Cells, Goal, Place, Space, Steps};
use linkwright_schedule::ir::{Buffer, Hint};
use linkwright_schedule::Collective;
use std::ops::Range;

/// What every file says first.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub goal: Goal,
    /// Chunks of the vector, or of one block where the collective is a gather or a scatter.
    pub chunks: u32,
    /// Number of channels.
    pub channels: u32,
    /// Messages that a connection holds before its sender must wait.
    pub slots: u32,
    /// Chunks that one message holds at least, whatever size the plan is used for.
    pub per_message: u32,
}

/// A plan. GPUs are sorted by id, thread blocks by GPU and id, and steps by thread block.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub head: Head,
    pub gpus: Vec<Gpu>,
    pub blocks: Vec<Block>,
    pub steps: Vec<Step>,
    /// Buffers of the schedule that was written, where the file keeps them.
    pub buffers: Option<Vec<Buffer>>,
}

/// One GPU: chunks of its buffers as declared, and its thread blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Gpu {
    /// Chunks of `i`, `o` and `s`.
    pub chunks: [u32; 3],
    pub blocks: Range<u32>,
}

/// One thread block, which sends to at most one GPU and receives from at most one.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub gpu: u32,
    pub tb: u32,
    pub send: Option<u32>,
    pub recv: Option<u32>,
    pub channel: u32,
    pub steps: Range<u32>,
}

/// One step of a thread block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub kind: Kind,
    pub src: Place,
    pub dst: Place,
    /// Chunks moved.
    pub count: u32,
    /// Thread block of the same GPU and its step that come first.
    pub after: Option<(u32, u32)>,
    /// Whether the thread block announces the end of this step to others.
    pub announced: bool,
    /// Operation of the schedule that was written, where the file keeps it.
    pub own: Option<Own>,
}

/// What a file keeps of the operation that a step was written for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    pub op: u32,
    pub step: u32,
    pub lane: u8,
    pub hint: Hint,
    pub get: bool,
    pub fenced: bool,
}

/// What a step does: receive, reduce, copy, send, in this order and each as far as named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Send,
    Recv,
    RecvCopySend,
    RecvReduceSend,
    RecvReduceCopy,
    RecvReduceCopySend,
    Copy,
    Reduce,
    Nop,
}

impl Kind {
    const WORDS: [(&'static str, Kind); 9] = [
        ("s", Kind::Send),
        ("r", Kind::Recv),
        ("rcs", Kind::RecvCopySend),
        ("rrs", Kind::RecvReduceSend),
        ("rrc", Kind::RecvReduceCopy),
        ("rrcs", Kind::RecvReduceCopySend),
        ("cpy", Kind::Copy),
        ("re", Kind::Reduce),
        ("nop", Kind::Nop),
    ];

    pub fn from_word(word: &str) -> Option<Self> {
        let found = Self::WORDS.iter().find(|known| known.0 == word);
        found.map(|known| known.1)
    }

    pub fn word(self) -> &'static str {
        let found = Self::WORDS.iter().find(|known| known.1 == self);
        found.map_or("nop", |known| known.0)
    }

    pub fn sends(self) -> bool {
        use Kind::*;
        matches!(
            self,
            Send | RecvCopySend | RecvReduceSend | RecvReduceCopySend
        )
    }

    pub fn receives(self) -> bool {
        use Kind::*;
        matches!(
            self,
            Recv | RecvCopySend | RecvReduceSend | RecvReduceCopy | RecvReduceCopySend
        )
    }

    /// Whether the chunks at `src` are read.
    pub fn reads(self) -> bool {
        !matches!(self, Kind::Recv | Kind::RecvCopySend | Kind::Nop)
    }

    /// Whether the chunks at `dst` are written.
    pub fn writes(self) -> bool {
        !matches!(self, Kind::Send | Kind::RecvReduceSend | Kind::Nop)
    }
}

impl Plan {
    /// Thread block of a step.
    pub fn block_of(&self, step: u32) -> u32 {
        (self.blocks).partition_point(|block| block.steps.end <= step) as u32
    }

    /// Cells of all chunks, each GPU with as much scratch as the one with most.
    pub fn cells(&self) -> Cells {
        let [input, output] = self.head.goal.lengths();
        Cells::new(self.head.goal.ranks, [input, output, self.scratch()], 1)
    }

    /// Chunks of scratch of the GPU with most.
    pub fn scratch(&self) -> u32 {
        let scratch = self
            .gpus
            .iter()
            .map(|gpu| gpu.chunks[Space::Scratch as usize]);
        scratch.max().unwrap_or(0)
    }
}

impl Steps for Plan {
    fn place(&self, step: u32) -> String {
        let block = &self.blocks[self.block_of(step) as usize];
        let s = step - block.steps.start;
        format!("gpu {}, tb {}, step {s}", block.gpu, block.tb)
    }
}

/// Words for the collectives that the format has: the first is written, all are read.
pub(super) const COLLECTIVES: [(&str, Collective); 9] = [
    ("allreduce", Collective::Allreduce),
    ("allgather", Collective::Allgather),
    ("reduce_scatter", Collective::ReduceScatter),
    ("reducescatter", Collective::ReduceScatter),
    ("broadcast", Collective::Broadcast),
    ("reduce", Collective::Reduce),
    ("gather", Collective::Gather),
    ("scatter", Collective::Scatter),
    ("alltoall", Collective::Alltoall),
];
