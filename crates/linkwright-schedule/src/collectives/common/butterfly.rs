//! Butterflies: in every step all ranks of the core meet one partner each.
//!
//! ```text
//!   doubling, line of m   a meets a XOR 2^i
//!   swing, ring of m      a meets a + rho(i) where a is even, a - rho(i) where odd, modulo m
//!                         rho(i) = 1 - 2 + 4 - ... (-2)^i = 1, -1, 3, -5, 11, ...  (always odd)
//! ```
//!
//! Both relations are their own inverse, and after log2 m steps everyone has met everyone. Swing
//! goes about 2^i/3 far on the ring where doubling goes 2^i: what a torus likes.
//! On a grid the steps alternate between rows and columns, i = 0, 0, 1, 1, ...
//!
//! **Reach.** `reach(m, s)` are the ranks that m meets, directly or not, from step s on:
//!
//! ```text
//!   reach(m, last + 1) = {m}       reach(m, s) = reach(m, s+1) + reach(partner(m, s), s+1)
//! ```
//!
//! If in step s everyone sends its partner q the blocks `reach(q, s+1)`, the blocks halve from
//! step to step and end where they belong: a reduce-scatter. Backwards it is an allgather.
//!
//! **Core.** A butterfly wants a power of two along every axis. The first 2^k places of an axis
//! are the *core*; each place beyond *folds* into the one 2^k before it, which acts for both.
//!
//! Sources: Thakur, Rabenseifner and Gropp, IJHPCA 2005 (doubling, folding); De Sensi, Bonato,
//! Saam and Hoefler, "Swing: short-cutting rings for higher bandwidth allreduce" (NSDI 2024).

use crate::collectives::prelude::*;

/// Who meets whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partners {
    /// Distance 1, 2, 4, ...
    Doubling,
    /// Distance 1, 1, 3, 5, 11, ... in turning directions.
    Swing,
    /// As Swing, with the blocks in an order in which every message of an exchange is one run.
    Bine,
}

impl Partners {
    /// Whom place `here` of a ring of `length` meets in its round `i`.
    pub fn of(self, here: u32, i: u32, length: u32) -> u32 {
        match self {
            Partners::Doubling => here ^ (1 << i),
            Partners::Swing | Partners::Bine => {
                let there = i64::from(here) + swing(here, i);
                there.rem_euclid(i64::from(length)) as u32
            }
        }
    }
}

/// How far ahead place `here` meets in round `i` of Swing.
fn swing(here: u32, i: u32) -> i64 {
    let rho = (1 - (-2i64).pow(i + 1)) / 3;
    if here % 2 == 0 {
        rho
    } else {
        -rho
    }
}

/// One axis of the arrangement of ranks.
struct Axis {
    length: u32,
    stride: u32,
    /// Largest power of two within the length.
    core: u32,
    forward: Hint,
    backward: Hint,
}

impl Axis {
    fn new(length: u32, stride: u32, forward: Hint, backward: Hint) -> Self {
        Axis {
            length,
            stride,
            core: 1 << length.ilog2(),
            forward,
            backward,
        }
    }

    fn place(&self, rank: u32) -> u32 {
        rank / self.stride % self.length
    }

    fn folded(&self, rank: u32) -> u32 {
        match self.place(rank) >= self.core {
            true => rank - self.core * self.stride,
            false => rank,
        }
    }
}

/// The meetings of all ranks; see the module.
pub struct Butterfly {
    partners: Partners,
    axes: Vec<Axis>,
    /// (axis, i) of every step.
    steps: Vec<(usize, u32)>,
    ranks: u32,
    core: Vec<u32>,
}

impl Butterfly {
    /// The butterfly over the grid of `shape`, or over its ranks in a line.
    pub fn new(shape: &Shape, partners: Partners) -> Result<Self> {
        shape.check()?;
        let ranks = shape.ranks;
        let (columns, rows) = shape.plane().unwrap_or((ranks, 1));
        let mut axes = vec![Axis::new(columns, 1, Hint::PlusX, Hint::MinusX)];
        if rows > 1 {
            axes.push(Axis::new(rows, columns, Hint::PlusY, Hint::MinusY));
        }
        let rounds = |axis: &Axis| axis.core.ilog2();
        let longest = axes.iter().map(rounds).max().unwrap_or(0);
        let steps = (0..longest)
            .flat_map(|i| (0..axes.len()).map(move |axis| (axis, i)))
            .filter(|&(axis, i)| i < rounds(&axes[axis]))
            .collect();
        let in_core = |&rank: &u32| axes.iter().all(|axis| axis.place(rank) < axis.core);
        Ok(Butterfly {
            core: (0..ranks).filter(in_core).collect(),
            partners,
            axes,
            steps,
            ranks,
        })
    }

