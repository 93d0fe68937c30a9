//! A plan whose names are resolved: operations of thread blocks on units of buffers.
//!
//! A *unit* is the smallest part that an operation moves: a chunk, or the part of one that a thread block of a
//! group takes.

use super::json::OwnOp;
pub(super) use crate::skeleton::{Cells, Goal, Layout, Mover, Place, Steps};

/// A plan.
pub(super) struct Plan {
    pub goal: Goal,
    /// Whether a schedule was written to it, whose operations and buffers it names.
    pub own: bool,
    pub layout: Layout,
    pub blocks: Vec<Block>,
    pub ops: Vec<Op>,
    pub moves: Vec<Move>,
    /// What operations name: a channel end by its place in `ends`, a semaphore by its place behind all of these.
    pub names: Vec<u32>,
    pub ends: Vec<End>,
    /// Start values of all semaphores.
    pub semaphores: Vec<u32>,
}

/// A thread block, which runs its operations in order.
pub(super) struct Block {
    pub gpu: u32,
    pub id: u32,
    pub lane: u8,
    /// Its operations.
    pub ops: std::ops::Range<u32>,
}

/// One end of a channel.
pub(super) struct End {
    pub gpu: u32,
    pub peer: u32,
    /// The end at the peer, if the plan has it.
    pub other: Option<u32>,
}

/// A range of a table.
pub(super) type Part = (u32, u32);

/// An operation.
pub(super) struct Op {
    pub block: u32,
    pub action: Action,
    pub own: Option<OwnOp>,
}

/// What an operation does.
#[derive(Clone, Copy)]
pub(super) enum Action {
    /// The threads of the block meet.
    Nop,
    /// Thread blocks of a GPU meet: which barrier, and how many.
    Barrier(u32, u32),
    /// Count up at the other side of these channel ends, or these semaphores.
    Post(Part, Relaxed),
    /// Wait for the next count of each of these, and take it.
    Take(Part, Relaxed),
    /// Wait until what was put through these ends has left.
    Flush(Part),
    /// Move data.
    Data(Data),
}

/// Whether a signal or a wait says nothing of data.
pub(super) type Relaxed = bool;

/// How data are moved.
#[derive(Clone, Copy)]
pub(super) struct Data {
    /// The moves, one after another.
    pub moves: Part,
    /// Ends of the port channels that carry them, one for each; empty where the threads move them.
    pub ports: Part,
    /// Whether each is followed by a signal.
    pub signals: bool,
    /// Whether the thread block waits until they have left.
    pub flushes: bool,
}

/// Units that move from one place to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub from: u32,
    pub src: Place,
    pub to: u32,
    pub dst: Place,
    pub count: u32,
    pub kind: Mover,
    pub reduces: bool,
    /// Whether the source holds packets, which are waited for.
    pub reads_packets: bool,
    /// Whether packets are written, which show by themselves that they have come.
    pub writes_packets: bool,
}

impl Plan {
    /// Units of all GPUs as far as they are used.
    pub fn cells(&self) -> Cells {
        let mut lengths = [0; 3];
        for made in &self.moves {
            for place in [made.src, made.dst] {
                let length = &mut lengths[place.space as usize];
                *length = (place.at + made.count).max(*length);
            }
        }
        Cells::new(self.goal.ranks, lengths, self.goal.fine)
    }

    /// The named channel ends or semaphores.
    pub fn names(&self, part: Part) -> &[u32] {
        &self.names[part.0 as usize..part.1 as usize]
    }

    /// The moves of an operation; none where it moves no data.
    pub fn data(&self, op: u32) -> &[Move] {
        match self.ops[op as usize].action {
            Action::Data(data) => &self.moves[data.moves.0 as usize..data.moves.1 as usize],
            _ => &[],
        }
    }
}

impl Steps for Plan {
    fn place(&self, op: u32) -> String {
        let block = &self.blocks[self.ops[op as usize].block as usize];
        place(block.gpu, block.id, op - block.ops.start)
    }
}

/// An operation of a GPU's thread block as a user finds it.
pub(super) fn place(gpu: u32, block: u32, op: u32) -> String {
    format!("gpu {gpu}, threadblock {block}, op {op}")
}
