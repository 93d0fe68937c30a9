//! How a traffic pattern runs unless a run says otherwise: `[traffic]`.
//!
//! Where a paper measured patterns differently from collectives, such as with bare transfers that nobody announces,
//! the machine file names that way, so that the plain command repeats the experiment:
//!
//! ```text
//! [traffic]
//! path = "dma"                                 # one of [path.NAME]
//! issue = "unlimited"                          # or blocking, window(k), batch(k)
//! source = "article: nonblocking DMAs"
//! ```

use super::path::Path;
use super::section::Section;
use crate::error::MachineError;
use crate::issue::Issue;

/// The default path and issue policy of traffic patterns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternDefaults {
    /// Name of a path of the machine.
    pub path: String,
    /// How many transfers a rank keeps under way.
    pub issue: Issue,
}

impl PatternDefaults {
    pub(super) fn read(mut s: Section<'_>, paths: &[Path]) -> Result<Self, MachineError> {
        let names: Vec<&str> = paths.iter().map(|path| path.name.as_str()).collect();
        let path = names[s.name("path", &names)?].to_string();
        let issue = s.text("issue")?.parse();
        let issue = issue.map_err(|error| s.inconsistent("issue", format!("{error}")))?;
        s.text("source")?;
        s.finish()?;
        Ok(PatternDefaults { path, issue })
    }
}
