//! Which recipes are tried, in rounds that grow.
//!
//! Each round takes more slices, more trees and other seeds. A plan becomes a schedule only if the list scheduler of
//! [`super::order`] puts it within [`MARGIN`] of the best so far, because a simulation costs more.

use super::flows;
use super::matching;
use super::nets::{self, Net};
use super::order::{Style, Timed, Urgency};
use super::packing::Growth;
use super::plan::{Plan, Way};
use super::recipe::{Demand, Recipe, Source};
use super::wires::{Pair, Wires};
use super::write;
use crate::Result;
use linkwright_core::{Issue, TimePs};
use linkwright_schedule::ir::Schedule;
use linkwright_schedule::{Collective, Shape};
use std::sync::Arc;

/// How much later than the best one a plan may end to be simulated.
const MARGIN: f64 = 1.1;
/// Most plans of a batch and class that are simulated.
const KEPT: usize = 4;
/// Most tasks of a plan in the first round; each later one has four times as many.
const TASKS: u64 = 1 << 13;
/// Most tasks of any plan.
const MOST_TASKS: u64 = 1 << 18;
/// Rounds, of which later ones differ in seeds alone.
const ROUNDS: u32 = 12;
/// Transfers of a lane that may be on their way at once.
const WINDOWS: [u32; 3] = [1, 2, 4];
/// Lanes of a rank and transfers of a lane, for plans in few lanes: they depend less on concurrent starts.
const FEW_LANES: [(u32, u32); 3] = [(1, 1), (1, 2), (4, 2)];
/// A lane for each receiver, and those of [`FEW_LANES`]. The scheduler shares links unfairly, so it cannot compare
/// plans of different classes.
const CLASSES: usize = 1 + FEW_LANES.len();
/// Most pairs over which trees are packed, where there is a network of fewer pairs.
const PACKED: usize = 32 * 31;
/// Least bytes of a block, or of a vector from one root, that memories may relay: smaller ones wait too long for
/// notices.
const RELAYED: u64 = 1 << 20;
/// Memories are worth their notices if they bring the busiest link below this share of its load without them.
const LIGHTER: f64 = 0.99;
/// Price of a detour at which messages take the pair of their own, where there is one.
const DIRECT: f64 = 100.0;
/// Most endpoints for which every message of an all-to-all gets a path of its own.
const MOST_PATHS: u32 = 256;

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

/// Where plans come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`super::matching`].
    Matching,
    /// [`super::packing`].
    Packing,
    /// [`super::flows`].
    Paths,
}

impl Kind {
    /// Whether plans of this kind are for `collective`.
    pub fn serves(self, collective: Collective) -> bool {
        match collective {
            Collective::Gather | Collective::Scatter | Collective::Alltoall => self == Kind::Paths,
            collective => self != Kind::Paths && Way::of(collective).is_some(),
        }
    }
}

/// A network and its reverse.
struct Both {
    net: Net,
    wires: Wires,
    back: Wires,
}

/// What a batch of plans has in common.
#[derive(Clone, Copy)]
struct Batch {
    demand: usize,
    net: usize,
    round: u32,
}

/// A search for one collective and size.
pub struct Search<'a> {
    kind: Kind,
    collective: Collective,
    shape: &'a Shape,
    demands: Vec<Demand>,
    nets: Vec<Both>,
    lanes: u32,
    /// Whether starts of a rank wait for each other.
    serial: bool,
    seed: u64,
    /// Batches to come, the next one last.
    batches: Vec<Batch>,
    /// Time to beat.
    bar_ps: u64,
    /// The best plan of each class.
    best_ps: [u64; CLASSES],
}

struct Timely {
    recipe: Recipe,
    class: usize,
    net: usize,
    plan: Arc<Plan>,
    timed: Timed,
}

