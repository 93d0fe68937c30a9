//! The four data rings: paths, and when a path is free.
//!
//! ```text
//!   position      0 ---- 1 ---- 2 ---- 3 ...            segment k joins k and k+1
//!   cycle t       [line..]                               a line of 8 cycles holds its first segment
//!   cycle t+1            [line..]                        for 8 cycles, the next one a cycle later
//! ```
//!
//! A line of `n` cycles that starts at `t` holds segment `i` of its path during `[t+i, t+i+n)`. Lines
//! are granted in order of time, and a line cannot overtake, so a path is free at `t` if and only if
//! every segment is free from `t+i` on. A ring carries at most three lines at once, counted while
//! they leave their source, and starts one at most every three cycles.

use super::config::{RingConfig, Tie};
use crate::network::{Switch, Wiring};

/// Longest path: half of the ring.
const LONGEST: usize = super::config::MOST_ELEMENTS / 2;
const MOST_TOKENS: usize = 8;

/// Segments of one direction from one element to another.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Way {
    segments: [u8; LONGEST],
    pub hops: u8,
}

/// The ways that a transfer may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    /// Bit `r` is set where ring `r` may be used.
    rings: u8,
    hops: u8,
    ways: [Way; 2],
}

#[derive(Clone, Debug)]
struct Ring {
    /// 0 clockwise, 1 counter-clockwise.
    direction: usize,
    /// First cycle in which each segment is free.
    free: [u64; super::config::MOST_ELEMENTS],
    /// Ends of the lines that leave their sources.
    tokens: [u64; MOST_TOKENS],
    /// The first of these ends.
    token: u64,
    /// First cycle in which a line may start.
    next: u64,
}

/// All rings of a chip.
#[derive(Clone, Debug)]
pub(super) struct Rings {
    count: usize,
    transfers: usize,
    start_interval: u64,
    rings: Vec<Ring>,
    routes: Vec<Route>,
}

impl Rings {
    pub fn new(config: &RingConfig) -> Self {
        let count = config.elements.len();
        let clockwise = usize::from(config.rings[0]);
        let total = clockwise + usize::from(config.rings[1]);
        let ring = |index| Ring {
            direction: usize::from(index >= clockwise),
            free: [0; super::config::MOST_ELEMENTS],
            tokens: [0; MOST_TOKENS],
            token: 0,
            next: 0,
        };
        let mut rings = Rings {
            count,
            transfers: usize::from(config.transfers_per_ring),
            start_interval: config.ring_start,
            rings: (0..total).map(ring).collect(),
            routes: Vec::new(),
        };
        let pairs = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
        rings.routes = pairs
            .map(|(from, to)| rings.route_of(from, to, config.tie))
            .collect();
        rings
    }

    fn route_of(&self, from: usize, to: usize, tie: Tie) -> Route {
        let n = self.count;
        let ahead = (to + n - from) % n;
        let back = n - ahead;
        let mut ways = [Way::default(); 2];
        let use_ahead = ahead < back || ahead == back && (tie == Tie::Either || from % 2 == 0);
        let use_back = back < ahead || ahead == back && (tie == Tie::Either || from % 2 == 1);
        if use_ahead {
            ways[0].hops = ahead as u8;
            (0..ahead).for_each(|i| ways[0].segments[i] = ((from + i) % n) as u8);
        }
        if use_back {
            ways[1].hops = back as u8;
            (0..back).for_each(|i| ways[1].segments[i] = ((from + n - 1 - i) % n) as u8);
        }
        let rings = (self.rings.iter().enumerate())
            .filter(|(_, ring)| [use_ahead, use_back][ring.direction])
            .fold(0, |set, (index, _)| set | 1 << index);
        Route {
            rings,
            hops: ways[0].hops.max(ways[1].hops),
            ways,
        }
    }

    #[inline]
    pub fn route(&self, from: u8, to: u8) -> &Route {
        &self.routes[usize::from(from) * self.count + usize::from(to)]
    }

    /// Segments between two elements, by the shorter way.
    #[inline]
    pub fn hops(&self, from: u8, to: u8) -> u8 {
        self.route(from, to).hops
    }

