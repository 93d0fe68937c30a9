//! The routes that a run uses, each worked out once.
//!
//! A route is a number: its timing, which it shares with many others, and its lists of uses.

use super::group::Groups;
use super::pairs::{Key, Pairs};
use super::route::{Routing, Way};
use super::spread::{cost, Fans, Piece};
use super::timing::Timing;
use super::trees::Trees;
use super::uses::{List, Use, Uses};
use crate::fabric::Conditions;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The number of pairs without a route.
const NONE: u32 = u32::MAX - 1;

struct Route {
    timing: u32,
    /// Its first list; there is one for each span of passes.
    pieces: u32,
    choice: Choice,
}

/// What messages of a route choose when they start to move.
enum Choice {
    /// Nothing.
    Fixed,
    /// Nothing, but they use parts of links, or the links of a way that was drawn; the list is that of the first way.
    Spread(List),
    /// A way between source and target on a torus.
    Torus(u32, u32),
    /// Ways of fans; the pieces of the way, and the list of the first way.
    Fans(Box<[Piece]>, List),
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
    chosen: FxHashMap<Vec<Piece>, List>,
    fans: Fans,
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
        let uses = Uses::new(routing.topology.fractions());
        Routes {
            numbers: Pairs::new(routing.topology.endpoints as usize),
            routing,
            routes: Vec::new(),
            timings: Vec::new(),
            known: FxHashMap::default(),
            pieces: Vec::new(),
            chosen: FxHashMap::default(),
            fans: Fans::default(),
            uses,
            trees: Trees::default(),
            way: Way::default(),
            groups: Groups::default(),
            carried: FxHashMap::default(),
        }
    }

    /// Set what every message stands for and carries, and the seed that draws the ways of pairs; what is known of routes
    /// is forgotten where that makes a difference, except for the trees.
    pub fn bundle(&mut self, asked: &Conditions<'_>) {
        let drawn = self.fans.seed != asked.seed && self.routing.topology.draws();
        self.fans.seed = asked.seed;
        let known = &mut self.routing;
        let bundle = (asked.channels, asked.across, asked.sends);
        if (known.channels, known.across, known.sends) == bundle && !drawn {
            return;
        }
        (known.channels, known.across, known.sends) = bundle;
        self.numbers = Pairs::new(self.routing.topology.endpoints as usize);
        self.routes.clear();
        self.timings.clear();
        self.known.clear();
        self.pieces.clear();
        self.chosen.clear();
        self.uses = Uses::new(self.uses.fractions.unlearnt());
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
                let choice = self.choice(key);
                self.routes.push(Route {
                    timing,
                    pieces: first,
                    choice,
                });
                self.routes.len() as u32 - 1
            }
        };
        self.numbers.insert(key, number);
        number
    }

    /// What messages of the pair whose way was worked out last choose.
    fn choice(&mut self, key: Key) -> Choice {
        if key.from == key.to {
            return Choice::Fixed;
        }
        if self.way.adaptive {
            return Choice::Torus(key.from, key.to);
        }
        if self.way.pieces.is_empty() {
            return Choice::Fixed;
        }
        let one = self.routing.along(&self.way.links, &mut self.uses);
        let pieces: Vec<Piece> = self.way.pieces.concat();
        match pieces.iter().any(|piece| matches!(piece, Piece::Chosen(_))) {
            true => Choice::Fans(pieces.into(), one),
            false => Choice::Spread(one),
        }
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
            choice: Choice::Fixed,
        });
        self.routes.len() as u32 - 1
    }

    fn route(&mut self, key: Key) -> Result<Timing, String> {
        let search = (&mut self.trees, &mut self.fans, &mut self.way);
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
        matches!(
            self.routes[route as usize].choice,
            Choice::Torus(..) | Choice::Fans(..)
        )
    }

    /// Whether messages of a route may use other links than those of its first way.
    pub fn is_spread(&self, route: u32) -> bool {
        !matches!(self.routes[route as usize].choice, Choice::Fixed)
    }

    /// What the first way of a route uses.
    pub fn one_way(&self, route: u32) -> List {
        match self.routes[route as usize].choice {
            Choice::Spread(one) | Choice::Fans(_, one) => one,
            Choice::Fixed | Choice::Torus(..) => self.span(route, 0, self.timing(route).passes - 1),
        }
    }

    /// What the cheapest way of an adaptive route uses; `crowd` counts the flows on a link.
    pub fn choose(&mut self, route: u32, crowd: impl Fn(u32) -> usize) -> List {
        let capacity = &self.routing.topology.capacity;
        let cost = |link: u32| cost(crowd(link), capacity[link as usize]);
        let mut way = Vec::new();
        match &self.routes[route as usize].choice {
            Choice::Torus(from, to) => {
                let torus = self.routing.torus.as_ref();
                let torus = torus.expect("only a torus has such routes");
                let mut links = Vec::new();
                torus.cheapest(*from, *to, cost, &mut links);
                way.extend(links.into_iter().map(Piece::Link));
            }
            Choice::Fans(pieces, _) => {
                let mut links = Vec::new();
                for &piece in pieces {
                    let Piece::Chosen(fan) = piece else {
                        way.push(piece);
                        continue;
                    };
                    links.clear();
                    self.fans.get(fan).cheapest(cost, &mut links);
                    way.extend(links.iter().map(|&link| Piece::Link(link)));
                }
            }
            Choice::Fixed | Choice::Spread(_) => unreachable!("an adaptive route"),
        }
        if let Some(&list) = self.chosen.get(&way) {
            return list;
        }
        let list = self.routing.list(&way, &self.fans, &mut self.uses);
        self.chosen.insert(way, list);
        list
    }

    #[inline]
    pub fn uses(&self, list: List) -> &[Use] {
        self.uses.of(list)
    }
}
