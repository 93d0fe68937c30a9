//! How many transfers of a lane may be under way at once.
//!
//! ```text
//!   blocking     put  wait  put  wait  put  wait
//!   window(2)    put  put   wait for one  put  wait for one  ...
//!   batch(2)     put  put   wait for both  put  put  wait for both
//!   unlimited    put  put   put  put  ...
//! ```

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// How many transfers of a lane may be under way at once.
///
/// Counted are puts, gets and multicasts; notices and local operations never wait for a place. What
/// frees a place is the completion of a transfer: in a simulation the path's `completion`, after which
/// the lane pays the path's `barrier`, and on a path with `signal` the notices to the receivers; on an
/// executor what its documentation says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Issue {
    /// Each transfer is complete before the next is issued.
    #[default]
    Blocking,
    /// Up to this many under way; each completion frees one place.
    Window(u32),
    /// Up to this many are issued, then the lane waits for all of them.
    Batch(u32),
    /// No bound; the lane never waits.
    Unlimited,
}

/// A text that names no issue policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum IssueError {
    /// The text.
    #[error(
        "option `issue`: `{0}` is not a policy; \
         write blocking, window(k), batch(k) or unlimited, with k of at least 1"
    )]
    Text(String),
}

impl FromStr for Issue {
    type Err = IssueError;

    /// `blocking`, `window(k)`, `batch(k)` or `unlimited`.
    fn from_str(text: &str) -> Result<Self, IssueError> {
        let counted = |name: &str| {
            let inside = text
                .strip_prefix(name)?
                .strip_prefix('(')?
                .strip_suffix(')')?;
            inside.parse::<u32>().ok().filter(|&k| k > 0)
        };
        match (text, counted("window"), counted("batch")) {
            ("blocking", ..) => Ok(Issue::Blocking),
            ("unlimited", ..) => Ok(Issue::Unlimited),
            (_, Some(k), _) => Ok(Issue::Window(k)),
            (_, _, Some(k)) => Ok(Issue::Batch(k)),
            _ => Err(IssueError::Text(text.to_string())),
        }
    }
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Issue::Blocking => f.write_str("blocking"),
            Issue::Window(k) => write!(f, "window({k})"),
            Issue::Batch(k) => write!(f, "batch({k})"),
            Issue::Unlimited => f.write_str("unlimited"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_as_they_are_written() {
        for text in ["blocking", "window(3)", "batch(12)", "unlimited"] {
            assert_eq!(text.parse::<Issue>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "window",
            "window()",
            "window(0)",
            "window(-1)",
            "batch(3",
            "Blocking",
        ] {
            let error = text.parse::<Issue>().unwrap_err().to_string();
            assert!(
                error.contains(&format!("`{text}` is not a policy")),
                "{error}"
            );
        }
    }
}
