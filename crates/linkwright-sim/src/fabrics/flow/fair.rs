//! Max-min fair sharing, recomputed only around changes.
//!
//! Every job wants as much as it can get: its ceiling. Rates grow together from zero; a job stops
//! at its ceiling, or when a resource that it uses is full, and everyone else goes on:
//!
//! ```text
//!   share(r) = (capacity of r - what its stopped jobs take) / uses of r by the others
//!   repeat     stop the job with the smallest ceiling or share, at that rate
//! ```
//!
//! so no job can get more without taking from one that has less. A resource whose jobs together
//! want no more than it has can never be full, so it connects no jobs: when a job comes or goes, rates
//! are worked out again only for jobs connected with it through resources that can be full, and only from
//! the rate on at which something can change:
//!
//! ```text
//!   a job has gone     below its rate, its resources had more for everyone, and have still
//!   a job has come     below the share that is left for it where others keep at most their rates
//! ```
//!
//! Whoever was stopped below that keeps its rate, and connects no jobs.
//!
//! Rates are whole bytes per second, work left is in bytes times 10^12, so progress over a time in
//! picoseconds is an exact product, and the same jobs have the same rates whatever came before.
//!
//! Source: Bertsekas and Gallager, *Data Networks* (1992), section 6.5.2; the restriction to what
//! changed is SimGrid's (Casanova, Giersch, Legrand, Quinson and Suter, JPDC 2014).

use super::ends::Ends;
use super::job::{end_of, work, Job, WHOLE};
use super::loads::Load;
use super::uses::{Fractions, Use};
use crate::bins::Bins;
use linkwright_core::TimePs;
use std::cmp::Reverse;
use std::collections::binary_heap::{BinaryHeap, PeekMut};

#[derive(Clone, Debug)]
struct Active {
    job: Job,
    /// Number of its arrival, which breaks ties.
    order: u64,
    left: u128,
    since: u64,
}

/// The rate of a job that has just begun.
const NONE: u64 = u64::MAX;

/// All jobs and their rates.
#[derive(Clone, Debug)]
pub(super) struct Fair {
    /// Bytes per second of each resource, in units of `fractions`.
    capacity: Vec<u64>,
    fractions: Fractions,
    /// Jobs at each resource and the weights of their uses, in any order.
    members: Vec<Vec<(u32, u64)>>,
    /// Bytes per second that the jobs at each resource would take.
    demand: Vec<u128>,
    /// Whether that is more than it has.
    tight: Vec<bool>,
    /// Whether it was when rates were worked out.
    was_tight: Vec<bool>,
    /// What each resource carried.
    pub loads: Vec<Load>,
    /// When each was busy, where it is asked for.
    pub bins: Option<Box<Bins>>,
    active: Vec<Option<Active>>,
    /// By slot.
    rates: Vec<u64>,
    vacant: Vec<u32>,
    ends: Ends,
    changed: Vec<u32>,
    entered: Vec<u32>,
    arrivals: u64,
    now: u64,
    /// The lowest rate at which something can have changed since rates were worked out.
    lowest: u64,
    /// Counts the times that rates were worked out.
    round: u32,
    /// By slot and by resource, the last round in which it was connected, and its number then.
    jobs_seen: Vec<(u32, u32)>,
    resources_seen: Vec<(u32, u32)>,
    /// By resource, the last round in which what it leaves for new jobs was looked at.
    looked_at: Vec<u32>,
    growth: Growth,
}

/// Connected jobs and resources by numbers of their own, whose rates grow together; kept for its memory.
#[derive(Clone, Debug, Default)]
struct Growth {
    jobs: Vec<Growing>,
    resources: Vec<Room>,
    /// What the jobs use of resources that can be full, one job after the other: number and weight.
    used: Vec<(u32, u64)>,
    by_ceiling: Vec<(u64, u32)>,
    shares: BinaryHeap<Reverse<(u64, u32, u32)>>,
}

