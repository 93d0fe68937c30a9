//! The DMA engine of one element: two queues, selection, unrolling.
//!
//! ```text
//!   SPU --issue 5--> [SPU queue, 16]  --.   flow-through 15
//!   PPE --mapped---> [proxy queue, 8] ---+--> select --> unroll one line --> at most K in flight
//! ```
//!
//! (bus cycles.) An entry stays until all its lines are done; a command that meets a full queue waits. Each
//! request is a new selection: SPU queue before proxy queue; get and put in turn; only commands that
//! are ready, oldest first. A command is not ready during its flow-through, its page walk, the fetch
//! of its next list element, or while it waits for earlier ones of its tag group.

use std::collections::VecDeque;

use super::command::{Command, Kind, Order, Queue};

/// Times of one command, in bus cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Life {
    /// Its issuer begins to write it.
    pub issued: u64,
    /// It is in the queue.
    pub queued: u64,
    /// The engine selects it for the first time.
    pub selected: u64,
    /// Its first request has its address slot.
    pub requested: u64,
    /// Its first line starts on a ring.
    pub data: u64,
    /// All its lines are done.
    pub complete: u64,
}

impl Life {
    /// All moments, in the order of the fields.
    pub fn moments(&self) -> Vec<u64> {
        vec![
            self.issued,
            self.queued,
            self.selected,
            self.requested,
            self.data,
            self.complete,
        ]
    }
}

/// An entry of a queue.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub command: Command,
    /// First cycle in which it may be selected.
    pub ready: u64,
    /// Requests of the present piece that are still to be made.
    pub requests: u32,
    /// Lines under way.
    pub flying: u32,
    /// Earlier entries of the same queue that it waits for.
    waits: u32,
    pub life: Life,
}

/// One of the two queues.
#[derive(Clone, Debug)]
pub(super) struct Entries {
    slots: Vec<Option<Entry>>,
    pub used: usize,
    /// Entries with requests to make, in order: puts, gets.
    todo: [VecDeque<u8>; 2],
    /// Commands that have been given and are not yet in the queue.
    pub outside: VecDeque<Command>,
    /// Whether the first of them is being written.
    pub writing: bool,
    /// Whether it has been written and finds the queue full.
    pub blocked: bool,
    /// When writing it began.
    pub began: u64,
}

/// The engine.
#[derive(Clone, Debug)]
pub(super) struct Mfc {
    pub queues: [Entries; 2],
    pub in_flight: u32,
    /// Direction of the last request.
    last_was_put: bool,
    /// First cycle in which the next request may be made.
    pub free: u64,
}

impl Entries {
    fn new(size: usize) -> Self {
        Entries {
            slots: vec![None; size],
            used: 0,
            todo: Default::default(),
            outside: VecDeque::new(),
            writing: false,
            blocked: false,
            began: 0,
        }
    }

    pub fn is_full(&self) -> bool {
        self.used == self.slots.len()
    }

    /// Put a command into a free slot.
    pub fn insert(&mut self, command: Command, life: Life, ready: u64, requests: u32) {
        let free = self.slots.iter().position(Option::is_none);
        let slot = free.expect("the queue is not full");
        let group = |entry: &Entry| entry.command.tag == command.tag;
        let earlier = (self.slots.iter().enumerate())
            .filter_map(|(index, entry)| entry.as_ref().map(|entry| (index, entry)))
            .filter(|(_, entry)| group(entry))
            .filter(|(_, entry)| {
                command.order != Order::None || entry.command.order == Order::Barrier
            });
        let waits = earlier.fold(0, |set, (index, _)| set | 1 << index);
        self.used += 1;
        self.todo[direction(command.kind)].push_back(slot as u8);
        self.slots[slot] = Some(Entry {
            command,
            ready,
            requests,
            flying: 0,
            waits,
            life,
        });
    }

    #[inline]
    pub fn entry(&mut self, slot: u8) -> &mut Entry {
        self.slots[usize::from(slot)]
            .as_mut()
            .expect("the slot is in use")
    }

    /// Free a slot and release the commands that waited for it.
    pub fn remove(&mut self, slot: u8) -> Entry {
        self.used -= 1;
        let entry = self.slots[usize::from(slot)].take();
        for other in self.slots.iter_mut().flatten() {
            other.waits &= !(1 << slot);
        }
        entry.expect("the slot is in use")
    }

    /// The first ready command of a direction.
    #[inline]
    fn ready(&self, direction: usize, now: u64) -> Option<u8> {
        if self.todo[direction].is_empty() {
            return None;
        }
        let slots = &self.slots;
        let is_ready = |slot: &u8| {
            let entry = slots[usize::from(*slot)].as_ref();
            entry.is_some_and(|entry| entry.ready <= now && entry.waits == 0)
        };
        self.todo[direction].iter().copied().find(is_ready)
    }

    /// All requests of this command are made.
    pub fn unrolled(&mut self, slot: u8, direction: usize) {
        let todo = &mut self.todo[direction];
        let at = todo.iter().position(|&other| other == slot);
        todo.remove(at.expect("it had requests to make"));
    }
}

impl Mfc {
    pub fn new(sizes: [usize; 2]) -> Self {
        Mfc {
            queues: sizes.map(Entries::new),
            in_flight: 0,
            last_was_put: false,
            free: 0,
        }
    }

    /// Select the command that makes the next request: (queue, slot).
    #[inline]
    pub fn select(&mut self, now: u64) -> Option<(usize, u8)> {
        let first = usize::from(self.last_was_put);
        for queue in 0..2 {
            for wanted in [first, 1 - first] {
                if let Some(slot) = self.queues[queue].ready(wanted, now) {
                    self.last_was_put = wanted == 0;
                    return Some((queue, slot));
                }
            }
        }
        None
    }
}

/// 0 for what leaves the local store, 1 for what comes in.
pub(super) fn direction(kind: Kind) -> usize {
    usize::from(matches!(kind, Kind::Get | Kind::Reserve))
}

/// Index of a queue.
pub(super) fn queue_index(queue: Queue) -> usize {
    usize::from(queue == Queue::Proxy)
}
