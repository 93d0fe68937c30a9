//! From steps to moves: each message becomes one transfer from where its send reads to where its receive writes.
//!
//! The steps are walked in an order in which the plan can run. A send is only noted; its transfer is made when the
//! receive comes, so that at the receiver it stands where the data are used. If something writes what a noted
//! send reads before that, the message first goes to a relay buffer at the receiver, which stands for the slots of
//! the connection, and a local move brings it from there to its place. A message that is only combined and sent on
//! (`rrs`) stands in the relay buffer, too.

use super::links::Links;
use super::plan::{Cells, Kind, Own, Place, Plan, Space};
use crate::skeleton::{NONE, RELAY};
use std::collections::HashMap;

/// One move of chunks.
#[derive(Clone, Debug)]
pub(super) struct Move {
    pub from: u32,
    pub src: Place,
    pub to: u32,
    pub dst: Place,
    pub count: u32,
    pub reduces: bool,
    /// The step that makes it: the send, or the local one.
    pub step: u32,
    /// Thread block that makes it.
    pub tb: u32,
    pub own: Option<Own>,
    /// Moves that it waits for besides the data, as a range of [`Moves::waits`].
    waits: (u32, u32),
}

/// All moves of a plan in order.
#[derive(Default)]
pub(super) struct Moves {
    pub list: Vec<Move>,
    waits: Vec<u32>,
    /// Chunks of the relay buffer that the GPU with most of them uses.
    pub relay: u32,
}

impl Moves {
    /// Earlier moves that `of` waits for besides the data.
    pub fn waits(&self, of: &Move) -> &[u32] {
        &self.waits[of.waits.0 as usize..of.waits.1 as usize]
    }
}

/// A send whose receive has not come.
#[derive(Clone, Copy)]
struct Noted {
    src: Place,
    waits: (u32, u32),
    /// Where in the relay buffer the message is, if it had to leave.
    relay: Option<Place>,
}

struct Composer<'a> {
    plan: &'a Plan,
    links: &'a Links,
    cells: &'a Cells,
    moves: Moves,
    /// Sends by step.
    noted: Vec<Option<Noted>>,
    /// Noted sends that read a cell.
    readers: HashMap<u32, Vec<u32>>,
    /// Chunks of the relay buffer in use, by GPU.
    relay: Vec<u32>,
    /// Last move whose end tells a thread block that a step is done.
    done: Vec<u32>,
    /// Moves that the next transfer or local move of a thread block waits for.
    pending: Vec<Vec<u32>>,
}

/// The moves of a plan whose steps run in `order`.
pub(super) fn moves(plan: &Plan, links: &Links, cells: &Cells, order: &[u32]) -> Moves {
    let mut composer = Composer {
        plan,
        links,
        cells,
        moves: Moves::default(),
        noted: vec![None; plan.steps.len()],
        readers: HashMap::new(),
        relay: vec![0; plan.gpus.len()],
        done: vec![NONE; plan.steps.len()],
        pending: vec![Vec::new(); plan.blocks.len()],
    };
    for &step in order {
        composer.step(step);
    }
    composer.moves.relay = composer.relay.iter().copied().max().unwrap_or(0);
    composer.moves
}

