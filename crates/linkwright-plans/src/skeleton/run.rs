//! Run thread blocks without data: each in turn goes on until it has to wait.

use super::{Rows, Skeleton};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A run. Each thread block has its events in the order of their steps; the start of a step is the last of its events.
pub(super) struct Run<'a> {
    skeleton: &'a Skeleton,
    /// The events that an event waits for.
    before: Rows,
    /// All events in the order of thread blocks, and the index of each there.
    line: Vec<u32>,
    place: Vec<u32>,
    /// Index of the next event of each thread block, and the end of its part of the line.
    next: Vec<(u32, u32)>,
    done: Vec<bool>,
    /// For each thread block, the (index, thread block) pairs that wait for it.
    waiting: Vec<BinaryHeap<Reverse<(u32, u32)>>>,
}

impl<'a> Run<'a> {
    pub fn of(skeleton: &'a Skeleton) -> Self {
        let events = skeleton.owner.len();
        let mut line: Vec<u32> = (0..events as u32).collect();
        let owner = |event: u32| skeleton.owner[event as usize];
        line.sort_by_key(|&event| (owner(event), skeleton.is_step(event)));
        let blocks = skeleton
            .block
            .iter()
            .max()
            .map_or(0, |&last| last as usize + 1);
        let (mut place, mut next) = (vec![0; events], vec![(0, 0); blocks]);
        for (at, &event) in (0..).zip(&line) {
            place[event as usize] = at;
            let part = &mut next[skeleton.block[owner(event) as usize] as usize];
            *part = (if part.1 == 0 { at } else { part.0 }, at + 1);
        }
        Run {
            skeleton,
            before: Rows::of(events, skeleton.edges().map(|edge| (edge.1, edge.0))),
            line,
            place,
            next,
            done: vec![false; events],
            waiting: vec![BinaryHeap::new(); blocks],
        }
    }

    /// The events in the order in which they happen; incomplete if some wait for each other.
    pub fn all(mut self) -> Vec<u32> {
        let mut ready: VecDeque<u32> = (0..self.next.len() as u32).collect();
        let mut sequence = Vec::with_capacity(self.line.len());
        while let Some(block) = ready.pop_front() {
            self.advance(block, &mut sequence);
            let (next, waiting) = (
                self.next[block as usize].0,
                &mut self.waiting[block as usize],
            );
            while waiting.peek().is_some_and(|Reverse(first)| first.0 < next) {
                ready.extend(waiting.pop().map(|Reverse(first)| first.1));
            }
        }
        sequence
    }

    fn advance(&mut self, block: u32, sequence: &mut Vec<u32>) {
        while self.next[block as usize].0 < self.next[block as usize].1 {
            let event = self.line[self.next[block as usize].0 as usize];
            let open = |other: &&u32| !self.done[**other as usize];
            if let Some(&other) = self.before.at(event).iter().find(open) {
                let step = self.skeleton.owner[other as usize];
                let by = self.skeleton.block[step as usize];
                let place = self.place[other as usize];
                return self.waiting[by as usize].push(Reverse((place, block)));
            }
            self.done[event as usize] = true;
            sequence.push(event);
            self.next[block as usize].0 += 1;
        }
    }
}
