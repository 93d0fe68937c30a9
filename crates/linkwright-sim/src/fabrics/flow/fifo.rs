//! First come, first served: a job holds all its resources, alone, from beginning to end.
//!
//! Jobs stand in line at each of their resources in the order of their arrival; a job begins when
//! it is first in all its lines. The earliest of all waiting jobs is first in all of its lines, so
//! somebody can always go on. Where a job waits in one line it blocks those behind it in its other
//! lines: head-of-line blocking, as in a switch without virtual channels.

use super::job::{end_of, work, Job};
use super::loads::Loads;
use super::uses::Use;
use crate::queue::TimeQueue;
use linkwright_core::TimePs;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// The lines at all resources.
#[derive(Clone, Debug, Default)]
pub(super) struct Fifo {
    lines: Vec<VecDeque<u32>>,
    jobs: Vec<Job>,
    /// Lines of each job in which somebody stands before it; by itself, since a line that moves on asks for
    /// nothing else.
    behind: Vec<u32>,
    vacant: Vec<u32>,
    ends: TimeQueue<u32>,
    /// Those that begin as another has ended.
    begin: Vec<u32>,
}

impl Fifo {
    pub fn new(resources: usize) -> Self {
        Fifo {
            lines: vec![VecDeque::new(); resources],
            ..Fifo::default()
        }
    }

    /// A job queues up.
    pub fn enter(&mut self, now: TimePs, job: Job, uses: &[Use], loads: &mut Loads) {
        let slot = match self.vacant.pop() {
            Some(slot) => slot,
            None => {
                self.jobs.push(job);
                self.behind.push(0);
                self.behind.len() as u32 - 1
            }
        };
        let mut behind = 0;
        for &each in uses {
            let line = &mut self.lines[each.resource()];
            behind += u32::from(!line.is_empty());
            line.push_back(slot);
            loads.enter(each.resource(), now, line.len(), job.bytes * each.weight());
        }
        self.jobs[slot as usize] = job;
        self.behind[slot as usize] = behind;
        if behind == 0 {
            self.begin(now, slot);
        }
    }

    /// When the next job ends.
    pub fn next(&self) -> Option<TimePs> {
        self.ends.next()
    }

    /// The job that ends at `at`, the time that [`Fifo::next`] gave; `uses` says what jobs use.
    pub fn pop_at<'a>(
        &mut self,
        at: TimePs,
        uses: impl Fn(&Job) -> &'a [Use],
        loads: &mut Loads,
    ) -> Option<Job> {
        let slot = self.ends.pop_at(at)?;
        let ended = self.jobs[slot as usize];
        for each in uses(&ended) {
            let line = &mut self.lines[each.resource()];
            line.pop_front();
            loads.leave(each.resource(), at, line.len());
            let Some(&first) = line.front() else {
                continue;
            };
            let behind = &mut self.behind[first as usize];
            *behind -= 1;
            if *behind == 0 {
                self.begin.push(first);
            }
        }
        if self.begin.len() > 1 {
            // In the order of the resources that let them go, whatever the order in which a way uses them.
            let lines = &self.lines;
            let frees = |slot: u32, each: &Use| lines[each.resource()].front() == Some(&slot);
            let last = |slot: u32| uses(&ended).iter().filter(move |each| frees(slot, each)).max();
            self.begin.sort_unstable_by_key(|&slot| Reverse(last(slot)));
        }
        while let Some(first) = self.begin.pop() {
            self.begin(at, first);
        }
        self.vacant.push(slot);
        Some(ended)
    }

    fn begin(&mut self, now: TimePs, slot: u32) {
        let job = &self.jobs[slot as usize];
        let end = end_of(now.0, work(job.bytes), job.ceiling);
        self.ends.push(TimePs(end), slot);
    }
}
