//! Runs the programs of several elements on one chip.
//!
//! An element takes its steps in order and waits at each step that requires it. Mailbox words and signals are
//! commands of 4 bytes; a word is readable `mmio` later. A program that finds a queue or mailbox full waits; if
//! no program can go on, the error names the circle of waits.

use std::collections::VecDeque;

use super::chip::{Chip, News};
use super::command::{Command, Kind};
use super::config::RingConfig;
use super::mfc::Life;
use super::program::{Program, Step};
use crate::error::SimError;
use linkwright_core::{Machine, TimePs};

/// The result of a run; times in picoseconds.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Of each command: program, line, and its life in bus cycles.
    pub commands: Vec<(u32, u32, Life)>,
    /// When each line of each program was over.
    pub lines_ps: Vec<Vec<u64>>,
    /// Failed conditional writes of each program.
    pub retries: Vec<u64>,
    /// Length of a bus cycle.
    pub period_ps: u64,
}

/// The purpose of a command.
#[derive(Clone, Copy)]
enum Purpose {
    Data(u8),
    Word(u8),
    Bits(u8, u32),
    Reserve,
    Conditional,
}

struct Flight {
    program: usize,
    line: usize,
    purpose: Purpose,
}

/// State of one program.
struct Runner {
    program: Program,
    line: usize,
    /// Waits for a command to enter its queue, for an atomic, or until a time.
    asleep: bool,
    until: u64,
    /// Commands under way by tag.
    tags: [u32; 32],
    ended: Vec<u64>,
    retries: u64,
}

impl Runner {
    fn new(program: Program) -> Self {
        Runner {
            ended: Vec::with_capacity(program.steps.len()),
            program,
            line: 0,
            asleep: false,
            until: 0,
            tags: [0; 32],
            retries: 0,
        }
    }

    /// Commands under way, of one tag or of all.
    fn open(&self, tag: Option<u8>) -> u32 {
        match tag {
            Some(tag) => *self.tags.get(usize::from(tag)).unwrap_or(&0),
            None => self.tags.iter().sum(),
        }
    }
}

/// Mailbox and signal register of an element.
#[derive(Clone, Default)]
struct Registers {
    /// When each word becomes readable.
    words: VecDeque<u64>,
    /// Words on their way.
    coming: usize,
    bits: u32,
    seen: u32,
}

impl Registers {
    /// Take the first word; false if none is readable yet.
    fn take_word(&mut self, now: u64) -> bool {
        let readable = self.words.front().is_some_and(|&at| at <= now);
        if readable {
            self.words.pop_front();
        }
        readable
    }

    /// Take these bits; false if some have not yet arrived.
    fn take_bits(&mut self, bits: u32) -> bool {
        self.seen |= std::mem::take(&mut self.bits);
        let all = self.seen & bits == bits;
        if all {
            self.seen &= !bits;
        }
        all
    }
}

struct Stage {
    chip: Chip,
    config: RingConfig,
    runners: Vec<Runner>,
    registers: Vec<Registers>,
    flights: Vec<Flight>,
    /// Cycles of reading a completion.
    status: u64,
    overwrite: bool,
    commands: Vec<(u32, u32, Life)>,
}

/// Run `programs`, lines by element name, on `machine`; with `overwrite`, signals replace the bits of the register
/// instead of adding theirs.
pub fn run(
    machine: &Machine,
    programs: &[(String, Vec<String>)],
    overwrite: bool,
) -> Result<Outcome, SimError> {
    let config = RingConfig::from_machine(machine)?;
    let mut runners = Vec::new();
    for (element, lines) in programs {
        let program = Program::parse(element, lines, &config)?;
        let same = |other: &Runner| other.program.unit == program.unit;
        if runners.iter().any(same) {
            let problem = format!("two programs for {element}; join them");
            return Err(SimError::Option {
                option: "program",
                problem,
            });
        }
        runners.push(Runner::new(program));
    }
    let mut stage = Stage {
        chip: Chip::new(&config),
        registers: vec![Registers::default(); config.elements.len()],
        flights: Vec::new(),
        status: machine.default_path().barrier.0.div_ceil(config.period_ps),
        commands: Vec::new(),
        config,
        runners,
        overwrite,
    };
    stage.go()?;
    let period_ps = stage.config.period_ps;
    let ps = |runner: &Runner| runner.ended.iter().map(|at| at * period_ps).collect();
    Ok(Outcome {
        lines_ps: stage.runners.iter().map(ps).collect(),
        retries: stage.runners.iter().map(|runner| runner.retries).collect(),
        commands: stage.commands,
        period_ps,
    })
}

