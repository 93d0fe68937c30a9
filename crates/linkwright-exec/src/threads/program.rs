//! From a schedule to one list of instructions per rank, compiled once.
//!
//! The operations of all lanes of a rank are merged by id; that is always safe, because ids are a
//! topological order: the smallest unfinished operation of the whole schedule waits for nothing.
//! An edge within a rank is then program order and costs nothing. The others cross ranks:
//!
//! ```text
//!   put, multicast   the source copies into the peer's buffer, then raises counter (source -> peer)
//!   notice           raises the counter
//!   edge on these    the peer waits: counter >= epoch * (messages per epoch) + ordinal
//!   get              the destination copies; no rank is notified
//!   barrier          arrive at the counter of the set; wait where an edge demands it
//! ```
//!
//! A wait that an earlier wait on the same counter covers is dropped, and so is a raise without a waiter.
//! At the end a rank waits for the last data of every source: it has finished when all data meant for it
//! have arrived.
//!
//! **Issue policies.** A put is *complete* when its bytes are visible everywhere. A processor makes its
//! stores visible in order and tells of all at once, by a fence; so before a put that finds no place,
//! all puts under way are completed together:
//!
//! ```text
//!   blocking     put  fence  put  fence  put  fence
//!   window(2)    put  put  fence  put  put  fence        batch(2) is the same
//!   unlimited    put  put  put  put
//! ```
//!
//! A get is complete when it returns and takes no place. Under a bound the last puts are completed too,
//! before the rank waits for the data meant for it.
//!
//! **Mail.** A put of at most 48 bytes whose source never waits for its delivery travels in the
//! cache line of its own counter ([`super::flags::Mailbox`]), and the *destination* moves it into
//! place, just before the first of its operations that waits for it, or at the end. This is
//! correct for three reasons: every wait for the data at the destination happens there; other ranks learn
//! of the delivery through the destination; and the moving never waits for an operation that is not
//! smaller than the one before which it stands, so the argument about the smallest operation holds.

use super::flags::MAIL_BYTES;
use crate::buffers::{acknowledged, Contents, Extent};
use crate::error::{ExecError, Result};
use linkwright_core::Issue;
use linkwright_schedule::ir::{Combine, Edge, Op, OpKind};
use std::collections::{BTreeMap, HashMap, HashSet};

const NONE: u32 = u32::MAX;

/// More mail than this and lines would fall out of the caches before they are used.
const MOST_MAIL: u32 = 4096;

/// The effect of an instruction, between its waits and its raises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Only wait or raise.
    Nothing,
    /// Overwrite the destinations.
    Copy,
    /// Combine into the destinations.
    Reduce,
    /// Put the sources into a mailbox.
    Post { mail: u32, reader: u32 },
    /// Overwrite the destinations from a mailbox.
    TakeCopy { mail: u32 },
    /// Combine into the destinations from a mailbox.
    TakeReduce { mail: u32 },
    /// Arrive at a barrier.
    Arrive { barrier: u32, ordinal: u64 },
    /// Arithmetic without data.
    Compute { work: u64 },
    /// Complete all puts of the rank that are under way.
    Complete,
}

/// One instruction; its waits, pieces and raises end here and begin where the last one's ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instruction {
    pub action: Action,
    pub waits: u32,
    pub pieces: u32,
    pub raises: u32,
    /// Whether it is a put to another rank.
    pub message: bool,
}

/// Wait for, or raise, a counter to `epoch * per_epoch + ordinal`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count {
    pub counter: u32,
    pub ordinal: u64,
    pub per_epoch: u64,
}

/// A buffer of a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub participant: u32,
    pub buffer: u8,
}

/// Contiguous bytes to move.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub from: Place,
    pub to: Place,
    pub extent: Extent,
}

/// The work of one rank in an epoch.
#[derive(Clone, Debug, Default)]
pub(super) struct RankProgram {
    pub code: Vec<Instruction>,
    pub waits: Vec<Count>,
    pub pieces: Vec<Piece>,
    pub raises: Vec<Count>,
}

/// Members of a set and how often they meet per epoch.
#[derive(Clone, Debug)]
pub(super) struct BarrierSet {
    pub counter: u32,
    pub members: Vec<u32>,
    pub per_epoch: u64,
}

/// The work of all ranks.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub ranks: Vec<RankProgram>,
    /// Rank that waits on each counter; barriers have no single one.
    pub readers: Vec<u32>,
    /// Mailboxes.
    pub mails: u32,
    pub barriers: Vec<BarrierSet>,
    /// Whether puts wait for completions.
    pub bounded: bool,
}