    /// Number of steps: log2 of the core.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Ranks of the core, ascending.
    pub fn core(&self) -> &[u32] {
        &self.core
    }

    /// Number of folds: one per axis.
    pub fn folds(&self) -> usize {
        self.axes.len()
    }

    /// Pairs (surplus rank, the one that acts for it) of fold number `fold`.
    pub fn folded(&self, fold: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..self.ranks)
            .filter(move |&rank| self.home(rank, fold) == rank)
            .map(move |rank| (rank, self.axes[fold].folded(rank)))
            .filter(|(rank, home)| rank != home)
    }

    /// Who acts for `rank` after the first `folds` folds.
    pub fn home(&self, rank: u32, folds: usize) -> u32 {
        let axes = self.axes[..folds].iter();
        axes.fold(rank, |rank, axis| axis.folded(rank))
    }

    /// Whom `rank`, of the core, meets in `step`, and which way its message goes.
    pub fn meet(&self, rank: u32, step: usize) -> (u32, Hint) {
        let (axis, i) = self.steps[step];
        let axis = &self.axes[axis];
        let here = axis.place(rank);
        let there = self.partners.of(here, i, axis.core);
        let ahead = match self.partners {
            Partners::Doubling => here >> i & 1 == 0,
            Partners::Swing | Partners::Bine => swing(here, i) > 0,
        };
        let hint = if ahead { axis.forward } else { axis.backward };
        (rank - here * axis.stride + there * axis.stride, hint)
    }

    /// `reach(m, step)` of all ranks m of the core, ascending; indexed by rank.
    pub fn reach(&self, step: usize) -> Vec<Vec<u32>> {
        self.joined((step..self.steps()).rev())
    }

    /// Whose data each rank of the core has if all exchange what they have in the steps before `step`, ascending;
    /// indexed by rank.
    pub fn held(&self, step: usize) -> Vec<Vec<u32>> {
        self.joined(0..step)
    }

    /// What each rank has after joining it with what its partner has, step by step.
    fn joined(&self, steps: impl Iterator<Item = usize>) -> Vec<Vec<u32>> {
        let mut joined = vec![Vec::new(); self.ranks as usize];
        for &rank in &self.core {
            joined[rank as usize].push(rank);
        }
        for s in steps {
            let union = |&rank: &u32| {
                let (partner, _) = self.meet(rank, s);
                merge(&joined[rank as usize], &joined[partner as usize])
            };
            let unions: Vec<Vec<u32>> = self.core.iter().map(union).collect();
            for (&rank, union) in self.core.iter().zip(unions) {
                joined[rank as usize] = union;
            }
        }
        joined
    }

    /// The core in the order of the blocks that its ranks own. Of Bine, those whom a rank reaches from any step on
    /// are neighbours in it: first the half that a rank stays in after step 0, in it first the quarter after step 1, ...
    pub fn owners(&self) -> Vec<u32> {
        match self.partners {
            Partners::Doubling | Partners::Swing => self.core.clone(),
            Partners::Bine => (0..self.steps()).fold(vec![self.core[0]], |order, s| {
                let half = |&rank: &u32| [rank, self.meet(rank, s).0];
                order.iter().flat_map(half).collect()
            }),
        }
    }

    /// Everyone whom `rank` meets, directly or not, in steps before `step`, and `rank` itself.
    pub fn met_before(&self, rank: u32, step: usize) -> Vec<u32> {
        (0..step).fold(vec![rank], |met, s| {
            let partners: Vec<u32> = met.iter().map(|&m| self.meet(m, s).0).collect();
            [met, partners].concat()
        })
    }
}

