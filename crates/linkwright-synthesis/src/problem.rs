//! What is to be found: a collective of one size on one machine.

use crate::Result;
use linkwright_core::machine::Path;
use linkwright_core::{Issue, Machine};
use linkwright_schedule::{Collective, ScheduleError, Shape};
use linkwright_sim::fabrics;
use linkwright_sim::run::{check, sized, How};
use std::sync::Arc;

/// Most ranks of a problem. Beyond, one known algorithm takes longer to make, prove and simulate than people wait.
pub const MOST_RANKS: u32 = 4096;

/// A collective, its shape, and the machine on which its schedule is to be fast.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The machine, of known size.
    pub machine: Arc<Machine>,
    /// What the schedule is to achieve.
    pub collective: Collective,
    /// Ranks, elements, size of an element, root, grid.
    pub shape: Shape,
    /// Name of the path; the machine's default where absent.
    pub path: Option<String>,
    /// Seed of everything that is drawn.
    pub seed: u64,
    /// Whether the start-ups of a rank's transfers wait for each other, whatever their lanes: a check of how much a
    /// gain depends on concurrent starts.
    pub serial_starts: bool,
}

impl Problem {
    /// The problem, if the machine can have it. Where all ranks of the machine take part and the shape has no grid, it
    /// gets the machine's; blocks of ranks are made equal by leaving out what is too much.
    pub fn new(
        machine: &Machine,
        collective: Collective,
        mut shape: Shape,
        path: Option<String>,
        seed: u64,
    ) -> Result<Self> {
        few_enough(shape.ranks)?;
        let machine = sized(machine, shape.ranks, &shape.grid)?;
        if shape.grid.is_empty() && machine.ranks() == shape.ranks as usize {
            shape.grid = machine.sides().to_vec();
        }
        shape.check()?;
        whole_blocks(collective, &mut shape)?;
        let problem = Problem {
            machine: Arc::new(machine),
            collective,
            shape,
            path,
            seed,
            serial_starts: false,
        };
        let (machine, options) = (&problem.machine, problem.options(Issue::default(), None));
        check(machine, problem.shape.ranks, &options)?;
        options.placement.place(machine, problem.shape.ranks, 0)?;
        fabrics::build(machine)?;
        Ok(problem)
    }

    /// How a schedule runs with `issue`, on `path` or that of the problem.
    pub fn options(&self, issue: Issue, path: Option<&str>) -> How {
        How {
            path: path.map(String::from).or_else(|| self.path.clone()),
            issue,
            seed: self.seed,
            serial_starts: self.serial_starts,
            ..How::default()
        }
    }

    /// The path that schedules take unless their candidate says otherwise.
    pub fn path(&self) -> &Path {
        let named = self
            .path
            .as_deref()
            .and_then(|name| self.machine.path(name));
        named.unwrap_or(self.machine.default_path())
    }

    /// The issue policy of the machine.
    pub fn issue(&self) -> Issue {
        self.machine.issue().unwrap_or_default()
    }

    /// The issue policies worth a try: that of the machine, then others.
    pub fn issues(&self) -> Vec<Issue> {
        let mut all = vec![self.issue()];
        for issue in [Issue::Unlimited, Issue::Window(2), Issue::Window(8)] {
            if !all.contains(&issue) {
                all.push(issue);
            }
        }
        all
    }

    /// Bytes of memory that every rank has; `None` where the machine does not say.
    pub fn memory(&self) -> Option<u64> {
        let ranks = &self.machine.endpoints()[..self.shape.ranks as usize];
        let least = ranks.iter().filter_map(|endpoint| endpoint.capacity).min();
        least.map(|bytes| bytes.0)
    }
}

fn few_enough(ranks: u32) -> Result<()> {
    if ranks <= MOST_RANKS {
        return Ok(());
    }
    let problem = format!(
        "{ranks} ranks; schedules are searched for up to {MOST_RANKS}: search for fewer, or price known algorithms with \
         `linkwright simulate`"
    );
    Err(ScheduleError::Shape(problem).into())
}

/// Round the elements down to whole blocks; less than one element for each rank is no problem to search for.
fn whole_blocks(collective: Collective, shape: &mut Shape) -> Result<()> {
    let ranks = u64::from(shape.ranks);
    if !collective.is_blocked() || collective == Collective::Barrier {
        return Ok(());
    }
    if shape.elements < ranks {
        let problem = format!(
            "{} elements are less than one for each of {ranks} ranks; ask for at least {} bytes",
            shape.elements,
            ranks * u64::from(shape.element_bytes)
        );
        return Err(ScheduleError::Shape(problem).into());
    }
    shape.elements -= shape.elements % ranks;
    Ok(())
}
