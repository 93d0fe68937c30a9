//! No race: every two accesses to a chunk of rank 0, at least one of them a write, are ordered.
//!
//! The hazards are found again, from the operations alone. An instance may start when all that it waits for has happened
//! and the operation before it in its lane has started; nothing else orders anything. Chains of
//! deliveries prove most at once; what they leave open is searched for backwards, over all of the past.

use super::super::cells::Cells;
use super::super::folded::Instance;
use super::super::Group;
use super::Folded;
use crate::accesses::NONE;
use crate::ir::{BufferId, Completion, Op, OpKind};
use crate::order::Need;
use crate::verify::{meets, VerifyError};
use std::collections::HashSet;

/// Instances that all searches together may visit before the proof is given up.
const MOST_VISITED: usize = 1 << 24;

/// Before the later operation of rank 0 starts, `id` meets `need`.
#[derive(Clone, Copy)]
struct Hazard {
    id: Instance,
    need: Need,
    buffer: BufferId,
    chunk: u32,
}

/// Prove all hazards; how many there were, and of how many operations they had to be searched for.
pub(super) fn check(folded: &Folded) -> Result<(u64, u64), VerifyError> {
    let mut cells = Cells::new(&folded.program.buffers);
    let mut past = Past::new(folded);
    let mut open = Vec::new();
    let (mut hazards, mut long_searches) = (0, 0);
    for (k, op) in (0u32..).zip(folded.ops()) {
        past.append(k, op.lane);
        if !op.moves_data() {
            continue;
        }
        open.clear();
        let mut collected = OpenHazards {
            k,
            past: &past,
            open: &mut open,
            last: None,
            count: 0,
        };
        collected.read(op, &mut cells);
        collected.write(op, &mut cells);
        hazards += collected.count;
        if !open.is_empty() {
            long_searches += 1;
            past.search(k, &mut open)?;
        }
        if let Some(hazard) = open.first() {
            return Err(race(folded, k, hazard));
        }
    }
    Ok((hazards, long_searches))
}

/// The hazards of operation `k` of rank 0 that its own waits do not settle.
struct OpenHazards<'a, 'b> {
    k: u32,
    past: &'a Past<'b>,
    open: &'a mut Vec<Hazard>,
    last: Option<(Instance, Need)>,
    count: u64,
}

impl OpenHazards<'_, '_> {
    fn read(&mut self, op: &Op, cells: &mut Cells) {
        for (src, _, count) in self.past.folded.program.ranges_of(op) {
            for chunk in src..src + count {
                let cell = cells.at(op.src_buffer, chunk);
                self.add_writer(cells.accesses.writer(cell), 0, op.src_buffer, chunk);
                // Entered first: what other ranks read by this operation may meet what it writes.
                cells.accesses.add_reader(cell, self.k);
            }
        }
    }

    fn write(&mut self, op: &Op, cells: &mut Cells) {
        self.past.folded.program.written(op, |first, count| {
            for chunk in first..first + count {
                let (cell, k) = (cells.at(op.dst_buffer, chunk), self.k);
                let writer = cells.accesses.writer(cell);
                self.add_writer(writer, op.to, op.dst_buffer, chunk);
                cells.accesses.write(cell, k, |reader| {
                    let id = (reader, op.to);
                    if id != (self.k, 0) {
                        self.add(id, Need::SourceFree, op.dst_buffer, chunk);
                    }
                });
            }
        });
    }

    /// Operation `writer`, if any, wrote the chunk of the rank at offset `at`.
    #[inline]
    fn add_writer(&mut self, writer: u32, at: u32, buffer: BufferId, chunk: u32) {
        if writer != NONE {
            let sender = (self.past.group).back(self.past.folded.ops()[writer as usize].to);
            let id = (writer, self.past.group.act(at, sender));
            self.add(id, Need::DeliveredAt(at), buffer, chunk);
        }
    }

    #[inline]
    fn add(&mut self, id: Instance, need: Need, buffer: BufferId, chunk: u32) {
        self.count += 1;
        // Neighbouring chunks mostly come from the same operation.
        if self.last != Some((id, need)) && !self.past.at_once(self.k, id, need) {
            self.open.push(Hazard {
                id,
                need,
                buffer,
                chunk,
            });
        }
        self.last = Some((id, need));
    }
}

/// Chain of deliveries, place in it, and how far on it began.
type Link = (u32, u32, u32);

struct Past<'a> {
    folded: &'a Folded,
    group: Group,
    links: Vec<Link>,
    tail: Vec<u32>,
    /// The operation before each in its lane.
    before: Vec<u32>,
    last_in_lane: [u32; 256],
    /// Instances visited by the current search; kept to reuse the allocation.
    seen: HashSet<Instance>,
    visited: usize,
}

