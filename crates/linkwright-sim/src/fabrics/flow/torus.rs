//! Links of a torus or a mesh, made from the sides of the machine's grid: `[fabric.torus]`.
//!
//! ```text
//!   (0,1) --- (1,1) --- (2,1) --+      an edge to the next place along each axis, x first;
//!     |         |         |     |      where an axis wraps, one from its last place to its first
//!   (0,0) --- (1,0) --- (2,0) --+      a side of two has one edge, not two
//!     +---------------------+
//! ```
//!
//! The links are those that `edges` would list, axis by axis and place by place. [`Torus::lead`] is the route in
//! dimension order; [`super::minimal`] chooses among all minimal ones.

use super::topology::{whole, Topology};
use linkwright_core::machine::Section;
use linkwright_core::{Machine, MachineError, TimePs};

/// Name of the class of its links.
pub(super) const CLASS: &str = "torus";
/// Names of its axes.
const AXES: [&str; 6] = ["x", "y", "z", "w", "v", "u"];
const NONE: u32 = u32::MAX;

/// How the messages find their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Along x first, then y, ...
    Dimension,
    /// The minimal path with the fewest flows when a message starts to move.
    Adaptive,
}

/// One axis.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub side: u32,
    /// Ranks between neighbours.
    pub stride: u32,
    wraps: bool,
    rate: u64,
    latency: TimePs,
}

impl Axis {
    /// Coordinate of `rank`.
    pub fn place(&self, rank: u32) -> u32 {
        rank / self.stride % self.side
    }

    /// The rank one place ahead of `rank`, or behind it; round the ring.
    pub fn next(&self, rank: u32, ahead: bool) -> u32 {
        let (place, last) = (self.place(rank), self.side - 1);
        match ahead {
            true if place == last => rank - last * self.stride,
            true => rank + self.stride,
            false if place == 0 => rank + last * self.stride,
            false => rank - self.stride,
        }
    }

    /// Links between two ranks along this axis, whether they go ahead, and whether the other way is as short.
    ///
    /// Of two ways of equal length, ranks with an even coordinate take the one ahead, others the one back.
    pub fn way(&self, from: u32, to: u32) -> (u32, bool, bool) {
        let (a, b) = (self.place(from), self.place(to));
        if !self.wraps {
            return (a.abs_diff(b), b > a, false);
        }
        let ahead = (b + self.side - a) % self.side;
        let back = (self.side - ahead) % self.side;
        let is_ahead = ahead < back || ahead == back && a % 2 == 0;
        (ahead.min(back), is_ahead, ahead == back && ahead > 0)
    }
}

/// A torus, or a mesh where axes do not wrap.
#[derive(Clone, Debug)]
pub(super) struct Torus {
    pub axes: Vec<Axis>,
    order: Order,
    /// The link ahead of each rank along each axis; that back is its counterpart.
    ahead: Vec<u32>,
}

impl Torus {
    /// Read `[fabric.torus]`, where there is one, and join the ranks of `topology` by links of class 0.
    pub fn read(
        machine: &Machine,
        topology: &mut Topology,
        s: &mut Section<'_>,
    ) -> Result<Option<Torus>, MachineError> {
        let Some(mut s) = s.optional_section("torus")? else {
            return Ok(None);
        };
        s.text("source")?;
        let order = [Order::Dimension, Order::Adaptive];
        let order = order[s.choice("routing", &["dimension_order", "adaptive"])?];
        let injection = s.optional_rate("injection")?.map(whole);
        let axes = axes(machine, &mut s)?;
        s.finish()?;
        let mut torus = Torus {
            ahead: vec![NONE; axes.len() * topology.ranks as usize],
            axes,
            order,
        };
        torus.join(topology);
        if let Some(rate) = injection {
            topology.injection(rate);
        }
        Ok(Some(torus))
    }

    fn join(&mut self, topology: &mut Topology) {
        for (number, axis) in self.axes.iter().enumerate() {
            for rank in 0..topology.ranks {
                if axis.place(rank) + 1 == axis.side && !axis.wraps {
                    continue;
                }
                self.ahead[rank as usize * self.axes.len() + number] = topology.links.len() as u32;
                let next = axis.next(rank, true);
                topology.connect(rank, next, 0, axis.rate, axis.latency);
            }
        }
    }

    /// Whether messages between two ranks choose among several minimal paths.
    pub fn is_choice(&self, from: u32, to: u32) -> bool {
        let ways = self.axes.iter().map(|axis| axis.way(from, to));
        let paths = ways.map(|(distance, _, is_tied)| u32::from(distance > 0) + u32::from(is_tied));
        self.order == Order::Adaptive && paths.sum::<u32>() > 1
    }

    /// The link out of `rank` along axis `number`, which there is.
    pub fn link(&self, rank: u32, number: usize, ahead: bool) -> u32 {
        let first = match ahead {
            true => rank,
            false => self.axes[number].next(rank, false),
        };
        let link = self.ahead[first as usize * self.axes.len() + number];
        match ahead {
            true => link,
            false => link + 1,
        }
    }

    /// Append the links of the way in dimension order.
    pub fn lead(&self, from: u32, to: u32, links: &mut Vec<u32>) {
        let mut here = from;
        for (number, axis) in self.axes.iter().enumerate() {
            let (distance, ahead, _) = axis.way(from, to);
            for _ in 0..distance {
                links.push(self.link(here, number, ahead));
                here = axis.next(here, ahead);
            }
        }
    }
}

/// The axes: what holds for all of them, and what `[fabric.torus.x]` states differently.
fn axes(machine: &Machine, s: &mut Section<'_>) -> Result<Vec<Axis>, MachineError> {
    let sides = machine.sides();
    if !(1..=AXES.len()).contains(&sides.len()) {
        let problem = "a torus joins ranks on a grid of at most 6 sides; give [endpoints] `grid = [8, 8]` or \"any\"";
        return Err(s.inconsistent("routing", problem));
    }
    let rate = s.rate("bandwidth")?;
    let share = s.optional_ratio("share")?.unwrap_or(1.0);
    let latency = s.optional_time("latency")?.unwrap_or(TimePs::ZERO);
    let wraps = s.optional_flag("wrap")?.unwrap_or(true);
    let (mut axes, mut stride) = (Vec::new(), 1);
    for (number, name) in AXES.iter().enumerate() {
        let own = s.optional_section(name)?;
        let (mut rate, mut latency, mut wraps) = (rate, latency, wraps);
        if let Some(mut own) = own {
            rate = own.optional_rate("bandwidth")?.unwrap_or(rate);
            latency = own.optional_time("latency")?.unwrap_or(latency);
            wraps = own.optional_flag("wrap")?.unwrap_or(wraps);
            own.finish()?;
        }
        let Some(&side) = sides.get(number) else {
            continue;
        };
        if rate.0 * share < 1.0 {
            return Err(s.inconsistent("share", "leaves no bandwidth; give a share above zero"));
        }
        axes.push(Axis {
            side,
            stride,
            wraps: wraps && side > 2,
            rate: (rate.0 * share) as u64,
            latency,
        });
        stride *= side;
    }
    Ok(axes)
}
