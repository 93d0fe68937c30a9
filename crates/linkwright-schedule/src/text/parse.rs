//! From text to a schedule.

use super::cursor::{Cursor, Result as LineResult};
use super::print::hint_word;
use super::remote::{lower, other_side};
use super::VERSION_LINE;
use crate::builder::infer;
use crate::ir::{
    Buffer, BufferId, Combine, Edge, Hint, Op, OpKind, Owner, Schedule, COMPUTE_LANE, MAX_CHUNKS,
    MAX_OPS, MAX_RANKS,
};
use crate::order::owns;
use crate::spec::{Collective, Spec};
use linkwright_core::Participant;
use thiserror::Error;

/// What is wrong with a schedule file: the line, what stands there, and the cure.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {problem}")]
pub struct ParseError {
    /// Line, counted from 1.
    pub line: usize,
    /// What stands there, and the cure.
    pub problem: String,
}

/// Read a schedule. It is within bounds, but not verified.
pub fn parse(text: &str) -> Result<Schedule, ParseError> {
    let mut parser = Parser::new();
    let mut line = 0;
    for bytes in text.as_bytes().split(|&b| b == b'\n') {
        line += 1;
        parser
            .line(Cursor::new(bytes))
            .map_err(|problem| ParseError { line, problem })?;
    }
    // The last piece after a final newline is no line.
    let line = line - usize::from(text.ends_with('\n'));
    parser
        .finish()
        .map_err(|problem| ParseError { line, problem })
}

/// Stands for the comma at the end of `[0..2,]`, which makes a list of one range.
const COMMA: (u32, u32) = (u32::MAX, 0);

/// Which part of the file is being read.
#[derive(PartialEq)]
enum Part {
    Version,
    Header,
    Operations,
    End,
}

struct Parser {
    part: Part,
    schedule: Schedule,
    /// Header words seen.
    seen: Vec<String>,
    /// The file has no edges; they are to be found.
    infer: bool,
    step: Option<u32>,
    remote: Vec<(u32, Vec<Edge>)>,
    /// Source and destination ranges of the operation being read: (first, count).
    ranges: [Vec<(u32, u32)>; 2],
}

impl Parser {
    fn new() -> Self {
        let spec = Spec {
            collective: Collective::Pattern,
            root: 0,
            repeats: 1,
        };
        Parser {
            part: Part::Version,
            schedule: Schedule {
                spec,
                ranks: 0,
                memories: 0,
                elements: 0,
                element_bytes: 4,
                buffers: Vec::new(),
                sets: Vec::new(),
                ops: Vec::new(),
                edge_start: vec![0],
                edges: Vec::new(),
                ranges: Vec::new(),
                work: Vec::new(),
                own_waits: Default::default(),
            },
            seen: Vec::new(),
            infer: false,
            step: None,
            remote: Vec::new(),
            ranges: [Vec::new(), Vec::new()],
        }
    }

    fn line(&mut self, mut line: Cursor) -> LineResult<()> {
        if line.is_done() {
            return Ok(());
        }
        match self.part {
            Part::Version => self.version(line),
            Part::End => Err(format!("{} after `end`; remove it", line.found())),
            _ if line.take(b"step ") => self.begin_step(line),
            Part::Operations => match line.take(b"end") {
                true => {
                    self.part = Part::End;
                    line.end()
                }
                false => self.operation(line),
            },
            // A schedule over one rank may have no operation.
            Part::Header if line.take(b"end") => {
                self.close_header()?;
                self.part = Part::End;
                line.end()
            }
            Part::Header => self.header(line),
        }
    }

    fn version(&mut self, mut line: Cursor) -> LineResult<()> {
        let cure = format!("this program reads files that begin with `{VERSION_LINE}`");
        if !line.take(b"linkwright-schedule") {
            return Err(format!("{} is no schedule; {cure}", line.found()));
        }
        line.space();
        let found = line.found();
        if !line.take(b"1") || line.end().is_err() {
            return Err(format!("version {found} is unknown; {cure}"));
        }
        self.part = Part::Header;
        Ok(())
    }

