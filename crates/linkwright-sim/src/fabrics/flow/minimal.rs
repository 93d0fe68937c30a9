//! Adaptive minimal routes on a torus: the path with the fewest flows on it.
//!
//! When a message starts to move, all its minimal paths are compared by
//!
//! ```text
//!   cost = sum over the links of (flows on the link + 1) / rate of the link
//! ```
//!
//! and it keeps the cheapest until its end: the choice of one message at one instant, not of its packets. With
//! equal rates, this adds least to the sum of the squares of all flows per link, the usual measure of
//! imbalance. Among equals, the path in dimension order goes first: x before y, and half way round a ring the
//! side that [`Axis::way`] prefers.
//!
//! The minimal paths fill a box, one for each choice of directions half way round a ring; the cheapest path
//! through a box is found from its far corner:
//!
//! ```text
//!   cost(o) = min over axes i with hops left of  cost(link i at o) + cost(o + 1 along i)
//! ```

use super::torus::{Axis, Torus};

/// A path that is not allowed.
const NEVER: u64 = u64::MAX;

/// Hops along one axis.
#[derive(Clone, Copy)]
struct Leg {
    distance: u32,
    ahead: bool,
}

impl Torus {
    /// Put the links of the minimal path from `from` to `to` with the smallest sum of `cost` into `links`.
    pub fn cheapest(&self, from: u32, to: u32, cost: impl Fn(u32) -> u64, links: &mut Vec<u32>) {
        let ways: Vec<_> = self.axes.iter().map(|axis| axis.way(from, to)).collect();
        let tied: Vec<usize> = (0..ways.len()).filter(|&i| ways[i].2).collect();
        let (mut least, mut path) = (NEVER, Vec::new());
        for turned in 0..1u32 << tied.len() {
            let is_turned = |i: usize| {
                let place = tied.iter().position(|&axis| axis == i);
                place.is_some_and(|place| turned >> place & 1 == 1)
            };
            let leg = |(i, &(distance, ahead, _)): (usize, &(u32, bool, bool))| Leg {
                distance,
                ahead: ahead != is_turned(i),
            };
            let legs: Vec<Leg> = ways.iter().enumerate().map(leg).collect();
            let total = Quadrant::new(self, from, legs).search(&cost, &mut path);
            if total < least {
                least = total;
                std::mem::swap(links, &mut path);
            }
        }
    }
}

/// The minimal paths in one choice of directions.
struct Quadrant<'a> {
    torus: &'a Torus,
    from: u32,
    legs: Vec<Leg>,
    /// Corners between neighbours along each axis.
    strides: Vec<usize>,
    corners: usize,
}

impl<'a> Quadrant<'a> {
    fn new(torus: &'a Torus, from: u32, legs: Vec<Leg>) -> Self {
        let mut corners = 1;
        let mut stride = |leg: &Leg| {
            let stride = corners;
            corners *= leg.distance as usize + 1;
            stride
        };
        let strides = legs.iter().map(&mut stride).collect();
        Quadrant {
            torus,
            from,
            legs,
            strides,
            corners,
        }
    }

    /// Hops along axis `i` at a corner.
    fn hops(&self, corner: usize, i: usize) -> u32 {
        (corner / self.strides[i] % (self.legs[i].distance as usize + 1)) as u32
    }

    /// The rank at a corner.
    fn rank(&self, corner: usize) -> u32 {
        let along = |rank: u32, (i, axis): (usize, &Axis)| {
            let (hops, place, side) = (self.hops(corner, i), axis.place(rank), axis.side);
            let there = match self.legs[i].ahead {
                true => (place + hops) % side,
                false => (place + side - hops) % side,
            };
            rank - place * axis.stride + there * axis.stride
        };
        self.torus.axes.iter().enumerate().fold(self.from, along)
    }

    /// The axis of the next link of the cheapest path from a corner, that link, and the cost of the rest.
    fn step(
        &self,
        corner: usize,
        rest: &[u64],
        cost: &impl Fn(u32) -> u64,
    ) -> Option<(u64, usize, u32)> {
        let rank = self.rank(corner);
        let open = (0..self.legs.len()).filter(|&i| self.hops(corner, i) < self.legs[i].distance);
        let ahead = open.map(|i| {
            let link = self.torus.link(rank, i, self.legs[i].ahead);
            let further = rest[corner + self.strides[i]];
            (cost(link).saturating_add(further), i, link)
        });
        ahead.min_by_key(|&(total, i, _)| (total, i))
    }

    /// Put the cheapest path into `links`; its cost.
    fn search(&self, cost: &impl Fn(u32) -> u64, links: &mut Vec<u32>) -> u64 {
        let mut rest = vec![0; self.corners];
        for corner in (0..self.corners - 1).rev() {
            rest[corner] = (self.step(corner, &rest, cost)).map_or(NEVER, |(total, ..)| total);
        }
        links.clear();
        let mut corner = 0;
        while let Some((_, i, link)) = self.step(corner, &rest, cost) {
            links.push(link);
            corner += self.strides[i];
        }
        rest[0]
    }
}
