//! Progress signals: a combined vector is cut into windows, as kernels on many-core chips do.
//!
//! ```text
//!   sender     write window 0, signal | write window 1, signal | (nothing), signal | ...
//!   receiver       wait 0, combine        wait 1, combine          wait 2, skip
//! ```
//!
//! The vector is divided into w windows of consecutive chunks. A transfer into scratch becomes one
//! transfer per window, which carries the chunks that lie in it; for an empty window the kernel still
//! signals, by a notice. The receiver handles the windows in order: it combines what arrived and
//! skips the rest of the window, at a cost (a compute whose work is the number of elements skipped).
//! Steps do not overlap: the first message of a step waits until its initiator has finished the step
//! before and its partner has reported the same. Transfers that are not combined stay whole.
//!
//! The result has waits besides its hazards, so this must be the last transform of a chain. It does
//! not model kernels that combine out of order or that signal per byte.
//!
//! Source: thesis "Implementation of Allreduce algorithms on the Tenstorrent Wormhole n150"
//! (Sapienza University of Rome, 2025), kernel listings.

use crate::error::Result;
use crate::ir::{ranges_of, Hint, Op, OpKind, Schedule, COMPUTE_LANE};
use crate::order::order_with;
use crate::transforms::{behind, loosen, positive, push};

/// Runs of chunks: (first source chunk, first destination chunk, count).
type Runs = Vec<(u32, u32, u32)>;

/// Cut the combined transfers of `schedule` into `windows` windows with a signal each.
pub fn windows(schedule: &Schedule, windows: u32) -> Result<Schedule> {
    positive(windows, "windows")?;
    let mut draft = loosen(schedule)?;
    let ranges = std::mem::take(&mut draft.ranges);
    let ops = std::mem::take(&mut draft.ops);
    let ranks = draft.ranks as usize;
    let mut cutter = Cutter {
        scratch: draft
            .buffers
            .iter()
            .map(|b| b.name.starts_with("scratch"))
            .collect(),
        draft,
        waits: Vec::new(),
        windows,
        before: vec![None; ranks],
        current: vec![None; ranks],
        combined: vec![None; ranks],
        arrivals: vec![Vec::new(); ranks],
    };
    let mut step = None;
    for op in ops {
        if step != Some(op.step) {
            step = Some(op.step);
            cutter.begin_step();
        }
        let all: Runs = ranges_of(&op, &ranges).collect();
        match op.kind {
            OpKind::Local if cutter.scratch[op.src_buffer.0 as usize] => cutter.combine(&op, &all),
            _ => cutter.send(&op, all),
        }
    }
    order_with(cutter.draft, cutter.waits)
}

struct Cutter {
    draft: Schedule,
    /// Explicit waits (position, position waited for).
    waits: Vec<(u32, u32)>,
    windows: u32,
    scratch: Vec<bool>,
    /// Per rank: its last operation in the steps before, and so far.
    before: Vec<Option<u32>>,
    current: Vec<Option<u32>>,
    /// Per rank: the last window combined or skipped; windows are handled in order.
    combined: Vec<Option<u32>>,
    /// Per rank: (window, message) that arrive in the current step.
    arrivals: Vec<Vec<(u32, u32)>>,
}

impl Cutter {
    fn begin_step(&mut self) {
        self.before.copy_from_slice(&self.current);
        self.arrivals.iter_mut().for_each(Vec::clear);
    }

    /// A transfer, or any operation that does not combine from scratch.
    fn send(&mut self, op: &Op, all: Runs) {
        if op.is_message() {
            let partner = if op.kind == OpKind::Get {
                op.from
            } else {
                op.to
            };
            self.wait(self.before[op.initiator() as usize]);
            self.wait(self.before.get(partner as usize).copied().flatten());
        }
        let one_target = matches!(op.kind, OpKind::Put | OpKind::Get);
        let windowed = one_target && self.scratch[op.dst_buffer.0 as usize];
        let pieces: Vec<Runs> = match windowed {
            true => (0..self.windows)
                .map(|window| self.cut(op, &all, window))
                .collect(),
            false => vec![all],
        };
        for (window, piece) in pieces.into_iter().enumerate() {
            let op = &behind(*op, window as u32);
            let position = match windowed && piece.is_empty() {
                true => self.append(op, signal(op), Runs::new()),
                false => self.append(op, *op, piece),
            };
            if windowed {
                self.arrivals[op.to as usize].push((window as u32, position));
            }
        }
    }

    /// A combination from scratch: window by window, in order, skipping what did not arrive.
    fn combine(&mut self, op: &Op, all: &[(u32, u32, u32)]) {
        let mut op = *op;
        for window in 0..self.windows {
            let piece = self.cut(&op, all, window);
            let skipped =
                self.elements(&op, &self.cut_all(&op, window)) - self.elements(&op, &piece);
            if !piece.is_empty() {
                self.wait(self.combined[op.from as usize]);
                self.combined[op.from as usize] = Some(self.append(&op, op, piece));
                op.fenced = false;
            }
            if skipped > 0 {
                self.wait(self.combined[op.from as usize]);
                let came: Vec<u32> = (self.arrivals[op.from as usize].iter())
                    .filter(|arrival| arrival.0 == window)
                    .map(|arrival| arrival.1)
                    .collect();
                came.into_iter()
                    .for_each(|message| self.wait(Some(message)));
                let count = self.draft.work.len() as u32;
                self.draft.work.push(skipped);
                let skip = Op {
                    kind: OpKind::Compute,
                    count,
                    lane: COMPUTE_LANE,
                    ..signal(&op)
                };
                self.combined[op.from as usize] = Some(self.append(&op, skip, Runs::new()));
                op.fenced = false;
            }
        }
    }

