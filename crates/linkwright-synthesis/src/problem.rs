//! What is to be found.

use crate::error::Result;
use linkwright_core::{Issue, Machine, TimePs};
use linkwright_schedule::{Collective, Shape};
use linkwright_sim::run::{self, Options};
use std::sync::Arc;

/// A collective of one shape on one machine.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The machine, with as many endpoints as take part if its file leaves that open.
    pub machine: Arc<Machine>,
    /// What is to be achieved.
    pub collective: Collective,
    /// Ranks, elements, root, grid.
    pub shape: Shape,
    /// Software path; the machine's default where absent.
    pub path: Option<String>,
    /// Seed of whatever the fabric draws.
    pub seed: u64,
}

impl Problem {
    /// A problem that makes sense: the shape is possible, the machine has the path and the ranks.
    pub fn new(
        machine: &Machine,
        collective: Collective,
        shape: &Shape,
        path: Option<String>,
        seed: u64,
    ) -> Result<Self> {
        shape.check()?;
        let machine = run::sized(machine, shape.ranks, &shape.grid)?;
        let problem = Problem {
            machine: Arc::new(machine),
            collective,
            shape: shape.clone(),
            path,
            seed,
        };
        run::check(
            &problem.machine,
            shape.ranks,
            &problem.options(Issue::default()),
        )?;
        Ok(problem)
    }

    /// How a schedule of this problem runs under an issue policy.
    pub fn options(&self, issue: Issue) -> Options {
        Options {
            path: self.path.clone(),
            issue,
            seed: self.seed,
            ..Options::default()
        }
    }

    /// What no schedule beats, and its name; `None` where nothing is known.
    pub fn bound(&self) -> Result<Option<(TimePs, &'static str)>> {
        let options = self.options(Issue::default());
        let limits = run::limits_of(self.collective, &self.shape, &self.machine, &options)?;
        Ok(limits.largest().map(|limit| (limit.time, limit.name)))
    }
}
