//! The next token, and what is said where another one is expected.

use super::Parser;
use crate::error::{PlanError, Result};
use crate::goal::lexer::Token;

impl<'a> Parser<'a> {
    pub(super) fn skip_newlines(&mut self) -> Result<()> {
        while self.token == Token::Newline {
            self.advance()?;
        }
        Ok(())
    }

    pub(super) fn advance(&mut self) -> Result<()> {
        // A newline is counted when it is given, and the next token stands behind it.
        self.line = self.lexer.line;
        self.token = self.lexer.next()?;
        if self.token != Token::Newline {
            self.line = self.lexer.line;
        }
        Ok(())
    }

    pub(super) fn expect(&mut self, token: Token<'static>, what: &str) -> Result<()> {
        match self.token == token {
            true => self.advance(),
            false => Err(self.unexpected(what)),
        }
    }

    pub(super) fn word(&mut self, word: &'static str) -> Result<()> {
        self.expect(Token::Word(word), &format!("`{word}`"))
    }

    pub(super) fn any_word(&mut self, what: &str) -> Result<&'a str> {
        match self.token {
            Token::Word(word) => {
                self.advance()?;
                Ok(word)
            }
            _ => Err(self.unexpected(what)),
        }
    }

    pub(super) fn number(&mut self, what: &str) -> Result<u64> {
        match self.token {
            Token::Number(number) => {
                self.advance()?;
                Ok(number)
            }
            _ => Err(self.unexpected(what)),
        }
    }

    pub(super) fn unexpected(&self, wanted: &str) -> PlanError {
        self.error(format!(
            "{} stands where {wanted} is expected",
            self.token.shown()
        ))
    }

    pub(super) fn error(&self, problem: impl Into<String>) -> PlanError {
        PlanError::at(format!("line {}", self.line), problem)
    }
}