#[derive(Clone, Debug)]
struct Growing {
    slot: u32,
    /// Its part of [`Growth::used`].
    used: (u32, u32),
    /// Once it has stopped.
    rate: Option<u64>,
}

/// What is left of a resource, and uses of it by growing jobs.
#[derive(Clone, Debug)]
struct Room {
    resource: u32,
    left: u64,
    weight: u64,
}

impl Room {
    fn share(&self) -> u64 {
        self.left / self.weight.max(1)
    }
}

impl Fair {
    pub fn new(capacity: &[u64], fractions: &Fractions, bins: Option<Box<Bins>>) -> Self {
        let n = capacity.len();
        Fair {
            bins,
            capacity: capacity
                .iter()
                .map(|rate| rate << fractions.shift())
                .collect(),
            fractions: fractions.clone(),
            members: vec![Vec::new(); n],
            demand: vec![0; n],
            tight: vec![false; n],
            was_tight: vec![false; n],
            loads: vec![Load::default(); n],
            active: Vec::new(),
            rates: Vec::new(),
            vacant: Vec::new(),
            ends: Ends::default(),
            changed: Vec::new(),
            entered: Vec::new(),
            arrivals: 0,
            now: 0,
            lowest: NONE,
            round: 0,
            jobs_seen: Vec::new(),
            resources_seen: vec![(0, 0); n],
            looked_at: vec![0; n],
            growth: Growth::default(),
        }
    }

    /// Know the fractions of all jobs to come.
    #[inline]
    pub fn learn(&mut self, fractions: &Fractions) {
        self.fractions.learn(fractions);
    }

    /// A job begins.
    pub fn enter(&mut self, now: TimePs, job: Job, uses: &[Use]) {
        self.now = now.0;
        let slot = self.vacant.pop().unwrap_or(self.active.len() as u32);
        for each in uses {
            let r = each.resource();
            let weight = self.fractions.of(*each);
            self.members[r].push((slot, weight));
            self.demand[r] += u128::from(job.ceiling) * u128::from(weight);
            self.tight[r] = self.demand[r] > u128::from(self.capacity[r]);
            self.changed.push(r as u32);
            self.loads[r].enter(
                now,
                self.members[r].len(),
                self.fractions.bytes(job.bytes, *each),
            );
        }
        let active = Some(Active {
            left: work(job.bytes),
            job,
            order: self.arrivals,
            since: now.0,
        });
        self.arrivals += 1;
        if self.active.len() <= slot as usize {
            self.active.push(None);
            self.rates.push(NONE);
            self.jobs_seen.push((0, 0));
        }
        self.active[slot as usize] = active;
        self.rates[slot as usize] = NONE;
        self.entered.push(slot);
    }

    /// Jobs at a resource.
    pub fn crowd(&self, resource: u32) -> usize {
        self.members[resource as usize].len()
    }

