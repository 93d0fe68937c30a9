//! Schedules in files: our own text, and the plans of other tools.
//!
//! ```text
//!   file --recognises--> Format --read--> Schedule (verified, at its smallest size) --resized--> any size
//!   Schedule --write--> file
//! ```
//!
//! A plan says which chunks move, never how long they are, so it is read at the smallest size that its
//! chunks allow. Files come from strangers: a reader checks every number, needs time and memory in
//! proportion to the text, and names the line or the element that is wrong.
//!
//! Plans whose thread blocks wait for each other share a [`skeleton`]: it proves that they end and have no data race, and
//! builds their schedule. A reader gives it steps, what each waits for, and what each moves.
//!
//! To add a format: a file with a [`Format`], a line in [`FORMATS`], and a fuzz test of its reader.

mod divisor;
mod error;
mod express;
mod format;
mod goal;
mod msccl;
mod mscclpp;
mod skeleton;
mod text;

pub use error::{PlanError, Result};
pub use format::Format;

use linkwright_schedule::Schedule;

/// Longest file that is read, in bytes: room for some million operations.
pub const MAX_BYTES: usize = 1 << 28;

/// All formats, in the order in which a file is tried.
pub static FORMATS: &[&Format] = &[
    &text::FORMAT,
    &msccl::FORMAT,
    &mscclpp::FORMAT,
    &goal::FORMAT,
];

/// The format called `key`.
pub fn find(key: &str) -> Option<&'static Format> {
    FORMATS.iter().copied().find(|format| format.key == key)
}

/// Read a schedule in whichever format `text` is.
pub fn read(text: &str) -> Result<Schedule> {
    if text.len() > MAX_BYTES {
        return Err(PlanError::whole(format!(
            "the file has {} bytes; at most {MAX_BYTES} are read",
            text.len()
        )));
    }
    let mut formats = FORMATS.iter();
    let read = formats.find_map(|format| format.read.filter(|_| (format.recognises)(text)));
    match read {
        Some(read) => read(text),
        None => Err(PlanError::at("line 1", unknown(text))),
    }
}

/// What is said of a text that no format recognises.
fn unknown(text: &str) -> String {
    let first: String = (text.lines().next().unwrap_or_default().chars())
        .take(40)
        .collect();
    let readable = FORMATS.iter().filter(|format| format.read.is_some());
    let names: Vec<&str> = readable.map(|format| format.key).collect();
    format!(
        "`{}` begins no known format; known: {}",
        first.escape_debug(),
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_text_is_refused_with_what_is_known() {
        let error = read("\u{1b}[2Jhello\nworld").unwrap_err();
        assert!(error.to_string().starts_with("line 1: `\\u{1b}[2Jhello`"));
        assert!(error.to_string().contains("lw"));
        assert!(read("").unwrap_err().to_string().starts_with("line 1: ``"));
    }

    #[test]
    fn keys_and_suffixes_differ() {
        for (place, format) in FORMATS.iter().enumerate() {
            assert!(FORMATS[..place].iter().all(|other| other.key != format.key));
        }
        assert!(find("lw").is_some() && find("pdf").is_none());
    }
}
