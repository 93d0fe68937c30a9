//! One operation: what it does, to which participants and chunks.

use super::Parser;
use crate::ir::{BufferId, Combine, Hint, Op, OpKind, COMPUTE_LANE, MAX_OPS};
use crate::text::cursor::{Cursor, Result as LineResult};

/// Stands for the comma at the end of `[0..2,]`, which makes a list of one range.
const COMMA: (u32, u32) = (u32::MAX, 0);

impl Parser {
    pub(super) fn operation(&mut self, mut line: Cursor) -> LineResult<()> {
        if self.schedule.ops.len() >= MAX_OPS {
            return Err(format!("more than {MAX_OPS} operations; use fewer ranks"));
        }
        self.id(&mut line)?;
        let mut op = Op {
            from: 0,
            to: 0,
            src: 0,
            dst: 0,
            count: 0,
            step: self.step.unwrap_or(0),
            kind: kind(&mut line)?,
            combine: Combine::Replace,
            src_buffer: BufferId(0),
            dst_buffer: BufferId(0),
            lane: 0,
            hint: Hint::None,
            scattered: false,
            fenced: false,
        };
        if matches!(op.kind, OpKind::Local | OpKind::Compute) {
            op.lane = COMPUTE_LANE;
        }
        line.space();
        self.operands(&mut line, &mut op)?;
        self.options(&mut line, &mut op)?;
        self.schedule.ops.push(op);
        self.schedule.end_edges().map_err(|error| error.to_string())
    }

    /// Operations are numbered; only where edges are inferred may the number be left out.
    fn id(&self, line: &mut Cursor) -> LineResult<()> {
        let id = self.schedule.ops.len() as u32;
        if !line.take(b"t") {
            return match self.infer {
                true => Ok(()),
                false => Err(format!(
                    "{} where the id t{id}, `step` or `end` should stand",
                    line.found()
                )),
            };
        }
        let given = line.number32("an id such as t0")?;
        if given != id {
            let what = if given < id {
                "exists already"
            } else {
                "comes too early"
            };
            return Err(format!("t{given} {what}; ids count up, the next is t{id}"));
        }
        line.space();
        Ok(())
    }

    fn operands(&mut self, line: &mut Cursor, op: &mut Op) -> LineResult<()> {
        if op.kind == OpKind::Notice && self.infer {
            return Err("a notice in a file with `edges infer`; remove it".to_string());
        }
        op.from = match op.kind {
            OpKind::Aggregate => self.set_name(line)?,
            _ => self.participant(line)?,
        };
        op.to = op.from;
        match op.kind {
            OpKind::Put | OpKind::Get | OpKind::Multicast | OpKind::Aggregate | OpKind::Local => {
                self.data(line, op)?
            }
            OpKind::Notice => {
                line.space();
                line.expect("->", "`->`")?;
                op.to = self.participant(line)?;
            }
            OpKind::Barrier => {
                line.space();
                op.to = self.set_name(line)?;
            }
            OpKind::Compute => {
                line.space();
                line.expect("work=", "`work=`")?;
                op.count = self.schedule.work.len() as u32;
                let work = line.number("a number of operations")?;
                self.schedule.work.push(work);
            }
            OpKind::Fence => {}
        }
        if op.initiator() >= self.schedule.ranks {
            return Err(format!(
                "memory {} cannot issue operations; let a rank put or get",
                op.initiator()
            ));
        }
        self.owned(op)
    }

    /// What moves, to whom, and how it meets what is there: `:input[0] -> 1:output[2] reduce`.
    fn data(&mut self, line: &mut Cursor, op: &mut Op) -> LineResult<()> {
        op.src_buffer = self.chunks(line, 0)?;
        line.space();
        line.expect("->", "`->`")?;
        op.to = match op.kind {
            OpKind::Multicast | OpKind::Aggregate => self.set_name(line)?,
            _ => self.participant(line)?,
        };
        op.dst_buffer = self.chunks(line, 1)?;
        line.space();
        op.combine = combine(line)?;
        if op.kind == OpKind::Local && op.from != op.to {
            return Err(format!(
                "a local operation from {} to {}; make them equal or put",
                op.from, op.to
            ));
        }
        if op.kind == OpKind::Aggregate {
            self.pair_sets(op)?;
        }
        self.place_ranges(op)
    }

    /// The sets that an aggregation names become its initiator and the pair of them.
    fn pair_sets(&mut self, op: &mut Op) -> LineResult<()> {
        let s = &mut self.schedule;
        let sets = (op.from, op.to);
        op.from = s.sets[sets.1 as usize][0];
        op.to = self.pairs.enter(&mut s.aggregations, &sets);
        Ok(())
    }