    /// When the next job ends.
    pub fn next<'a>(&mut self, uses: impl Fn(&Job) -> &'a [Use]) -> Option<TimePs> {
        self.settle(uses);
        self.ends.next().map(TimePs)
    }

    /// The job that ends at `at`, the time that [`Fair::next`] gave; several may end at one instant.
    pub fn pop_at<'a>(&mut self, at: TimePs, uses: impl Fn(&Job) -> &'a [Use]) -> Option<Job> {
        if self.ends.next() != Some(at.0) {
            return None;
        }
        let slot = self.ends.pop()?;
        self.now = at.0;
        let active = self.active[slot as usize].take().expect("it is active");
        let rate = self.rates[slot as usize];
        for each in uses(&active.job) {
            let r = each.resource();
            self.members[r].retain(|&(member, _)| member != slot);
            if self.was_tight[r] {
                self.lowest = self.lowest.min(rate);
            }
            self.demand[r] -= u128::from(active.job.ceiling) * u128::from(self.fractions.of(*each));
            self.tight[r] = self.demand[r] > u128::from(self.capacity[r]);
            self.changed.push(r as u32);
            let since = self.loads[r].leave(at, self.members[r].len());
            if let (Some(bins), Some(since)) = (&mut self.bins, since) {
                bins.add(r, since, at);
            }
        }
        self.vacant.push(slot);
        Some(active.job)
    }

    /// Rates by arrival, for tests.
    #[cfg(test)]
    pub fn rates<'a>(&mut self, uses: impl Fn(&Job) -> &'a [Use]) -> Vec<(u32, u64)> {
        self.settle(uses);
        let all = self.active.iter().zip(&self.rates);
        let mut all: Vec<_> = all
            .filter_map(|(active, rate)| Some((active.as_ref()?, *rate)))
            .collect();
        all.sort_by_key(|(active, _)| active.order);
        all.iter()
            .map(|(active, rate)| (active.job.token, *rate))
            .collect()
    }

    /// Work out the rates of all jobs that changes since the last time affect.
    fn settle<'a>(&mut self, uses: impl Fn(&Job) -> &'a [Use]) {
        if self.changed.is_empty() && self.entered.is_empty() {
            return;
        }
        self.round += 1;
        let mut growth = std::mem::take(&mut self.growth);
        growth.clear();
        let mut lowest = std::mem::replace(&mut self.lowest, NONE);
        while let Some(slot) = self.entered.pop() {
            self.join(slot, &mut growth);
        }
        for growing in &growth.jobs {
            let active = self.active[growing.slot as usize].as_ref();
            for each in uses(&active.expect("an active job").job) {
                let r = each.resource();
                if self.tight[r]
                    && std::mem::replace(&mut self.looked_at[r], self.round) != self.round
                {
                    lowest = lowest.min(self.left_at(r));
                }
            }
        }
        while let Some(resource) = self.changed.pop() {
            let r = resource as usize;
            if self.tight[r] || self.was_tight[r] {
                self.connect(r, &mut growth);
            }
            self.was_tight[r] = self.tight[r];
        }
        let (mut next_job, mut next_resource) = (0, 0);
        loop {
            if let Some(room) = growth.resources.get(next_resource) {
                let (resource, mut left) = (room.resource as usize, room.left);
                let members = std::mem::take(&mut self.members[resource]);
                for &(slot, weight) in &members {
                    match self.rates[slot as usize] {
                        rate if rate < lowest => left = left.saturating_sub(rate * weight),
                        _ => self.join(slot, &mut growth),
                    }
                }
                self.members[resource] = members;
                growth.resources[next_resource].left = left;
                next_resource += 1;
            } else if let Some(growing) = growth.jobs.get(next_job) {
                let job = &self.active[growing.slot as usize];
                let job = &job.as_ref().expect("an active job").job;
                growth.by_ceiling.push((job.ceiling, next_job as u32));
                let first = growth.used.len() as u32;
                for each in uses(job) {
                    if self.tight[each.resource()] {
                        let weight = self.fractions.of(*each);
                        let number = self.connect(each.resource(), &mut growth);
                        growth.used.push((number, weight));
                        growth.resources[number as usize].weight += weight;
                    }
                }
                growth.jobs[next_job].used = (first, growth.used.len() as u32);
                next_job += 1;
            } else {
                break;
            }
        }
        growth.fill(|resource| {
            let (members, seen) = (&self.members[resource as usize], &self.jobs_seen);
            let seen = members.iter().map(|&(slot, _)| seen[slot as usize]);
            seen.filter(|seen| seen.0 == self.round).map(|seen| seen.1)
        });
        for growing in &growth.jobs {
            self.run_at(growing.slot, growing.rate.expect("all have stopped"));
        }
        self.growth = growth;
    }

    /// At least what is left for each new job at a resource while others keep their rates where these are lower.
    fn left_at(&self, resource: usize) -> u64 {
        let mut share = 0;
        loop {
            let (mut left, mut growing) = (self.capacity[resource], 0);
            for &(slot, weight) in &self.members[resource] {
                match self.rates[slot as usize] {
                    rate if rate < share => left = left.saturating_sub(rate * weight),
                    _ => growing += weight,
                }
            }
            let before = std::mem::replace(&mut share, left / growing.max(1));
            if growing == 0 || share <= before {
                return before.max(share);
            }
        }
    }

    /// The job is connected.
    #[inline]
    fn join(&mut self, slot: u32, growth: &mut Growth) {
        let seen = &mut self.jobs_seen[slot as usize];
        if seen.0 != self.round && self.active[slot as usize].is_some() {
            *seen = (self.round, growth.jobs.len() as u32);
            growth.jobs.push(Growing {
                slot,
                used: (0, 0),
                rate: None,
            });
        }
    }

    /// The resource is connected; its number.
    #[inline]
    fn connect(&mut self, resource: usize, growth: &mut Growth) -> u32 {
        let seen = &mut self.resources_seen[resource];
        if seen.0 != self.round {
            *seen = (self.round, growth.resources.len() as u32);
            growth.resources.push(Room {
                resource: resource as u32,
                left: self.capacity[resource],
                weight: 0,
            });
        }
        seen.1
    }

    /// The job has its rate; its end follows.
    fn run_at(&mut self, slot: u32, rate: u64) {
        let now = self.now;
        let active = self.active[slot as usize].as_mut().expect("an active job");
        let before = std::mem::replace(&mut self.rates[slot as usize], rate);
        if before == rate {
            return;
        }
        if before != NONE {
            let moved = u128::from(before) * u128::from(now - active.since);
            active.left = active.left.saturating_sub(moved);
        }
        active.since = now;
        let end = end_of(now, active.left, rate);
        self.ends.file((end, active.order, slot));
    }
}

