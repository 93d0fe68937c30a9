//! From XML to a [`Plan`]: the file is read once from front to back, and only as deep as the format goes.
//!
//! No document type is accepted, so a file can define no entities, and no attribute that is used may hold one.

mod attributes;
mod elements;

use super::limits::{MAX_BLOCKS, MAX_STEPS};
use super::plan::{Block, Gpu, Head, Plan, Step};
use crate::error::{PlanError, Result};
use attributes::Attributes;
use elements::STEP;
use linkwright_schedule::ir::{Buffer, Owner, MAX_CHUNKS};
use quick_xml::events::{BytesStart, Event};
use quick_xml::Reader;

const GPU: [&str; 4] = ["id", "i_chunks", "o_chunks", "s_chunks"];
const BLOCK: [&str; 4] = ["id", "send", "recv", "chan"];
const BUFFER: [&str; 6] = ["name", "mul", "div", "blocks", "slices", "at"];

/// Read a file.
pub(super) fn parse(text: &str) -> Result<Plan> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_end_names = true;
    let mut parser = Parser::default();
    loop {
        let at = reader.buffer_position() as usize;
        let event = reader.read_event().map_err(|error| {
            let place = line(text, reader.error_position() as usize);
            PlanError::at(place, format!("{error}; the file may be cut or damaged"))
        })?;
        let refused = match event {
            Event::Start(element) => {
                parser.open(&element, at, text)?;
                continue;
            }
            Event::Empty(element) => {
                parser.open(&element, at, text)?;
                parser.close();
                continue;
            }
            Event::End(_) => {
                parser.close();
                continue;
            }
            Event::Text(text) if text.iter().all(u8::is_ascii_whitespace) => continue,
            Event::Decl(_) | Event::PI(_) | Event::Comment(_) => continue,
            Event::Eof => break,
            Event::DocType(_) => "a document type, which a plan does not need; delete it",
            _ => "text between the elements; delete it",
        };
        return Err(PlanError::at(line(text, at), refused));
    }
    match parser.open.last() {
        Some(level) => Err(PlanError::at(
            line(text, text.len()),
            format!("the file ends inside <{}>; it is cut", level.word()),
        )),
        None => parser.finish(),
    }
}

/// `line 3` of a position.
fn line(text: &str, at: usize) -> String {
    let before = &text.as_bytes()[..at.min(text.len())];
    format!(
        "line {}",
        1 + before.iter().filter(|&&b| b == b'\n').count()
    )
}

/// Elements that may be open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Algo,
    Gpu,
    Block,
    Step,
    Buffers,
    Buffer,
}

impl Level {
    /// Which element may stand in which.
    const NESTING: [(&'static str, Option<Level>, Level); 6] = [
        ("algo", None, Level::Algo),
        ("gpu", Some(Level::Algo), Level::Gpu),
        ("tb", Some(Level::Gpu), Level::Block),
        ("step", Some(Level::Block), Level::Step),
        ("linkwright", Some(Level::Algo), Level::Buffers),
        ("buffer", Some(Level::Buffers), Level::Buffer),
    ];

    fn word(self) -> &'static str {
        let found = Self::NESTING.iter().find(|known| known.2 == self);
        found.map_or("algo", |known| known.0)
    }
}

#[derive(Default)]
struct Parser {
    head: Option<Head>,
    gpus: Vec<(u32, Gpu)>,
    blocks: Vec<Block>,
    steps: Vec<Step>,
    buffers: Option<Vec<Buffer>>,
    open: Vec<Level>,
}

