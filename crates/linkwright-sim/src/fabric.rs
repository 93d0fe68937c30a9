//! What every interconnect model offers the engine.
//!
//! A fabric moves messages between endpoints and says when each is done. It knows nothing of
//! schedules, ranks or collectives; the engine owns dependencies, lanes and compute. A fabric
//! sees all messages released at one instant together, because some of them (a BSP exchange, a
//! cycle-stepped ring) decide by the whole set.
//!
//! A message completes three times: the source may be overwritten ([`Event::SourceFree`]), the
//! data are at the target ([`Event::Delivered`]), the initiator knows it ([`Event::Acknowledged`]).
//! The three come in this order and may coincide. A fabric holding messages without a next event
//! is *stuck*; the engine reports that as an error, never as a silent end.

use crate::bins::Bins;
pub use crate::msg::{Done, Event, Msg, MsgKind, Times, Wanted};
use crate::network::{Network, Unknown};
use linkwright_core::{EndpointId, TimePs};

/// Why a fabric that holds messages has no next event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stuck {
    /// One sentence per waiting message: who waits for what.
    pub waiting: Vec<String>,
}

/// Load of every directed link of a fabric.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkTable {
    /// Name of each link, such as `core 3 out` or `NoC 0 (1,2) east`.
    pub names: Vec<String>,
    /// Time during which the link moved something, in picoseconds.
    pub busy_ps: Vec<u64>,
    /// Bytes that crossed the link.
    pub bytes: Vec<u64>,
    /// Most messages that held or wanted the link at one instant.
    pub peak: Vec<u32>,
    /// Busy time by bins, where the run asked for it.
    pub bins: Option<Box<Bins>>,
}

impl LinkTable {
    /// Idle links with these names.
    pub fn new(names: Vec<String>) -> Self {
        let links = names.len();
        LinkTable {
            names,
            busy_ps: vec![0; links],
            bytes: vec![0; links],
            peak: vec![0; links],
            bins: None,
        }
    }

    /// `link` moves something from `from` to `to`.
    #[inline]
    pub fn busy(&mut self, link: usize, from: TimePs, to: TimePs) {
        self.busy_ps[link] += (to - from).0;
        if let Some(bins) = &mut self.bins {
            bins.add(link, from, to);
        }
    }

    /// Forget all loads; from now on, tell busy time as `watch` says.
    pub fn clear(&mut self, watch: Watch) {
        self.busy_ps.fill(0);
        self.bytes.fill(0);
        self.peak.fill(0);
        self.bins = watch.bins(self.names.len());
    }
}

/// Whether the busy time of links is told by bins of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// Bins of each link; 0: no.
    pub bins: u32,
    /// Time before the fabric's time zero.
    pub ahead: TimePs,
}

impl Watch {
    /// Bins for this many links, if any are asked for.
    pub fn bins(self, links: usize) -> Option<Box<Bins>> {
        (self.bins > 0).then(|| Box::new(Bins::new(links, self.bins as usize, self.ahead)))
    }
}

/// What a run asks of a fabric before its first message.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conditions<'a> {
    /// Those of multicasts, aggregations and barriers.
    pub sets: &'a [Vec<EndpointId>],
    /// How many equal channels every message stands for; not counted where absent. A fabric that does not limit what
    /// one channel carries need not look.
    pub channels: Option<u32>,
    /// Whether the busy time of links is told by bins of time.
    pub watch: Watch,
}