/// Where a message is announced.
#[derive(Clone, Copy)]
struct Announced {
    counter: u32,
    ordinal: u64,
}

struct Compiler<'a> {
    contents: &'a Contents<'a>,
    /// Mailbox of an operation, or `NONE`.
    mail: Vec<u32>,
    mails: u32,
    /// Announcement of message `(op, target)`.
    announced: HashMap<(u32, u32), Announced>,
    /// Barrier and instance, from 1, of a barrier operation.
    arrival: HashMap<u32, (u32, u64)>,
    barriers: Vec<BarrierSet>,
    readers: Vec<u32>,
    /// Messages per epoch of each counter.
    per_epoch: Vec<u64>,
    /// Last announcement with data, by (target, counter).
    last_data: BTreeMap<(u32, u32), u64>,
    ranks: Vec<RankProgram>,
    /// What a rank knows a counter to have reached.
    known: HashMap<(u32, u32), u64>,
    taken: Vec<bool>,
    /// Most puts of a lane under way; `None`: no bound.
    most: Option<u32>,
    /// Puts under way, by rank and lane.
    under_way: Vec<HashMap<u8, u32>>,
}

/// Whether tiny messages travel with their flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mail {
    /// Where they fit, see the module.
    WhereItFits,
    /// Every message is copied and announced.
    Never,
}

/// Compiles the schedule for all ranks, whose lanes issue puts by this policy.
pub(super) fn compile(contents: &Contents, mail: Mail, issue: Issue) -> Result<Program> {
    let count = contents.schedule.ops().len();
    let ranks = contents.schedule.ranks as usize;
    let mut compiler = Compiler {
        contents,
        mail: vec![NONE; count],
        mails: 0,
        announced: HashMap::new(),
        arrival: HashMap::new(),
        barriers: Vec::new(),
        readers: Vec::new(),
        per_epoch: Vec::new(),
        last_data: BTreeMap::new(),
        ranks: vec![RankProgram::default(); ranks],
        known: HashMap::new(),
        taken: vec![false; count],
        most: match issue {
            Issue::Blocking => Some(1),
            Issue::Window(most) | Issue::Batch(most) => Some(most),
            Issue::Unlimited => None,
        },
        under_way: vec![HashMap::new(); ranks],
    };
    if mail == Mail::WhereItFits {
        compiler.choose_mail();
    }
    compiler.number_messages()?;
    for (id, op) in contents.schedule.ops().iter().enumerate() {
        compiler.emit(id as u32, op)?;
    }
    compiler.finish_ranks()?;
    compiler.drop_unheard_raises();
    Ok(Program {
        ranks: compiler.ranks,
        readers: compiler.readers,
        mails: compiler.mails,
        barriers: compiler.barriers,
        bounded: compiler.most.is_some(),
    })
}

