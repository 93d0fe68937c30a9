//! The interface between the engine and every interconnect model.
//!
//! A fabric moves messages between endpoints and reports when each is done. It knows nothing about
//! schedules, ranks or collectives; the engine owns dependencies, lanes and compute. A fabric
//! sees all messages released at one instant together, because the timing of some fabrics (a BSP
//! exchange, a cycle-stepped ring) depends on the whole set.
//!
//! A message completes three times: the source may be overwritten ([`Event::SourceFree`]), the
//! data is at the target ([`Event::Delivered`]), the initiator knows it ([`Event::Acknowledged`]).
//! The three occur in this order and may coincide. A fabric that holds messages but has no next
//! event is *stuck*; the engine reports that as an error and never ends silently.

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

    /// Record that `link` is busy from `from` to `to`.
    #[inline]
    pub fn busy(&mut self, link: usize, from: TimePs, to: TimePs) {
        self.busy_ps[link] += (to - from).0;
        if let Some(bins) = &mut self.bins {
            bins.add(link, from, to);
        }
    }

    /// Clear all loads; from now on, bin busy time as `watch` asks.
    pub fn clear(&mut self, watch: Watch) {
        self.busy_ps.fill(0);
        self.bytes.fill(0);
        self.peak.fill(0);
        self.bins = watch.bins(self.names.len());
    }
}

/// Whether and how the busy time of links is binned over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// Number of bins for each link; 0 turns binning off.
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
    /// Endpoints of each set of a multicast, an aggregation or a barrier.
    pub sets: &'a [Vec<EndpointId>],
    /// How many equal channels every message represents; absent if channels are not modelled. A fabric without a limit
    /// for each channel may ignore it.
    pub channels: Option<u32>,
    /// The most that one message carries from node to node, in bytes of data per second; absent if nothing but links
    /// limits it. A fabric without nodes of several endpoints may ignore it.
    pub across: Option<u64>,
    /// Messages of a library that every message from node to node stands for; absent: one. A fabric whose
    /// processes do not handle messages may ignore it.
    pub sends: Option<f64>,
    /// Draws the way of each pair of endpoints where a network hashes messages to equal ways.
    pub seed: u64,
    /// Whether and how the busy time of links is binned.
    pub watch: Watch,
    /// Whether all endpoints send alike messages at the same instants, so that one of them may be asked for its times
    /// before what others send earlier is known.
    pub alike: bool,
}

/// What is always true of a model, whatever runs on it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Character {
    /// Whether [`Fabric::answer`] never declines, except for multicasts, and depends on nothing but earlier messages
    /// of the same source. Such a fabric needs no order among sources, see `linkwright-sim/src/pass/mod.rs`.
    pub order_free: bool,
    /// Whether all endpoints are alike and messages take the same time between any two of them: one endpoint
    /// then represents all where all do the same, see `linkwright-sim/src/symmetric.rs`.
    pub endpoints_alike: bool,
    /// Size of the packets or lines that are simulated one by one; `None` if the cost of simulating a message does not
    /// depend on its size.
    pub piece_bytes: Option<u64>,
    /// Whether a multicast leaves its source once for each target, so that endpoints send as much as they receive;
    /// otherwise a single copy may serve all targets.
    pub multicasts_are_copies: bool,
    /// By how much data for many endpoints occupies each port for a shorter time than data for one; `None` if it does
    /// not. [`crate::network::Network::port`] then gives the rate for data to many.
    pub cheap_copies: Option<CheapCopies>,
    /// Whether the network may combine data in flight, so that a rank need not receive every contribution.
    pub combines_on_the_way: bool,
    /// Minimum time between two messages of any size from the same endpoint; zero if unknown.
    pub gap: TimePs,
}

/// An interconnect model: how messages move. [`Network`] describes its links and routes to limits, pictures and
/// searches.
///
/// Contract with the engine: `now` never decreases over the calls; `advance(until)` processes
/// events in time order, stops at the first instant that yields a [`Done`], appends all `Done` of
/// that instant in a deterministic order and returns the instant reached (at most `until`).
/// A multicast or an aggregation yields one `Delivered` per target, and one `SourceFree` and one `Acknowledged`. What
/// a message does not want ([`Msg::wanted`]) may be omitted, because it would change nothing.
pub trait Fabric {
    /// What is always true of the model.
    fn character(&self) -> Character;

    /// The links and routes; [`Unknown`] if the model has none to describe.
    fn network(&self) -> &dyn Network {
        &Unknown
    }

    /// Drop all messages and loads; the next messages run under these conditions.
    fn reset(&mut self, conditions: &Conditions<'_>);

    /// Take all messages released at `now`, in operation order.
    fn offer(&mut self, now: TimePs, released: &[Msg]);

    /// All completions of `m`, if they do not depend on anything offered later; the message is
    /// then finished, and `offer` is not called for it. A fabric that can always answer needs no
    /// events of its own, which makes it several times faster.
    fn answer(&mut self, _now: TimePs, _m: &Msg) -> Option<Times> {
        None
    }

    /// Hardware barrier over set `group` entered by all at `now`; `None` where the machine has none.
    fn barrier(&mut self, _now: TimePs, _group: u32) -> Option<TimePs> {
        None
    }

    /// A lower bound on the time of the next completion; `None` when there is no next event.
    fn next(&mut self) -> Option<TimePs>;

    /// Process events up to `until`; see the trait's contract.
    fn advance(&mut self, until: TimePs, out: &mut Vec<Done>) -> TimePs;

    /// Messages offered whose last completion has not been reported.
    fn in_flight(&self) -> usize;

    /// What each message waits for; called when `in_flight() > 0` and `next()` is `None`. Empty if messages wait only
    /// for time to pass.
    fn stuck(&self) -> Stuck {
        Stuck::default()
    }

    /// Time from offer to delivery of `m` on an idle fabric.
    fn quiet(&self, m: &Msg) -> TimePs;

    /// Loads since the last reset.
    fn links(&self) -> &LinkTable;
}

/// What a fabric saves when many endpoints receive the same data at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheapCopies {
    /// Data for at least this many endpoints counts as data for many.
    pub targets: u64,
    /// Factor by which a byte for fewer endpoints occupies a port longer.
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