/// What is always true of a model, whatever runs on it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Character {
    /// Whether [`Fabric::answer`] never declines, except for multicasts, and depends on nothing but earlier messages
    /// of the same source. Such a fabric needs no order among sources, see `linkwright-sim/src/pass/mod.rs`.
    pub order_free: bool,
    /// Whether all endpoints are alike and messages take the same time between any two of them: one endpoint
    /// then represents all where all do the same, see `linkwright-sim/src/symmetric`.
    pub endpoints_alike: bool,
    /// Most bytes that move at once, where a message is simulated in packets or lines, one by one; `None` where its
    /// size does not change the work.
    pub piece_bytes: Option<u64>,
    /// Whether as much leaves endpoints as arrives at them, so that a multicast leaves its source once for each
    /// target; otherwise once may do for all.
    pub multicasts_are_copies: bool,
    /// By how much data for many endpoints occupy the port of each for a shorter time than data for one; `None` where
    /// they do not. [`crate::network::Network::port`] then tells the rate of data for many.
    pub cheap_copies: Option<CheapCopies>,
    /// Whether something on the way may combine data, so that a rank need not receive them one by one.
    pub combines_on_the_way: bool,
    /// Least time between two messages that leave the same endpoint, of any size; zero where none is known.
    pub gap: TimePs,
}

/// An interconnect model: how messages move. What limits, pictures and searches know of the way there is the
/// [`Network`].
///
/// Contract with the engine: `now` never decreases over the calls; `advance(until)` processes
/// events in time order, stops at the first instant that yields a [`Done`], appends all `Done` of
/// that instant in a deterministic order and returns the instant reached (at most `until`).
/// A multicast or an aggregation yields one `Delivered` per target, and one `SourceFree` and one `Acknowledged`. What
/// a message does not want ([`Msg::wanted`]) may be omitted, because it would change nothing.
pub trait Fabric {
    /// What is always true of the model.
    fn character(&self) -> Character;

    /// The links and routes; [`Unknown`] where the model has none to tell of.
    fn network(&self) -> &dyn Network {
        &Unknown
    }

    /// Forget all messages and loads; the next messages come under these conditions.
    fn reset(&mut self, conditions: &Conditions<'_>);

    /// Take all messages released at `now`, in operation order.
    fn offer(&mut self, now: TimePs, released: &[Msg]);

    /// All completions of `m`, where they depend on nothing that is offered later; the message is
    /// then done with, and `offer` is not called for it. A fabric that can always tell needs no
    /// events of its own, which makes it several times faster.
    fn answer(&mut self, _now: TimePs, _m: &Msg) -> Option<Times> {
        None
    }

    /// `answer` where every endpoint sends the like of `m` at the same time, so that what `m.from` gets
    /// is what `m.to` gets; asked in the order of sending.
    fn alike(&mut self, now: TimePs, m: &Msg) -> Option<Times> {
        self.answer(now, m)
    }

    /// Hardware barrier over set `group` entered by all at `now`; `None` where the machine has none.
    fn barrier(&mut self, _now: TimePs, _group: u32) -> Option<TimePs> {
        None
    }

    /// A lower bound of the next completion; `None` when there is no next event.
    fn next(&mut self) -> Option<TimePs>;

    /// Process events up to `until`; see the trait's contract.
    fn advance(&mut self, until: TimePs, out: &mut Vec<Done>) -> TimePs;

    /// Messages offered whose last completion has not been reported.
    fn in_flight(&self) -> usize;

    /// Which messages wait for what; called when `in_flight() > 0` and `next()` is `None`. Empty where messages
    /// wait only for time.
    fn stuck(&self) -> Stuck {
        Stuck::default()
    }

    /// Time from offer to delivery of `m` on an idle fabric.
    fn quiet(&self, m: &Msg) -> TimePs;

    /// Loads since the last reset.
    fn links(&self) -> &LinkTable;
}

/// What a fabric spares where many endpoints receive the same data at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheapCopies {
    /// To so many endpoints or more, data count as data for many.
    pub targets: u64,
    /// How many times as long a byte for fewer endpoints occupies a port.
    pub times: u64,
}

/// How an interconnect model describes itself, for lists, help and documentation.
pub struct FabricKind {
    /// `kind` in a machine file's `[fabric]`.
    pub key: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What it models and what it leaves out, in a few sentences.
    pub description: &'static str,
    /// Where the model was published or documented.
    pub source: &'static str,
}
