//! Whether a plan comes to its end, by running it without data.
//!
//! ```text
//!   thread block    runs its steps in order
//!   dependency      waits until the named step of the other thread block is done
//!   receive         waits until the message was sent
//!   send            waits while the connection is full
//! ```
//!
//! Each of these waits is for one certain event, so whether the run ends does not depend on who is fast.
//! The runtime cuts a step of several chunks into messages that fit its buffers, so its number of messages grows
//! with the data: what counts is the largest size for which the plan may be used, because fewer messages need no
//! more room. A longer loop over the data adds nothing, as one round that ends leaves all connections empty.

use super::links::{Links, NONE};
use super::plan::{Plan, Step};
use crate::error::Result;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Most steps of a circle that are printed.
const SHOWN: usize = 12;

/// The steps in an order in which the plan can run, or the circle of steps that wait for each other.
pub(super) fn run(plan: &Plan, links: &Links) -> Result<Vec<u32>> {
    let mut run = Run::new(plan, links);
    let mut ready: VecDeque<u32> = (0..plan.blocks.len() as u32).collect();
    let mut order = Vec::with_capacity(plan.steps.len());
    while let Some(block) = ready.pop_front() {
        run.advance(block, &mut order);
        run.wake(block, &mut ready);
    }
    match order.len() == plan.steps.len() {
        true => Ok(order),
        false => run.refuse(),
    }
}

/// A run: every step is as many events as it has messages.
struct Run<'a> {
    plan: &'a Plan,
    links: &'a Links,
    /// First event of each step, and the number of all events.
    first: Vec<u32>,
    /// Event of the receiver that takes a message; of each connection, in order.
    taken: Vec<u32>,
    /// Place in `taken` of a step's first message.
    message: Vec<u32>,
    /// Place in `taken` of the first message that a thread block sends.
    sent: Vec<u32>,
    /// Next event of each thread block.
    next: Vec<u32>,
    /// Step of that event.
    at: Vec<u32>,
    /// Who waits for an event of a thread block.
    waiting: Vec<BinaryHeap<Reverse<(u32, u32)>>>,
}

impl<'a> Run<'a> {
    fn new(plan: &'a Plan, links: &'a Links) -> Self {
        let mut first = Vec::with_capacity(plan.steps.len() + 1);
        let mut events = 0;
        first.push(0);
        for step in &plan.steps {
            // A step of more messages than slots blocks as one with a single message too many does.
            let moves = step.kind.sends() || step.kind.receives();
            events += match moves {
                true => (step.count.div_ceil(plan.head.per_message)).min(plan.head.slots + 1),
                false => 1,
            };
            first.push(events);
        }
        let mut run = Run {
            plan,
            links,
            next: plan
                .blocks
                .iter()
                .map(|b| first[b.steps.start as usize])
                .collect(),
            at: plan.blocks.iter().map(|b| b.steps.start).collect(),
            first,
            taken: Vec::new(),
            message: vec![NONE; plan.steps.len()],
            sent: vec![NONE; plan.blocks.len()],
            waiting: vec![BinaryHeap::new(); plan.blocks.len()],
        };
        run.messages();
        run
    }

    fn messages(&mut self) {
        for (sender, &receiver) in self.links.receiver.iter().enumerate() {
            self.sent[sender] = self.taken.len() as u32;
            if receiver == NONE {
                continue;
            }
            for step in self.plan.blocks[receiver as usize].steps.clone() {
                if !self.plan.steps[step as usize].kind.receives() {
                    continue;
                }
                let send = self.links.sent_by[step as usize];
                self.message[send as usize] = self.taken.len() as u32;
                let events = self.first[step as usize]..self.first[step as usize + 1];
                self.taken.extend(events);
            }
        }
    }

