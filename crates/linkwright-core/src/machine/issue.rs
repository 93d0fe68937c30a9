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
use crate::issue::Issue;

const NAMES: [&str; 2] = ["blocking", "unlimited"];
const ALL: [Issue; 2] = [Issue::Blocking, Issue::Unlimited];

/// The policy; its source is for readers of the file.
pub(crate) fn read(mut s: Section<'_>) -> Result<Issue, MachineError> {
    let policy = ALL[s.choice("policy", &NAMES)?];
    s.text("source")?;
    s.finish()?;
    Ok(policy)
}