impl Parser {
    fn open(&mut self, element: &BytesStart, at: usize, text: &str) -> Result<()> {
        let (parent, name) = (self.open.last().copied(), element.name());
        let known = (Level::NESTING.iter())
            .find(|known| known.0.as_bytes() == name.as_ref() && known.1 == parent);
        let Some(&(_, _, level)) = known else {
            let name = String::from_utf8_lossy(name.as_ref());
            let name: String = name.escape_debug().take(40).collect();
            let parent = parent.map_or("the file".to_string(), |p| format!("<{}>", p.word()));
            let problem =
                format!("<{name}> is not known in {parent}; say it in steps, or delete it");
            return Err(PlanError::at(line(text, at), problem));
        };
        let here = |error: PlanError| PlanError {
            place: Some(error.place.unwrap_or_else(|| line(text, at))),
            ..error
        };
        self.enter(level, element).map_err(here)?;
        self.open.push(level);
        Ok(())
    }

    fn enter(&mut self, level: Level, element: &BytesStart) -> Result<()> {
        match level {
            Level::Algo if self.head.is_some() => {
                Err(PlanError::whole("a second <algo>; keep one in a file"))
            }
            Level::Algo => {
                self.head = Some(elements::head(element)?);
                Ok(())
            }
            Level::Gpu => self.gpu(element),
            Level::Block => self.block(element),
            Level::Step => self.step(element),
            Level::Buffers if self.buffers.is_some() => {
                Err(PlanError::whole("a second <linkwright>; keep one"))
            }
            Level::Buffers => {
                self.buffers = Some(Vec::new());
                Ok(())
            }
            Level::Buffer => self.buffer(element),
        }
    }

    fn close(&mut self) {
        match self.open.pop() {
            Some(Level::Block) => {
                let end = self.steps.len() as u32;
                if let Some(block) = self.blocks.last_mut() {
                    block.steps.end = end;
                }
            }
            Some(Level::Gpu) => {
                let end = self.blocks.len() as u32;
                if let Some((_, gpu)) = self.gpus.last_mut() {
                    gpu.blocks.end = end;
                }
            }
            _ => {}
        }
    }

    fn gpu(&mut self, element: &BytesStart) -> Result<()> {
        let a = Attributes::of(element, &GPU)?;
        let ranks = self.head.as_ref().map_or(0, |head| head.goal.ranks);
        let id = a.number(0, 0..=i64::from(ranks) - 1)?;
        let chunks = |k| a.number(k, 0..=i64::from(MAX_CHUNKS));
        let chunks = [chunks(1)?, chunks(2)?, chunks(3)?];
        let first = self.blocks.len() as u32;
        let blocks = first..first;
        self.gpus.push((id, Gpu { chunks, blocks }));
        Ok(())
    }

    fn block(&mut self, element: &BytesStart) -> Result<()> {
        let gpu = self.gpus.last().map_or(0, |gpu| gpu.0);
        let a = Attributes::of(element, &BLOCK).map_err(|e| within(format!("gpu {gpu}"), e))?;
        let head = self.head.as_ref();
        let (ranks, channels) = head.map_or((0, 0), |head| (head.goal.ranks, head.channels));
        let here = |error| within(format!("gpu {gpu}"), error);
        let tb = (a.number(0, 0..=i64::from(MAX_BLOCKS) - 1)).map_err(here)?;
        let here = |error| within(format!("gpu {gpu}, tb {tb}"), error);
        let peer = |k: usize| -> Result<Option<u32>> {
            let peer = a.signed(k, -1..=i64::from(ranks) - 1).map_err(here)?;
            if peer == i64::from(gpu) {
                let problem = format!("{}=\"{peer}\" is the GPU itself; use cpy or re", BLOCK[k]);
                return Err(here(PlanError::whole(problem)));
            }
            Ok(u32::try_from(peer).ok())
        };
        let (send, recv) = (peer(1)?, peer(2)?);
        let channel = (a.number(3, 0..=i64::from(channels) - 1)).map_err(here)?;
        let first = self.steps.len() as u32;
        self.blocks.push(Block {
            gpu,
            tb,
            send,
            recv,
            channel,
            steps: first..first,
        });
        Ok(())
    }