    /// The next operation waits for `earlier`.
    fn wait(&mut self, earlier: Option<u32>) {
        let next = self.draft.ops.len() as u32;
        self.waits.extend(earlier.map(|earlier| (next, earlier)));
    }

    /// Append `written`, made from `op`, with these runs; gives its position.
    fn append(&mut self, op: &Op, written: Op, runs: Runs) -> u32 {
        let position = self.draft.ops.len() as u32;
        push(&mut self.draft, written, runs);
        self.current[op.initiator() as usize] = Some(position);
        position
    }

    /// The part of `runs` whose destinations lie in `window`.
    fn cut(&self, op: &Op, runs: &[(u32, u32, u32)], window: u32) -> Runs {
        let chunks = u64::from(self.draft.buffers[op.dst_buffer.0 as usize].chunks());
        let border = |w: u32| (chunks * u64::from(w) / u64::from(self.windows)) as u32;
        let (low, high) = (border(window), border(window + 1));
        let inside = |&(src, dst, count): &(u32, u32, u32)| {
            let (start, end) = (dst.max(low), (dst + count).min(high));
            (start < end).then(|| (src + start - dst, start, end - start))
        };
        runs.iter().filter_map(inside).collect()
    }

    /// All chunks of the destination buffer in `window`.
    fn cut_all(&self, op: &Op, window: u32) -> Runs {
        let chunks = self.draft.buffers[op.dst_buffer.0 as usize].chunks();
        self.cut(op, &[(0, 0, chunks)], window)
    }

    fn elements(&self, op: &Op, runs: &[(u32, u32, u32)]) -> u64 {
        let buffer = &self.draft.buffers[op.dst_buffer.0 as usize];
        let spans = runs
            .iter()
            .map(|run| buffer.span(self.draft.elements, run.1..run.1 + run.2));
        spans.map(|span| span.end - span.start).sum()
    }
}

/// The signal of a window without data, in the place of `op`.
fn signal(op: &Op) -> Op {
    Op {
        hint: match op.kind {
            OpKind::Local => Hint::None,
            _ => op.hint,
        },
        fenced: op.fenced,
        ..op.notice(op.from, op.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Shape;
    use crate::collectives::find;
    use crate::transforms::{pipeline, refine, repeat, unfuse};

    fn make(key: &str, ranks: u32) -> Schedule {
        (find(key).unwrap().build)(&Shape::new(ranks, 1024)).unwrap()
    }

    fn count(schedule: &Schedule, kind: OpKind) -> usize {
        schedule.ops().iter().filter(|op| op.kind == kind).count()
    }

    #[test]
    fn a_ready_notice_per_rank_and_step() {
        // Eight ranks, three steps: nothing to wait for in the first, one notice each in the others.
        let vector = refine(&make("allreduce/recursive_doubling_latency", 8), 32).unwrap();
        let cut = windows(&vector, 32).unwrap();
        assert_eq!(count(&cut, OpKind::Put), 3 * 8 * 32);
        assert_eq!(count(&cut, OpKind::Notice), 2 * 8);
        assert_eq!(count(&cut, OpKind::Compute), 0);
    }

    #[test]
    fn windows_signal_even_without_data() {
        // One chunk in four windows: one transfer and three signals, each way.
        let narrow = windows(&make("allreduce/recursive_doubling_latency", 2), 4).unwrap();
        assert_eq!(
            (count(&narrow, OpKind::Put), count(&narrow, OpKind::Notice)),
            (2, 6)
        );
    }

    #[test]
    fn what_does_not_come_is_skipped() {
        // Two ranks halve a vector of 1,024 elements: each combines 512 and skips 512.
        let halves = unfuse(&make("allreduce/recursive_doubling_bandwidth", 2)).unwrap();
        let cut = windows(&refine(&halves, 4).unwrap(), 4).unwrap();
        let work: u64 = cut.ops().iter().map(|op| cut.op_work(op)).sum();
        assert_eq!(work, 2 * 512);
    }

    #[test]
    fn repeated_runs_do_not_overlap() {
        let exchange = refine(&make("allreduce/recursive_doubling_latency", 2), 8).unwrap();
        let twice = windows(&repeat(&exchange, 2).unwrap(), 4).unwrap();
        assert_eq!(
            (count(&twice, OpKind::Put), count(&twice, OpKind::Notice)),
            (2 * 2 * 4, 2)
        );
    }

    #[test]
    fn a_schedule_with_waits_of_its_own_is_refused() {
        let cut = windows(&make("allreduce/recursive_doubling_latency", 4), 2).unwrap();
        assert!(pipeline(&cut, 2).is_err());
    }

    #[test]
    fn what_is_cut_is_still_right() {
        for key in [
            "swing_latency",
            "swing_bandwidth",
            "recursive_doubling_bandwidth",
        ] {
            let whole = unfuse(&make(&format!("allreduce/{key}"), 8)).unwrap();
            let cut = windows(&repeat(&whole, 2).unwrap(), 4).unwrap();
            crate::verify::verify(&cut).unwrap();
        }
    }
}
