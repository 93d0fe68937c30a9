//! Which recipes are tried, in rounds that grow.
//!
//! Each round takes more slices, more trees and other seeds. Only what the list scheduler of [`super::order`] puts within
//! [`MARGIN`] of the best so far becomes a schedule, because times of the simulator cost more.

use super::flows;
use super::matching;
use super::order::{Timed, Urgency};
use super::packing::Growth;
use super::plan::{Plan, Way};
use super::recipe::{Demand, Net, Recipe, Source};
use super::wires::Wires;
use super::write;
use crate::error::Result;
use linkwright_schedule::ir::Schedule;
use linkwright_schedule::{Collective, Shape};
use linkwright_sim::Issue;

/// How much later than the best one a plan may end to be simulated.
const MARGIN: f64 = 1.12;
/// Most plans of a round that are simulated.
const KEPT: usize = 8;
/// Most tasks of a plan in the first round; later ones have more.
const TASKS: u64 = 1 << 14;
/// Most tasks of any plan, unless the smallest plan has more.
const MOST_TASKS: u64 = 1 << 18;
/// Transfers of a pair that may be on their way at once.
const WINDOWS: [u32; 3] = [1, 2, 4];
/// Rounds without a new recipe.
const ROUNDS: u32 = 12;

/// A schedule that was found, and how transfers are to be issued.
#[derive(Clone)]
pub struct Found {
    /// How it was found.
    pub recipe: Recipe,
    /// The schedule.
    pub schedule: Schedule,
    /// Policy of its lanes.
    pub issue: Issue,
}

/// A search for one collective and size.
pub struct Search<'a> {
    collective: Collective,
    shape: &'a Shape,
    demand: Demand,
    nets: Vec<(Net, Wires, Wires)>,
    lanes: u32,
    round: u32,
    best_ps: u64,
}

struct Timely {
    recipe: Recipe,
    net: usize,
    plan: Plan,
    timed: Timed,
}

impl<'a> Search<'a> {
    /// Look for schedules of `collective` over `wires`, with at most `lanes` lanes a rank.
    pub fn new(collective: Collective, shape: &'a Shape, wires: &Wires, lanes: u32) -> Self {
        let fastest = wires.pairs().iter().map(|pair| pair.rate).max();
        let first = wires.pairs().iter().map(|pair| pair.start_ps).min();
        let fast = wires.only(|pair| Some(pair.rate) == fastest && Some(pair.start_ps) == first);
        let fewer = fast
            .ok()
            .filter(|fast| fast.pairs().len() < wires.pairs().len());
        let with_back = |net, wires: Wires| {
            let back = wires.reversed();
            (net, wires, back)
        };
        let mut nets = vec![with_back(Net::All, wires.clone())];
        nets.extend(fewer.map(|fast| with_back(Net::Fast, fast)));
        Search {
            collective,
            shape,
            demand: Demand::new(collective, shape),
            nets,
            lanes,
            round: 0,
            best_ps: u64::MAX,
        }
    }

    /// The schedules of the next round; `None` behind the last one.
    pub fn next_round(&mut self) -> Option<Result<Vec<Found>>> {
        if self.round == ROUNDS || self.shape.ranks < 2 {
            return None;
        }
        let mut all = Vec::new();
        for net in 0..self.nets.len() {
            match Way::of(self.collective) {
                Some(_) => {
                    self.matchings(net, &mut all);
                    self.packings(net, &mut all);
                }
                None => self.paths(net, &mut all),
            }
        }
        self.round += 1;
        best_first(&mut all);
        let best = all.first().map_or(u64::MAX, |one| one.timed.end_ps());
        self.best_ps = self.best_ps.min(best);
        let most = self.best_ps as f64 * MARGIN;
        all.retain(|one| one.timed.end_ps() as f64 <= most);
        let written = all.into_iter().map(|one| self.written(one));
        Some(written.collect())
    }

    /// The schedule of a plan.
    fn written(&self, one: Timely) -> Result<Found> {
        let wires = &self.nets[one.net].1;
        let what = (self.collective, self.shape);
        let schedule = write::schedule(what, wires, (&one.plan, &one.timed), self.lanes)?;
        Ok(Found {
            recipe: one.recipe,
            schedule,
            issue: match one.recipe.window {
                1 => Issue::Blocking,
                window => Issue::Window(window),
            },
        })
    }