/// Union of two disjoint ascending lists.
fn merge(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut union = [a, b].concat();
    union.sort_unstable();
    union
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Partners; 2] = [Partners::Doubling, Partners::Swing];

    fn runs(blocks: &[u32]) -> usize {
        1 + blocks.windows(2).filter(|w| w[0] + 1 != w[1]).count()
    }

    /// Most messages over one directed link of a ring of `m`, each on its shorter way.
    fn congestion(m: u32, partners: Partners, step: usize) -> u32 {
        let butterfly = Butterfly::new(&Shape::new(m, 0), partners).unwrap();
        let mut load = vec![[0; 2]; m as usize];
        for r in 0..m {
            let ahead = (butterfly.meet(r, step).0 + m - r) % m;
            // Exactly half round: everyone goes the way of the hint.
            let forward =
                ahead * 2 < m || ahead * 2 == m && butterfly.meet(r, step).1 == Hint::PlusX;
            let hops = if forward { ahead } else { m - ahead };
            for h in 0..hops {
                match forward {
                    true => load[((r + h) % m) as usize][0] += 1,
                    false => load[((r + m - h) % m) as usize][1] += 1,
                }
            }
        }
        load.into_iter().flatten().max().unwrap()
    }

    #[test]
    fn meetings_are_mutual_and_reach_everyone_once() {
        for partners in BOTH {
            for (columns, rows) in [(1, 1), (2, 1), (64, 1), (512, 1), (8, 8), (16, 4), (3, 5)] {
                let shape = Shape::new(columns * rows, 0).with_grid(columns, rows);
                let butterfly = Butterfly::new(&shape, partners).unwrap();
                for s in 0..butterfly.steps() {
                    for &m in butterfly.core() {
                        let (q, hint) = butterfly.meet(m, s);
                        assert_ne!(q, m);
                        assert_eq!(butterfly.meet(q, s).0, m);
                        assert_ne!(butterfly.meet(q, s).1, hint);
                    }
                }
                let reach = butterfly.reach(0);
                for &m in butterfly.core() {
                    assert_eq!(reach[m as usize], butterfly.core());
                }
            }
        }
    }

    #[test]
    fn swing_turns_on_the_grid() {
        // Offsets of even coordinates over the six steps: +1, +1, -1, -1, +3, +3.
        let butterfly =
            Butterfly::new(&Shape::new(64, 0).with_grid(8, 8), Partners::Swing).unwrap();
        let met: Vec<u32> = (0..6).map(|s| butterfly.meet(18, s).0).collect();
        assert_eq!(met, [19, 26, 17, 10, 21, 42]);
        assert_eq!(butterfly.meet(18, 2).1, Hint::MinusX);
    }

    #[test]
    fn scattered_runs_on_the_8x8_grid() {
        let shape = Shape::new(64, 0).with_grid(8, 8);
        let range = |partners, step| {
            let reach = Butterfly::new(&shape, partners).unwrap().reach(step);
            let counts: Vec<usize> = reach.iter().map(|blocks| runs(blocks)).collect();
            (*counts.iter().min().unwrap(), *counts.iter().max().unwrap())
        };
        let swing: Vec<_> = (1..=6).map(|s| range(Partners::Swing, s)).collect();
        assert_eq!(swing, [(16, 17), (8, 11), (8, 8), (4, 4), (2, 2), (1, 1)]);
        let doubling: Vec<_> = (1..=6).map(|s| range(Partners::Doubling, s).1).collect();
        assert_eq!(doubling, [32, 16, 8, 4, 2, 1]);
    }

    #[test]
    fn those_reached_are_neighbours_among_the_owners_of_bine() {
        for (columns, rows) in [(1, 1), (2, 1), (512, 1), (37, 1), (8, 8), (16, 4), (3, 5)] {
            let shape = Shape::new(columns * rows, 0).with_grid(columns, rows);
            let butterfly = Butterfly::new(&shape, Partners::Bine).unwrap();
            let mut place = vec![u32::MAX; (columns * rows) as usize];
            for (block, &owner) in (0..).zip(&butterfly.owners()) {
                place[owner as usize] = block;
            }
            for step in 0..=butterfly.steps() {
                let all = butterfly.reach(step);
                for &m in butterfly.core() {
                    let reach = &all[m as usize];
                    let mut blocks: Vec<u32> = reach.iter().map(|&r| place[r as usize]).collect();
                    blocks.sort_unstable();
                    assert_eq!(runs(&blocks), 1, "{columns}x{rows} {step} {m}");
                }
            }
        }
    }

    #[test]
    fn congestion_on_a_ring_of_32() {
        let of = |partners| {
            (0..5)
                .map(|s| congestion(32, partners, s))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(Partners::Swing), [1, 1, 2, 3, 6]);
        assert_eq!(of(Partners::Doubling), [1, 2, 4, 8, 16]);
    }

    #[test]
    fn surplus_ranks_fold_along_both_axes() {
        // 3 x 3: the core is the lower left 2 x 2.
        let butterfly =
            Butterfly::new(&Shape::new(9, 0).with_grid(3, 3), Partners::Doubling).unwrap();
        assert_eq!(butterfly.core(), [0, 1, 3, 4]);
        assert_eq!(
            butterfly.folded(0).collect::<Vec<_>>(),
            [(2, 0), (5, 3), (8, 6)]
        );
        assert_eq!(butterfly.folded(1).collect::<Vec<_>>(), [(6, 0), (7, 1)]);
        assert_eq!(butterfly.home(8, 2), 0);
    }
}
