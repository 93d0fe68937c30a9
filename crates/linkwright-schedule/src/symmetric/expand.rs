//! A program as all ranks perform it: the ordinary schedule.
//!
//! Ranks differ in nothing, so the hazards of one are the hazards of all: they are found once, in the
//! folded program, and written down for every rank. That takes a tenth of what the ordinary way takes,
//! which finds them rank by rank, and the schedule is the same.

use super::folded::{Folded, Wait};
use super::program::{hint_at, Program};
use crate::builder::MAX_WRITTEN;
use crate::error::{Result, ScheduleError};
use crate::ir::{edge_end, most_ops, Completion, Edge, Op, Remembered, Schedule};
use std::cmp::Reverse;

impl Program {
    /// The schedule over all ranks, operation by operation and in each of them rank by rank.
    pub fn expand(self) -> Result<Schedule> {
        let (each, ranks) = (self.ops.len(), self.ranks() as usize);
        if each * ranks > MAX_WRITTEN {
            return Err(ScheduleError::TooLarge(MAX_WRITTEN as u64));
        }
        let folded = self.fold(true)?;
        if folded.ops().len() * ranks > most_ops() {
            return Err(ScheduleError::TooLarge(most_ops() as u64));
        }
        edge_end(folded.waits.len() * ranks)?;
        Ok(folded.unfold())
    }
}

impl Folded {
    /// The schedule over all ranks: what the folded one stands for.
    pub fn unfold(&self) -> Schedule {
        let (mut all, p) = (self.frame(), self.ranks());
        let operations = self.ops().len() * p as usize;
        all.ops.reserve_exact(operations);
        all.edge_start.reserve_exact(operations);
        all.edges.reserve_exact(self.waits.len() * p as usize);
        for (k, op) in (0u32..).zip(self.ops()) {
            let (waits, plain) = (self.after(k), self.is_plain(op));
            let several = waits.windows(2).any(|w| w[0].op() == w[1].op());
            for i in 0..p {
                let rank = self.performer(op, i);
                let op = match plain {
                    true => self.plain_at(op, rank),
                    false => self.scattered_at(op, rank, &mut all.ranges),
                };
                all.ops.push(op);
                let first = all.edges.len();
                for &wait in waits {
                    all.edges.push(self.edge_at(wait, rank));
                }
                if several {
                    latest_first(&mut all.edges[first..], p);
                }
                all.edge_start.push(all.edges.len() as u32);
            }
        }
        all.own_waits = Remembered(Some(false));
        all
    }

    /// Two ranks for which one stands: what one sends, the other gets. So each meets what every rank meets, though
    /// not from as many others.
    pub fn twins(self) -> Schedule {
        let mut both = self.frame();
        both.ranks = self.ranks().min(2);
        let ranks = both.ranks as usize;
        both.edge_start.reserve_exact(self.ops().len() * ranks);
        both.edges.reserve_exact(self.waits.len() * ranks);
        for k in 0..self.ops().len() as u32 {
            for from in 0..both.ranks {
                for wait in self.after(k) {
                    let performer = match self.completion(*wait) {
                        Some(Completion::Delivered) if wait.rank() != 0 => both.ranks - 1 - from,
                        _ => from,
                    };
                    both.edges
                        .push(wait.edge(wait.op() * both.ranks + performer));
                }
                both.edge_start.push(both.edges.len() as u32);
            }
        }
        both.ranges = self.program.ranges;
        both.ops = self.program.ops;
        // Each operation becomes two where they stand, the last one first.
        let count = both.ops.len();
        both.ops.extend_from_within(..count * (ranks - 1));
        for k in (0..count).rev() {
            let op = both.ops[k];
            for from in 0..both.ranks {
                let to = if op.to == 0 {
                    from
                } else {
                    both.ranks - 1 - from
                };
                both.ops[k * ranks + from as usize] = Op { from, to, ..op };
            }
        }
        both
    }

    /// `wait` as `rank` has it.
    #[inline]
    fn edge_at(&self, wait: Wait, rank: u32) -> Edge {
        wait.edge(self.id((wait.op(), self.group().act(rank, wait.rank()))))
    }

    /// Whether `op` moves one chunk or none.
    fn is_plain(&self, op: &Op) -> bool {
        self.program.is_one_chunk(op) || !op.moves_data()
    }