    fn tasks(&self, slices: u32) -> u64 {
        let ranks = u64::from(self.shape.ranks);
        let phases = if self.collective == Collective::Allreduce {
            2
        } else {
            1
        };
        self.demand.roots.len() as u64 * (ranks - 1) * u64::from(slices) * phases
    }

    /// Whether this round may cut blocks into so many slices.
    fn affords(&self, slices: u32) -> bool {
        let most = (TASKS << (2 * self.round)).min(MOST_TASKS);
        self.demand.divides(slices) && (slices == 1 || self.tasks(slices) <= most)
    }

    fn matchings(&self, net: usize, all: &mut Vec<Timely>) {
        let (name, wires, back) = &self.nets[net];
        let slices = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128];
        for slices in slices.into_iter().filter(|&slices| self.affords(slices)) {
            for (patience, window) in [(1.2, 1), (1.2, 2), (1.2, 4), (4.0, 2)] {
                let seed = u64::from(self.round + 1);
                let wish = matching::Wish {
                    slices,
                    bytes: self.demand.slice_bytes(slices),
                    patience,
                    window,
                    seed,
                };
                let source = Source::Matching {
                    slices,
                    patience,
                    window,
                    seed,
                };
                if let Some(plan) = self.demand.matched(wires, back, wish) {
                    self.time((*name, net), source, plan, all);
                }
            }
        }
    }

    fn packings(&self, net: usize, all: &mut Vec<Timely>) {
        let (name, wires, back) = &self.nets[net];
        let most = 2 << self.round.min(4);
        let trees = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];
        for trees in trees
            .into_iter()
            .filter(|&trees| trees <= most && self.affords(trees))
        {
            for depth in [0.0, 0.3] {
                let growth = Growth {
                    trees,
                    depth,
                    rounds: 12,
                };
                let Some(forests) = self.demand.packed(wires, back, growth) else {
                    continue;
                };
                let pieces = (0..10).map(|log| 1 << log);
                for pieces in pieces.take_while(|&pieces| self.affords(trees * pieces)) {
                    let plan = forests.plan(self.demand.blocks, pieces);
                    let source = Source::Packing {
                        trees,
                        depth,
                        pieces,
                    };
                    self.time((*name, net), source, plan, all);
                }
            }
        }
    }

    fn paths(&self, net: usize, all: &mut Vec<Timely>) {
        let (name, wires, _) = &self.nets[net];
        let messages = self.demand.messages(self.shape.ranks, self.shape.root);
        let slices = [1, 2, 3, 4, 6, 8, 12, 16, 32];
        for slices in slices.into_iter().filter(|&slices| self.affords(slices)) {
            for detour in [0.0, 0.3] {
                let wish = flows::Wish {
                    slices,
                    detour,
                    rounds: 12,
                };
                let (plan, _) = flows::route(wires, &messages, wish);
                self.time((*name, net), Source::Flows { slices, detour }, plan, all);
            }
        }
    }

    /// Keep `plan` in its best order, unless it is far behind.
    fn time(&self, (net, index): (Net, usize), source: Source, plan: Plan, all: &mut Vec<Timely>) {
        let wires = &self.nets[index].1;
        let urgencies = [Urgency::Tail, Urgency::Age];
        let choices = urgencies
            .into_iter()
            .flat_map(|urgency| WINDOWS.map(|window| (urgency, window)));
        let timed = choices.map(|choice| (choice, self.demand.times(wires, &plan, choice)));
        let Some((choice, timed)) = timed.min_by_key(|(_, timed)| timed.end_ps()) else {
            return;
        };
        if timed.end_ps() as f64 > self.best_ps as f64 * MARGIN {
            return;
        }
        let recipe = Recipe {
            net,
            source,
            urgency: choice.0,
            window: choice.1,
        };
        all.push(Timely {
            recipe,
            net: index,
            plan,
            timed,
        });
        if all.len() > 2 * KEPT {
            best_first(all); // plans take room
        }
    }
}

fn best_first(all: &mut Vec<Timely>) {
    all.sort_by_key(|one| one.timed.end_ps());
    all.truncate(KEPT);
}
