//! From text to a schedule.

mod header;
mod operation;
mod options;

use super::cursor::{Cursor, Result as LineResult};
use super::print::VERSION_LINE;
use super::remote::lower;
use crate::builder::{rewrite, Places};
use crate::ir::{Edge, Schedule};
use crate::spec::{Collective, Spec};
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

/// Read a schedule. Its bounds are checked; it is not verified.
pub fn parse(text: &str) -> Result<Schedule, ParseError> {
    let mut parser = Parser::new();
    let mut line = 0;
    for bytes in text.as_bytes().split(|&b| b == b'\n') {
        line += 1;
        parser
            .line(Cursor::new(bytes))
            .map_err(|problem| ParseError { line, problem })?;
    }
    // What follows a final newline is not a line.
    let line = line - usize::from(text.ends_with('\n'));
    parser
        .finish()
        .map_err(|problem| ParseError { line, problem })
}

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
    /// The file has no edges; infer them.
    infer: bool,
    step: Option<u32>,
    remote: Vec<(u32, Vec<Edge>)>,
    pairs: Places<(u32, u32)>,
    /// Source and destination ranges of the operation being read: (first, count).
    ranges: [Vec<(u32, u32)>; 2],
}

impl Parser {
    fn new() -> Self {
        let spec = Spec::new(Collective::Pattern, 0);
        Parser {
            part: Part::Version,
            schedule: Schedule::empty(spec, 0, 0, 4),
            seen: Vec::new(),
            infer: false,
            step: None,
            remote: Vec::new(),
            pairs: Places::default(),
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

    fn finish(mut self) -> LineResult<Schedule> {
        match self.part {
            Part::Version => Err(format!("the file is empty; begin with `{VERSION_LINE}`")),
            Part::Header | Part::Operations => {
                Err("the file ends without `end`, so a part of it is missing".to_string())
            }
            Part::End if self.infer => {
                rewrite(self.schedule, |_| ()).map_err(|error| error.to_string())
            }
            Part::End => {
                lower(&mut self.schedule, &self.remote).map_err(|error| error.to_string())?;
                Ok(self.schedule)
            }
        }
    }
}
