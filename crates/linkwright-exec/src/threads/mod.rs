//! Ranks as threads of this process, one core each, that write into each other's memory.
//!
//! ```text
//!   Schedule --program--> instructions per rank --world--> addresses, counters, mailboxes
//!                                                 launch: pinned threads, rounds
//!                                                 measure: warm-up, samples, checks
//! ```
//!
//! A put is a copy into the peer's buffer (with `reduce`, a combination there), a get a copy out of
//! it, and an edge between ranks a counter in a cache line of its own ([`flags`]). Ranks are pinned
//! in topology order: neighbours in rank share the nearest cache, and no two ranks share a core
//! before every core has one. With more ranks than cores they park ([`waiting`]) and the launch is
//! marked `oversubscribed`.
//!
//! Repetitions of short collectives follow each other without a barrier where that is right: the
//! collective must be one that no rank can leave before all have entered it, and epochs alternate between
//! two sets of buffers. Otherwise a barrier outside the timed region separates them.

pub(crate) mod arena;
pub mod copy;
pub mod flags;
mod launch;
mod measure;
mod program;
#[cfg(not(loom))]
pub mod stream;
mod sync;
pub mod waiting;
mod world;

use crate::buffers::{Buffers, Contents, Data};
use crate::error::{ExecError, Result};
use crate::executor::{Launch, RunOptions};
use crate::topology::{parallelism, Topology};
use copy::Copier;
use launch::{Order, RankThreads};
use linkwright_core::{Issue, Participant, Skew};
use linkwright_schedule::ir::{Owner, Schedule};
use linkwright_schedule::spec::Collective;
use program::{compile, Mail, Program};
use world::World;

/// Back to back only while two sets of all buffers of a rank stay within its caches.
pub(crate) const SMALL_BYTES: usize = 256 << 10;

/// The executor; see the module.
#[derive(Clone, Debug)]
pub struct Threads {
    topology: Topology,
    cores: usize,
    placement: Vec<u32>,
    issue: Issue,
}

impl Default for Threads {
    fn default() -> Self {
        Threads::new()
    }
}

impl Threads {
    /// On the processors that this process may use, in topology order.
    pub fn new() -> Self {
        let topology = Topology::discover();
        let cores = parallelism().min(topology.cpus.len()).max(1);
        let placement = topology.cpus.iter().map(|cpu| cpu.id).collect();
        Threads {
            topology,
            cores,
            placement,
            issue: Issue::Unlimited,
        }
    }

    /// Lanes issue puts by this policy, by default without a bound; [`program`] says when a put is complete.
    pub fn with_issue(mut self, issue: Issue) -> Self {
        self.issue = issue;
        self
    }

    /// Rank r on the r-th of these processors (operating-system numbers), round and round.
    pub fn with_placement(mut self, cpus: &[u32]) -> Result<Self> {
        for (rank, &cpu) in cpus.iter().enumerate() {
            if self.topology.cpus.iter().all(|known| known.id != cpu) {
                let known = self.topology.cpus.iter().map(|known| known.id.to_string());
                let allowed = known.collect::<Vec<_>>().join(", ");
                return Err(ExecError::NoProcessor { rank, cpu, allowed });
            }
        }
        if !cpus.is_empty() {
            self.placement = cpus.to_vec();
        }
        Ok(self)
    }

    /// The processors there are.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Ranks that can busy-wait: each needs a core of its own.
    fn spinning_ranks(&self) -> usize {
        let mut distinct = self.placement.clone();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() < self.placement.len() {
            return 1;
        }
        self.cores.min(distinct.len())
    }

    /// Compiles a schedule, once for any number of launches.
    pub fn prepare<'a>(&self, schedule: &'a Schedule, data: Data) -> Result<Prepared<'a>> {
        let contents = Contents::new(schedule, data)?;
        contents.check_memory(1)?;
        let program = compile(&contents, Mail::WhereItFits, self.issue)?;
        let pieces = program.ranks.iter().flat_map(|rank| &rank.pieces);
        let longest = pieces.map(|piece| piece.extent.bytes).max().unwrap_or(0);
        Ok(Prepared {
            contents,
            program,
            oversubscribed: schedule.ranks as usize > self.spinning_ranks(),
            copier: Copier::for_copies_of(longest),
            cpus: (0..schedule.ranks as usize)
                .map(|rank| self.placement[rank % self.placement.len()])
                .collect(),
        })
    }
}