    /// Both sides have the buffers named.
    fn owned(&self, op: &Op) -> LineResult<()> {
        if !op.moves_data() {
            return Ok(());
        }
        let s = &self.schedule;
        let targets = s.targets(op).iter().map(|&target| (target, op.dst_buffer));
        let sources = s.sources(op).iter().map(|&source| (source, op.src_buffer));
        for (participant, id) in targets.chain(sources) {
            let buffer = s.buffer(id);
            if !buffer.owner.includes(participant, s.ranks) {
                return Err(format!(
                    "participant {participant} has no buffer `{}`; see its line in the header",
                    buffer.name
                ));
            }
        }
        Ok(())
    }

    fn participant(&self, line: &mut Cursor) -> LineResult<u32> {
        let participant = line.number32("a participant")?;
        let (ranks, memories) = (self.schedule.ranks, self.schedule.memories);
        match participant < ranks + memories {
            true => Ok(participant),
            false => Err(format!(
                "participant {participant} does not exist; there are {ranks} ranks and {memories} \
                 memories"
            )),
        }
    }

    fn set_name(&self, line: &mut Cursor) -> LineResult<u32> {
        if !line.take(b"s") {
            return Err(format!(
                "{} where a set such as s0 should stand",
                line.found()
            ));
        }
        let set = line.number32("a set such as s0")?;
        match (set as usize) < self.schedule.sets.len() {
            true => Ok(set),
            false => Err(format!("set s{set} is not in the header; add it there")),
        }
    }

    /// `:output[0..2,5]`, into `self.ranges[side]`; a comma at the end is kept as [`COMMA`].
    fn chunks(&mut self, line: &mut Cursor, side: usize) -> LineResult<BufferId> {
        line.expect(":", "`:` and a buffer")?;
        let before = *line;
        let name = line.word();
        let Some(id) = self.schedule.buffer_named(name) else {
            return Err(format!(
                "no buffer called {}; add it to the header",
                before.found()
            ));
        };
        line.expect("[", "`[` and chunks")?;
        let end = self.schedule.buffer(id).chunks();
        let ranges = &mut self.ranges[side];
        ranges.clear();
        loop {
            let before = *line;
            let start = line.number32("a chunk")?;
            let stop = match line.take(b"..") {
                true => line.number32("a chunk")?,
                false => start.saturating_add(1),
            };
            if start > stop || stop > end {
                return Err(format!(
                    "{}: the chunks {start}..{stop} do not exist; `{name}` has chunks 0..{end}",
                    before.found()
                ));
            }
            ranges.push((start, stop - start));
            if line.take(b",]") {
                ranges.push(COMMA);
                return Ok(id);
            }
            if line.take(b"]") {
                return Ok(id);
            }
            line.expect(",", "`,` or `]`")?;
        }
    }

    /// Pair the ranges of both sides.
    fn place_ranges(&mut self, op: &mut Op) -> LineResult<()> {
        let [src, dst] = &self.ranges;
        let pairs = src.len() == dst.len() && src.iter().zip(dst).all(|(a, b)| a.1 == b.1);
        if !pairs {
            let count = |side: &[(u32, u32)]| side.iter().map(|r| u64::from(r.1)).sum::<u64>();
            return Err(format!(
                "{} chunks in {} ranges are sent into {} in {}; make them equal, range by range",
                count(src),
                src.len(),
                count(dst),
                dst.len()
            ));
        }
        if let ([(first, count)], [(into, _)]) = (&src[..], &dst[..]) {
            (op.src, op.dst, op.count) = (*first, *into, *count);
            return Ok(());
        }
        let listed = src.iter().filter(|&&range| range != COMMA).count();
        op.scattered = true;
        op.src = self.schedule.ranges.len() as u32;
        op.dst = op.src;
        op.count = listed as u32;
        let both = src.iter().zip(dst).take(listed);
        (self.schedule.ranges).extend(both.map(|(a, b)| (a.0, b.0, a.1)));
        Ok(())
    }
}

#[inline]
fn combine(line: &mut Cursor) -> LineResult<Combine> {
    let before = *line;
    match line.word() {
        "replace" => Ok(Combine::Replace),
        "reduce" | "sum" => Ok(Combine::Reduce),
        _ => Err(format!("{}; write `replace` or `reduce`", before.found())),
    }
}

#[inline]
fn kind(line: &mut Cursor) -> LineResult<OpKind> {
    let before = *line;
    OpKind::from_name(line.word()).ok_or_else(|| {
        let known = OpKind::NAMES.join(", ");
        format!("no operation called {}; known are {known}", before.found())
    })
}
