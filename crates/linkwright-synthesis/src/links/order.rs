//! When each task of a plan starts: list scheduling on pairs that share links.
//!
//! Time runs forward. Of the tasks that are ready, each lane issues the most urgent one that [`super::clock`] lets go.
//! With a lane for each receiver, transfers start concurrently. With one lane, a rank sends one thing after another, so
//! a plan becomes rounds in which its messages do not meet.
//!
//! This is no simulation: links are shared in turns and not fairly. It gives every sender the order in which its
//! transfers are issued, and the times are only compared with each other.
//!
//! Source: Graham, "Bounds on multiprocessing timing anomalies" (SIAM J. Appl. Math. 1969), list scheduling.

use super::clock::Clock;
use super::plan::{Plan, MOST_LANES};
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

/// How transfers are issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Which goes first.
    pub urgency: Urgency,
    /// Lanes of a rank; pairs share them in turn.
    pub lanes: u32,
    /// Transfers of a lane that may be on their way at once.
    pub window: u32,
    /// Whether the transfers of a rank start one after another, whatever their lanes.
    pub serial: bool,
}

/// Times of `plan`, whose chunks have `bytes` each.
pub fn arrange(wires: &Wires, plan: &Plan, bytes: u64, style: Style) -> Timed {
    let (waiting, mut missing) = plan.order(wires);
    let rank = ranking(wires, plan, bytes, &waiting, style.urgency);
    let mut run = Run::new(wires, plan, bytes, style);
    let mut at = vec![0u64; plan.tasks.len()];
    let mut timed = Timed {
        start_ps: vec![0; plan.tasks.len()],
        arrival_ps: vec![0; plan.tasks.len()],
    };
    for id in (0..plan.tasks.len() as u32).filter(|&id| missing[id as usize] == 0) {
        run.add((rank[id as usize], id), 0);
    }
    while let Some(Reverse((now, what))) = run.events.pop() {
        match what {
            What::Ready(_, id) => run.add((rank[id as usize], id), now),
            What::Free(lane) => {
                let Some((id, arrival)) = run.take(lane, now) else {
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

/// What may happen next; what becomes ready at an instant does so before lanes choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// The task of this urgency and number.
    Ready(u32, u32),
    /// The lane, perhaps.
    Free(u32),
}

/// Of the tasks that are ready in a lane of several pairs, so many are looked at.
const LOOKED_AT: usize = 64;

struct Run<'a> {
    plan: &'a Plan,
    clock: Clock<'a>,
    /// Lane of each pair, over all ranks.
    lane: Vec<u32>,
    /// By lane, tasks that are ready: urgency and number.
    ready: Vec<BTreeSet<(u32, u32)>>,
    /// By lane, when it looks next.
    looks: Vec<u64>,
    /// Whether pairs share lanes.
    shared: bool,
    events: BinaryHeap<Reverse<(u64, What)>>,
}

impl<'a> Run<'a> {
    fn new(wires: &'a Wires, plan: &'a Plan, bytes: u64, style: Style) -> Self {
        let (lanes, ranks) = (style.lanes.clamp(1, MOST_LANES), wires.endpoints());
        let shared = lanes + 1 < ranks;
        let lane: Vec<u32> = match shared {
            true => (plan.lanes(wires, lanes).into_iter().zip(0..))
                .map(|(lane, pair)| {
                    wires.initiator(pair) * MOST_LANES + u32::from(lane).min(lanes - 1)
                })
                .collect(),
            false => (0..).take(wires.pairs().len()).collect(),
        };
        let all = lane.iter().max().map_or(0, |&last| last as usize + 1);
        Run {
            plan,
            clock: Clock::of_lanes((wires, bytes, style.window), lane.clone(), style.serial),
            lane,
            ready: vec![BTreeSet::new(); all],
            looks: vec![u64::MAX; all],
            shared,
            events: BinaryHeap::new(),
        }
    }

    fn pair(&self, id: u32) -> u32 {
        self.plan.tasks[id as usize].pair
    }

    fn add(&mut self, (rank, id): (u32, u32), now: u64) {
        let pair = self.pair(id);
        let lane = self.lane[pair as usize];
        self.ready[lane as usize].insert((rank, id));
        self.look(lane, self.clock.free(pair).max(now));
    }

    /// Let `lane` look for a task at `at`, unless it does so earlier.
    fn look(&mut self, lane: u32, at: u64) {
        if at < self.looks[lane as usize] {
            self.looks[lane as usize] = at;
            self.events.push(Reverse((at, What::Free(lane))));
        }
    }

    /// The most urgent task of `lane` that its pair and links let go, and when it arrives; otherwise it looks again.
    fn take(&mut self, lane: u32, now: u64) -> Option<(u32, u64)> {
        if self.looks[lane as usize] != now {
            return None;
        }
        self.looks[lane as usize] = u64::MAX;
        let mut soonest = u64::MAX;
        let mut found = None;
        let most = if self.shared { LOOKED_AT } else { 1 };
        for &(rank, id) in self.ready[lane as usize].iter().take(most) {
            let free = self.clock.free(self.pair(id));
            if free <= now {
                found = Some((rank, id));
                break;
            }
            soonest = soonest.min(free);
        }
        let Some(task) = found else {
            self.look(lane, soonest);
            return None;
        };
        self.ready[lane as usize].remove(&task);
        let arrival = self.clock.issue(self.pair(task.1), now);
        if let Some(&(_, next)) = self.ready[lane as usize].first() {
            let at = if self.shared {
                now
            } else {
                self.clock.free(self.pair(next)).max(now)
            };
            self.look(lane, at);
        }
        Some((task.1, arrival))
    }
}