/// A schedule that is ready to run.
pub struct Prepared<'a> {
    contents: Contents<'a>,
    program: Program,
    oversubscribed: bool,
    copier: Copier,
    cpus: Vec<u32>,
}

/// Whether repetitions of `schedule` follow each other without a barrier, on two sets of buffers in turn,
/// if all ranks arrive together.
pub fn repeats_back_to_back(schedule: &Schedule) -> bool {
    let at_rank_0 = |owner: Owner| owner == Owner::Ranks || owner == Owner::One(Participant(0));
    let own = schedule.buffers.iter().filter(|b| at_rank_0(b.owner));
    let bytes: u64 = own
        .map(|b| b.elements(schedule.elements) * u64::from(schedule.element_bytes))
        .sum();
    synchronises(schedule.spec.collective) && 2 * bytes <= SMALL_BYTES as u64
}

/// Operations of a repetition whose messages are timed one by one: those of a traffic pattern, where they are the
/// question.
pub(crate) fn watched(schedule: &Schedule) -> usize {
    match schedule.spec.collective {
        Collective::Pattern => schedule.ops().len(),
        _ => 0,
    }
}

/// Whether no rank can leave the collective before all have entered it.
pub(crate) fn synchronises(collective: Collective) -> bool {
    match collective {
        Collective::Allreduce
        | Collective::ReduceScatter
        | Collective::Allgather
        | Collective::Alltoall
        | Collective::Barrier => true,
        Collective::Broadcast
        | Collective::Reduce
        | Collective::Gather
        | Collective::Scatter
        | Collective::Alltoallv
        | Collective::Dispatch
        | Collective::Combine
        | Collective::Pattern => false,
    }
}

