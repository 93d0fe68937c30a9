//! From a schedule to the steps of one rank, compiled once.
//!
//! The operations of all lanes of a rank are merged by id, as for `threads`; an edge within a rank is
//! then program order. What crosses ranks is two-sided:
//!
//! ```text
//!   put, multicast   source: Isend                        destination: Irecv
//!   notice           the same with 0 bytes
//!   get              0-byte request to the owner, who     waits for it, then Isend
//!   acknowledged     ... and waits for 0 bytes back       which the destination sends when it has the data
//!   memory           lives with one of the ranks, which receives and serves for it
//! ```
//!
//! Tags count the messages of an ordered pair of ranks. **When an Irecv is posted.** Data arrive only
//! after the source was allowed to send them, so early posting is safe once the rank itself no longer needs
//! the place: the receive moves up to [`LOOKAHEAD`] operations ahead, but not past one that
//! touches the same bytes. A message that combines, or whose chunks are scattered, arrives in
//! *staging* memory and is moved into place just before the first operation that waits for it.
//!
//! **Issue policies.** A put is complete when MPI has completed its send, so that its memory may be used
//! again; a get when its data are here. Before a message that finds no place its lane waits: within a
//! window for any one of those under way, after a batch for all. A multicast takes a place for each target.
//!
//! **No deadlock.** At operation k a rank has posted all its receives below k and waits for smaller
//! ids only. So the smallest unfinished operation of all ranks waits for nothing, and its receive is
//! posted. Acknowledgements and served requests stand at the id of their own operation.

use super::numbering::{host, number, Event, Numbering, Role};
use super::steps::{at, buffer, Piece, Place, RankProgram, Spot, Step};
use crate::buffers::{Contents, Extent};
use crate::error::{ExecError, Result};
use linkwright_core::Issue;
use linkwright_schedule::ir::{Combine, Edge, Op, OpKind};
use std::collections::HashMap;
use std::ops::Range;

/// How many operations ahead a receive may be posted.
const LOOKAHEAD: usize = 32;

/// The same for messages longer than [`LONG`], whose staging memory adds up.
const LOOKAHEAD_LONG: usize = 4;
const LONG: usize = 1 << 20;

/// Staging memory begins on cache lines.
const LINE: usize = 128;

/// Bytes between two offsets of a buffer.
struct Footprint {
    participant: u32,
    buffer: u8,
    bytes: Range<usize>,
}

impl Footprint {
    fn meets(&self, other: &Footprint) -> bool {
        (self.participant, self.buffer) == (other.participant, other.buffer)
            && self.bytes.start < other.bytes.end
            && other.bytes.start < self.bytes.end
    }
}

/// What becomes of a message while the steps are written.
#[derive(Clone, Debug, Default)]
struct Progress {
    incoming: bool,
    begun: bool,
    ended: bool,
    staging: Option<Range<usize>>,
    /// Where staged bytes go, and whether they are combined.
    unpack: Option<(Range<u32>, bool)>,
}

struct Compiler<'a> {
    contents: &'a Contents<'a>,
    me: u32,
    numbering: Numbering<'a>,
    progress: Vec<Progress>,
    free: Vec<Range<usize>>,
    issue: Issue,
    /// Messages of the batch of each lane so far.
    issued: HashMap<u8, u32>,
    program: RankProgram,
}

/// Compiles what rank `me` does; no part of a message is longer than `part_bytes`, and lanes issue by this policy.
pub(super) fn compile(
    contents: &Contents,
    me: u32,
    part_bytes: usize,
    issue: Issue,
) -> Result<RankProgram> {
    let mut numbering = number(contents, me, part_bytes)?;
    let begin = |&incoming: &bool| Progress {
        incoming,
        ..Progress::default()
    };
    let mut compiler = Compiler {
        contents,
        me,
        progress: numbering.incoming.iter().map(begin).collect(),
        free: Vec::new(),
        issue,
        issued: HashMap::new(),
        program: RankProgram {
            part_bytes,
            messages: std::mem::take(&mut numbering.messages),
            requests: numbering.requests,
            ..RankProgram::default()
        },
        numbering,
    };
    compiler.write()?;
    Ok(compiler.program)
}