impl Stage {
    fn go(&mut self) -> Result<(), SimError> {
        let mut now = 0;
        loop {
            let mut moved = true;
            while moved {
                moved = false;
                for program in 0..self.runners.len() {
                    moved |= self.walk(now, program);
                }
            }
            let Some(next) = self.chip.next() else {
                return self.end(now);
            };
            now = next;
            self.chip.step(now);
            for item in std::mem::take(&mut self.chip.news) {
                match item {
                    News::Queued(handle) => self.queued(handle, now),
                    News::Complete(handle, held, life) => self.complete(handle, held, life, now),
                }
            }
        }
    }

    /// Let a program go as far as it can; returns whether it did anything.
    fn walk(&mut self, now: u64, program: usize) -> bool {
        let mut moved = false;
        loop {
            let runner = &self.runners[program];
            if runner.asleep || runner.until > now || runner.line == runner.program.steps.len() {
                return moved;
            }
            let step = runner.program.steps[runner.line].clone();
            if !self.take(now, program, step) {
                return moved;
            }
            moved = true;
        }
    }

    /// Begin a step; `false` if it must wait.
    fn take(&mut self, now: u64, program: usize, step: Step) -> bool {
        let unit = self.runners[program].program.unit;
        let word = |to| Command::single(Kind::Put, to, 4, 0);
        match step {
            Step::Dma(at, command) => {
                self.runners[program].tags[usize::from(command.tag)] += 1;
                let purpose = Purpose::Data(command.tag);
                self.give(now, program, at, command, purpose);
            }
            Step::Wait(tag) if self.runners[program].open(tag) > 0 => return false,
            Step::Wait(_) => self.pass(program, now + self.status),
            Step::Mail(to) => {
                let registers = &mut self.registers[usize::from(to)];
                if registers.words.len() + registers.coming >= self.config.mailbox {
                    return false;
                }
                registers.coming += 1;
                self.give(now, program, unit, word(to), Purpose::Word(to));
            }
            Step::Read => {
                if !self.registers[usize::from(unit)].take_word(now) {
                    return false;
                }
                self.pass(program, now);
            }
            Step::Signal(to, bits) => {
                self.give(now, program, unit, word(to), Purpose::Bits(to, bits));
            }
            Step::Await(bits) => {
                if !self.registers[usize::from(unit)].take_bits(bits) {
                    return false;
                }
                self.pass(program, now);
            }
            Step::Add => self.atomic(now, program, Kind::Reserve),
            Step::Compute(cycles) => self.pass(program, now + cycles),
        }
        true
    }

    fn atomic(&mut self, now: u64, program: usize, kind: Kind) {
        let unit = self.runners[program].program.unit;
        let purpose = match kind {
            Kind::Reserve => Purpose::Reserve,
            _ => Purpose::Conditional,
        };
        let line = self.config.line_bytes;
        let command = Command::single(kind, self.config.memory, line, 0);
        self.give(now, program, unit, command, purpose);
    }

    /// Queue a command; the program goes on when it is in the queue.
    fn give(&mut self, now: u64, program: usize, unit: u8, command: Command, purpose: Purpose) {
        let handle = self.flights.len() as u32;
        let runner = &mut self.runners[program];
        runner.asleep = true;
        self.flights.push(Flight {
            program,
            line: runner.line,
            purpose,
        });
        self.chip.submit(now, unit, Command { handle, ..command });
    }

    /// The present line of a program is over at `at`.
    fn pass(&mut self, program: usize, at: u64) {
        let runner = &mut self.runners[program];
        runner.line += 1;
        runner.asleep = false;
        runner.until = at;
        runner.ended.push(at);
        self.chip.wake_at(at);
    }

