//! From a GOAL text to the operations and waits of every rank.

use super::lexer::{short, Lexer, Token};
use crate::error::{PlanError, Result};
use linkwright_schedule::ir::MAX_RANKS;
use std::collections::HashMap;

/// Most operations that one file may have: beyond, reading would need more than 1 GB.
pub(super) const MAX_STEPS: usize = 1 << 22;

/// Most waits that one file may have.
const MAX_NEEDS: usize = 1 << 23;

/// What one operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Send to a rank.
    Send { to: u32, bytes: u64, tag: u32 },
    /// Receive from a rank.
    Recv { from: u32, bytes: u64, tag: u32 },
    /// Calculate for so many ns.
    Calc { ns: u64 },
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'a> {
    pub rank: u32,
    pub line: u32,
    pub lane: u8,
    pub kind: Kind,
    /// Empty where it has none.
    pub label: &'a str,
}

impl Step<'_> {
    /// The label, or the line where there is none.
    pub fn name(&self) -> String {
        match self.label {
            "" => format!("line {}", self.line),
            label => short(label),
        }
    }

    /// An error in the line of this operation.
    pub fn error(&self, problem: impl Into<String>) -> PlanError {
        PlanError::at(format!("line {}", self.line), problem)
    }
}

/// "`waiter` requires `on`", or `irequires`; both are indices of operations of one rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    pub waiter: u32,
    pub on: u32,
    /// Whether only the start is waited for.
    pub start: bool,
}

/// What a GOAL text says.
#[derive(Debug, Default)]
pub(super) struct Plan<'a> {
    pub ranks: u32,
    pub steps: Vec<Step<'a>>,
    pub needs: Vec<Need>,
}

/// Read a text.
pub(super) fn parse(text: &str) -> Result<Plan<'_>> {
    let mut lexer = Lexer::new(text);
    let token = lexer.next()?;
    let mut parser = Parser {
        line: lexer.line,
        lexer,
        token,
        plan: Plan::default(),
        labels: HashMap::new(),
        references: Vec::new(),
    };
    parser.file()?;
    Ok(parser.plan)
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token<'a>,
    /// Line of the current token.
    line: u32,
    plan: Plan<'a>,
    /// Labels of the current rank.
    labels: HashMap<&'a str, u32>,
    /// Waits of the current rank: who, on whom, line, whether only the start.
    references: Vec<(&'a str, &'a str, u32, bool)>,
}

impl<'a> Parser<'a> {
    fn file(&mut self) -> Result<()> {
        self.skip_newlines()?;
        self.word("num_ranks")?;
        let ranks = self.number("the number of ranks")?;
        if ranks == 0 || ranks > u64::from(MAX_RANKS) {
            return Err(self.error(format!("{ranks} ranks; there can be 1 to {MAX_RANKS}")));
        }
        self.plan.ranks = ranks as u32;
        let mut found = vec![0; ranks as usize];
        loop {
            self.skip_newlines()?;
            if self.token == Token::End {
                break;
            }
            self.rank(&mut found)?;
        }
        match found.iter().position(|&line| line == 0) {
            Some(missing) => Err(PlanError::whole(format!(
                "rank {missing} is missing, of {ranks}; add `rank {missing} {{ }}`, also if it does nothing"
            ))),
            None => Ok(()),
        }
    }

    /// One rank; `found` has the line where each begins, 0 where it is still missing.
    fn rank(&mut self, found: &mut [u32]) -> Result<()> {
        let line = self.line;
        self.word("rank")?;
        let rank = self.existing_rank()?;
        let before = std::mem::replace(&mut found[rank as usize], line);
        if before > 0 {
            return Err(self.error(format!(
                "rank {rank} is there already, on line {before}; write each rank once"
            )));
        }
        self.skip_newlines()?;
        self.expect(Token::Open, "`{`")?;
        self.labels.clear();
        self.references.clear();
        loop {
            self.skip_newlines()?;
            match self.token {
                Token::Close => break,
                Token::End => {
                    return Err(self.error(format!(
                        "the file ends within rank {rank}, which begins on line {line}; is it cut off? close the rank with `}}`"
                    )))
                }
                _ => self.statement(rank)?,
            }
        }
        self.advance()?;
        self.resolve(rank)
    }

