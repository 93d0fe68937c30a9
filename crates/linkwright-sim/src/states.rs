//! What each rank does when, from the times of its operations.
//!
//! A rank does several things at once, so the first of these that holds counts:
//!
//! ```text
//!   reduce    it combines, copies or computes
//!   send      it starts a transfer, or data of its own are on their way
//!   receive   it fetches data, data are on their way to it, or it handles their arrival
//!   wait      none of these, between its arrival and its finish
//! ```
//!
//! Notices carry no data: who waits for one waits. Where a message has several targets, all have it when the last has.

use crate::costs::Costs;
use crate::error::SimError;
use crate::messages::Messages;
use crate::outcome::{OperationTimes, Simulation, NEVER};
use crate::setup::Setup;
use linkwright_schedule::ir::{Combine, Op, OpKind, Schedule};

linkwright_core::words! {
    /// What a rank does.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum State {
        /// Data leave it.
        Send = "send",
        /// Data come.
        Receive = "receive",
        /// Nothing of its own goes on.
        Wait = "wait",
        /// Arithmetic and local copies.
        Reduce = "reduce",
    }
}

impl State {
    /// What counts if several hold.
    const FIRST: [State; 3] = [State::Reduce, State::Send, State::Receive];
}

/// Intervals by rank, then time; those of a rank follow each other from its start to its finish.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct States {
    /// Whose.
    pub rank: Vec<u32>,
    /// A number of [`State::ALL`].
    pub state: Vec<u8>,
    /// Beginnings, in picoseconds.
    pub begin_ps: Vec<u64>,
    /// Ends, in picoseconds.
    pub end_ps: Vec<u64>,
}

/// Something that goes on at a rank for some time.
struct Stretch {
    rank: u32,
    state: State,
    from: u64,
    to: u64,
}

impl States {
    /// Of a simulation of `schedule` that recorded its operations.
    pub fn of(
        schedule: &Schedule,
        setup: &Setup,
        simulation: &Simulation,
    ) -> Result<Self, SimError> {
        let times = simulation.recorded()?;
        let messages = Messages::new(schedule, &setup.placement, &setup.networks);
        let costs = Costs::new(setup, &messages)?;
        let found = Found {
            messages: &messages,
            costs: &costs,
            times,
        };
        let (first, order) = found.by_rank();
        let mut states = States::default();
        let mut turns = Vec::new();
        for rank in 0..schedule.ranks {
            turns.clear();
            let mine = first[rank as usize] as usize..first[rank as usize + 1] as usize;
            for &id in &order[mine] {
                found.each(id, &mut |stretch| {
                    if stretch.rank == rank && stretch.from < stretch.to {
                        turns.push((stretch.from, stretch.state, true));
                        turns.push((stretch.to, stretch.state, false));
                    }
                });
            }
            turns.sort_unstable();
            let index = rank as usize;
            // A timed run begins later than the first one.
            let start = setup.arrivals.get(index).map_or(0, |at| at.0);
            let finish = turns.last().map_or(0, |turn| turn.0);
            states.sweep(rank, &turns, (start, simulation.finish[index].max(finish)));
        }
        Ok(states)
    }

    fn sweep(&mut self, rank: u32, turns: &[(u64, State, bool)], (mut at, finish): (u64, u64)) {
        let mut count = [0_u32; 4];
        let end = (finish, State::Wait, true);
        for &(moment, state, begins) in turns.iter().chain([&end]) {
            if moment > at {
                let holds = |state: &&State| count[**state as usize] > 0;
                let now = State::FIRST.iter().find(holds).unwrap_or(&State::Wait);
                self.push(rank, *now, (at, moment));
                at = moment;
            }
            match begins {
                true => count[state as usize] += 1,
                false => count[state as usize] -= 1,
            }
        }
    }