    fn queued(&mut self, handle: u32, now: u64) {
        let flight = &self.flights[handle as usize];
        if !matches!(flight.purpose, Purpose::Reserve | Purpose::Conditional) {
            let program = flight.program;
            self.pass(program, now);
        }
    }

    fn complete(&mut self, handle: u32, held: bool, life: Life, now: u64) {
        let Flight {
            program,
            line,
            purpose,
        } = self.flights[handle as usize];
        self.commands.push((program as u32, line as u32, life));
        match purpose {
            Purpose::Data(tag) => self.runners[program].tags[usize::from(tag)] -= 1,
            Purpose::Word(to) => {
                let at = now + self.config.mmio;
                let box_of = &mut self.registers[usize::from(to)];
                box_of.coming -= 1;
                box_of.words.push_back(at);
                self.chip.wake_at(at);
            }
            Purpose::Bits(to, bits) => {
                let register = &mut self.registers[usize::from(to)].bits;
                *register = if self.overwrite {
                    bits
                } else {
                    *register | bits
                };
            }
            Purpose::Reserve => self.atomic(now, program, Kind::Conditional),
            Purpose::Conditional if held => self.pass(program, now + self.status),
            Purpose::Conditional => {
                self.runners[program].retries += 1;
                self.atomic(now, program, Kind::Reserve);
            }
        }
    }

    /// No events are left: every program has finished, or some are stuck.
    fn end(&self, now: u64) -> Result<(), SimError> {
        let left = |runner: &&Runner| runner.line < runner.program.steps.len();
        let stuck: Vec<&Runner> = self.runners.iter().filter(left).collect();
        if stuck.is_empty() {
            return Ok(());
        }
        let mut waiting: Vec<String> = stuck.iter().map(|runner| self.explain(runner)).collect();
        waiting.extend(self.circle(stuck[0]));
        Err(SimError::Stuck {
            at: TimePs(now * self.config.period_ps),
            unfinished: stuck.iter().map(|r| r.program.steps.len() - r.line).sum(),
            waiting,
        })
    }

    fn name(&self, unit: u8) -> &str {
        &self.config.elements[usize::from(unit)]
    }

    fn explain(&self, runner: &Runner) -> String {
        let what = match runner.program.steps[runner.line] {
            Step::Mail(to) => format!("room in the mailbox of {}", self.name(to)),
            Step::Read => "a word in its mailbox".to_string(),
            Step::Await(bits) => format!("signal bits {bits}"),
            _ => "its own commands".to_string(),
        };
        let (name, line) = (self.name(runner.program.unit), runner.line);
        let text = &runner.program.lines[line];
        format!("{name}, line {}: `{text}` waits for {what}", line + 1)
    }

    /// The program whose next step could let this one go on.
    fn blocker(&self, runner: &Runner) -> Option<&Runner> {
        let unit = runner.program.unit;
        let helps = |step: &Step| match (&runner.program.steps[runner.line], step) {
            (Step::Read, Step::Mail(to)) | (Step::Await(_), Step::Signal(to, _)) => *to == unit,
            _ => false,
        };
        self.runners
            .iter()
            .find(|other| match runner.program.steps[runner.line] {
                Step::Mail(to) => other.program.unit == to,
                _ => other.program.steps[other.line..].iter().any(helps),
            })
    }

    /// The circle of waits that `from` leads into, if there is one.
    fn circle(&self, from: &Runner) -> Option<String> {
        let mut chain = vec![from];
        loop {
            let last = chain.last()?;
            if last.line == last.program.steps.len() {
                return None;
            }
            let next = self.blocker(last)?;
            if let Some(at) = chain
                .iter()
                .position(|r| r.program.unit == next.program.unit)
            {
                let names = chain[at..].iter().chain([&next]);
                let names: Vec<&str> = names.map(|r| self.name(r.program.unit)).collect();
                return Some(format!("circle: {}", names.join(" waits for ")));
            }
            chain.push(next);
        }
    }
}