    fn step(&mut self, element: &BytesStart) -> Result<()> {
        let (gpu, tb, first) = match self.blocks.last() {
            Some(block) => (block.gpu, block.tb, block.steps.start),
            None => (0, 0, 0),
        };
        let next = self.steps.len() as u32 - first;
        let here = |error| within(format!("gpu {gpu}, tb {tb}, step {next}"), error);
        if self.steps.len() >= MAX_STEPS {
            let problem = format!("at most {MAX_STEPS} steps are read; split the plan");
            return Err(here(PlanError::whole(problem)));
        }
        let a = Attributes::of(element, &STEP).map_err(here)?;
        let step = elements::step(&a, next).map_err(here)?;
        self.steps.push(step);
        Ok(())
    }

    fn buffer(&mut self, element: &BytesStart) -> Result<()> {
        let a = Attributes::of(element, &BUFFER)?;
        let small = |k, least| a.number(k, least..=i64::from(MAX_CHUNKS));
        let buffer = Buffer {
            name: a.text(0)?.to_string(),
            owner: Owner::Ranks,
            mul: small(1, 1)?,
            div: small(2, 1)?,
            blocks: small(3, 1)?,
            slices: small(4, 1)?,
            parts: None,
        };
        let buffer = match a.text(5)? {
            "ranks" => buffer,
            _ => buffer.only_at(small(5, 0)?),
        };
        let buffers = self.buffers.get_or_insert_default();
        if buffers.len() >= 256 {
            let problem = "more than 256 buffers; delete <linkwright>";
            return Err(PlanError::whole(problem));
        }
        buffers.push(buffer);
        Ok(())
    }

    /// Everything in order: GPUs and thread blocks without gaps.
    fn finish(mut self) -> Result<Plan> {
        let Some(head) = self.head else {
            let problem = "there is no <algo>; the file is empty or cut";
            return Err(PlanError::at("line 1", problem));
        };
        self.gpus.sort_by_key(|gpu| gpu.0);
        for (expected, (id, _)) in (0u32..).zip(&self.gpus) {
            if *id != expected {
                let problem = match *id < expected {
                    true => format!("gpu {id} stands there twice; keep one"),
                    false => format!("gpu {expected} is missing; ngpus=\"{}\"", head.goal.ranks),
                };
                return Err(PlanError::whole(problem));
            }
        }
        if self.gpus.len() < head.goal.ranks as usize {
            let missing = self.gpus.len();
            let problem = format!("gpu {missing} is missing; ngpus=\"{}\"", head.goal.ranks);
            return Err(PlanError::whole(problem));
        }
        let mut plan = Plan {
            head,
            gpus: Vec::with_capacity(self.gpus.len()),
            blocks: Vec::with_capacity(self.blocks.len()),
            steps: Vec::with_capacity(self.steps.len()),
            buffers: self.buffers,
        };
        for (id, mut gpu) in self.gpus {
            let blocks = &mut self.blocks[gpu.blocks.start as usize..gpu.blocks.end as usize];
            blocks.sort_by_key(|block| block.tb);
            let first = plan.blocks.len() as u32;
            for (expected, block) in (0u32..).zip(blocks) {
                if block.tb != expected {
                    let place = format!("gpu {id}, tb {}", block.tb);
                    let problem = match block.tb < expected {
                        true => "stands there twice; keep one".to_string(),
                        false => format!("tb {expected} is missing; number them from 0"),
                    };
                    return Err(PlanError::at(place, problem));
                }
                let start = plan.steps.len() as u32;
                let steps = &self.steps[block.steps.start as usize..block.steps.end as usize];
                plan.steps.extend_from_slice(steps);
                block.steps = start..plan.steps.len() as u32;
                plan.blocks.push(block.clone());
            }
            gpu.blocks = first..plan.blocks.len() as u32;
            plan.gpus.push(gpu);
        }
        Ok(plan)
    }
}

fn within(place: String, error: PlanError) -> PlanError {
    PlanError::at(place, error.problem)
}