    /// An operation, or a wait.
    fn statement(&mut self, rank: u32) -> Result<()> {
        let line = self.line;
        let first = self.any_word("an operation, a label or `}`")?;
        let operation = matches!(first, "send" | "recv" | "calc");
        match (operation, self.token) {
            (true, _) => self.operation(rank, line, "", first)?,
            (false, Token::Colon) => {
                self.advance()?;
                let kind = self.any_word("`send`, `recv` or `calc`")?;
                self.operation(rank, line, first, kind)?;
            }
            (false, Token::Word(relation @ ("requires" | "irequires"))) => {
                self.advance()?;
                let on = self.any_word("a label")?;
                self.references
                    .push((first, on, line, relation == "irequires"));
            }
            _ => {
                return Err(self.unexpected(&format!(
                    "`:`, `requires` or `irequires` after `{}`",
                    short(first)
                )))
            }
        }
        match self.token {
            Token::Newline | Token::Close | Token::End => Ok(()),
            _ => Err(self.unexpected("the end of the line")),
        }
    }

    fn operation(&mut self, rank: u32, line: u32, label: &'a str, word: &str) -> Result<()> {
        let mut step = Step {
            rank,
            line,
            lane: 0,
            label,
            kind: Kind::Calc { ns: 0 },
        };
        match word {
            "calc" => {
                let ns = self.number("a time in ns")?;
                step.kind = Kind::Calc { ns };
                self.options(&mut step, None)?;
            }
            "send" | "recv" => {
                let bytes = self.bytes()?;
                let peer = self.peer(word, rank)?;
                let mut tag = 0;
                self.options(&mut step, Some(&mut tag))?;
                step.kind = match word {
                    "send" => Kind::Send {
                        to: peer,
                        bytes,
                        tag,
                    },
                    _ => Kind::Recv {
                        from: peer,
                        bytes,
                        tag,
                    },
                };
            }
            _ => {
                return Err(self.error(format!(
                    "`{}` is no operation; write `send`, `recv` or `calc`",
                    short(word)
                )))
            }
        }
        self.add(step)
    }

    fn add(&mut self, step: Step<'a>) -> Result<()> {
        let index = self.plan.steps.len();
        if index >= MAX_STEPS {
            return Err(step.error(format!(
                "more than {MAX_STEPS} operations; cut the trace into shorter ones"
            )));
        }
        if !step.label.is_empty() {
            if let Some(before) = self.labels.insert(step.label, index as u32) {
                return Err(step.error(format!(
                    "label `{}` of rank {} is there already, on line {}; give each operation a label of its own",
                    short(step.label),
                    step.rank,
                    self.plan.steps[before as usize].line
                )));
            }
        }
        self.plan.steps.push(step);
        Ok(())
    }

    /// `8b`
    fn bytes(&mut self) -> Result<u64> {
        let bytes = self.number("a size such as `8b`")?;
        self.word("b")?;
        match bytes {
            0 => Err(self.error("a message of 0 B; the smallest is `1b`")),
            _ => Ok(bytes),
        }
    }

    /// `to 3` or `from 3`.
    fn peer(&mut self, word: &str, rank: u32) -> Result<u32> {
        self.word(if word == "send" { "to" } else { "from" })?;
        if word == "recv" && self.token == Token::Any {
            return Err(self.error(
                "a receive from any source (`-1`): which message it gets depends on time; name the source",
            ));
        }
        let peer = self.existing_rank()?;
        if peer == rank {
            return Err(self.error(format!(
                "rank {rank} exchanges a message with itself; leave it out, or write `calc` for its time"
            )));
        }
        Ok(peer)
    }

