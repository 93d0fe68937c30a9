//! Ranks as processes of an MPI job: the same schedules, over any network that MPI knows.
//!
//! ```text
//!   Schedule --program--> steps of this rank --walker--> Irecv, Isend, Wait, combine
//!                                               native: the library's own collective, same data
//!                                               clock: one time for all;  measure: rounds
//! ```
//!
//! As always in MPI, every rank calls the functions below with the same arguments. `mpirun` starts the
//! process, and its owner starts the library ([`library`] says how it is called). Barriers of a schedule
//! become notices, and the result is verified before it runs.
//!
//! Messages longer than [`PART_BYTES`] are split, because counts of MPI are C integers.

mod clock;
pub mod library;
mod measure;
mod native;
mod numbering;
mod program;
mod steps;
mod walker;

use crate::buffers::{Contents, Data};
use crate::error::{ExecError, Result};
use crate::executor::RunOptions;
use crate::lowered::in_messages;
use crate::reference;
use crate::threads::{synchronises, watched, SMALL_BYTES};
use library::{Group, Library};
use linkwright_core::{Issue, Skew};
use linkwright_schedule::ir::Schedule;
use linkwright_schedule::spec::Collective;
use measure::{measure, Plan};
pub use measure::{Method, RankLaunch};
pub use native::Call;
use native::Native;
use program::compile;
use steps::RankProgram;
use walker::{Walker, Work};

/// Longest part of a message.
pub const PART_BYTES: usize = 1 << 30;

/// A group of ranks of a started library.
#[derive(Clone, Copy)]
pub struct Mpi {
    library: Library,
    group: Group,
    part_bytes: usize,
    oversubscribed: bool,
    issue: Issue,
}

impl Mpi {
    /// Ranks of `group`; `oversubscribed` where some host has more of them than cores.
    pub fn new(library: Library, group: Group, oversubscribed: bool) -> Self {
        Mpi {
            library,
            group,
            part_bytes: PART_BYTES,
            oversubscribed,
            issue: Issue::Unlimited,
        }
    }

    /// Ranks of the job.
    pub fn ranks(&self) -> u32 {
        self.group.size
    }

    /// Lanes issue by this policy, by default without a bound.
    pub fn with_issue(mut self, issue: Issue) -> Self {
        self.issue = issue;
        self
    }

    /// Splits messages already at this length.
    pub fn with_part_bytes(mut self, part_bytes: usize) -> Self {
        self.part_bytes = part_bytes.max(1);
        self
    }

    /// One launch of a schedule.
    pub fn run(&self, schedule: &Schedule, data: Data, options: &RunOptions) -> Result<RankLaunch> {
        let schedule = in_messages(schedule, "mpi")?;
        let (contents, program) = self.prepare(&schedule, data)?;
        let mut walker = Walker::new(&self.library, &self.group, &contents, &program);
        let mut plan = self.plan(schedule.spec.collective, schedule.size_bytes(), options)?;
        plan.watched = watched(&schedule);
        measure(&self.library, &self.group, &mut walker, &plan)
    }

    /// One launch of a collective of the library.
    pub fn run_native(&self, call: Call, data: Data, options: &RunOptions) -> Result<RankLaunch> {
        let bytes = call.elements * data.dtype.size() as u64;
        let plan = self.plan(call.collective, bytes, options)?;
        let mut native = Native::new(&self.library, &self.group, call, data)?;
        measure(&self.library, &self.group, &mut native, &plan)
    }

    /// Runs a schedule once and compares all buffers of this rank except scratch, bit for bit, with the
    /// result of the reference executor. Returns the number of bytes compared.
    pub fn compare_with_reference(&self, schedule: &Schedule, data: Data) -> Result<u64> {
        let schedule = in_messages(schedule, "mpi")?;
        let (contents, program) = self.prepare(&schedule, data)?;
        let mut walker = Walker::new(&self.library, &self.group, &contents, &program);
        walker.fill();
        walker.run()?;
        let want = reference::execute(&contents)?;
        let mut compared = 0;
        for (participant, buffer, got) in walker.buffers() {
            let name = &schedule.buffers[buffer].name;
            if name.starts_with("scratch") {
                continue;
            }
            let want = want.buffer(participant, buffer);
            let wrong = got.iter().zip(want).filter(|(a, b)| a != b).count();
            if wrong > 0 {
                return Err(ExecError::WrongResult {
                    executor: "mpi",
                    rank: participant,
                    buffer: name.clone(),
                    chunk: 0,
                    wrong,
                    elements: got.len(),
                });
            }
            compared += got.len() as u64;
        }
        Ok(compared)
    }

    fn prepare<'a>(
        &self,
        schedule: &'a Schedule,
        data: Data,
    ) -> Result<(Contents<'a>, RankProgram)> {
        if schedule.ranks != self.group.size {
            return Err(ExecError::RankCount {
                schedule: schedule.ranks,
                group: self.group.size,
            });
        }
        let contents = Contents::new(schedule, data)?;
        let program = compile(&contents, self.group.rank, self.part_bytes, self.issue)?;
        Ok((contents, program))
    }

    fn plan<'a>(
        &self,
        collective: Collective,
        size_bytes: u64,
        options: &'a RunOptions<'a>,
    ) -> Result<Plan<'a>> {
        options.skew.check(self.group.size)?;
        let small = 2 * size_bytes <= SMALL_BYTES as u64;
        Ok(Plan {
            options,
            back_to_back: synchronises(collective) && options.skew == Skew::None && small,
            oversubscribed: self.oversubscribed,
            watched: 0,
        })
    }
}

fn waived(reason: impl Into<String>) -> ExecError {
    ExecError::Waived {
        executor: "mpi",
        reason: reason.into(),
    }
}
