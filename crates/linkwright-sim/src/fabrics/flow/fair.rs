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
//! are worked out again only for jobs connected with it through resources that can be full.
//!
//! Rates are whole bytes per second, work left is in bytes times 10^12, so progress over a time in
//! picoseconds is an exact product, and the same jobs have the same rates whatever came before.
//!
//! Source: Bertsekas and Gallager, *Data Networks* (1992), section 6.5.2; the restriction to what
//! changed is SimGrid's (Casanova, Giersch, Legrand, Quinson and Suter, JPDC 2014).

use super::job::{end_of, work, Job, WHOLE};
use super::loads::Load;
use super::uses::{Fractions, Use};
use crate::bins::Bins;
use linkwright_core::TimePs;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Clone, Debug)]
struct Active {
    job: Job,
    /// Number of its arrival, which breaks ties.
    order: u64,
    left: u128,
    rate: u64,
    since: u64,
    /// Counts changes of rate; an end filed with another number is void.
    stamp: u32,
    seen: u32,
}

/// All jobs and their rates.
#[derive(Clone, Debug)]
pub(super) struct Fair {
    /// Bytes per second of each resource, in units of `fractions`.
    capacity: Vec<u64>,
    fractions: Fractions,
    /// Jobs at each resource.
    members: Vec<Vec<u32>>,
    /// Bytes per second that the jobs at each resource would take.
    demand: Vec<u128>,
    /// What each resource carried.
    pub loads: Vec<Load>,
    /// When each was busy, where it is asked for.
    pub bins: Option<Box<Bins>>,
    /// Whether each resource could be full when rates were worked out.
    was_tight: Vec<bool>,
    active: Vec<Option<Active>>,
    vacant: Vec<u32>,
    ends: BinaryHeap<Reverse<(u64, u64, u32, u32)>>,
    changed: Vec<u32>,
    entered: Vec<u32>,
    arrivals: u64,
    now: u64,
    /// Marks of the search for connected jobs and resources.
    round: u32,
    seen: Vec<u32>,
    left: Vec<u64>,
    weight: Vec<u64>,
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
            loads: vec![Load::default(); n],
            was_tight: vec![false; n],
            active: Vec::new(),
            vacant: Vec::new(),
            ends: BinaryHeap::new(),
            changed: Vec::new(),
            entered: Vec::new(),
            arrivals: 0,
            now: 0,
            round: 0,
            seen: vec![0; n],
            left: vec![0; n],
            weight: vec![0; n],
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
            self.members[r].push(slot);
            self.demand[r] += u128::from(job.ceiling) * u128::from(weight);
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
            rate: 0,
            since: now.0,
            stamp: 0,
            seen: 0,
        });
        self.arrivals += 1;
        match self.active.get_mut(slot as usize) {
            Some(place) => *place = active,
            None => self.active.push(active),
        }
        self.entered.push(slot);
    }

    /// Jobs at a resource.
    pub fn crowd(&self, resource: u32) -> usize {
        self.members[resource as usize].len()
    }

    /// When the next job ends.
    pub fn next<'a>(&mut self, uses: impl Fn(&Job) -> &'a [Use]) -> Option<TimePs> {
        self.settle(uses);
        self.next_filed()
    }

    /// The job that ends at `at`, the time that [`Fair::next`] gave.
    pub fn pop_at<'a>(&mut self, at: TimePs, uses: impl Fn(&Job) -> &'a [Use]) -> Option<Job> {
        if self.next_filed() != Some(at) {
            return None;
        }
        let Reverse((_, _, slot, _)) = self.ends.pop()?;
        self.now = at.0;
        let active = self.active[slot as usize].take().expect("it is active");
        for each in uses(&active.job) {
            let r = each.resource();
            self.members[r].retain(|&member| member != slot);
            self.demand[r] -= u128::from(active.job.ceiling) * u128::from(self.fractions.of(*each));
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
        let mut all: Vec<_> = self.active.iter().flatten().collect();
        all.sort_by_key(|active| active.order);
        all.iter()
            .map(|active| (active.job.token, active.rate))
            .collect()
    }

    /// As [`Fair::next`] without settling: several jobs may end at one instant.
    fn next_filed(&mut self) -> Option<TimePs> {
        loop {
            let &Reverse((at, order, slot, stamp)) = self.ends.peek()?;
            match &self.active[slot as usize] {
                // A place may hold another job by now.
                Some(active) if (active.order, active.stamp) == (order, stamp) => {
                    return Some(TimePs(at))
                }
                _ => drop(self.ends.pop()),
            }
        }
    }

    fn is_tight(&self, resource: usize) -> bool {
        self.demand[resource] > u128::from(self.capacity[resource])
    }

    /// Work out the rates of all jobs that changes since the last time affect.
    fn settle<'a>(&mut self, uses: impl Fn(&Job) -> &'a [Use]) {
        if self.changed.is_empty() && self.entered.is_empty() {
            return;
        }
        self.round += 1;
        let (mut jobs, mut resources) = (Vec::new(), Vec::new());
        for slot in std::mem::take(&mut self.entered) {
            self.join(slot, &mut jobs);
        }
        for resource in std::mem::take(&mut self.changed) {
            let r = resource as usize;
            let tight = self.is_tight(r);
            if (tight || self.was_tight[r]) && self.seen[r] != self.round {
                self.seen[r] = self.round;
                resources.push(resource);
            }
            self.was_tight[r] = tight;
        }
        let (mut next_job, mut next_resource) = (0, 0);
        while next_job < jobs.len() || next_resource < resources.len() {
            if next_resource < resources.len() {
                let r = resources[next_resource] as usize;
                next_resource += 1;
                for slot in self.members[r].clone() {
                    self.join(slot, &mut jobs);
                }
                continue;
            }
            let used = uses(self.job(jobs[next_job]));
            next_job += 1;
            for r in used.iter().map(|each| each.resource()) {
                if self.is_tight(r) && self.seen[r] != self.round {
                    self.seen[r] = self.round;
                    resources.push(r as u32);
                }
            }
        }
        resources.retain(|&resource| self.is_tight(resource as usize));
        self.fill(&jobs, &resources, uses);
    }

    fn job(&self, slot: u32) -> &Job {
        &self.active[slot as usize]
            .as_ref()
            .expect("an active job")
            .job
    }

    fn join(&mut self, slot: u32, jobs: &mut Vec<u32>) {
        let round = self.round;
        if let Some(active) = &mut self.active[slot as usize] {
            if active.seen != round {
                active.seen = round;
                jobs.push(slot);
            }
        }
    }

    /// Let the rates of `jobs` grow together until each is stopped.
    fn fill<'a>(&mut self, jobs: &[u32], resources: &[u32], uses: impl Fn(&Job) -> &'a [Use]) {
        let mut shares = BinaryHeap::with_capacity(resources.len());
        for &resource in resources {
            self.left[resource as usize] = self.capacity[resource as usize];
            self.weight[resource as usize] = 0;
        }
        for &slot in jobs {
            for each in uses(self.job(slot)) {
                self.weight[each.resource()] += self.fractions.of(*each);
            }
        }
        for &resource in resources {
            shares.push(Reverse((self.share(resource), resource)));
        }
        let mut by_ceiling: Vec<(u64, u32)> = jobs
            .iter()
            .map(|&slot| (self.job(slot).ceiling, slot))
            .collect();
        by_ceiling.sort_unstable();
        let mut ceilings = by_ceiling.into_iter().peekable();
        let mut waiting = jobs.len();
        while waiting > 0 {
            while ceilings
                .peek()
                .is_some_and(|&(_, slot)| !self.is_growing(slot))
            {
                ceilings.next();
            }
            let ceiling = ceilings.peek().expect("a job is growing").0;
            match shares.peek() {
                Some(&Reverse((share, resource))) if share < ceiling => {
                    shares.pop();
                    if self.weight[resource as usize] == 0 {
                        continue;
                    }
                    if self.share(resource) != share {
                        // A job has stopped meanwhile, so more is left for each of the others.
                        shares.push(Reverse((self.share(resource), resource)));
                        continue;
                    }
                    for slot in self.members[resource as usize].clone() {
                        if self.is_growing(slot) {
                            self.stop(slot, share.max(1), &uses);
                            waiting -= 1;
                        }
                    }
                }
                _ => {
                    let (_, slot) = ceilings.next().expect("peeked");
                    self.stop(slot, ceiling, &uses);
                    waiting -= 1;
                }
            }
        }
    }

    fn share(&self, resource: u32) -> u64 {
        self.left[resource as usize] / self.weight[resource as usize].max(1)
    }

    fn is_growing(&self, slot: u32) -> bool {
        self.active[slot as usize]
            .as_ref()
            .is_some_and(|a| a.seen == self.round)
    }

    /// The job has its rate; its end follows.
    fn stop<'a>(&mut self, slot: u32, rate: u64, uses: impl Fn(&Job) -> &'a [Use]) {
        for each in uses(self.job(slot)) {
            let r = each.resource();
            let weight = self.fractions.of(*each);
            self.left[r] = self.left[r].saturating_sub(rate * weight);
            self.weight[r] -= weight;
        }
        let now = self.now;
        let active = self.active[slot as usize].as_mut().expect("an active job");
        active.seen = self.round - 1;
        if active.rate == rate {
            return;
        }
        let moved = u128::from(active.rate) * u128::from(now - active.since);
        active.left = active.left.saturating_sub(moved);
        (active.rate, active.since) = (rate, now);
        active.stamp += 1;
        let end = end_of(now, active.left, rate);
        self.ends
            .push(Reverse((end, active.order, slot, active.stamp)));
    }
}

const _: () = assert!(WHOLE == 1_000_000_000_000, "picoseconds per second");
