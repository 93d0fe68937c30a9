//! First come, first served: a job holds all its resources, alone, from beginning to end.
//!
//! Jobs stand in line at each of their resources in the order of their arrival; a job begins when
//! it is first in all its lines. The earliest of all waiting jobs is first in all of its lines, so
//! some job can always go on. A job that waits in one line blocks the jobs behind it in its other
//! lines: head-of-line blocking, as in a switch without virtual channels.

use super::job::{end_of, work, Job};
use super::loads::Load;
use super::uses::Use;
use crate::bins::Bins;
use crate::fabrics::slab::Slab;
use crate::queue::TimeQueue;
use linkwright_core::TimePs;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// The jobs at a resource, the first of which holds it, and the load of the resource: one cache line.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct Line {
    jobs: VecDeque<u32>,
    load: Load,
}

/// The lines at all resources.
#[derive(Clone, Debug, Default)]
pub(super) struct Fifo {
    lines: Vec<Line>,
    jobs: Slab<Job>,
    /// Number of lines in which another job stands before each job; a list of its own, because a line that moves on
    /// needs nothing else.
    behind: Vec<u32>,
    ends: TimeQueue<u32>,
    /// Jobs that begin because another has ended.
    begin: Vec<u32>,
    /// When each resource was busy, where it is asked for.
    pub bins: Option<Box<Bins>>,
}

impl Fifo {
    pub fn new(resources: usize, bins: Option<Box<Bins>>) -> Self {
        Fifo {
            bins,
            lines: vec![Line::default(); resources],
            ..Fifo::default()
        }
    }

    /// Load of each resource.
    pub fn loads(&self) -> impl Iterator<Item = &Load> + Clone {
        self.lines.iter().map(|line| &line.load)
    }

    /// A job queues up.
    pub fn enter(&mut self, now: TimePs, job: Job, uses: &[Use]) {
        let slot = self.jobs.insert(job);
        let mut behind = 0;
        for &each in uses {
            let line = &mut self.lines[each.resource()];
            behind += u32::from(!line.jobs.is_empty());
            line.jobs.push_back(slot);
            (line.load).enter(now, line.jobs.len(), job.bytes * each.weight());
        }
        match self.behind.get_mut(slot as usize) {
            Some(place) => *place = behind,
            None => self.behind.push(behind),
        }
        if behind == 0 {
            self.begin(now, slot);
        }
    }

    /// Jobs at a resource, the one that holds it included.
    pub fn crowd(&self, resource: u32) -> usize {
        self.lines[resource as usize].jobs.len()
    }

    /// When the next job ends.
    pub fn next(&self) -> Option<TimePs> {
        self.ends.next()
    }

    /// The job that ends at `at`, the time that [`Fifo::next`] gave; `uses` says what jobs use.
    pub fn pop_at<'a>(&mut self, at: TimePs, uses: impl Fn(&Job) -> &'a [Use]) -> Option<Job> {
        let slot = self.ends.pop_at(at)?;
        let ended = self.jobs[slot as usize];
        let uses = uses(&ended);
        for each in uses {
            let line = &mut self.lines[each.resource()];
            line.jobs.pop_front();
            let since = line.load.leave(at, line.jobs.len());
            if let (Some(bins), Some(since)) = (&mut self.bins, since) {
                bins.add(each.resource(), since, at);
            }
            let Some(&first) = line.jobs.front() else {
                continue;
            };
            let behind = &mut self.behind[first as usize];
            *behind -= 1;
            if *behind == 0 {
                self.begin.push(first);
            }
        }
        if self.begin.len() > 1 {
            self.order(uses);
        }
        while let Some(first) = self.begin.pop() {
            self.begin(at, first);
        }
        self.jobs.remove(slot);
        Some(ended)
    }

    /// Sort jobs by the resource that releases them, whatever the order in which a way uses its resources; the last in
    /// the list begins first.
    fn order(&mut self, uses: &[Use]) {
        let lines = &self.lines;
        let frees = |slot: u32, each: &Use| lines[each.resource()].jobs.front() == Some(&slot);
        let last = |slot: u32| uses.iter().filter(move |each| frees(slot, each)).max();
        (self.begin).sort_unstable_by_key(|&slot| Reverse(last(slot)));
    }

    fn begin(&mut self, now: TimePs, slot: u32) {
        let job = &self.jobs[slot as usize];
        let end = end_of(now.0, work(job.bytes), job.ceiling);
        self.ends.push(TimePs(end), slot);
    }
}
