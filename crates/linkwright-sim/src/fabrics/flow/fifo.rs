//! First come, first served: a job holds all its resources, alone, from beginning to end.
//!
//! Jobs stand in line at each of their resources in the order of their arrival; a job begins when
//! it is first in all its lines. The earliest of all waiting jobs is first in all of its lines, so
//! somebody can always go on. Where a job waits in one line it blocks those behind it in its other
//! lines: head-of-line blocking, as in a switch without virtual channels.

use super::job::{end_of, work, Job};
use linkwright_core::TimePs;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

#[derive(Clone, Debug)]
struct Waiting {
    job: Job,
    /// Lines in which somebody stands before it.
    behind: usize,
}

/// The lines at all resources.
#[derive(Clone, Debug, Default)]
pub(super) struct Fifo {
    lines: Vec<VecDeque<u32>>,
    jobs: Vec<Option<Waiting>>,
    vacant: Vec<u32>,
    ends: BinaryHeap<Reverse<(u64, u64, u32)>>,
    begun: u64,
}

impl Fifo {
    pub fn new(resources: usize) -> Self {
        Fifo {
            lines: vec![VecDeque::new(); resources],
            ..Fifo::default()
        }
    }

    /// A job queues up.
    pub fn enter(&mut self, now: TimePs, job: Job) {
        let slot = self.vacant.pop().unwrap_or(self.jobs.len() as u32);
        let mut behind = 0;
        for &(resource, _) in job.uses.iter() {
            let line = &mut self.lines[resource as usize];
            behind += usize::from(!line.is_empty());
            line.push_back(slot);
        }
        let waiting = Some(Waiting { job, behind });
        match self.jobs.get_mut(slot as usize) {
            Some(place) => *place = waiting,
            None => self.jobs.push(waiting),
        }
        if behind == 0 {
            self.begin(now, slot);
        }
    }

    /// When the next job ends.
    pub fn next(&self) -> Option<TimePs> {
        self.ends.peek().map(|&Reverse((at, _, _))| TimePs(at))
    }

    /// The job that ends at `at`, the time that [`Fifo::next`] gave.
    pub fn pop_at(&mut self, at: TimePs) -> Option<Job> {
        if self.next() != Some(at) {
            return None;
        }
        let Reverse((_, _, slot)) = self.ends.pop()?;
        let ended = self.jobs[slot as usize].take().expect("it has begun").job;
        for &(resource, _) in ended.uses.iter() {
            self.lines[resource as usize].pop_front();
            let Some(&first) = self.lines[resource as usize].front() else {
                continue;
            };
            let waiting = self.jobs[first as usize].as_mut().expect("it waits");
            waiting.behind -= 1;
            if waiting.behind == 0 {
                self.begin(at, first);
            }
        }
        self.vacant.push(slot);
        Some(ended)
    }

    /// Jobs at a resource.
    pub fn load(&self, resource: u32) -> usize {
        self.lines[resource as usize].len()
    }

    fn begin(&mut self, now: TimePs, slot: u32) {
        let job = &self.jobs[slot as usize].as_ref().expect("it waits").job;
        let end = end_of(now.0, work(job.bytes), job.ceiling);
        self.ends.push(Reverse((end, self.begun, slot)));
        self.begun += 1;
    }
}