impl<'a> Past<'a> {
    fn new(folded: &'a Folded) -> Self {
        let count = folded.ops().len();
        Past {
            folded,
            group: folded.group(),
            links: Vec::with_capacity(count),
            tail: Vec::new(),
            before: Vec::with_capacity(count),
            last_in_lane: [NONE; 256],
            seen: HashSet::new(),
            visited: 0,
        }
    }

    /// Let operation `k` continue a chain or open one.
    fn append(&mut self, k: u32, lane: u8) {
        let before = std::mem::replace(&mut self.last_in_lane[lane as usize], k);
        self.before.push(before);
        for &wait in self.folded.after(k) {
            let (chain, place, began) = self.links[wait.op() as usize];
            let delivered = self.folded.completion(wait) == Some(Completion::Delivered);
            if self.tail[chain as usize] == wait.op() && delivered {
                self.tail[chain as usize] = k;
                let began = self.group.act(wait.rank(), began);
                self.links.push((chain, place + 1, began));
                return;
            }
        }
        self.links.push((self.tail.len() as u32, 0, 0));
        self.tail.push(k);
    }

    /// Whether `id` was delivered before `later` started, because both are in one chain.
    #[inline]
    fn follows(&self, later: Instance, id: Instance) -> bool {
        let (a, b) = (self.links[later.0 as usize], self.links[id.0 as usize]);
        a.0 == b.0 && a.1 > b.1 && self.group.act(later.1, a.2) == self.group.act(id.1, b.2)
    }

    /// Whether operation `k` of rank 0, appended last, by its chain or its own waits meets the need.
    #[inline]
    fn at_once(&self, k: u32, id: Instance, need: Need) -> bool {
        if id.0 >= k {
            // Nothing orders one rank's operation after another's of the same place.
            return false;
        }
        if self.follows((k, 0), id) {
            return true;
        }
        (self.folded.after(k).iter()).any(|&wait| {
            let at = (wait.op(), wait.rank());
            self.follows(at, id) || at == id && meets(self.folded.completion(wait), need, 0)
        })
    }

    /// Drop from `open` all that is ordered before operation `k` of rank 0.
    fn search(&mut self, k: u32, open: &mut Vec<Hazard>) -> Result<(), VerifyError> {
        let floor = open.iter().map(|hazard| hazard.id.0).min().unwrap_or(k);
        let mut seen = std::mem::take(&mut self.seen);
        seen.clear();
        seen.insert((k, 0));
        let mut queue = vec![(k, 0)];
        let mut next = 0;
        while next < queue.len() && !open.is_empty() {
            let at: Instance = queue[next];
            next += 1;
            self.visited += 1;
            if self.visited > MOST_VISITED {
                return Err(VerifyError::Shape(
                    "the order of one rank's operations takes too long to prove; verify and simulate \
                     every rank"
                        .to_string(),
                ));
            }
            let mut started = |id: Instance, open: &mut Vec<Hazard>| {
                if id.0 >= floor && seen.insert(id) {
                    open.retain(|hazard| !self.follows(id, hazard.id));
                    queue.push(id);
                }
            };
            for &wait in self.folded.after(at.0) {
                let id = (wait.op(), self.group.act(at.1, wait.rank()));
                let known = self.folded.completion(wait);
                open.retain(|hazard| hazard.id != id || !meets(known, hazard.need, 0));
                started(id, open);
            }
            let before = self.before[at.0 as usize];
            if before != NONE {
                started((before, at.1), open);
            }
        }
        self.seen = seen;
        Ok(())
    }
}

#[cold]
fn race(folded: &Folded, k: u32, hazard: &Hazard) -> VerifyError {
    let (op, earlier) = (&folded.ops()[k as usize], folded.id(hazard.id));
    let (state, moment) = match hazard.need {
        Need::SourceFree => ("may still read it", "source of"),
        Need::DeliveredAt(_) => ("may still write it", "delivery of"),
    };
    let at = match hazard.need {
        Need::DeliveredAt(at) => at,
        Need::SourceFree => op.to,
    };
    debug_assert!(op.kind != OpKind::Notice);
    let problem = format!(
        "is accessed by t{} while t{earlier} of step {} {state}; let rank 0 wait for the {moment} \
         t{earlier}, by an edge where it can see that, else by a notice",
        folded.id((k, 0)),
        folded.ops()[hazard.id.0 as usize].step,
    );
    VerifyError::Race {
        step: op.step,
        earlier,
        later: folded.id((k, 0)),
        participant: at,
        place: format!("rank {at}"),
        buffer: folded.program.buffers[hazard.buffer.0 as usize]
            .name
            .clone(),
        chunk: folded.program.chunk_at(hazard.buffer, hazard.chunk, at),
        problem,
    }
}
