//! From a GOAL text to the operations and waits of every rank.

mod operation;
mod tokens;

use super::lexer::{short, Lexer, Token};
use super::plan::{Need, Plan};
use crate::error::{PlanError, Result};
use linkwright_schedule::ir::MAX_RANKS;
use std::collections::HashMap;

/// Most waits that one file may have.
const MAX_NEEDS: usize = 1 << 23;

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
}