impl Prepared<'_> {
    fn threads(&self, sets: usize, skew: Skew, seed: u64) -> RankThreads<'_> {
        let (contents, program) = (&self.contents, &self.program);
        let world = World::new(contents, program, self.copier, self.oversubscribed, sets);
        RankThreads::new(world, self.cpus.clone(), skew, seed)
    }

    /// Runs once on freshly filled data and returns all memory, unchecked.
    pub fn execute(&self) -> Result<Buffers> {
        let threads = self.threads(1, Skew::None, 0);
        threads.launch(None, |leader| {
            leader.round(Order::Fill)?;
            leader.round(Order::Run {
                repetitions: 1,
                back_to_back: false,
            })?;
            Ok(())
        })?;
        let mut state = Buffers::initial(&self.contents);
        for participant in 0..self.contents.participants() {
            for buffer in 0..self.contents.schedule.buffers.len() {
                // SAFETY: all threads have ended.
                let memory = unsafe { threads.world.buffer(0, participant, buffer) };
                state
                    .buffer_mut(participant, buffer)
                    .copy_from_slice(memory);
            }
        }
        Ok(state)
    }

    /// One launch: fresh threads and memory, then samples by the rules of measurement.
    pub fn run(&self, options: &RunOptions) -> Result<Launch> {
        options.skew.check(self.contents.schedule.ranks)?;
        let back_to_back =
            options.skew == Skew::None && repeats_back_to_back(self.contents.schedule);
        let sets = if back_to_back { 2 } else { 1 };
        self.contents.check_memory(sets)?;
        let threads = self.threads(sets as usize, options.skew.clone(), options.seed);
        let oversubscribed = self.oversubscribed;
        let mut launch = threads.launch(options.cancelled, |leader| {
            let watched = watched(self.contents.schedule);
            measure::measure(leader, options, back_to_back, oversubscribed, watched)
        })?;
        launch.ranks = self.contents.schedule.ranks;
        launch.unpinned = threads.unpinned();
        launch.cpus = match launch.unpinned {
            None => self.cpus.iter().map(|&cpu| cpu as i32).collect(),
            Some(_) => vec![-1; self.cpus.len()],
        };
        Ok(launch)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use linkwright_schedule::builder::Shape;
    use linkwright_schedule::collectives;

    /// Launches a ring of four ranks on these processors.
    fn launch(
        cpus: Vec<u32>,
        parks: bool,
        lead: impl FnOnce(&mut launch::Leader) -> Result<(), launch::Stopped> + Send,
    ) -> Result<()> {
        let ring = collectives::find("allreduce/ring").unwrap();
        let schedule = (ring.build)(&Shape::new(4, 100)).unwrap();
        let data = Data::sums(DType::F32, 0);
        let contents = Contents::new(&schedule, data).unwrap();
        let program = compile(&contents, Mail::WhereItFits, Issue::Unlimited).unwrap();
        let world = World::new(&contents, &program, Copier::default(), parks, 1);
        RankThreads::new(world, cpus, Skew::None, 0).launch(None, lead)
    }

    #[test]
    fn a_panic_of_one_rank_ends_the_launch_and_names_it() {
        for parks in [true, false] {
            let error = launch(vec![0; 4], parks, |leader| {
                leader.round(Order::Fill)?;
                panic!("out of cheese");
            });
            let message = "out of cheese".to_owned();
            assert_eq!(error, Err(ExecError::RankFailed { rank: 0, message }));
        }
    }

    #[test]
    fn a_rank_that_fails_while_others_wait_releases_them() {
        for parks in [true, false] {
            // The last rank has no processor to run on and panics before it reaches a barrier.
            let error = launch(vec![0; 3], parks, |leader| Ok(leader.round(Order::Fill)?));
            let failed = matches!(error, Err(ExecError::RankFailed { rank: 3, .. }));
            assert!(failed, "{error:?}");
        }
    }

    #[test]
    fn tiny_messages_travel_as_mail_and_large_ones_do_not() {
        let ring = collectives::find("allreduce/ring").unwrap();
        for (elements, mails) in [(2 * 12, true), (2 * 13, false)] {
            let schedule = (ring.build)(&Shape::new(2, elements)).unwrap();
            let data = Data::sums(DType::F32, 0);
            let contents = Contents::new(&schedule, data).unwrap();
            assert_eq!(
                compile(&contents, Mail::WhereItFits, Issue::Unlimited)
                    .unwrap()
                    .mails
                    > 0,
                mails,
                "{elements}"
            );
        }
    }

    /// The fences of rank 1, which puts five messages into rank 0, and where they stand between the puts.
    fn fences(issue: Issue) -> String {
        let hot_spot = linkwright_schedule::patterns::find("hot_spot").unwrap();
        let traffic = linkwright_schedule::patterns::Traffic {
            count: 5,
            ..linkwright_schedule::patterns::Traffic::new(Shape::new(3, 100))
        };
        let schedule = (hot_spot.build)(&traffic).unwrap();
        let contents = Contents::new(&schedule, Data::sums(DType::F32, 0)).unwrap();
        let program = compile(&contents, Mail::WhereItFits, issue).unwrap();
        let shown = |instruction: &program::Instruction| match instruction.action {
            program::Action::Complete => Some('|'),
            _ if instruction.message => Some('p'),
            _ => None,
        };
        program.ranks[1].code.iter().filter_map(shown).collect()
    }

    #[test]
    fn a_put_without_a_place_waits_for_a_fence() {
        assert_eq!(fences(Issue::Unlimited), "ppppp");
        assert_eq!(fences(Issue::Blocking), "p|p|p|p|p|");
        assert_eq!(fences(Issue::Window(1)), "p|p|p|p|p|");
        assert_eq!(fences(Issue::Window(2)), "pp|pp|p|");
        assert_eq!(fences(Issue::Batch(2)), "pp|pp|p|");
        assert_eq!(fences(Issue::Window(5)), "ppppp|");
    }
}
