//! The routes that a run uses, each worked out once.
//!
//! A route is a number: its timing, which it shares with many others, and its lists of uses.

use super::pairs::{Key, Pairs};
use super::route::{Routing, Way};
use super::timing::Timing;
use super::trees::Trees;
use super::uses::{List, Use, Uses};
use rustc_hash::FxHashMap;

/// The number of pairs without a route.
const NONE: u32 = u32::MAX - 1;

struct Route {
    timing: u32,
    /// Its first list; there is one for each span of passes.
    pieces: u32,
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
    uses: Uses,
    trees: Trees,
    /// The latest way; kept to reuse its memory.
    way: Way,
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
            uses: Uses::default(),
            trees: Trees::default(),
            way: Way::default(),
        }
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
                let timing = *self.known.entry(timing).or_insert_with_key(|timing| {
                    self.timings.push(timing.clone());
                    self.timings.len() as u32 - 1
                });
                let pieces = first;
                self.routes.push(Route { timing, pieces });
                self.routes.len() as u32 - 1
            }
        };
        self.numbers.insert(key, number);
        number
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

    /// What passes `first..=last` of a route use together.
    #[inline]
    pub fn span(&self, route: u32, first: usize, last: usize) -> List {
        let span = first * self.timing(route).passes + last;
        self.pieces[self.routes[route as usize].pieces as usize + span]
    }

    #[inline]
    pub fn uses(&self, list: List) -> &[Use] {
        self.uses.of(list)
    }
}
