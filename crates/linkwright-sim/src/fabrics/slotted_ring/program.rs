//! The program of an element, line by line: the language of experiments that schedules cannot express.
//!
//! ```text
//!   put SPE1 16384 tag=3 fence      a DMA from the own local store; also barrier, local=, at= (addresses, 0 else)
//!   get MIC 128                     ... into it
//!   list put SPE1 128 x 2048        a DMA list of 2,048 pieces, one after another
//!   on SPE0 get MIC 128             a DMA in the proxy queue of SPE0
//!   wait                            for all own DMAs; `wait 3` for those of tag 3
//!   mail SPE1                       a word into its mailbox, once there is room
//!   read                            a word from the own mailbox, once there is one
//!   signal SPE0 4                   these bits into its signal register
//!   await 6                         until these bits have come
//!   add                             increment a shared counter: getllar and putllc until it succeeds
//!   compute 100                     SPU cycles
//! ```
//!
//! Sizes and addresses are checked as the hardware does; see [`super::command`].

use super::command::{Command, Kind, Order, Piece, Queue, Refused};
use super::config::RingConfig;
use crate::error::SimError;

/// One line of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Queue a command at this element.
    Dma(u8, Command),
    /// Wait for all commands, or those of a tag.
    Wait(Option<u8>),
    /// Write a word into a mailbox.
    Mail(u8),
    /// Read one from the own mailbox.
    Read,
    /// Write bits into a signal register.
    Signal(u8, u32),
    /// Read the own register until all these bits have come.
    Await(u32),
    /// Increment the shared counter.
    Add,
    /// Do something else for this many bus cycles.
    Compute(u64),
}

/// The program of one element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Position of the element.
    pub unit: u8,
    /// Its steps.
    pub steps: Vec<Step>,
    /// The lines they were read from.
    pub lines: Vec<String>,
}

impl Program {
    /// Read the lines of the program of `element`.
    pub fn parse(
        element: &str,
        lines: &[String],
        config: &RingConfig,
    ) -> Result<Program, SimError> {
        let unit = position(element, config).map_err(|problem| refuse(element, 0, problem))?;
        let read = |(number, line): (usize, &String)| {
            let words: Vec<&str> = line.split_whitespace().collect();
            step(&words, unit, config).map_err(|problem| refuse(element, number + 1, problem))
        };
        let steps = lines.iter().enumerate().map(read);
        Ok(Program {
            unit,
            steps: steps.collect::<Result<_, _>>()?,
            lines: lines.to_vec(),
        })
    }
}

fn refuse(element: &str, line: usize, problem: String) -> SimError {
    SimError::Option {
        option: "program",
        problem: format!("{element}, line {line}: {problem}"),
    }
}

fn position(name: &str, config: &RingConfig) -> Result<u8, String> {
    let position = config.elements.iter().position(|element| element == name);
    let known = || format!("no element `{name}`; known: {}", config.elements.join(", "));
    position.map(|at| at as u8).ok_or_else(known)
}

fn number<T: std::str::FromStr>(text: Option<&&str>, what: &str) -> Result<T, String> {
    let text = text.ok_or_else(|| format!("{what} is missing; write a number"))?;
    text.parse()
        .map_err(|_| format!("{what} `{text}` is not a number in range; write one"))
}

fn step(words: &[&str], unit: u8, config: &RingConfig) -> Result<Step, String> {
    let rest = &words[words.len().min(1)..];
    let element = |word: Option<&&str>| position(word.ok_or("which element? name one")?, config);
    match words.first().copied().unwrap_or_default() {
        "on" => dma(element(rest.first())?, &rest[1..], true, config),
        "put" | "get" | "list" => dma(unit, words, false, config),
        "mail" => Ok(Step::Mail(element(rest.first())?)),
        "signal" => Ok(Step::Signal(element(rest.first())?, number(rest.get(1), "bits")?)),
        "await" => Ok(Step::Await(number(rest.first(), "bits")?)),
        "compute" => {
            let cycles: u64 = number(rest.first(), "cycles")?;
            Ok(Step::Compute(cycles.div_ceil(2)))
        }
        "wait" if rest.is_empty() => Ok(Step::Wait(None)),
        "wait" => Ok(Step::Wait(Some(number(rest.first(), "tag")?))),
        "read" => Ok(Step::Read),
        "add" => Ok(Step::Add),
        other => Err(format!(
            "unknown step `{other}`; known: put, get, list, on, wait, mail, read, signal, await, add, compute"
        )),
    }
}

fn dma(unit: u8, words: &[&str], proxy: bool, config: &RingConfig) -> Result<Step, String> {
    let list = words.first() == Some(&"list");
    let words = &words[usize::from(list)..];
    let kind = match words.first() {
        Some(&"put") => Kind::Put,
        Some(&"get") => Kind::Get,
        other => return Err(format!("put or get, not {other:?}; write one of them")),
    };
    let other = position(words.get(1).ok_or("to whom? name an element")?, config)?;
    let bytes = number(words.get(2), "size")?;
    let (pieces, rest) = match list {
        true => pieces(&words[3..])?,
        false => (1, &words[3..]),
    };
    let mut command = Command::single(kind, other, bytes, 0);
    command.list = list;
    command.queue = if proxy { Queue::Proxy } else { Queue::Spu };
    for word in rest {
        option(word, &mut command)?;
    }
    if pieces == 0 {
        return Err("a list of 0 pieces; write at least 1".into());
    }
    // Checked before the pieces are made: a typing error must not fill the memory.
    if list && pieces as usize > config.list_longest {
        return Err(Refused::List(pieces as usize, config.list_longest).to_string());
    }
    let first = command.piece;
    let piece = |index: u32| Piece {
        local: first.local.wrapping_add(index.wrapping_mul(bytes)),
        effective: first.effective + u64::from(index) * u64::from(bytes),
        bytes,
    };
    command.rest = (1..pieces).rev().map(piece).collect();
    command
        .check(config)
        .map_err(|refused| refused.to_string())?;
    Ok(Step::Dma(unit, command))
}

/// `x 2048`: the pieces of a list, and the words after it.
fn pieces<'w>(words: &'w [&'w str]) -> Result<(u32, &'w [&'w str]), String> {
    if words.first() != Some(&"x") {
        return Err("a list needs its number of pieces; write `list put SPE1 128 x 16`".into());
    }
    Ok((number(words.get(1), "number of pieces")?, &words[2..]))
}

/// `tag=3`, `fence` and other options of a DMA.
fn option(word: &str, command: &mut Command) -> Result<(), String> {
    match word.split_once('=') {
        Some(("tag", text)) => command.tag = number(Some(&text), "tag")?,
        Some(("local", text)) => command.piece.local = number(Some(&text), "local address")?,
        Some(("at", text)) => command.piece.effective = number(Some(&text), "effective address")?,
        None if word == "fence" => command.order = Order::Fence,
        None if word == "barrier" => command.order = Order::Barrier,
        _ => {
            return Err(format!(
                "unknown word `{word}`; known: tag=, local=, at=, fence, barrier"
            ))
        }
    }
    Ok(())
}