    fn push(&mut self, rank: u32, state: State, (from, to): (u64, u64)) {
        let goes_on = self.rank.last() == Some(&rank)
            && self.state.last() == Some(&(state as u8))
            && self.end_ps.last() == Some(&from);
        if let Some(end) = self.end_ps.last_mut().filter(|_| goes_on) {
            *end = to;
            return;
        }
        self.rank.push(rank);
        self.state.push(state as u8);
        self.begin_ps.push(from);
        self.end_ps.push(to);
    }
}

/// The operations of a simulation.
struct Found<'a> {
    messages: &'a Messages<'a>,
    costs: &'a Costs<'a>,
    times: &'a OperationTimes,
}

impl Found<'_> {
    /// Operations by the ranks at which they do something: where those of a rank begin, and all.
    fn by_rank(&self) -> (Vec<u32>, Vec<u32>) {
        let schedule = self.messages.schedule;
        let ranks = schedule.ranks as usize;
        let mut first = vec![0_u32; ranks + 2];
        // Twice over the operations: how many, then which.
        for op in schedule.ops() {
            places(schedule, op, &mut |rank| first[rank + 2] += 1);
        }
        for rank in 2..first.len() {
            first[rank] += first[rank - 1];
        }
        let mut all = vec![0; first[ranks + 1] as usize];
        for (id, op) in (0_u32..).zip(schedule.ops()) {
            places(schedule, op, &mut |rank| {
                all[first[rank + 1] as usize] = id;
                first[rank + 1] += 1;
            });
        }
        (first, all)
    }

    /// What operation `id` does at ranks.
    fn each(&self, id: u32, tell: &mut impl FnMut(Stretch)) {
        let (schedule, i) = (self.messages.schedule, id as usize);
        let op = &schedule.ops()[i];
        let (issued, offered) = (self.times.issued[i], self.times.offered[i]);
        let delivered = self.times.delivered[i];
        let mut at = |rank, state, from, to| {
            tell(Stretch {
                rank,
                state,
                from,
                to,
            })
        };
        match op.kind {
            OpKind::Local | OpKind::Compute => at(op.from, State::Reduce, issued, delivered),
            OpKind::Barrier | OpKind::Fence => {}
            OpKind::Notice => at(op.from, State::Send, issued, offered),
            _ => {
                let initiator = op.initiator();
                let begins = |rank| if rank == initiator { issued } else { offered };
                for &rank in schedule.sources(op) {
                    at(rank, State::Send, begins(rank), delivered);
                }
                let combine = match op.combine {
                    Combine::Reduce => self.costs.local(op.combine, self.messages.bytes(op)),
                    Combine::Replace => 0,
                };
                let (visible, handling) = self.handled(id, op);
                for &rank in schedule.targets(op) {
                    at(rank, State::Receive, begins(rank), delivered);
                    at(rank, State::Receive, visible - handling, visible);
                    at(
                        rank,
                        State::Reduce,
                        visible - combine.min(handling),
                        visible,
                    );
                }
            }
        }
    }

    /// When a target has handled the arrival, and how long that takes.
    fn handled(&self, id: u32, op: &Op) -> (u64, u64) {
        let i = id as usize;
        let visible = match self.times.visible[i] {
            NEVER => self.times.delivered[i],
            visible => visible,
        };
        let handling = self.costs.arrival(op, self.messages) + self.costs.landing(id);
        (visible, handling.min(visible - self.times.delivered[i]))
    }
}

/// Ranks at which `op` does something.
fn places(schedule: &Schedule, op: &Op, tell: &mut impl FnMut(usize)) {
    let mut rank = |rank: u32| {
        if rank < schedule.ranks {
            tell(rank as usize);
        }
    };
    match op.kind {
        OpKind::Barrier | OpKind::Fence => {}
        OpKind::Local | OpKind::Compute | OpKind::Notice => rank(op.from),
        _ => {
            let (sources, targets) = (schedule.sources(op), schedule.targets(op));
            sources.iter().for_each(|&one| rank(one));
            let others = targets.iter().filter(|one| !sources.contains(one));
            others.for_each(|&one| rank(one));
        }
    }
}
