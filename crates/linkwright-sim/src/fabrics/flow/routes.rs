//! The routes that a run uses, each worked out once.
//!
//! A route is a number: its timing, which it shares with many others, and its lists of uses.

use super::group::Groups;
use super::pairs::{Key, Pairs};
use super::route::{Routing, Way};
use super::timing::Timing;
use super::trees::Trees;
use super::uses::{List, Use, Uses};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Femtoseconds, in which one byte takes a whole number on any real link.
const FS_PER_S: u64 = 1_000_000_000_000_000;

/// The number of pairs without a route.
const NONE: u32 = u32::MAX - 1;

struct Route {
    timing: u32,
    /// Its first list; there is one for each span of passes.
    pieces: u32,
    /// Source and target, where each message chooses its way.
    ends: Option<(u32, u32)>,
}

/// All of them.
pub(super) struct Routes {
    pub routing: Routing,
    /// Number of each pair's route; `NONE` where there is none.
    numbers: Pairs,
    routes: Vec<Route>,
    timings: Vec<Timing>,
    /// Number of each timing.
    known: FxHashMap<Timing, u32>,
    pieces: Vec<List>,
    /// What each way uses that a message has chosen.
    chosen: FxHashMap<Vec<u32>, List>,
    pub(super) uses: Uses,
    pub(super) trees: Trees,
    /// The latest way; kept to reuse its memory.
    pub(super) way: Way,
    pub(super) groups: Groups,
    /// What links carry, by networks; see [`super::carried`].
    pub(super) carried: FxHashMap<Vec<u8>, Arc<[u64]>>,
}

impl Routes {
    /// No routes yet.
    pub fn new(routing: Routing) -> Self {
        Routes {
            numbers: Pairs::new(routing.topology.endpoints as usize),
            routing,
            routes: Vec::new(),
            timings: Vec::new(),
            known: FxHashMap::default(),
            pieces: Vec::new(),
            chosen: FxHashMap::default(),
            uses: Uses::default(),
            trees: Trees::default(),
            way: Way::default(),
            groups: Groups::default(),
            carried: FxHashMap::default(),
        }
    }

    /// Every message stands for `channels` channels; what is known of routes is forgotten, except for the trees.
    pub fn bundle(&mut self, channels: Option<u32>) {
        if self.routing.channels == channels {
            return;
        }
        self.routing.channels = channels;
        self.numbers = Pairs::new(self.routing.topology.endpoints as usize);
        self.routes.clear();
        self.timings.clear();
        self.known.clear();
        self.pieces.clear();
        self.chosen.clear();
        self.uses = Uses::default();
        self.groups = Groups::default();
    }

    /// Number of the route of a pair.
    #[inline]
    pub fn find(&mut self, key: Key) -> Option<u32> {
        let number = (self.numbers.get(key)).unwrap_or_else(|| self.look_for(key));
        (number != NONE).then_some(number)
    }

    #[cold]
    fn look_for(&mut self, key: Key) -> u32 {
        let first = self.pieces.len() as u32;
        let number = match self.route(key) {
            Err(_) => NONE,
            Ok(timing) => {
                let timing = self.number(timing);
                let pieces = first;
                let adaptive = self.way.adaptive && key.from != key.to;
                self.routes.push(Route {
                    timing,
                    pieces,
                    ends: adaptive.then_some((key.from, key.to)),
                });
                self.routes.len() as u32 - 1
            }
        };
        self.numbers.insert(key, number);
        number
    }

    /// Number of a timing.
    pub(super) fn number(&mut self, timing: Timing) -> u32 {
        *self.known.entry(timing).or_insert_with_key(|timing| {
            self.timings.push(timing.clone());
            self.timings.len() as u32 - 1
        })
    }

    /// Number of a new route in one pass over what `list` uses.
    pub(super) fn enter(&mut self, timing: u32, list: List) -> u32 {
        let pieces = self.pieces.len() as u32;
        self.pieces.push(list);
        self.routes.push(Route {
            timing,
            pieces,
            ends: None,
        });
        self.routes.len() as u32 - 1
    }

    fn route(&mut self, key: Key) -> Result<Timing, String> {
        let search = (&mut self.trees, &mut self.way);
        (self.routing).route(key, search, &mut self.uses, &mut self.pieces)
    }

    /// Why a pair has no route.
    pub fn problem(&mut self, key: Key) -> Option<String> {
        match self.find(key) {
            Some(_) => None,
            None => self.route(key).err(),
        }
    }

    /// How long the messages of a route take.
    #[inline]
    pub fn timing(&self, route: u32) -> &Timing {
        &self.timings[self.routes[route as usize].timing as usize]
    }

    /// Timing number `number`.
    pub fn timing_number(&self, number: u32) -> &Timing {
        &self.timings[number as usize]
    }

    /// What passes `first..=last` of a route use together.
    #[inline]
    pub fn span(&self, route: u32, first: usize, last: usize) -> List {
        let span = first * self.timing(route).passes + last;
        self.pieces[self.routes[route as usize].pieces as usize + span]
    }

    /// Whether the messages of a route choose their way when they start to move.
    #[inline]
    pub fn is_adaptive(&self, route: u32) -> bool {
        self.routes[route as usize].ends.is_some()
    }

    /// What the cheapest way of an adaptive route uses; `crowd` counts the flows on a link.
    pub fn choose(&mut self, route: u32, crowd: impl Fn(u32) -> usize) -> List {
        let (from, to) = self.routes[route as usize].ends.expect("an adaptive route");
        let torus = self
            .routing
            .torus
            .as_ref()
            .expect("only a torus is adaptive");
        let capacity = &self.routing.topology.capacity;
        let cost = |link: u32| {
            (crowd(link) as u64 + 1).saturating_mul(FS_PER_S)
                / capacity[link as usize].min(FS_PER_S)
        };
        let mut links = Vec::new();
        torus.cheapest(from, to, cost, &mut links);
        match self.chosen.get(&links) {
            Some(&list) => list,
            None => {
                let list = self.routing.along(&links, &mut self.uses);
                self.chosen.insert(links, list);
                list
            }
        }
    }

    #[inline]
    pub fn uses(&self, list: List) -> &[Use] {
        self.uses.of(list)
    }
}
