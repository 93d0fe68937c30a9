//! When each task of a plan starts: list scheduling on pairs that share links.
//!
//! Time runs forward. Of the tasks that are ready, each pair issues the most urgent one as soon as [`super::clock`] lets
//! it.
//!
//! This is no simulation: links are shared in turns and not fairly. It gives every sender the order in which its
//! transfers are issued, and the times are only compared with each other.
//!
//! Source: Graham, "Bounds on multiprocessing timing anomalies" (SIAM J. Appl. Math. 1969), list scheduling.

use super::clock::Clock;
use super::plan::Plan;
use super::wires::Wires;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Which of the tasks that are ready goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// The one with the longest chain of tasks behind it.
    Tail,
    /// The first in the plan.
    Age,
}

/// A plan with times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timed {
    /// By task, when it starts, in picoseconds.
    pub start_ps: Vec<u64>,
    /// By task, when its chunk arrives, in picoseconds.
    pub arrival_ps: Vec<u64>,
}

impl Timed {
    /// When the last chunk arrives, in picoseconds.
    pub fn end_ps(&self) -> u64 {
        self.arrival_ps.iter().copied().max().unwrap_or(0)
    }
}

/// Times of `plan`, whose chunks have `bytes` each, with up to `window` transfers of each pair at once.
pub fn arrange(wires: &Wires, plan: &Plan, bytes: u64, (urgency, window): (Urgency, u32)) -> Timed {
    let (waiting, missing) = plan.order(wires);
    let rank = ranking(wires, plan, bytes, &waiting, urgency);
    let mut run = Run {
        clock: Clock::new(wires, bytes, window),
        ready: vec![BTreeSet::new(); wires.pairs().len()],
        events: BinaryHeap::new(),
    };
    let mut missing = missing;
    let mut at = vec![0u64; plan.tasks.len()];
    let mut timed = Timed {
        start_ps: vec![0; plan.tasks.len()],
        arrival_ps: vec![0; plan.tasks.len()],
    };
    for id in (0..plan.tasks.len() as u32).filter(|&id| missing[id as usize] == 0) {
        run.add(plan.tasks[id as usize].pair, (rank[id as usize], id), 0);
    }
    while let Some(Reverse((now, what))) = run.events.pop() {
        match what {
            What::Ready(_, id) => {
                run.add(plan.tasks[id as usize].pair, (rank[id as usize], id), now)
            }
            What::Free(pair) => {
                let Some((id, arrival)) = run.take(pair, now) else {
                    continue;
                };
                timed.start_ps[id as usize] = now;
                timed.arrival_ps[id as usize] = arrival;
                for &next in &waiting[id as usize] {
                    let place = next as usize;
                    at[place] = at[place].max(arrival);
                    missing[place] -= 1;
                    if missing[place] == 0 {
                        let ready = What::Ready(rank[place], next);
                        run.events.push(Reverse((at[place], ready)));
                    }
                }
            }
        }
    }
    timed
}

/// Of each task, its place among all, the most urgent first.
fn ranking(
    wires: &Wires,
    plan: &Plan,
    bytes: u64,
    waiting: &[Vec<u32>],
    urgency: Urgency,
) -> Vec<u32> {
    let tasks = plan.tasks.len();
    if urgency == Urgency::Age {
        return (0..tasks as u32).collect();
    }
    let mut tail = vec![0u64; tasks];
    for id in (0..tasks).rev() {
        let behind = waiting[id].iter().map(|&next| tail[next as usize]).max();
        tail[id] = behind.unwrap_or(0) + wires.pair(plan.tasks[id].pair).time_ps(bytes);
    }
    let mut order: Vec<u32> = (0..tasks as u32).collect();
    order.sort_by_key(|&id| (Reverse(tail[id as usize]), id));
    let mut rank = vec![0; tasks];
    for (place, id) in (0..).zip(order) {
        rank[id as usize] = place;
    }
    rank
}

/// What may happen next; what becomes ready at an instant does so before pairs choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// The task of this urgency and number.
    Ready(u32, u32),
    /// The pair, perhaps.
    Free(u32),
}

struct Run<'a> {
    clock: Clock<'a>,
    /// By pair, tasks that are ready: urgency and number.
    ready: Vec<BTreeSet<(u32, u32)>>,
    events: BinaryHeap<Reverse<(u64, What)>>,
}

impl Run<'_> {
    fn add(&mut self, pair: u32, task: (u32, u32), now: u64) {
        let queue = &mut self.ready[pair as usize];
        queue.insert(task);
        if queue.len() == 1 {
            let at = self.clock.free(pair).max(now);
            self.events.push(Reverse((at, What::Free(pair))));
        }
    }

    /// The most urgent task of `pair` and when it arrives, if the pair is free; otherwise it comes again when it is.
    fn take(&mut self, pair: u32, now: u64) -> Option<(u32, u64)> {
        let free = self.clock.free(pair);
        if free > now {
            self.events.push(Reverse((free, What::Free(pair))));
            return None;
        }
        let (_, id) = self.ready[pair as usize].pop_first()?;
        let arrival = self.clock.issue(pair, now);
        if !self.ready[pair as usize].is_empty() {
            let at = self.clock.free(pair).max(now);
            self.events.push(Reverse((at, What::Free(pair))));
        }
        Some((id, arrival))
    }
}
