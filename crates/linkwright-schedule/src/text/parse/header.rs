//! The header: sizes, the collective, buffers and sets.

use super::Parser;
use crate::ir::{Buffer, Owner, Parts, MAX_CHUNKS, MAX_RANKS};
use crate::spec::Collective;
use crate::text::cursor::{Cursor, Result as LineResult};
use linkwright_core::Participant;
use std::sync::Arc;

impl Parser {
    pub(super) fn header(&mut self, mut line: Cursor) -> LineResult<()> {
        let found = line.found();
        let word = line.word();
        if !matches!(word, "buffer" | "parts" | "set") {
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
            "spec" => {
                s.spec.collective = collective(&mut line)?;
                line.space();
                s.spec.out_of_place = line.take(b"out_of_place");
            }
            "buffer" => self.buffer(&mut line)?,
            "parts" => self.parts(&mut line)?,
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
                     element_bytes, spec, root, repeats, buffer, parts, set, edges, and ends at the \
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
            parts: None,
        };
        line.space();
        properties(line, &mut buffer)?;
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

    /// `of 640 0:5,3:2,;;1:7,;`: class and units of each block of the buffer above, rank after rank.
    fn parts(&mut self, line: &mut Cursor) -> LineResult<()> {
        let Some(buffer) = self
            .schedule
            .buffers
            .last_mut()
            .filter(|one| one.parts.is_none())
        else {
            return Err(
                "`parts` follow the line of their buffer, once; move them there".to_string(),
            );
        };
        line.expect("of", "`of` and the units of a vector")?;
        let of = line.number("the units of a vector")?;
        line.space();
        let mut parts = Parts {
            starts: vec![0],
            firsts: vec![0],
            classes: Vec::new(),
            of,
        };
        let mut units = 0u64;
        while !line.is_done() {
            while !line.take(b";") {
                parts
                    .classes
                    .push(line.number32("a class, or `;` behind those of a rank")?);
                line.expect(":", "`:` and the units of the class")?;
                let added = units.checked_add(line.number("the units of a class")?);
                units = added.ok_or("the units of all classes are more than 64 bits count")?;
                parts.starts.push(units);
                line.expect(",", "`,` behind the units of a class")?;
            }
            parts.firsts.push(parts.classes.len() as u32);
        }
        if of == 0 || parts.classes.len() != buffer.blocks as usize {
            return Err(format!(
                "{} blocks of {of} units a vector for buffer `{}` of {} blocks; give each block, and 1 unit at least",
                parts.classes.len(),
                buffer.name,
                buffer.blocks
            ));
        }
        buffer.parts = Some(Arc::new(parts));
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
    pub(super) fn close_header(&mut self) -> LineResult<()> {
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
        let short = |b: &&Buffer| {
            (b.parts.as_ref()).is_some_and(|p| p.firsts.len() != s.ranks as usize + 1)
        };
        if let Some(buffer) = s.buffers.iter().find(short) {
            return Err(format!(
                "the parts of buffer `{}` are not those of {} ranks; end those of each with `;`",
                buffer.name, s.ranks
            ));
        }
        if let Some(missing) = named.max().filter(|&p| u64::from(p) >= participants) {
            return Err(format!(
                "participant {missing} in the header does not exist; there are {} ranks and {} \
                 memories",
                s.ranks, s.memories
            ));
        }
        Ok(())
    }
}

/// `slices=4 size=1/2 at=ranks`, as many of them as there are.
fn properties(line: &mut Cursor, buffer: &mut Buffer) -> LineResult<()> {
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
    Ok(())
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