    /// `tag 0 cpu 0 nic 0`, each at most once; a calc has no tag.
    fn options(&mut self, step: &mut Step<'a>, mut tag: Option<&mut u32>) -> Result<()> {
        let mut seen = [false; 3];
        while let Token::Word(word) = self.token {
            let names = ["tag", "cpu", "nic"];
            let Some(which) = names.iter().position(|name| *name == word) else {
                return Err(self.unexpected("`tag`, `cpu`, `nic` or the end of the line"));
            };
            if std::mem::replace(&mut seen[which], true) {
                return Err(self.error(format!("`{word}` stands twice; write it once")));
            }
            self.advance()?;
            match (which, &mut tag) {
                (0, None) => return Err(self.error("`calc` has no tag; leave it out")),
                (0, Some(tag)) => **tag = self.tag()?,
                (1, _) => step.lane = self.at_most("cpu", 255)? as u8,
                _ => {
                    self.at_most("nic", 255)?;
                }
            }
        }
        Ok(())
    }

    fn tag(&mut self) -> Result<u32> {
        if self.token == Token::Any {
            return Err(
                self.error("any tag (`-1`): which message is meant depends on time; name the tag")
            );
        }
        Ok(self.at_most("tag", u64::from(u32::MAX) - 1)? as u32)
    }

    fn at_most(&mut self, what: &str, most: u64) -> Result<u64> {
        let number = self.number(&format!("a number after `{what}`"))?;
        match number <= most {
            true => Ok(number),
            false => Err(self.error(format!("{what} {number}; the largest is {most}"))),
        }
    }

    fn existing_rank(&mut self) -> Result<u32> {
        let rank = self.number("a rank")?;
        match rank < u64::from(self.plan.ranks) {
            true => Ok(rank as u32),
            false => Err(self.error(format!(
                "rank {rank} does not exist; there are 0 to {}",
                self.plan.ranks - 1
            ))),
        }
    }

    /// Find the operations that the waits of `rank` name.
    fn resolve(&mut self, rank: u32) -> Result<()> {
        for &(waiter, on, line, start) in &self.references {
            let index = |label: &str| {
                self.labels.get(label).copied().ok_or_else(|| {
                    let problem = format!(
                        "rank {rank} has no operation `{}`; add it, or remove the wait",
                        short(label)
                    );
                    PlanError::at(format!("line {line}"), problem)
                })
            };
            let (waiter, on) = (index(waiter)?, index(on)?);
            self.plan.needs.push(Need { waiter, on, start });
        }
        match self.plan.needs.len() > MAX_NEEDS {
            true => Err(PlanError::whole(format!(
                "more than {MAX_NEEDS} waits; cut the trace into shorter ones"
            ))),
            false => Ok(()),
        }
    }

    fn skip_newlines(&mut self) -> Result<()> {
        while self.token == Token::Newline {
            self.advance()?;
        }
        Ok(())
    }

    fn advance(&mut self) -> Result<()> {
        // A newline is counted when it is given, and the next token stands behind it.
        self.line = self.lexer.line;
        self.token = self.lexer.next()?;
        if self.token != Token::Newline {
            self.line = self.lexer.line;
        }
        Ok(())
    }

    fn expect(&mut self, token: Token<'static>, what: &str) -> Result<()> {
        match self.token == token {
            true => self.advance(),
            false => Err(self.unexpected(what)),
        }
    }

    fn word(&mut self, word: &'static str) -> Result<()> {
        self.expect(Token::Word(word), &format!("`{word}`"))
    }

    fn any_word(&mut self, what: &str) -> Result<&'a str> {
        match self.token {
            Token::Word(word) => {
                self.advance()?;
                Ok(word)
            }
            _ => Err(self.unexpected(what)),
        }
    }

    fn number(&mut self, what: &str) -> Result<u64> {
        match self.token {
            Token::Number(number) => {
                self.advance()?;
                Ok(number)
            }
            _ => Err(self.unexpected(what)),
        }
    }

    fn unexpected(&self, wanted: &str) -> PlanError {
        self.error(format!(
            "{} stands where {wanted} is expected",
            self.token.shown()
        ))
    }

    fn error(&self, problem: impl Into<String>) -> PlanError {
        PlanError::at(format!("line {}", self.line), problem)
    }
}
