//! What can be wrong with a machine file, one variant per kind of mistake.
//!
//! Every message names the thing (file, line, key), the state it is in and the cure. A mistake of
//! the user is an error; a broken invariant of the program panics.

use std::fmt;
use thiserror::Error;

use crate::machine::unit::Dimension;

/// A spot in a machine file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// Name of the file, without its folder.
    pub file: String,
    /// Line, counted from 1; 0 where no single line is meant.
    pub line: usize,
    /// Dotted path of the key, such as `fabric.hop_latency`; empty for the whole file.
    pub key: String,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        Ok(())
    }
}

/// A dotted path.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_string()
    } else {
        format!("{path}.{key}")
    }
}

/// Why a text is not a valid machine file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MachineError {
    /// The text is not TOML: cut off, a key twice, a stray character.
    #[error("{at}: not valid TOML: {problem}")]
    Syntax {
        /// Where reading stopped.
        at: At,
        /// The parser's words.
        problem: String,
    },
    /// A key that nothing reads.
    #[error("{at}: unknown key `{key}`; {cure}")]
    UnknownKey {
        /// The table that holds the key.
        at: At,
        /// The key as written.
        key: String,
        /// The key that was probably meant, or all that may stand there.
        cure: String,
    },
    /// A key that must be there and is not.
    #[error("{at}: missing key `{key}`; {cure}")]
    MissingKey {
        /// The table that lacks the key.
        at: At,
        /// The key that is needed.
        key: String,
        /// What to write, or which key is probably a misspelling of it.
        cure: String,
    },
    /// A value of another kind than needed: a text for a number, a list for a table.
    #[error("{at}: found {found}; needed: {needed}")]
    WrongType {
        /// The key.
        at: At,
        /// What stands there.
        found: String,
        /// What should.
        needed: String,
    },
    /// A unit outside the closed list.
    #[error("{at}: unknown unit `{unit}`; {cure}")]
    UnknownUnit {
        /// The number.
        at: At,
        /// The unit as written.
        unit: String,
        /// The unit that was probably meant, or all of them.
        cure: String,
    },
    /// A unit that measures something else than needed.
    #[error("{at}: unit `{unit}` is {}; {} is needed, such as `{}`",
        is.phrase(), needed.phrase(), needed.example())]
    WrongDimension {
        /// The number.
        at: At,
        /// The unit as written.
        unit: String,
        /// What it measures.
        is: Dimension,
        /// What is needed.
        needed: Dimension,
    },
    /// A value outside its range: negative, not finite, a rate of zero, not whole, too large.
    #[error("{at}: `{value}` {problem}")]
    BadValue {
        /// The key.
        at: At,
        /// The value as written.
        value: String,
        /// What is wrong and what would do.
        problem: String,
    },
    /// A word outside a closed list, such as a status.
    #[error("{at}: unknown value `{value}`; {cure}")]
    UnknownChoice {
        /// The key.
        at: At,
        /// The word as written.
        value: String,
        /// The word that was probably meant, or all of them.
        cure: String,
    },
    /// A number in cycles on a machine that names no clock.
    #[error("{at}: unit `{unit}` needs a clock; add `clock` to [machine] or write a unit of time")]
    NoClock {
        /// The number.
        at: At,
        /// The unit that counts cycles.
        unit: String,
    },
    /// Two statements that exclude each other, such as a level count and an endpoint count.
    #[error("{at}: {problem}")]
    Inconsistent {
        /// Where the contradiction shows.
        at: At,
        /// Both sides of it, and the cure.
        problem: String,
    },
    /// A machine asked to have a size that it cannot have.
    #[error("{machine}: {problem}")]
    WrongSize {
        /// Name of the machine.
        machine: String,
        /// What was asked, what there is, and the cure.
        problem: String,
    },
    /// A variant that the machine cannot have.
    #[error(transparent)]
    Variant(VariantError),
}

impl VariantError {
    /// The error for what cannot be.
    pub(crate) fn refused(problem: String) -> MachineError {
        MachineError::Variant(VariantError::Refused(problem))
    }
}

/// Why there is no such variant of a machine: an option that asks for what cannot be, or a name of nothing.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum VariantError {
    /// What cannot be.
    #[error("{0}")]
    Refused(String),
    /// A name of nothing.
    #[error(transparent)]
    Unknown(Box<UnknownName>),
}

/// A name of nothing, with the names that there are.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{at}: unknown {what} `{name}`; {}", suggest(name, known.iter().map(String::as_str)))]
pub struct UnknownName {
    /// The file or the option that names it.
    pub at: String,
    /// What it should be the name of.
    pub what: String,
    /// The name as written.
    pub name: String,
    /// All names.
    pub known: Vec<String>,
    /// The message where no name is near; the known ones are listed if there is none.
    pub otherwise: Option<String>,
}

impl From<UnknownName> for VariantError {
    fn from(name: UnknownName) -> Self {
        VariantError::Unknown(Box::new(name))
    }
}

/// `did you mean ...?`, or all words of the closed list where none is close.
pub(crate) fn suggest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match closest(word, known.iter().copied()) {
        Some(best) => format!("did you mean `{best}`?"),
        None if known.is_empty() => "nothing may stand here".to_string(),
        None => format!("known: {}", known.join(", ")),
    }
}

/// The candidate that `word` is probably a misspelling of.
pub(crate) fn closest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // A third of the letters may differ, so that short words do not all resemble each other.
    let far = |c: &str| word.chars().count().max(c.chars().count()) / 3;
    candidates
        .into_iter()
        .map(|c| (strsim::damerau_levenshtein(word, c), c))
        .filter(|&(distance, c)| distance <= far(c).max(1) && distance < c.chars().count())
        .min()
        .map(|(_, c)| c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_need_likeness() {
        assert_eq!(
            closest("hop_latncy", ["hop_latency", "gap"]),
            Some("hop_latency")
        );
        assert_eq!(closest("cycles", ["s", "cycle"]), Some("cycle"));
        assert_eq!(closest("x", ["s", "B"]), None);
        assert_eq!(closest("bandwidth", ["latency"]), None);
    }
}
