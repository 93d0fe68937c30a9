//! What has happened before each operation, computed for all at once: for schedules with many long proofs.
//!
//! A *clock* has one number per lane: how far the lane has certainly started. Lanes start in order,
//! so a clock tells whether any given operation has started (Mattern, "Virtual time and
//! global states of distributed systems", 1989):
//!
//! ```text
//!   clock(Y) = max over its waits X, and the operation X before it in its lane, of clock(X); Y itself
//!   X is over before Y starts   if an operation that waited for X has started, by clock(Y)
//! ```
//!
//! The cost is operations times lanes; a search per operation costs operations times searches.

use super::hazard::{meets, Hazard};
use super::order::Barriers;
use crate::ir::{Completion, Schedule};

const NONE: u32 = u32::MAX;

/// Most numbers kept at a time, in all clocks together: 256 MiB.
const MOST_NUMBERS: usize = 1 << 26;

/// An operation that waits for one in question: (operation, waiter, what it learns).
type Witness = (u32, u32, Option<Completion>);

/// Lanes of all operations, densely numbered.
pub(super) struct Lanes {
    pub count: usize,
    pub before: Vec<u32>,
    columns: [u32; 256],
    used: u32,
}

impl Lanes {
    pub fn of(schedule: &Schedule) -> Self {
        let mut columns = [NONE; 256];
        let mut used = 0;
        for op in schedule.ops() {
            let column = &mut columns[op.lane as usize];
            if *column == NONE {
                *column = used;
                used += 1;
            }
        }
        let mut lanes = Lanes {
            count: schedule.ranks as usize * used as usize,
            before: Vec::new(),
            columns,
            used,
        };
        let mut last = vec![NONE; lanes.count];
        lanes.before = (0u32..)
            .zip(schedule.ops())
            .map(|(id, op)| std::mem::replace(&mut last[lanes.lane(op.initiator(), op.lane)], id))
            .collect();
        lanes
    }

    fn lane(&self, rank: u32, lane: u8) -> usize {
        rank as usize * self.used as usize + self.columns[lane as usize] as usize
    }
}

/// Drop from `open`, ascending by operation, all hazards that are ordered. If the clocks do
/// not fit into memory, return false and leave `open` as it was.
pub(super) fn settle(
    schedule: &Schedule,
    barriers: &Barriers,
    lanes: &Lanes,
    open: &mut Vec<(u32, Vec<Hazard>)>,
) -> bool {
    let last = open.last().map_or(0, |(later, _)| *later + 1);
    match Clocks::new(schedule, barriers, lanes, last).unordered(open, last) {
        Some(left) => {
            *open = left;
            true
        }
        None => false,
    }
}

/// Clocks that are still needed, in rows of a table.
struct Clocks<'a> {
    schedule: &'a Schedule,
    barriers: &'a Barriers,
    lanes: &'a Lanes,
    width: usize,
    numbers: Vec<u32>,
    free: Vec<u32>,
    /// Row and remaining uses, of operations and then of barriers.
    rows: Vec<(u32, u32)>,
}

impl<'a> Clocks<'a> {
    /// For the operations before `last`: how often the clock of each, and of each barrier, is read by them.
    fn new(schedule: &'a Schedule, barriers: &'a Barriers, lanes: &'a Lanes, last: u32) -> Self {
        let mut clocks = Clocks {
            schedule,
            barriers,
            lanes,
            width: lanes.count,
            numbers: Vec::new(),
            free: Vec::new(),
            rows: vec![(NONE, 1); schedule.ops().len() + barriers.count()],
        };
        for id in 0..last {
            if let Some(before) = clocks.before(id) {
                clocks.rows[before].1 += 1;
            }
            for edge in schedule.after(id) {
                let clock = clocks.of(edge.op());
                clocks.rows[clock].1 += 1;
            }
            clocks.rows[id as usize].1 += u32::from(barriers.of(id).is_some());
        }
        clocks
    }

    /// The part of `open` that is not ordered; none if the clocks do not fit into memory.
    fn unordered(
        mut self,
        open: &[(u32, Vec<Hazard>)],
        last: u32,
    ) -> Option<Vec<(u32, Vec<Hazard>)>> {
        let witnesses = witnesses(self.schedule, open);
        let mut left = Vec::new();
        let mut next = open.iter().peekable();
        for id in 0..last {
            self.start(id)?;
            if let Some((_, hazards)) = next.next_if(|(later, _)| *later == id) {
                let started = |waiter| self.is_before(waiter, id);
                let mut hazards = hazards.clone();
                hazards.retain(|hazard| !is_over(self.schedule, &witnesses, hazard, started));
                if !hazards.is_empty() {
                    left.push((id, hazards));
                }
            }
            // The last of its uses was here.
            self.release(id as usize);
            let barrier = self.barriers.of(id);
            if let Some(barrier) = barrier.filter(|&b| self.barriers.last(b) == id) {
                self.pass(barrier)?;
            }
        }
        Some(left)
    }