impl Composer<'_> {
    fn step(&mut self, index: u32) {
        let step = self.plan.steps[index as usize];
        let block = self.links.block_of[index as usize];
        let gpu = self.plan.blocks[block as usize].gpu;
        let after = self.links.after[index as usize];
        if after != NONE && self.done[after as usize] != NONE {
            let done = self.done[after as usize];
            self.pending[block as usize].push(done);
        }
        let canonical = |place| self.plan.head.goal.canonical(gpu, place);
        let (src, dst) = (canonical(step.src), canonical(step.dst));
        match step.kind {
            Kind::Nop => {}
            Kind::Copy | Kind::Reduce => {
                let waits = self.take_waits(block);
                let made = self.local(index, src, dst, step.kind == Kind::Reduce, waits);
                self.done[index as usize] = made;
            }
            Kind::Send => {
                let waits = self.take_waits(block);
                self.done[index as usize] = last(&self.moves.waits, waits);
                self.note(index, src, waits);
            }
            _ => self.receive(index, src, dst),
        }
    }

    fn receive(&mut self, index: u32, src: Place, dst: Place) {
        let step = self.plan.steps[index as usize];
        let block = self.links.block_of[index as usize];
        let gpu = self.plan.blocks[block as usize].gpu;
        let reduces = matches!(
            step.kind,
            Kind::RecvReduceCopy | Kind::RecvReduceCopySend | Kind::RecvReduceSend
        );
        let dst = match step.kind {
            Kind::RecvReduceSend => self.room(gpu, step.count),
            _ => dst,
        };
        let combines = reduces && src == dst;
        let mut made = self.arrive(index, dst, combines);
        if reduces && !combines {
            made = self.local(index, src, dst, true, (0, 0));
        }
        self.done[index as usize] = made;
        if step.kind.sends() {
            let waits = self.take_waits(block);
            self.note(index, dst, waits);
        } else {
            self.pending[block as usize].push(made);
        }
    }

    /// The message of receive `index` comes to `dst`; gives the move that brings it there.
    fn arrive(&mut self, index: u32, dst: Place, reduces: bool) -> u32 {
        let send = self.links.sent_by[index as usize];
        let noted = self.noted[send as usize].take();
        let Some(noted) = noted else { return NONE };
        if let Some(at) = noted.relay {
            return self.local(index, at, dst, reduces, (0, 0));
        }
        self.forget(send, noted.src);
        self.transfer(send, noted, dst, reduces)
    }

    fn transfer(&mut self, send: u32, noted: Noted, dst: Place, reduces: bool) -> u32 {
        let sender = self.links.block_of[send as usize];
        let receiver = self.links.receiver[sender as usize];
        self.push(send, receiver, (noted.src, dst), reduces, noted.waits)
    }

    fn local(
        &mut self,
        step: u32,
        src: Place,
        dst: Place,
        reduces: bool,
        waits: (u32, u32),
    ) -> u32 {
        let block = self.links.block_of[step as usize];
        self.push(step, block, (src, dst), reduces, waits)
    }

    /// Make the move of `step` to the GPU of thread block `to`, after those messages have left whose source it
    /// overwrites.
    fn push(
        &mut self,
        step: u32,
        to: u32,
        (src, dst): (Place, Place),
        reduces: bool,
        waits: (u32, u32),
    ) -> u32 {
        let (blocks, known) = (&self.plan.blocks, &self.plan.steps[step as usize]);
        let (block, to) = (
            &blocks[self.links.block_of[step as usize] as usize],
            blocks[to as usize].gpu,
        );
        for cell in self.cells_of(to, dst, known.count) {
            for send in self.readers.remove(&cell).unwrap_or_default() {
                self.leave(send);
            }
        }
        self.moves.list.push(Move {
            from: block.gpu,
            src,
            to,
            dst,
            count: known.count,
            reduces,
            step,
            tb: block.tb,
            own: known.own,
            waits,
        });
        self.moves.list.len() as u32 - 1
    }

    /// Note a send from `src`.
    fn note(&mut self, send: u32, src: Place, waits: (u32, u32)) {
        let relay = None;
        self.noted[send as usize] = Some(Noted { src, waits, relay });
        for cell in self.sent(send, src) {
            self.readers.entry(cell).or_default().push(send);
        }
    }

    /// A noted send is over.
    fn forget(&mut self, send: u32, src: Place) {
        for cell in self.sent(send, src) {
            if let Some(readers) = self.readers.get_mut(&cell) {
                readers.retain(|&reader| reader != send);
                if readers.is_empty() {
                    self.readers.remove(&cell);
                }
            }
        }
    }

    /// Bring the message of a noted send to the relay buffer of its receiver.
    fn leave(&mut self, send: u32) {
        let Some(noted) = self.noted[send as usize] else {
            return;
        };
        if noted.relay.is_some() {
            return;
        }
        self.forget(send, noted.src);
        let receiver = self.links.receiver[self.links.block_of[send as usize] as usize];
        let gpu = self.plan.blocks[receiver as usize].gpu;
        let at = self.room(gpu, self.plan.steps[send as usize].count);
        self.transfer(send, noted, at, false);
        let relay = Some(at);
        self.noted[send as usize] = Some(Noted { relay, ..noted });
    }

    /// The cells of some chunks; none of the relay buffer, which nothing else uses.
    fn cells_of(&self, gpu: u32, place: Place, count: u32) -> std::ops::Range<u32> {
        if place.at >= RELAY {
            return 0..0;
        }
        let first = self.cells.of(gpu, place);
        first..first + count
    }

    /// The cells that a noted send reads.
    fn sent(&self, send: u32, src: Place) -> std::ops::Range<u32> {
        let block = self.links.block_of[send as usize];
        let gpu = self.plan.blocks[block as usize].gpu;
        self.cells_of(gpu, src, self.plan.steps[send as usize].count)
    }

    /// `count` chunks of the relay buffer of a GPU.
    fn room(&mut self, gpu: u32, count: u32) -> Place {
        let at = RELAY + self.relay[gpu as usize];
        self.relay[gpu as usize] += count;
        let space = Space::Scratch;
        Place { space, at }
    }

    /// What the next transfer or local move of a thread block waits for.
    fn take_waits(&mut self, block: u32) -> (u32, u32) {
        let first = self.moves.waits.len() as u32;
        self.moves.waits.append(&mut self.pending[block as usize]);
        let waits = &mut self.moves.waits[first as usize..];
        waits.sort_unstable();
        (first, self.moves.waits.len() as u32)
    }
}

/// The last move of a range of waits.
fn last(waits: &[u32], (first, end): (u32, u32)) -> u32 {
    waits[first as usize..end as usize]
        .last()
        .copied()
        .unwrap_or(NONE)
}