impl<'a> Search<'a> {
    /// Look for schedules of `collective` over a network, with at most so many lanes a rank.
    pub fn new(
        kind: Kind,
        (collective, shape): (Collective, &'a Shape),
        (wires, lanes): (&Wires, u32),
        (seed, serial): (u64, bool),
    ) -> Self {
        let demands = Demand::all(collective, shape);
        let routed = Way::of(collective).is_none();
        let nets = match routed && shape.ranks <= MOST_PATHS {
            true => vec![(Net::All, wires.clone())],
            false => nets::of(wires, demands[0].bytes),
        };
        let both = |(net, wires): (Net, Wires)| Both {
            net,
            back: wires.reversed(),
            wires,
        };
        let nets: Vec<Both> = nets.into_iter().map(both).collect();
        let mut search = Search {
            kind,
            collective,
            shape,
            demands,
            nets,
            lanes,
            serial,
            seed,
            batches: Vec::new(),
            bar_ps: u64::MAX,
            best_ps: [u64::MAX; CLASSES],
        };
        search.plan_batches();
        search
    }

    /// Search ways over memories, too; `wires` is the network with them. Memories do not add, so sums do not use them.
    pub fn relay(&mut self, wires: Wires) {
        let spreads = Way::of(self.collective) == Some(Way::Spread) && self.kind == Kind::Packing;
        let large = self.demands[0].bytes >= RELAYED;
        if large && (spreads || self.kind == Kind::Paths) {
            self.nets.push(Both {
                net: Net::Memories,
                back: wires.reversed(),
                wires,
            });
            self.plan_batches();
        }
    }

    /// Plan the batches of all rounds, the first one last, because they are taken from the end.
    fn plan_batches(&mut self) {
        let (kind, nets) = (self.kind, &self.nets);
        let serves = self.shape.ranks > 1 && kind.serves(self.collective);
        let mut batches = Vec::new();
        for round in (0..ROUNDS).filter(|_| serves) {
            for demand in 0..self.demands.len() {
                let slow = |net: &usize| nets.len() > 1 && nets[*net].wires.pairs().len() > PACKED;
                let suited = (0..nets.len()).filter(|net| kind != Kind::Packing || !slow(net));
                let mut suited: Vec<usize> = suited.collect();
                // Memories come first: where they help, the first plan over them already does.
                suited.sort_by_key(|&net| nets[net].net != Net::Memories);
                let batch = |net| Batch { demand, net, round };
                batches.extend(suited.into_iter().map(batch));
            }
        }
        batches.reverse();
        self.batches = batches;
    }

    /// A schedule that takes so long is there already; what is far behind is of no interest.
    pub fn beat(&mut self, time: TimePs) {
        self.bar_ps = self.bar_ps.min(time.0);
    }

    /// The schedules of the next batch, perhaps none; `None` behind the last batch, or where no time is left. A batch
    /// ends early when that happens.
    pub fn next_batch(&mut self, time_left: &dyn Fn() -> bool) -> Option<Result<Vec<Found>>> {
        let batch = self.batches.pop().filter(|_| time_left())?;
        let mut all = Plans {
            kept: Default::default(),
            time_left,
        };
        match self.kind {
            Kind::Matching => self.matchings(batch, &mut all),
            Kind::Packing => self.packings(batch, &mut all),
            Kind::Paths => self.paths(batch, &mut all),
        }
        let mut all = all.finish();
        for one in &all {
            let best = &mut self.best_ps[one.class];
            *best = one.timed.end_ps().min(*best);
        }
        all.retain(|one| self.is_close(one.class, &one.timed));
        Some(all.into_iter().map(|one| self.written(one)).collect())
    }

    fn is_close(&self, class: usize, timed: &Timed) -> bool {
        let best = self.best_ps[class].min(self.bar_ps);
        timed.end_ps() as f64 <= best as f64 * MARGIN
    }

    /// Whether plans can be close to the best, if 1 GB in each of `slices` keeps their busiest link busy for `busiest`
    /// seconds. Ways over memories must also relieve the busiest link of the same search over ranks alone (`ranks`).
    fn promises(
        &self,
        batch: Batch,
        (busiest, slices): (f64, u32),
        ranks: impl Fn(&Both) -> f64,
    ) -> bool {
        let busy_ps = busiest * 1e3 * self.demand(batch).bytes as f64 / f64::from(slices);
        let worst = self.best_ps.iter().max().copied().unwrap_or(u64::MAX);
        let close = busy_ps <= worst.min(self.bar_ps) as f64 * MARGIN;
        let relayed = self.nets[batch.net].net == Net::Memories;
        close && (!relayed || busiest < ranks(&self.nets[0]) * LIGHTER)
    }

    /// The schedule of a plan.
    fn written(&self, one: Timely) -> Result<Found> {
        let wires = &self.nets[one.net].wires;
        let what = (self.collective, self.shape);
        let schedule =
            write::schedule(what, wires, (&one.plan, &one.timed), one.recipe.style.lanes)?;
        Ok(Found {
            recipe: one.recipe,
            schedule,
            issue: match one.recipe.style.window {
                1 => Issue::Blocking,
                window => Issue::Window(window),
            },
        })
    }

    fn demand(&self, batch: Batch) -> &Demand {
        &self.demands[batch.demand]
    }

    /// Whether the round may cut blocks into so many slices.
    fn affords(&self, batch: Batch, slices: u32) -> bool {
        let demand = self.demand(batch);
        let phases = if self.collective == Collective::Allreduce {
            2
        } else {
            1
        };
        let each = demand.roots.len() as u64 * u64::from(self.shape.ranks - 1) * phases;
        let most = (TASKS << (2 * batch.round).min(16)).min(MOST_TASKS);
        let most = if slices == 1 { MOST_TASKS } else { most };
        demand.divides(slices) && each * u64::from(slices) <= most
    }

    /// How often trees and paths are taken out and routed again.
    fn again(&self) -> u32 {
        if self.shape.ranks > 16 {
            4
        } else {
            12
        }
    }

    fn matchings(&self, batch: Batch, all: &mut Plans<'_>) {
        let Both { wires, back, .. } = &self.nets[batch.net];
        let seed = self.seed.wrapping_add(u64::from(batch.round + 1));
        let slices = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128];
        for slices in slices
            .into_iter()
            .filter(|&slices| self.affords(batch, slices))
        {
            for (patience, window) in [(1.2, 1), (1.2, 2), (1.2, 4), (4.0, 2)] {
                if !(all.time_left)() {
                    return;
                }
                let wish = matching::Wish {
                    slices,
                    bytes: self.demand(batch).slice_bytes(slices),
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
                if let Some(plan) = self.demand(batch).matched(wires, back, wish) {
                    self.time(batch, source, plan, all);
                }
            }
        }
    }

    fn packings(&self, batch: Batch, all: &mut Plans<'_>) {
        let demand = self.demand(batch);
        let (least, most) = match batch.round {
            0 => (1, 2),
            round => ((1 << round.min(5)) + 1, 2 << round.min(5)),
        };
        let trees = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];
        let fit = |&trees: &u32| trees >= least && trees <= most && self.affords(batch, trees);
        for trees in trees.into_iter().filter(fit) {
            for depth in [0.0, 0.3] {
                if !(all.time_left)() {
                    return;
                }
                let growth = Growth {
                    trees,
                    depth,
                    rounds: self.again(),
                };
                let packed = |net: &Both| demand.packed(&net.wires, &net.back, growth);
                let Some(forests) = packed(&self.nets[batch.net]) else {
                    continue;
                };
                let ranks = |net: &Both| packed(net).map_or(f64::INFINITY, |ranks| ranks.busiest);
                if !self.promises(batch, (forests.busiest, trees), ranks) {
                    continue;
                }
                let pieces = (0..10).map(|log| 1 << log);
                for pieces in pieces.take_while(|&pieces| self.affords(batch, trees * pieces)) {
                    let plan = forests.plan(demand.roots.len() as u32, pieces);
                    let source = Source::Packing {
                        trees,
                        depth,
                        pieces,
                    };
                    self.time(batch, source, plan, all);
                }
            }
        }
    }