    /// A shortest way: its direction, 0 clockwise, and its segments.
    pub fn way(&self, from: u8, to: u8) -> (u32, &[u8]) {
        let ways = &self.route(from, to).ways;
        let direction = usize::from(ways[0].hops == 0);
        let way = &ways[direction];
        (direction as u32, &way.segments[..usize::from(way.hops)])
    }

    /// Rings in all.
    pub fn len(&self) -> usize {
        self.rings.len()
    }

    /// The ring that is free first for a line from `from` to `to`, and from which cycle on.
    #[inline]
    pub fn earliest(&self, from: u8, to: u8) -> (usize, u64) {
        let route = self.route(from, to);
        let mut best = (0, u64::MAX);
        let mut left = route.rings;
        while left != 0 {
            let index = left.trailing_zeros() as usize;
            left &= left - 1;
            let ring = &self.rings[index];
            let way = &route.ways[ring.direction];
            let mut at = ring.next;
            at = at.max(ring.token);
            for (i, &segment) in way.segments[..usize::from(way.hops)].iter().enumerate() {
                at = at.max(ring.free[usize::from(segment)].saturating_sub(i as u64));
            }
            if at < best.1 {
                best = (index, at);
            }
        }
        best
    }

    /// A line of `length` cycles takes its path on `ring` from `at` on.
    #[inline]
    pub fn take(&mut self, ring: usize, from: u8, to: u8, at: u64, length: u64) {
        let route = &self.routes[usize::from(from) * self.count + usize::from(to)];
        let ring = &mut self.rings[ring];
        let way = &route.ways[ring.direction];
        for (i, &segment) in way.segments[..usize::from(way.hops)].iter().enumerate() {
            ring.free[usize::from(segment)] = at + i as u64 + length;
        }
        let tokens = &mut ring.tokens[..self.transfers];
        if let Some(token) = tokens.iter_mut().min() {
            *token = at + length;
        }
        ring.token = tokens.iter().copied().min().unwrap_or(0);
        ring.next = at + self.start_interval;
    }

    /// Segments of the path from `from` to `to` on `ring`.
    #[inline]
    pub fn segments(&self, ring: usize, from: u8, to: u8) -> &[u8] {
        let way = &self.route(from, to).ways[self.rings[ring].direction];
        &way.segments[..usize::from(way.hops)]
    }

    /// Every segment of every ring: its ring, and the elements from and to which it leads.
    fn each(&self, elements: usize) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        self.rings
            .iter()
            .enumerate()
            .flat_map(move |(index, ring)| {
                (0..elements).map(move |a| {
                    let b = (a + 1) % elements;
                    let (from, to) = [(a, b), (b, a)][ring.direction];
                    (index, from, to)
                })
            })
    }

    /// Names of the links: rings by segment, the ports of each of `elements`, the command network.
    pub fn link_names(&self, elements: &[String]) -> Vec<String> {
        let segment = |(ring, from, to): (usize, usize, usize)| {
            format!("ring {ring} {} to {}", elements[from], elements[to])
        };
        let mut names: Vec<String> = self.each(elements.len()).map(segment).collect();
        names.extend((elements.iter()).flat_map(|e| [format!("{e} out"), format!("{e} in")]));
        names.push("command network".to_string());
        names
    }

    /// The elements of `config` with the links between them; the command network is at none of them.
    pub fn wiring(&self, config: &RingConfig) -> Wiring {
        let count = config.elements.len();
        let switch = |element: usize| Switch {
            name: config.elements[element].clone(),
            at: None,
        };
        let segments = self.each(count).map(|(_, from, to)| (from, to));
        let ports = (0..count).flat_map(|element| [(element, element); 2]);
        let sites = config.sites.iter().map(|&site| usize::from(site));
        let mut wiring = Wiring::between(count, sites, switch, segments.chain(ports));
        let around = wiring.places[..count].iter().flatten();
        wiring.ring = around.map(|&(from, _)| from).collect();
        wiring.places.push(None);
        wiring
    }
}