    /// Run a thread block as far as it comes.
    fn advance(&mut self, block: u32, order: &mut Vec<u32>) {
        let end = self.plan.blocks[block as usize].steps.end;
        while self.at[block as usize] < end {
            if let Some((other, event)) = self.obstacle(block) {
                self.waiting[other as usize].push(Reverse((event, block)));
                return;
            }
            let step = self.at[block as usize];
            self.next[block as usize] += 1;
            if self.next[block as usize] == self.first[step as usize + 1] {
                order.push(step);
                self.at[block as usize] += 1;
            }
        }
    }

    /// Let go on who waited for what has happened in `block`.
    fn wake(&mut self, block: u32, ready: &mut VecDeque<u32>) {
        let done = self.next[block as usize];
        let waiting = &mut self.waiting[block as usize];
        while waiting.peek().is_some_and(|Reverse(first)| first.0 < done) {
            if let Some(Reverse((_, waiter))) = waiting.pop() {
                ready.push_back(waiter);
            }
        }
    }

    /// What the next event of `block` waits for: an event of a thread block.
    fn obstacle(&self, block: u32) -> Option<(u32, u32)> {
        let step = self.at[block as usize] as usize;
        let part = self.next[block as usize] - self.first[step];
        let kind = self.plan.steps[step].kind;
        let pending =
            |block: u32, event: u32| (self.next[block as usize] <= event).then_some((block, event));
        let owner = |step: u32| self.links.block_of[step as usize];
        let dependency = || {
            let after = self.links.after[step];
            let waits = after != NONE && part == 0;
            waits.then(|| (owner(after), self.first[after as usize + 1] - 1))
        };
        let arrival = || {
            let send = self.links.sent_by[step];
            let waits = kind.receives();
            waits.then(|| (owner(send), self.first[send as usize] + part))
        };
        let room = || {
            let slots = self.plan.head.slots;
            let full = kind.sends() && {
                let earlier = self.message[step] + part - self.sent[block as usize];
                earlier >= slots
            };
            full.then(|| {
                let freed = self.taken[(self.message[step] + part - slots) as usize];
                (self.links.receiver[block as usize], freed)
            })
        };
        let hold = |wait: Option<(u32, u32)>| wait.and_then(|(b, event)| pending(b, event));
        hold(dependency())
            .or_else(|| hold(arrival()))
            .or_else(|| hold(room()))
    }

    /// The circle in which a run that does not end is caught.
    fn refuse<T>(&self) -> Result<T> {
        let blocks = 0..self.plan.blocks.len() as u32;
        let unfinished = |&b: &u32| self.at[b as usize] < self.plan.blocks[b as usize].steps.end;
        let mut block = blocks.clone().find(unfinished).unwrap_or(0);
        // Each stuck thread block waits for another stuck one, so as many moves lead into a circle.
        for _ in blocks {
            block = self.obstacle(block).map_or(block, |wait| wait.0);
        }
        let (start, mut circle) = (block, Vec::new());
        loop {
            circle.push(self.at[block as usize]);
            let Some((other, event)) = self.obstacle(block) else {
                break;
            };
            let awaited = self.first.partition_point(|&first| first <= event) as u32 - 1;
            block = other;
            if awaited != self.at[block as usize] {
                circle.push(awaited);
            }
            if block == start {
                break;
            }
        }
        let lowest = (0..circle.len()).min_by_key(|&at| circle[at]);
        circle.rotate_left(lowest.unwrap_or(0));
        circle.push(circle[0]);
        let shown: Vec<String> = circle
            .iter()
            .take(SHOWN)
            .map(|&s| self.plan.place(s))
            .collect();
        let more = if circle.len() > SHOWN { " -> ..." } else { "" };
        let head = &self.plan.head;
        let cut = |step: &Step| step.count > head.per_message;
        let smaller = match self.plan.steps.iter().any(cut) {
            true => ", or lower maxBytes",
            false => "",
        };
        let problem = format!(
            "waits for itself, so the plan never ends: {}{more} (at its largest size, a connection holds {} messages \
             of {} chunks); move one of these steps to a thread block of its own, or before the other{smaller}",
            shown.join(" -> "),
            head.slots,
            head.per_message
        );
        self.plan.error(circle[0], problem)
    }
}
