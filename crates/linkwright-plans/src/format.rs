//! What a format says of itself.

use crate::error::Result;
use linkwright_schedule::Schedule;

/// A format of files that hold one schedule.
pub struct Format {
    /// Name after `--as`, in kebab case.
    pub key: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What the format can hold and what it cannot, in a few sentences.
    pub description: &'static str,
    /// Where it is defined.
    pub source: &'static str,
    /// Suffix of its files, with the dot.
    pub suffix: &'static str,
    /// Whether a text is in this format, told from its beginning.
    pub recognises: fn(&str) -> bool,
    /// Read and verify a text; `None` where the format is only written.
    pub read: Option<fn(&str) -> Result<Schedule>>,
    /// Write a verified schedule; refuses what the format cannot express.
    pub write: fn(&Schedule) -> Result<String>,
}