impl Compiler<'_> {
    fn op(&self, id: u32) -> Op {
        self.contents.schedule.ops()[id as usize]
    }

    fn host(&self, participant: u32) -> u32 {
        host(self.contents, participant)
    }

    /// Writes all steps: at each event first the receives that may be posted by then.
    fn write(&mut self) -> Result<()> {
        let mut posts: Vec<Vec<usize>> = vec![Vec::new(); self.numbering.events.len()];
        for event in 0..self.numbering.events.len() {
            if !matches!(self.numbering.events[event], Event::Issue(_)) {
                posts[self.earliest_post(event)?].push(event);
            }
        }
        for (event, posts) in posts.into_iter().enumerate() {
            for early in posts {
                self.post(self.numbering.events[early])?;
            }
            match self.numbering.events[event] {
                Event::Issue(id) => self.issue(id)?,
                Event::Receive { op, target } => self.acknowledge(op, target),
                Event::Serve(id) => self.serve(id)?,
            }
        }
        for message in 0..self.program.messages.len() as u32 {
            self.end(message);
        }
        Ok(())
    }

    /// The event before which the receive of `event` is posted.
    fn earliest_post(&self, event: usize) -> Result<usize> {
        let Event::Receive { op, target } = self.numbering.events[event] else {
            return Ok(event.saturating_sub(LOOKAHEAD)); // a request has no bytes
        };
        let extents = self.contents.extents(op, &self.op(op))?;
        let bytes: usize = extents.iter().map(|extent| extent.bytes).sum();
        let ahead = if bytes > LONG {
            LOOKAHEAD_LONG
        } else {
            LOOKAHEAD
        };
        let first = event.saturating_sub(ahead);
        if self.op(op).combine == Combine::Reduce || extents.len() != 1 {
            return Ok(first); // it arrives in staging memory of its own
        }
        let mine = self.footprints(Event::Receive { op, target })?;
        for before in (first..event).rev() {
            let theirs = self.footprints(self.numbering.events[before])?;
            if theirs.iter().any(|a| mine.iter().any(|b| a.meets(b))) {
                return Ok(before + 1);
            }
        }
        Ok(first)
    }

    /// What an event touches in the buffers of this rank.
    fn footprints(&self, event: Event) -> Result<Vec<Footprint>> {
        let op = self.op(event.op());
        let extents = self.contents.extents(event.op(), &op)?;
        let hull = |participant, buffer: u8, start: fn(&Extent) -> usize| Footprint {
            participant,
            buffer,
            bytes: extents.iter().map(start).min().unwrap_or(0)
                ..extents
                    .iter()
                    .map(|r| start(r) + r.bytes)
                    .max()
                    .unwrap_or(0),
        };
        let mut found = Vec::new();
        if self.host(op.from) == self.me {
            found.push(hull(op.from, op.src_buffer.0, |extent| extent.src));
        }
        if op.moves_data() {
            for &target in self.contents.schedule.targets(&op) {
                if self.host(target) == self.me {
                    found.push(hull(target, op.dst_buffer.0, |extent| extent.dst));
                }
            }
        }
        Ok(found)
    }

    fn post(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Receive { op, target } => self.receive(op, target),
            Event::Serve(id) => {
                let request = self.numbering.message(id, self.op(id).to, Role::Request);
                self.begin(request.expect("the owner was numbered"));
                Ok(())
            }
            Event::Issue(_) => Ok(()),
        }
    }

    fn begin(&mut self, message: u32) {
        let progress = &mut self.progress[message as usize];
        progress.begun = true;
        let step = match progress.incoming {
            true => Step::Post(message),
            false => Step::Send(message),
        };
        self.program.steps.push(step);
    }

    /// Posts the receive of the data of `id` for `target`.
    fn receive(&mut self, id: u32, target: u32) -> Result<()> {
        let Some(message) = self.numbering.message(id, target, Role::Data) else {
            return Ok(());
        };
        let op = self.op(id);
        let extents = self.contents.extents(id, &op)?;
        let place = buffer(target, op.dst_buffer.0);
        match extents[..] {
            [] => {}
            [extent] if op.combine == Combine::Replace => {
                self.program.messages[message as usize].spot = at(place, extent.dst);
            }
            _ => {
                let pieces = self.stage(message, &extents, |staged, extent| Piece {
                    from: staged,
                    to: at(place, extent.dst),
                    bytes: extent.bytes,
                });
                let reduce = op.combine == Combine::Reduce;
                self.progress[message as usize].unpack = Some((pieces, reduce));
            }
        }
        self.begin(message);
        Ok(())
    }

    /// Sends the data of `id` to the host of `target`.
    fn send(&mut self, id: u32, target: u32) -> Result<()> {
        let Some(message) = self.numbering.message(id, target, Role::Data) else {
            return Ok(());
        };
        let op = self.op(id);
        let extents = self.contents.extents(id, &op)?;
        let place = buffer(op.from, op.src_buffer.0);
        match extents[..] {
            [] => {}
            [extent] => self.program.messages[message as usize].spot = at(place, extent.src),
            _ => {
                let pieces = self.stage(message, &extents, |staged, extent| Piece {
                    from: at(place, extent.src),
                    to: staged,
                    bytes: extent.bytes,
                });
                self.program.steps.push(Step::Copy(pieces));
            }
        }
        self.begin(message);
        Ok(())
    }

    /// Stages a message, and adds a piece for each extent: `piece` gets the place where it is staged.
    fn stage(
        &mut self,
        message: u32,
        extents: &[Extent],
        piece: impl Fn(Spot, &Extent) -> Piece,
    ) -> Range<u32> {
        let mut staged = self.staging(message);
        let first = self.program.pieces.len() as u32;
        for extent in extents {
            let spot = at(Place::Staging, staged);
            self.program.pieces.push(piece(spot, extent));
            staged += extent.bytes;
        }
        first..self.program.pieces.len() as u32
    }

    /// Staging memory for a message: the smallest free range that is large enough, or new memory.
    fn staging(&mut self, message: u32) -> usize {
        let bytes = self.program.messages[message as usize].bytes;
        let wanted = bytes.next_multiple_of(LINE);
        let fits = |range: &&Range<usize>| range.len() >= wanted;
        let best = self
            .free
            .iter()
            .filter(fits)
            .min_by_key(|range| range.len());
        let range = match best.cloned() {
            Some(range) => {
                self.free.retain(|free| *free != range);
                range
            }
            None => {
                let start = self.program.staging_bytes;
                self.program.staging_bytes += wanted;
                start..start + wanted
            }
        };
        let start = range.start;
        self.program.messages[message as usize].spot = at(Place::Staging, start);
        self.progress[message as usize].staging = Some(range);
        start
    }

    /// Waits for a message, once; what was staged goes where it belongs.
    fn end(&mut self, message: u32) {
        let progress = &mut self.progress[message as usize];
        if progress.ended || !progress.begun {
            return;
        }
        progress.ended = true;
        self.program.steps.push(Step::Wait(message));
        if let Some((pieces, reduce)) = progress.unpack.take() {
            self.program.steps.push(match reduce {
                true => Step::Reduce(pieces),
                false => Step::Copy(pieces),
            });
        }
        self.free.extend(progress.staging.take());
    }

    fn issue(&mut self, id: u32) -> Result<()> {
        for index in 0..self.contents.schedule.after(id).len() {
            let edge = self.contents.schedule.after(id)[index];
            self.wait_for(edge)?;
        }
        let op = self.op(id);
        match op.kind {
            OpKind::Fence | OpKind::Barrier | OpKind::Aggregate => {}
            OpKind::Compute => {
                let work = self.contents.schedule.op_work(&op);
                self.program.steps.push(Step::Compute(work));
            }
            OpKind::Local => self.move_here(id, op.to)?,
            OpKind::Get => match self.numbering.message(id, op.to, Role::Request) {
                Some(request) => {
                    self.make_room(op.lane);
                    self.receive(id, op.to)?;
                    self.begin(request);
                    self.take_place(op.lane, id, op.to);
                }
                None => self.move_here(id, op.to)?,
            },
            OpKind::Put | OpKind::Multicast | OpKind::Notice => self.issue_puts(id, &op)?,
        }
        Ok(())
    }

    fn issue_puts(&mut self, id: u32, op: &Op) -> Result<()> {
        let targets = self.contents.schedule.targets(op).to_vec();
        for &target in &targets {
            if let Some(acknowledgement) = self.numbering.message(id, target, Role::Acknowledgement)
            {
                self.begin(acknowledgement);
            }
            let counted = op.kind != OpKind::Notice && self.host(target) != self.me;
            if counted {
                self.make_room(op.lane);
            }
            self.send(id, target)?;
            if counted {
                self.take_place(op.lane, id, target);
            }
        }
        // A multicast to its own source reads for the others before it writes for itself.
        for target in targets {
            if self.host(target) == self.me {
                self.move_here(id, target)?;
            }
        }
        Ok(())
    }

    /// A message of this lane is about to begin: waits until it has a place.
    fn make_room(&mut self, lane: u8) {
        let issued = self.issued.entry(lane).or_default();
        let most = match self.issue {
            Issue::Unlimited => return,
            Issue::Window(most) => most - 1,
            Issue::Blocking => 0,
            Issue::Batch(most) if *issued < most => return,
            Issue::Batch(_) => {
                *issued = 0;
                0
            }
        };
        self.program.steps.push(Step::Room { lane, most });
    }

    fn take_place(&mut self, lane: u8, id: u32, target: u32) {
        if self.issue == Issue::Unlimited {
            return;
        }
        *self.issued.entry(lane).or_default() += 1;
        let message = self.numbering.message(id, target, Role::Data);
        let message = message.expect("it crosses ranks");
        self.program.steps.push(Step::Take { lane, message });
    }

    /// Moves the data of `id` to `target`, both of which live here.
    fn move_here(&mut self, id: u32, target: u32) -> Result<()> {
        let op = self.op(id);
        let (from, to) = (
            buffer(op.from, op.src_buffer.0),
            buffer(target, op.dst_buffer.0),
        );
        let first = self.program.pieces.len() as u32;
        for extent in self.contents.moves("mpi", id, &op, target)? {
            self.program.pieces.push(Piece {
                from: at(from, extent.src),
                to: at(to, extent.dst),
                bytes: extent.bytes,
            });
        }
        let pieces = first..self.program.pieces.len() as u32;
        if !pieces.is_empty() {
            self.program.steps.push(match op.combine {
                Combine::Replace => Step::Copy(pieces),
                Combine::Reduce => Step::Reduce(pieces),
            });
        }
        Ok(())
    }

    /// Tells the source that its data are here, if a rank waits for that.
    fn acknowledge(&mut self, id: u32, target: u32) {
        if let Some(acknowledgement) = self.numbering.message(id, target, Role::Acknowledgement) {
            let data = self.numbering.message(id, target, Role::Data);
            self.end(data.expect("the destination was numbered"));
            self.begin(acknowledgement);
        }
    }

    /// Sends what another rank gets from here, when it asks.
    fn serve(&mut self, id: u32) -> Result<()> {
        let to = self.op(id).to;
        let request = self.numbering.message(id, to, Role::Request);
        self.end(request.expect("the owner was numbered"));
        self.send(id, to)
    }

    /// Makes this rank wait, before its next step, for what `edge` names.
    fn wait_for(&mut self, edge: Edge) -> Result<()> {
        let (id, me) = (edge.op(), self.me);
        let op = self.op(id);
        let targets = self.contents.schedule.targets(&op).to_vec();
        let blind = Err(ExecError::BlindEdge { op: id, rank: me });
        if edge.is_acknowledged() || !op.is_message() || op.kind == OpKind::Get {
            if op.initiator() != me {
                return blind;
            }
            let role = match op.kind {
                OpKind::Get => Role::Data,
                _ => Role::Acknowledgement,
            };
            self.end_all(id, &targets, role);
        } else if op.from == me {
            self.end_all(id, &targets, Role::Data);
        } else if targets.contains(&me) {
            self.end_all(id, &[me], Role::Data);
        } else {
            return blind;
        }
        Ok(())
    }

    fn end_all(&mut self, id: u32, targets: &[u32], role: Role) {
        for &target in targets {
            if let Some(message) = self.numbering.message(id, target, role) {
                self.end(message);
            }
        }
    }
}