impl Compiler<'_> {
    fn choose_mail(&mut self) {
        let schedule = self.contents.schedule;
        let ops = schedule.ops();
        let awaited_at_source = acknowledged(schedule);
        for (id, op) in ops.iter().enumerate() {
            let to_another_rank = op.to != op.from && op.to < schedule.ranks;
            let fits = op.kind == OpKind::Put
                && to_another_rank
                && (1..=MAIL_BYTES as u64).contains(&schedule.op_bytes(op));
            if fits && !awaited_at_source[id] && self.mails < MOST_MAIL {
                self.mail[id] = self.mails;
                self.mails += 1;
            }
        }
    }

    /// Every message that is not mail gets its ordinal on the counter of its pair of ranks.
    fn number_messages(&mut self) -> Result<()> {
        let schedule = self.contents.schedule;
        let mut counters: HashMap<(u32, u32), u32> = HashMap::new();
        let mut meetings: HashMap<(u32, u32), u64> = HashMap::new();
        for (id, op) in schedule.ops().iter().enumerate() {
            let id = id as u32;
            match op.kind {
                OpKind::Put | OpKind::Notice | OpKind::Multicast => {}
                OpKind::Barrier => {
                    self.number_arrival(id, op, &mut meetings);
                    continue;
                }
                OpKind::Aggregate => return Err(aggregation(id)),
                OpKind::Get | OpKind::Local | OpKind::Compute | OpKind::Fence => continue,
            }
            if self.mail[id as usize] != NONE {
                continue;
            }
            for &target in schedule.targets(op) {
                if target == op.from || target >= schedule.ranks {
                    continue;
                }
                let counter = *counters
                    .entry((op.from, target))
                    .or_insert_with(|| new_counter(&mut self.readers, &mut self.per_epoch, target));
                self.per_epoch[counter as usize] += 1;
                let ordinal = self.per_epoch[counter as usize];
                self.announced
                    .insert((id, target), Announced { counter, ordinal });
                if op.kind != OpKind::Notice {
                    self.last_data.insert((target, counter), ordinal);
                }
            }
        }
        Ok(())
    }

    fn number_arrival(&mut self, id: u32, op: &Op, meetings: &mut HashMap<(u32, u32), u64>) {
        let known = self
            .barriers
            .iter()
            .position(|b| self.contents.schedule.sets[op.to as usize] == b.members);
        let barrier = known.unwrap_or_else(|| {
            let counter = new_counter(&mut self.readers, &mut self.per_epoch, NONE);
            self.barriers.push(BarrierSet {
                counter,
                members: self.contents.schedule.sets[op.to as usize].clone(),
                per_epoch: 0,
            });
            self.barriers.len() - 1
        });
        let meeting = meetings.entry((barrier as u32, op.from)).or_default();
        *meeting += 1;
        self.arrival.insert(id, (barrier as u32, *meeting));
        let set = &mut self.barriers[barrier];
        set.per_epoch += 1;
        self.per_epoch[set.counter as usize] = set.per_epoch;
    }

    fn emit(&mut self, id: u32, op: &Op) -> Result<()> {
        let rank = op.initiator();
        let message = self.is_put(op);
        if message {
            self.take_place(rank, op.lane);
        }
        for index in 0..self.contents.schedule.after(id).len() {
            let edge = self.contents.schedule.after(id)[index];
            self.wait_for(rank, edge)?;
        }
        let action = match op.kind {
            OpKind::Put if self.mail[id as usize] != NONE => Action::Post {
                mail: self.mail[id as usize],
                reader: op.to,
            },
            OpKind::Put | OpKind::Get | OpKind::Multicast | OpKind::Local => match op.combine {
                Combine::Replace => Action::Copy,
                Combine::Reduce => Action::Reduce,
            },
            OpKind::Aggregate => return Err(aggregation(id)),
            OpKind::Barrier => {
                let (barrier, ordinal) = self.arrival[&id];
                let members = self.barriers[barrier as usize].members.len() as u64;
                let ordinal = ordinal * members;
                Action::Arrive { barrier, ordinal }
            }
            OpKind::Compute => Action::Compute {
                work: self.contents.schedule.op_work(op),
            },
            OpKind::Fence | OpKind::Notice => Action::Nothing,
        };
        self.add_pieces(id, op, rank)?;
        for &target in self.contents.schedule.targets(op) {
            if let Some(&Announced { counter, ordinal }) = self.announced.get(&(id, target)) {
                let per_epoch = self.per_epoch[counter as usize];
                self.ranks[rank as usize].raises.push(Count {
                    counter,
                    ordinal,
                    per_epoch,
                });
            }
        }
        self.ranks[rank as usize].close_message(action, message);
        Ok(())
    }

    /// Whether `op` writes into another rank or a memory.
    fn is_put(&self, op: &Op) -> bool {
        let mut targets = self.contents.schedule.targets(op).iter();
        let writes = matches!(op.kind, OpKind::Put | OpKind::Multicast);
        writes && targets.any(|&target| target != op.from)
    }

    /// A put of this lane begins; where none may, those under way are completed before.
    fn take_place(&mut self, rank: u32, lane: u8) {
        let Some(most) = self.most else { return };
        let under_way = &mut self.under_way[rank as usize];
        if under_way.get(&lane).is_some_and(|&puts| puts >= most) {
            under_way.clear();
            self.ranks[rank as usize].close(Action::Complete);
        }
        *self.under_way[rank as usize].entry(lane).or_default() += 1;
    }

    /// The last puts of every rank, too, are complete before it ends.
    fn complete_the_last(&mut self) {
        for (rank, under_way) in self.ranks.iter_mut().zip(&self.under_way) {
            if !under_way.is_empty() {
                rank.close(Action::Complete);
            }
        }
    }

    fn add_pieces(&mut self, id: u32, op: &Op, rank: u32) -> Result<()> {
        if !op.moves_data() {
            return Ok(());
        }
        let from = Place {
            participant: op.from,
            buffer: op.src_buffer.0,
        };
        // A multicast to its own source reads for the others before it writes for itself.
        let mut targets = self.contents.schedule.targets(op).to_vec();
        targets.sort_by_key(|&target| target == op.from);
        for target in targets {
            let to = Place {
                participant: target,
                buffer: op.dst_buffer.0,
            };
            for extent in self.contents.moves("threads", id, op, target)? {
                let piece = Piece { from, to, extent };
                self.ranks[rank as usize].pieces.push(piece);
            }
        }
        Ok(())
    }

    /// Makes `rank` wait, before its next instruction, for what `edge` names.
    fn wait_for(&mut self, rank: u32, edge: Edge) -> Result<()> {
        let id = edge.op();
        let op = self.contents.schedule.ops()[id as usize];
        if let Some(&(barrier, ordinal)) = self.arrival.get(&id) {
            self.wait_for_barrier(rank, barrier, ordinal);
        } else if op.initiator() == rank {
            // Program order; a copy into shared memory is delivered when it is done.
        } else if let Some(&Announced { counter, ordinal }) = self.announced.get(&(id, rank)) {
            self.wait_for_count(rank, counter, ordinal);
        } else if self.mail[id as usize] != NONE && op.to == rank {
            self.take(id)?;
        } else {
            return Err(ExecError::BlindEdge { op: id, rank });
        }
        Ok(())
    }

    fn wait_for_barrier(&mut self, rank: u32, barrier: u32, meeting: u64) {
        let set = &self.barriers[barrier as usize];
        let (counter, ordinal) = (set.counter, meeting * set.members.len() as u64);
        self.wait_for_count(rank, counter, ordinal);
    }

    fn wait_for_count(&mut self, rank: u32, counter: u32, ordinal: u64) {
        let known = self.known.entry((rank, counter)).or_default();
        if *known < ordinal {
            *known = ordinal;
            let per_epoch = self.per_epoch[counter as usize];
            self.ranks[rank as usize].waits.push(Count {
                counter,
                ordinal,
                per_epoch,
            });
        }
    }

    /// The destination moves mail `id` into place, once.
    fn take(&mut self, id: u32) -> Result<()> {
        if std::mem::replace(&mut self.taken[id as usize], true) {
            return Ok(());
        }
        let op = self.contents.schedule.ops()[id as usize];
        let mail = self.mail[id as usize];
        self.add_pieces(id, &op, op.to)?;
        let action = match op.combine {
            Combine::Replace => Action::TakeCopy { mail },
            Combine::Reduce => Action::TakeReduce { mail },
        };
        self.ranks[op.to as usize].close(action);
        Ok(())
    }

    /// A rank ends when all its mail, data and barriers are complete.
    fn finish_ranks(&mut self) -> Result<()> {
        self.complete_the_last();
        for id in 0..self.mail.len() as u32 {
            if self.mail[id as usize] != NONE {
                self.take(id)?;
            }
        }
        for ((rank, counter), ordinal) in std::mem::take(&mut self.last_data) {
            self.wait_for_count(rank, counter, ordinal);
        }
        for barrier in 0..self.barriers.len() {
            let members = self.barriers[barrier].members.clone();
            let meetings = self.barriers[barrier].per_epoch / members.len().max(1) as u64;
            for rank in members {
                self.wait_for_barrier(rank, barrier as u32, meetings);
            }
        }
        for rank in &mut self.ranks {
            rank.close(Action::Nothing);
        }
        Ok(())
    }

    fn drop_unheard_raises(&mut self) {
        let waits = self.ranks.iter().flat_map(|rank| &rank.waits);
        let heard: HashSet<(u32, u64)> = waits.map(|w| (w.counter, w.ordinal)).collect();
        for rank in &mut self.ranks {
            let all = std::mem::take(&mut rank.raises);
            let mut start = 0;
            for instruction in &mut rank.code {
                let end = instruction.raises as usize;
                let kept = all[start..end].iter();
                let kept = kept.filter(|raise| heard.contains(&(raise.counter, raise.ordinal)));
                rank.raises.extend(kept);
                instruction.raises = rank.raises.len() as u32;
                start = end;
            }
        }
    }
}

impl RankProgram {
    fn close(&mut self, action: Action) {
        self.close_message(action, false);
    }

    fn close_message(&mut self, action: Action, message: bool) {
        self.code.push(Instruction {
            action,
            message,
            waits: self.waits.len() as u32,
            pieces: self.pieces.len() as u32,
            raises: self.raises.len() as u32,
        });
    }
}

fn new_counter(readers: &mut Vec<u32>, per_epoch: &mut Vec<u64>, reader: u32) -> u32 {
    readers.push(reader);
    per_epoch.push(0);
    readers.len() as u32 - 1
}

/// Operation `id` is an aggregation, for which memory has no network.
fn aggregation(id: u32) -> ExecError {
    ExecError::Waived {
        executor: "threads",
        reason: format!("operation {id} is an aggregation; make gets and puts of it first"),
    }
}