impl Growth {
    fn clear(&mut self) {
        self.jobs.clear();
        self.resources.clear();
        self.used.clear();
        self.by_ceiling.clear();
        self.shares.clear();
    }

    /// Let the rates of the jobs grow together until each is stopped. `members` are the jobs at a resource.
    fn fill<M: Iterator<Item = u32>>(&mut self, members: impl Fn(u32) -> M) {
        let rooms = (0..).zip(&self.resources);
        let used = rooms.filter(|(_, room)| room.weight > 0);
        let shares = used.map(|(number, room)| Reverse((room.share(), room.resource, number)));
        self.shares.extend(shares);
        self.by_ceiling.sort_unstable();
        let (mut waiting, mut next) = (self.jobs.len(), 0);
        while waiting > 0 {
            while self.jobs[self.by_ceiling[next].1 as usize].rate.is_some() {
                next += 1;
            }
            let (ceiling, job) = self.by_ceiling[next];
            let narrowest = self.shares.peek_mut();
            let Some(mut narrowest) = narrowest.filter(|share| share.0 .0 < ceiling) else {
                self.stop(job, ceiling);
                waiting -= 1;
                continue;
            };
            let Reverse((share, resource, number)) = *narrowest;
            let room = &self.resources[number as usize];
            if room.weight > 0 && room.share() != share {
                // A job has stopped meanwhile, so more is left for each of the others.
                narrowest.0 .0 = room.share();
                continue;
            }
            PeekMut::pop(narrowest);
            if self.resources[number as usize].weight == 0 {
                continue;
            }
            for job in members(resource) {
                if self.jobs[job as usize].rate.is_none() {
                    self.stop(job, share.max(1));
                    waiting -= 1;
                }
            }
        }
    }

    /// The job grows no more.
    #[inline]
    fn stop(&mut self, job: u32, rate: u64) {
        let growing = &mut self.jobs[job as usize];
        growing.rate = Some(rate);
        let (first, end) = growing.used;
        for &(number, weight) in &self.used[first as usize..end as usize] {
            let room = &mut self.resources[number as usize];
            room.left = room.left.saturating_sub(rate * weight);
            room.weight -= weight;
        }
    }
}

const _: () = assert!(WHOLE == 1_000_000_000_000, "picoseconds per second");
