//! Reading one line from left to right.

/// A place in a line; every method either takes what it names or says what it found instead.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    line: &'a [u8],
    at: usize,
}

pub(super) type Result<T> = std::result::Result<T, String>;

impl<'a> Cursor<'a> {
    /// Read `line` up to a comment.
    pub fn new(line: &'a [u8]) -> Self {
        let end = line.iter().position(|&b| b == b'#').unwrap_or(line.len());
        let mut cursor = Cursor {
            line: line[..end].trim_ascii_end(),
            at: 0,
        };
        cursor.space();
        cursor
    }

    /// Whether nothing is left.
    pub fn is_done(&self) -> bool {
        self.at >= self.line.len()
    }

    /// Skip spaces and tabs.
    #[inline]
    pub fn space(&mut self) {
        while matches!(self.line.get(self.at), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// What stands here up to the next space, for messages.
    pub fn found(&self) -> String {
        let rest = &self.line[self.at.min(self.line.len())..];
        let end = rest.iter().position(|b| b.is_ascii_whitespace());
        match &rest[..end.unwrap_or(rest.len())] {
            [] => "nothing".to_string(),
            word => format!("`{}`", String::from_utf8_lossy(&word[..word.len().min(40)])),
        }
    }

    /// Take `text` if it stands here.
    #[inline]
    pub fn take(&mut self, text: &[u8]) -> bool {
        let here = self.line[self.at..].starts_with(text);
        self.at += if here { text.len() } else { 0 };
        here
    }

    /// Take `text`, and the spaces after it.
    #[inline]
    pub fn expect(&mut self, text: &str, what: &str) -> Result<()> {
        match self.take(text.as_bytes()) {
            true => {
                self.space();
                Ok(())
            }
            false => Err(format!("{} where {what} should stand", self.found())),
        }
    }

    /// Take letters, digits and underscores.
    pub fn word(&mut self) -> &'a str {
        let start = self.at;
        while (self.line.get(self.at)).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_') {
            self.at += 1;
        }
        std::str::from_utf8(&self.line[start..self.at]).expect("ASCII")
    }

    /// Take a decimal number.
    #[inline]
    pub fn number(&mut self, what: &str) -> Result<u64> {
        let start = self.at;
        let mut value = 0u64;
        while let Some(digit) = self.line.get(self.at).filter(|b| b.is_ascii_digit()) {
            let next = value
                .checked_mul(10)
                .and_then(|v| v.checked_add(u64::from(digit - b'0')));
            let Some(next) = next else {
                self.at = start;
                return Err(format!("{}, too large for {what}", self.found()));
            };
            value = next;
            self.at += 1;
        }
        match self.at > start {
            true => Ok(value),
            false => Err(format!("{} where {what} should stand", self.found())),
        }
    }

    /// Take a decimal number of 32 bits.
    #[inline]
    pub fn number32(&mut self, what: &str) -> Result<u32> {
        let start = self.at;
        let value = self.number(what)?;
        u32::try_from(value).map_err(|_| {
            self.at = start;
            format!("{}, too large for {what}", self.found())
        })
    }

    /// Nothing may be left.
    pub fn end(&mut self) -> Result<()> {
        self.space();
        match self.is_done() {
            true => Ok(()),
            false => Err(format!(
                "{} at the end of the line; remove it",
                self.found()
            )),
        }
    }
}