    fn header(&mut self, mut line: Cursor) -> LineResult<()> {
        let found = line.found();
        let word = line.word();
        if !matches!(word, "buffer" | "set") {
            if self.seen.iter().any(|seen| seen == word) {
                return Err(format!("`{word}` a second time; remove one"));
            }
            self.seen.push(word.to_string());
        }
        line.space();
        let s = &mut self.schedule;
        match word {
            "ranks" => s.ranks = line.number32("a number of ranks")?,
            "memories" => s.memories = line.number32("a number of memories")?,
            "elements" => s.elements = line.number("a number of elements")?,
            "element_bytes" => s.element_bytes = line.number32("a number of bytes")?,
            "root" => s.spec.root = line.number32("a rank")?,
            "repeats" => s.spec.repeats = line.number32("a number of repetitions")?,
            "spec" => s.spec.collective = collective(&mut line)?,
            "buffer" => self.buffer(&mut line)?,
            "set" => self.set(&mut line)?,
            "edges" => {
                let found = line.found();
                self.infer = match line.word() {
                    "given" => false,
                    "infer" => true,
                    _ => return Err(format!("edges {found}; write `given` or `infer`")),
                }
            }
            _ => {
                return Err(format!(
                    "{found} is no line of the header, which has ranks, memories, elements, \
                     element_bytes, spec, root, repeats, buffer, set, edges, and ends at the \
                     first `step`"
                ))
            }
        }
        line.end()
    }

    fn buffer(&mut self, line: &mut Cursor) -> LineResult<()> {
        let name = line.word().to_string();
        if name.is_empty() {
            return Err(format!(
                "{} where the name of a buffer should stand (letters, digits, `_`)",
                line.found()
            ));
        }
        if self.schedule.buffer_named(&name).is_some() {
            return Err(format!("buffer `{name}` a second time; rename one"));
        }
        if self.schedule.buffers.len() == 256 {
            return Err("more than 256 buffers; use fewer".to_string());
        }
        line.space();
        let mut buffer = Buffer {
            name,
            owner: Owner::Ranks,
            mul: 1,
            div: 1,
            blocks: line.number32("a number of blocks")?,
            slices: 1,
        };
        line.space();
        while !line.is_done() {
            if line.take(b"slices=") {
                buffer.slices = line.number32("a number of slices")?;
            } else if line.take(b"size=") {
                buffer.mul = line.number32("a size such as 1/4")?;
                line.expect("/", "`/` of a size such as 1/4")?;
                buffer.div = line.number32("a size such as 1/4")?;
            } else if line.take(b"at=ranks") {
                buffer.owner = Owner::Ranks;
            } else if line.take(b"at=") {
                let one = line.number32("`ranks` or a participant")?;
                buffer.owner = Owner::One(Participant(one));
            } else {
                return Err(format!(
                    "{} is no property of a buffer; known are slices=, size=, at=",
                    line.found()
                ));
            }
            line.space();
        }
        let chunks = u64::from(buffer.blocks) * u64::from(buffer.slices);
        if chunks == 0 || chunks > u64::from(MAX_CHUNKS) || buffer.div == 0 {
            return Err(format!(
                "buffer `{}` of {} blocks of {} slices, {}/{} of a vector; it needs 1 to \
                 {MAX_CHUNKS} chunks and a size that is a number",
                buffer.name, buffer.blocks, buffer.slices, buffer.mul, buffer.div
            ));
        }
        self.schedule.buffers.push(buffer);
        Ok(())
    }

    fn set(&mut self, line: &mut Cursor) -> LineResult<()> {
        let next = self.schedule.sets.len();
        let name = format!("s{next}");
        let before = *line;
        if line.word() != name {
            return Err(format!(
                "set {}; sets count up, the next is `{name}`",
                before.found()
            ));
        }
        line.space();
        let mut members = vec![line.number32("a participant")?];
        while line.take(b",") {
            members.push(line.number32("a participant")?);
        }
        self.schedule.sets.push(members);
        Ok(())
    }

    /// What the header says as a whole.
    fn close_header(&mut self) -> LineResult<()> {
        let s = &self.schedule;
        for word in ["ranks", "elements", "spec", "edges"] {
            if !self.seen.iter().any(|seen| seen == word) {
                return Err(format!("the header has no line `{word}`; add it above"));
            }
        }
        let participants = u64::from(s.ranks) + u64::from(s.memories);
        if s.ranks == 0 || participants > u64::from(MAX_RANKS) {
            return Err(format!(
                "{} ranks and {} memories in the header; 1 to {MAX_RANKS} together are possible",
                s.ranks, s.memories
            ));
        }
        if s.spec.root >= s.ranks || s.element_bytes == 0 || s.spec.repeats == 0 {
            return Err(format!(
                "root {}, element_bytes {}, repeats {} in the header; the root is a rank below {}, \
                 the others are at least 1",
                s.spec.root, s.element_bytes, s.spec.repeats, s.ranks
            ));
        }
        let owners = s.buffers.iter().filter_map(|buffer| match buffer.owner {
            Owner::One(one) => Some(one.0),
            Owner::Ranks => None,
        });
        let named = s.sets.iter().flatten().copied().chain(owners);
        if let Some(missing) = named.max().filter(|&p| u64::from(p) >= participants) {
            return Err(format!(
                "participant {missing} in the header does not exist; there are {} ranks and {} \
                 memories",
                s.ranks, s.memories
            ));
        }
        Ok(())
    }