    fn paths(&self, batch: Batch, all: &mut Plans<'_>) {
        let demand = self.demand(batch);
        let messages = demand.messages(self.shape.ranks, self.shape.root);
        let slices = [1, 2, 3, 4, 6, 8, 12, 16, 32];
        let least = if batch.round == 0 {
            1
        } else {
            slices[(batch.round as usize + 1).min(8)]
        };
        let fit = |&slices: &u32| slices >= least && self.affords(batch, slices);
        for slices in slices.into_iter().filter(fit) {
            for detour in [DIRECT, 0.0, 0.3] {
                if !(all.time_left)() {
                    return;
                }
                let wish = flows::Wish {
                    slices,
                    detour,
                    rounds: self.again(),
                };
                let route = |net: &Both| {
                    flows::route(
                        &net.wires,
                        &relays(&net.wires, demand.bytes),
                        &messages,
                        wish,
                    )
                };
                let (plan, busiest) = route(&self.nets[batch.net]);
                if !self.promises(batch, (busiest, slices), |net| route(net).1) {
                    continue;
                }
                self.time(batch, Source::Flows { slices, detour }, plan, all);
            }
        }
    }

    /// Keep `plan` in the best order of each class, unless it is far behind.
    fn time(&self, batch: Batch, source: Source, plan: Plan, all: &mut Plans<'_>) {
        let Both { net, wires, .. } = &self.nets[batch.net];
        let plan = Arc::new(plan);
        for class in 0..CLASSES {
            if !(all.time_left)() {
                return;
            }
            let times = |style| (style, self.demand(batch).times(wires, &plan, style));
            let timed = self.styles(class).into_iter().map(times);
            let Some((style, timed)) = timed.min_by_key(|(_, timed)| timed.end_ps()) else {
                continue;
            };
            if self.is_close(class, &timed) {
                let recipe = Recipe {
                    roots: self.demand(batch).roots.len() as u32,
                    net: *net,
                    source,
                    style,
                    reads: None,
                };
                all.add(Timely {
                    recipe,
                    class,
                    net: batch.net,
                    plan: plan.clone(),
                    timed,
                });
            }
        }
    }