    /// The clock that a waiter for the operation learns: that of the operation or of its barrier.
    fn of(&self, op: u32) -> usize {
        let barrier = self.barriers.of(op);
        barrier.map_or(op as usize, |barrier| self.of_barrier(barrier))
    }

    fn of_barrier(&self, barrier: u32) -> usize {
        self.schedule.ops().len() + barrier as usize
    }

    /// The operation before `id` in its lane.
    fn before(&self, id: u32) -> Option<usize> {
        let before = self.lanes.before[id as usize];
        (before != NONE).then_some(before as usize)
    }

    /// Operation `id` starts.
    fn start(&mut self, id: u32) -> Option<()> {
        let schedule = self.schedule;
        let before = self.before(id);
        let row = self.row(before)?;
        if let Some(before) = before {
            self.release(before);
        }
        for edge in schedule.after(id) {
            let clock = self.of(edge.op());
            self.merge(clock, row);
            self.release(clock);
        }
        let op = &schedule.ops()[id as usize];
        let lane = self.lanes.lane(op.initiator(), op.lane);
        self.numbers[row as usize * self.width + lane] = id + 1;
        self.rows[id as usize].0 = row;
        Some(())
    }

    /// All ranks have arrived at `barrier`.
    fn pass(&mut self, barrier: u32) -> Option<()> {
        let barriers = self.barriers;
        let row = self.row(None)?;
        for &arrival in barriers.arrivals(barrier) {
            self.merge(arrival as usize, row);
            self.release(arrival as usize);
        }
        let clock = self.of_barrier(barrier);
        self.rows[clock].0 = row;
        self.release(clock);
        Some(())
    }

    /// Whether `earlier` has certainly started when `id` starts.
    fn is_before(&self, earlier: u32, id: u32) -> bool {
        let op = &self.schedule.ops()[earlier as usize];
        let start = self.rows[id as usize].0 as usize * self.width;
        self.numbers[start + self.lanes.lane(op.initiator(), op.lane)] > earlier
    }

    /// A row that begins as a copy of the clock `like`.
    fn row(&mut self, like: Option<usize>) -> Option<u32> {
        let row = match self.free.pop() {
            Some(row) => row,
            None if self.numbers.len() + self.width > MOST_NUMBERS => return None,
            None => {
                self.numbers.resize(self.numbers.len() + self.width, 0);
                (self.numbers.len() / self.width) as u32 - 1
            }
        };
        let start = row as usize * self.width;
        match like {
            Some(like) => {
                let from = self.rows[like].0 as usize * self.width;
                self.numbers.copy_within(from..from + self.width, start);
            }
            None => self.numbers[start..start + self.width].fill(0),
        }
        Some(row)
    }

    fn merge(&mut self, from: usize, into: u32) {
        let (from, into) = (self.rows[from].0, into);
        let (low, high) = (from.min(into) as usize, from.max(into) as usize);
        let (head, tail) = self.numbers.split_at_mut(high * self.width);
        let (low, high) = (
            &mut head[low * self.width..][..self.width],
            &mut tail[..self.width],
        );
        let (from, into) = if from < into {
            (low, high)
        } else {
            (high, low)
        };
        for (mine, theirs) in into.iter_mut().zip(from) {
            *mine = (*mine).max(*theirs);
        }
    }

    fn release(&mut self, clock: usize) {
        self.rows[clock].1 -= 1;
        if self.rows[clock].1 == 0 {
            self.free.push(self.rows[clock].0);
        }
    }
}

/// The operations that wait for those in question, ascending.
fn witnesses(schedule: &Schedule, open: &[(u32, Vec<Hazard>)]) -> Vec<Witness> {
    let mut asked = vec![false; schedule.ops().len()];
    for hazard in open.iter().flat_map(|(_, hazards)| hazards) {
        asked[hazard.op as usize] = true;
    }
    let mut found = Vec::new();
    for (id, op) in (0u32..).zip(schedule.ops()) {
        for &edge in schedule.after(id).iter().filter(|e| asked[e.op() as usize]) {
            found.push((edge.op(), id, schedule.completion(edge, op.initiator())));
        }
    }
    found.sort_unstable_by_key(|&(op, waiter, _)| (op, waiter));
    found
}

fn is_over(
    schedule: &Schedule,
    witnesses: &[Witness],
    hazard: &Hazard,
    started: impl Fn(u32) -> bool,
) -> bool {
    let first = witnesses.partition_point(|&(op, _, _)| op < hazard.op);
    let of_op = witnesses[first..].iter().take_while(|w| w.0 == hazard.op);
    of_op.into_iter().any(|&(_, waiter, known)| {
        let rank = schedule.ops()[waiter as usize].initiator();
        meets(known, hazard.need, rank) && started(waiter)
    })
}