    fn begin_step(&mut self, mut line: Cursor) -> LineResult<()> {
        if self.part == Part::Header {
            self.close_header()?;
            self.part = Part::Operations;
        }
        line.space();
        let step = line.number32("a step number")?;
        // Operations of a step are simultaneous where edges are inferred, so its lines are together.
        if self.infer && self.step.is_some_and(|before| step <= before) {
            return Err(format!(
                "step {step} is not after the step before; count up"
            ));
        }
        self.step = Some(step);
        line.end()
    }

    fn operation(&mut self, mut line: Cursor) -> LineResult<()> {
        let id = self.schedule.ops.len() as u32;
        if self.schedule.ops.len() >= MAX_OPS {
            return Err(format!("more than {MAX_OPS} operations; use fewer ranks"));
        }
        if line.take(b"t") {
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
        } else if !self.infer {
            return Err(format!(
                "{} where the id t{id}, `step` or `end` should stand",
                line.found()
            ));
        }
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
        };
        if matches!(op.kind, OpKind::Local | OpKind::Compute) {
            op.lane = COMPUTE_LANE;
        }
        line.space();
        self.operands(&mut line, &mut op)?;
        self.options(&mut line, &mut op)?;
        self.schedule.ops.push(op);
        self.schedule
            .edge_start
            .push(self.schedule.edges.len() as u32);
        Ok(())
    }

    fn operands(&mut self, line: &mut Cursor, op: &mut Op) -> LineResult<()> {
        match op.kind {
            OpKind::Put | OpKind::Get | OpKind::Multicast | OpKind::Local => {
                op.from = self.participant(line)?;
                op.src_buffer = self.chunks(line, 0)?;
                line.space();
                line.expect("->", "`->`")?;
                op.to = match op.kind {
                    OpKind::Multicast => self.set_name(line)?,
                    _ => self.participant(line)?,
                };
                op.dst_buffer = self.chunks(line, 1)?;
                line.space();
                let before = *line;
                op.combine = match line.word() {
                    "replace" => Combine::Replace,
                    "reduce" | "sum" => Combine::Reduce,
                    _ => return Err(format!("{}; write `replace` or `reduce`", before.found())),
                };
                if op.kind == OpKind::Local && op.from != op.to {
                    return Err(format!(
                        "a local operation from {} to {}; make them equal or put",
                        op.from, op.to
                    ));
                }
                self.place_ranges(op)?;
            }
            OpKind::Notice => {
                if self.infer {
                    return Err("a notice in a file with `edges infer`; remove it".to_string());
                }
                op.from = self.participant(line)?;
                line.space();
                line.expect("->", "`->`")?;
                op.to = self.participant(line)?;
            }
            OpKind::Barrier => {
                op.from = self.participant(line)?;
                line.space();
                op.to = self.set_name(line)?;
            }
            OpKind::Compute => {
                op.from = self.participant(line)?;
                op.to = op.from;
                line.space();
                line.expect("work=", "`work=`")?;
                op.count = self.schedule.work.len() as u32;
                self.schedule
                    .work
                    .push(line.number("a number of operations")?);
            }
            OpKind::Fence => {
                op.from = self.participant(line)?;
                op.to = op.from;
            }
        }
        if op.initiator() >= self.schedule.ranks {
            return Err(format!(
                "memory {} cannot issue operations; let a rank put or get",
                op.initiator()
            ));
        }
        self.owned(op)
    }

    /// Both sides have the buffers named.
    fn owned(&self, op: &Op) -> LineResult<()> {
        if !op.moves_data() {
            return Ok(());
        }
        let s = &self.schedule;
        let targets = s.targets(op).iter().map(|&target| (target, op.dst_buffer));
        for (participant, id) in targets.chain([(op.from, op.src_buffer)]) {
            let buffer = s.buffer(id);
            if !owns(buffer.owner, participant, s.ranks) {
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

    fn options(&mut self, line: &mut Cursor, op: &mut Op) -> LineResult<()> {
        let mut far = Vec::new();
        let two_sided = matches!(op.kind, OpKind::Put | OpKind::Get | OpKind::Multicast);
        let gets = op.kind == OpKind::Get;
        loop {
            line.space();
            if line.is_done() {
                break;
            }
            if line.take(b"lane=") {
                let lane = line.number("a lane")?;
                op.lane = u8::try_from(lane)
                    .map_err(|_| format!("lane {lane} does not exist; lanes are 0..255"))?;
            } else if line.take(b"hint=") {
                op.hint = hint(line)?;
            } else if two_sided && line.take(b"src_after=") {
                self.waits(line, op, gets.then_some(&mut far))?;
            } else if two_sided && line.take(b"dst_after=") {
                self.waits(line, op, (!gets).then_some(&mut far))?;
            } else if !two_sided && line.take(b"after=") {
                self.waits(line, op, None)?;
            } else {
                let waits = if two_sided {
                    "src_after=, dst_after="
                } else {
                    "after="
                };
                return Err(format!(
                    "{} is no property of this operation; known are lane=, hint=, {waits}",
                    line.found()
                ));
            }
        }
        if !far.is_empty() {
            self.remote.push((self.schedule.ops.len() as u32, far));
        }
        Ok(())
    }

    /// `-` or `t3,t5!`; `far` takes the waits of the side that does not initiate.
    fn waits(
        &mut self,
        line: &mut Cursor,
        op: &Op,
        mut far: Option<&mut Vec<Edge>>,
    ) -> LineResult<()> {
        if line.take(b"-") {
            return Ok(());
        }
        let id = self.schedule.ops.len() as u32;
        loop {
            if !line.take(b"t") {
                return Err(format!(
                    "{} where `-` or an id such as t0 should stand",
                    line.found()
                ));
            }
            let target = line.number32("an id such as t0")?;
            if target >= id {
                return Err(format!(
                    "t{id} waits for t{target}, which is not earlier; sort the operations so that \
                     every edge leads to a smaller id"
                ));
            }
            let edge = match line.take(b"!") {
                true => Edge::acknowledged(target),
                false => Edge::on(target),
            };
            if self.infer {
                return Err(
                    "an edge in a file with `edges infer`; write `edges given` and all \
                            edges, or none"
                        .to_string(),
                );
            }
            match &mut far {
                Some(far) => {
                    self.can_wait_far(op, edge)?;
                    far.push(edge);
                }
                None => self.schedule.edges.push(edge),
            }
            if !line.take(b",") {
                return Ok(());
            }
        }
    }

    fn can_wait_far(&self, op: &Op, edge: Edge) -> LineResult<()> {
        if op.kind == OpKind::Multicast {
            return Err(
                "the targets of a multicast cannot wait; let them send notices and let \
                        the source wait for those"
                    .to_string(),
            );
        }
        let other = other_side(op);
        if other >= self.schedule.ranks {
            return Err(format!("memory {other} cannot wait; let a rank wait"));
        }
        match self.schedule.completion(edge, other) {
            Some(_) => Ok(()),
            None => Err(format!(
                "rank {other} waits for t{}, which it cannot see; let a rank that can see it send \
                 a notice",
                edge.op()
            )),
        }
    }

    fn finish(mut self) -> LineResult<Schedule> {
        match self.part {
            Part::Version => Err(format!("the file is empty; begin with `{VERSION_LINE}`")),
            Part::Header | Part::Operations => {
                Err("the file ends without `end`, so a part of it is missing".to_string())
            }
            Part::End if self.infer => infer(self.schedule).map_err(|error| error.to_string()),
            Part::End => {
                lower(&mut self.schedule, &self.remote);
                Ok(self.schedule)
            }
        }
    }
}

fn collective(line: &mut Cursor) -> LineResult<Collective> {
    let before = *line;
    Collective::from_name(line.word()).ok_or_else(|| {
        let known: Vec<&str> = Collective::ALL.iter().map(|c| c.name()).collect();
        format!(
            "no collective called {}; known are {}",
            before.found(),
            known.join(", ")
        )
    })
}

fn kind(line: &mut Cursor) -> LineResult<OpKind> {
    let before = *line;
    Ok(match line.word() {
        "put" => OpKind::Put,
        "get" => OpKind::Get,
        "multicast" => OpKind::Multicast,
        "local" => OpKind::Local,
        "compute" => OpKind::Compute,
        "barrier" => OpKind::Barrier,
        "fence" => OpKind::Fence,
        "notice" => OpKind::Notice,
        _ => {
            return Err(format!(
                "no operation called {}; known are put, get, multicast, local, compute, \
                 barrier, fence, notice",
                before.found()
            ))
        }
    })
}

fn hint(line: &mut Cursor) -> LineResult<Hint> {
    let hints = [
        Hint::None,
        Hint::PlusX,
        Hint::MinusX,
        Hint::PlusY,
        Hint::MinusY,
    ];
    let known = |hint: &Hint| line.take(hint_word(*hint).as_bytes());
    // `-` is the beginning of `-x`, so it comes last.
    let found = hints.into_iter().rev().find(known);
    found.ok_or_else(|| format!("{} is no hint; known are +x, -x, +y, -y", line.found()))
}