    /// How the transfers of a plan may be issued.
    fn styles(&self, class: usize) -> Vec<Style> {
        let style = |urgency, lanes, window| Style {
            urgency,
            lanes,
            window,
            serial: self.serial,
        };
        if class == 0 {
            let all = |urgency| WINDOWS.map(|window| style(urgency, self.lanes, window));
            return [Urgency::Tail, Urgency::Age].map(all).concat();
        }
        let (lanes, window) = FEW_LANES[class - 1];
        let fewer = lanes < self.lanes;
        fewer
            .then(|| style(Urgency::Tail, lanes, window))
            .into_iter()
            .collect()
    }
}

/// By endpoint, the pairs over which it relays: near ones, and those to and from memories.
fn relays(wires: &Wires, bytes: u64) -> Vec<Vec<u32>> {
    let near = nets::near(wires, bytes);
    let is_rank = |endpoint| endpoint < wires.ranks();
    let relays = |pair: &&u32| {
        let &Pair { from, to, .. } = wires.pair(**pair);
        near.between(from, to).is_some() || !is_rank(from) || !is_rank(to)
    };
    let of = |from| wires.out(from).iter().filter(relays).copied().collect();
    (0..wires.endpoints()).map(of).collect()
}

/// The best plans of a batch, by class.
struct Plans<'a> {
    kept: [Vec<Timely>; CLASSES],
    time_left: &'a dyn Fn() -> bool,
}

impl Plans<'_> {
    fn add(&mut self, one: Timely) {
        let kept = &mut self.kept[one.class];
        kept.push(one);
        if kept.len() > 2 * KEPT {
            sort(kept); // plans take room
        }
    }

    fn finish(mut self) -> Vec<Timely> {
        self.kept.iter_mut().for_each(sort);
        self.kept.into_iter().flatten().collect()
    }
}

fn sort(kept: &mut Vec<Timely>) {
    kept.sort_by_key(|one| one.timed.end_ps());
    kept.truncate(KEPT);
}
