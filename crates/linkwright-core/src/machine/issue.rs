//! How many transfers a rank keeps under way unless a run says otherwise: `[issue]`.
//!
//! An exchange that a compiler has scheduled, for example, begins all transfers of a step at once. Without this
//! table a machine is `blocking`: each transfer is complete before the next begins.
//!
//! ```text
//! [issue]
//! policy = "unlimited"                         # or "blocking"
//! source = "section 4: the compiler schedules a whole exchange"
//! ```

use super::section::Section;
use crate::error::MachineError;

const POLICIES: [&str; 2] = ["blocking", "unlimited"];

/// The policy's name; its source is for readers of the file.
pub(crate) fn read(mut s: Section<'_>) -> Result<&'static str, MachineError> {
    let policy = POLICIES[s.choice("policy", &POLICIES)?];
    s.text("source")?;
    s.finish()?;
    Ok(policy)
}
