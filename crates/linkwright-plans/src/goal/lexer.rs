//! From the text of a GOAL file to tokens; comments are `// ...` and `/* ... */`.

use crate::error::{PlanError, Result};

/// What a GOAL text consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A keyword or a label.
    Word(&'a str),
    /// A whole number.
    Number(u64),
    /// `-1`: any source, or any tag.
    Any,
    /// `:`
    Colon,
    /// `{`
    Open,
    /// `}`
    Close,
    /// End of a line.
    Newline,
    /// End of the text.
    End,
}

impl Token<'_> {
    /// The token as an error quotes it.
    pub(super) fn shown(self) -> String {
        match self {
            Token::Word(word) => format!("`{}`", short(word)),
            Token::Number(number) => format!("`{number}`"),
            Token::Any => "`-1`".into(),
            Token::Colon => "`:`".into(),
            Token::Open => "`{`".into(),
            Token::Close => "`}`".into(),
            Token::Newline => "the end of the line".into(),
            Token::End => "the end of the file".into(),
        }
    }
}

/// The beginning of a word that may be very long.
pub(super) fn short(word: &str) -> String {
    match word.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &word[..end]),
        None => word.to_string(),
    }
}

/// Whether the first word of `text` is `num_ranks`.
pub(super) fn begins(text: &str) -> bool {
    let mut lexer = Lexer::new(text);
    loop {
        match lexer.next() {
            Ok(Token::Newline) => {}
            found => return found == Ok(Token::Word("num_ranks")),
        }
    }
}

/// Reads a text token by token.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Line of the next token, from 1.
    pub line: u32,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Self {
        Lexer {
            text,
            at: 0,
            line: 1,
        }
    }

    /// An error in the current line.
    pub fn error(&self, problem: impl Into<String>) -> PlanError {
        PlanError::at(format!("line {}", self.line), problem)
    }

    /// The next token. The line is counted on after a newline was given.
    pub fn next(&mut self) -> Result<Token<'a>> {
        self.skip_blanks()?;
        let rest = &self.text.as_bytes()[self.at..];
        let Some(&first) = rest.first() else {
            return Ok(Token::End);
        };
        let (token, length) = match first {
            b'\n' => {
                self.line += 1;
                (Token::Newline, 1)
            }
            b':' => (Token::Colon, 1),
            b'{' => (Token::Open, 1),
            b'}' => (Token::Close, 1),
            b'0'..=b'9' => self.number(rest)?,
            b'a'..=b'z' | b'A'..=b'Z' => {
                let length = run(rest, |b| b.is_ascii_alphanumeric() || b == b'_');
                (Token::Word(&self.text[self.at..self.at + length]), length)
            }
            b'-' if rest.get(1) == Some(&b'1') && !rest.get(2).is_some_and(u8::is_ascii_digit) => {
                (Token::Any, 2)
            }
            _ => {
                let found = self.text[self.at..].chars().next().unwrap_or_default();
                let problem = format!("`{}` means nothing in GOAL", found.escape_debug());
                return Err(self.error(problem));
            }
        };
        self.at += length;
        Ok(token)
    }

    fn number(&self, rest: &[u8]) -> Result<(Token<'a>, usize)> {
        let length = run(rest, |b| b.is_ascii_digit());
        let digits = &self.text[self.at..self.at + length];
        match digits.parse() {
            Ok(number) => Ok((Token::Number(number), length)),
            Err(_) => Err(self.error(format!(
                "{} is more than 64 bits can hold; use a smaller number",
                short(digits)
            ))),
        }
    }

    /// Go to the next byte that is neither blank nor part of a comment.
    fn skip_blanks(&mut self) -> Result<()> {
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            match rest {
                [b' ' | b'\t' | b'\r', ..] => self.at += 1,
                [b'/', b'/', ..] => self.at += run(rest, |b| b != b'\n'),
                [b'/', b'*', ..] => self.skip_comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn skip_comment(&mut self) -> Result<()> {
        let rest = &self.text[self.at + 2..];
        let Some(length) = rest.find("*/") else {
            return Err(self.error("a comment begins here and has no end; close it with `*/`"));
        };
        let lines = rest[..length].bytes().filter(|&b| b == b'\n').count();
        self.line += lines as u32;
        self.at += length + 4;
        Ok(())
    }
}

/// Number of leading bytes that are `wanted`.
fn run(bytes: &[u8], wanted: impl Fn(u8) -> bool) -> usize {
    let other = bytes.iter().position(|&b| !wanted(b));
    other.unwrap_or(bytes.len())
}
