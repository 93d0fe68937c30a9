//! Structural rules of a model: `[[rule]]`.
//!
//! A model of a machine rests on numbers and on *rules*: which link a message takes, what overlaps
//! with what, who pays. A rule that was chosen after looking at the measurements (`post_hoc = true`)
//! is as much a degree of freedom as a fitted number. Each is therefore in the file with its evidence,
//! and can be counted. The fabric implements the rules; nothing here interprets them.
//!
//! ```text
//! [[rule]]
//! name = "one copy per chip"
//! statement = "a multicast sends one copy to each destination chip"
//! evidence = "T4.9: the rail next to the source carries seven copies for eight boards"
//! post_hoc = false
//! ```

use super::section::Section;
use crate::error::MachineError;

/// One structural rule of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Name, unique within the machine.
    pub name: String,
    /// What the model does.
    pub statement: String,
    /// Why one should believe it.
    pub evidence: String,
    /// Whether it was chosen after looking at the measurements it explains.
    pub post_hoc: bool,
}

pub(crate) fn read(sections: Vec<Section<'_>>) -> Result<Vec<Rule>, MachineError> {
    let mut rules: Vec<Rule> = Vec::with_capacity(sections.len());
    for mut s in sections {
        let rule = Rule {
            name: s.text("name")?,
            statement: s.text("statement")?,
            evidence: s.text("evidence")?,
            post_hoc: s.flag("post_hoc")?,
        };
        if rules.iter().any(|r| r.name == rule.name) {
            let problem = format!("two rules are named \"{}\"; rename one", rule.name);
            return Err(s.inconsistent("name", problem));
        }
        s.finish()?;
        rules.push(rule);
    }
    Ok(rules)
}