    /// A plain `op` as `rank` performs it.
    #[inline]
    fn plain_at(&self, op: &Op, rank: u32) -> Op {
        let (to, program) = (self.group().act(rank, op.to), &self.program);
        let (src, dst) = match op.moves_data() {
            true => (
                program.chunk_at(op.src_buffer, op.src, rank),
                program.chunk_at(op.dst_buffer, op.dst, to),
            ),
            false => (0, 0),
        };
        Op {
            from: rank,
            to,
            src,
            dst,
            hint: hint_at(op.hint, rank, to),
            ..*op
        }
    }

    /// Any other; its runs are appended to `listed` if it has several.
    fn scattered_at(&self, op: &Op, rank: u32, listed: &mut Vec<(u32, u32, u32)>) -> Op {
        let to = self.group().act(rank, op.to);
        let mut runs = self.program.runs_at(op, rank);
        let scattered = runs.len() > 1;
        let (src, dst, count) = match scattered {
            true => (listed.len() as u32, listed.len() as u32, runs.len() as u32),
            false => runs.pop().unwrap_or((0, 0, 0)),
        };
        listed.append(&mut runs);
        Op {
            from: rank,
            to,
            src,
            dst,
            count,
            hint: hint_at(op.hint, rank, to),
            scattered,
            ..*op
        }
    }
}

/// Put waits for several ranks' turns at one operation in the order in which hazards are met.
fn latest_first(edges: &mut [Edge], ranks: u32) {
    let turns = edges.chunk_by_mut(|a, b| a.op() / ranks == b.op() / ranks);
    turns.for_each(|turns| turns.sort_unstable_by_key(|edge| Reverse(edge.op())));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::{Builder, Shape, Slot};
    use crate::collectives::{find, REGISTRY};
    use crate::ir::{Combine, OpKind};
    use crate::text::print;
    use crate::transforms::unfuse;

    /// The schedule as it comes when every rank writes the program for itself.
    fn written_by_all(program: &Program) -> Schedule {
        let shape = Shape {
            element_bytes: program.element_bytes,
            ..Shape::new(program.ranks(), program.elements).with_root(program.spec.root)
        };
        let mut b = Builder::new(program.spec.collective, &shape);
        for buffer in &program.buffers {
            b.buffer(buffer.clone());
        }
        let everyone: Vec<u32> = (0..program.ranks()).collect();
        let mut step = 0;
        for op in &program.ops {
            (step..op.step).for_each(|_| b.step());
            step = op.step;
            everyone
                .iter()
                .for_each(|&rank| write_at(program, &mut b, op, rank));
        }
        b.finish().unwrap()
    }

    /// Let `rank` write `op`.
    fn write_at(program: &Program, b: &mut Builder, op: &Op, rank: u32) {
        let to = program.group.act(rank, op.to);
        let (src, dst) = (Slot(op.src_buffer), Slot(op.dst_buffer));
        let runs = program.runs_at(op, rank);
        let written = match op.kind {
            OpKind::Local => b.local_runs(rank, src, dst, &runs),
            _ => b.put_runs(rank, src, to, dst, &runs),
        };
        let mut written = written.hint(hint_at(op.hint, rank, to));
        if op.combine == Combine::Reduce {
            written = written.reduce();
        }
        if op.fenced {
            written.fenced();
        }
    }

    #[test]
    fn what_one_rank_does_unfolds_to_the_schedule_of_all() {
        let mut folds = 0;
        for algorithm in REGISTRY {
            let Some(program) = algorithm.program else {
                continue;
            };
            for p in (1..=33).chain([64]) {
                let shape = Shape::new(p, 3 * u64::from(p) + 1);
                let Ok(program) = program(&shape) else {
                    continue;
                };
                folds += 1;
                let key = algorithm.key();
                let due = written_by_all(&program);
                let unfused = print(&unfuse(&due).unwrap());
                let found = program.clone().fold(false).unwrap().unfold();
                assert_eq!(print(&found), unfused, "{key} p={p}, unfused");
                let found = program.expand().unwrap();
                assert_eq!(print(&found), print(&due), "{key} p={p}");
            }
        }
        assert!(folds > 300, "{folds} programs");
    }

    #[test]
    fn what_would_be_too_large_is_refused_before_the_work() {
        // n operations of each of n ranks, and 2^27 at most: n = 11,585 still fits.
        let pairwise = find("alltoall/pairwise").unwrap().program.unwrap();
        let operations = |ranks: u32| pairwise(&Shape::new(ranks, 1 << 20)).unwrap();
        assert_eq!(operations(11_585).ops.len(), 11_585);
        let refused = operations(11_586).expand();
        assert_eq!(refused, Err(ScheduleError::TooLarge(1 << 27)));
    }
}
