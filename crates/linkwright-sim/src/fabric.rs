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
use linkwright_core::{Bytes, BytesPerSec, EndpointId, TimePs};

/// What a message does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MsgKind {
    /// Data pushed by `from`.
    Put,
    /// Data pulled by `to`: a request travels to `from`, the data travel back.
    Get,
    /// A signal without data, such as a semaphore increment.
    Notice,
    /// One source, the targets of set [`Msg::set`].
    Multicast,
    /// The sources of set [`Msg::sources`], combined on the way to the targets of set [`Msg::set`].
    Aggregate,
}

/// A message offered to a fabric.
#[derive(Clone, Copy, Debug)]
pub struct Msg {
    /// The engine's handle, returned in [`Done`].
    pub op: u32,
    /// Where the data are; of an aggregation, where it is initiated, at its first target.
    pub from: EndpointId,
    /// Where the data go; unused by a multicast and an aggregation.
    pub to: EndpointId,
    /// Payload in bytes; 0 for notices.
    pub bytes: u64,
    /// Contiguous runs at the target, at least 1; some fabrics pay for each.
    pub runs: u32,
    /// What the message does.
    pub kind: MsgKind,
    /// Network or lane of the machine, chosen from the schedule's hint by the machine file.
    pub network: u8,
    /// Index of the target set of a multicast or an aggregation, else 0.
    pub set: u32,
    /// Index of the source set of an aggregation, else 0.
    pub sources: u32,
    /// Which completions the engine waits for; a fabric need not report the others.
    pub wanted: Wanted,
}

impl Msg {
    /// A message in one run on network 0, of which all completions are wanted.
    pub fn new(op: u32, kind: MsgKind, from: EndpointId, to: EndpointId, bytes: u64) -> Self {
        Msg {
            op,
            from,
            to,
            bytes,
            runs: 1,
            kind,
            network: 0,
            set: 0,
            sources: 0,
            wanted: Wanted::ALL,
        }
    }
}

/// The completions of a message that matter besides its delivery, which always does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Whether [`Event::SourceFree`] does.
    pub source_free: bool,
    /// Whether [`Event::Acknowledged`] does.
    pub acknowledged: bool,
}

impl Wanted {
    /// All three.
    pub const ALL: Wanted = Wanted {
        source_free: true,
        acknowledged: true,
    };
    /// Only the delivery.
    pub const DELIVERY: Wanted = Wanted {
        source_free: false,
        acknowledged: false,
    };
}

impl Wire {
    /// Wire of a put whose time alone on the machine grows by what `whole` bytes take beyond none; the rest of that
    /// time is its latency.
    pub(crate) fn measured<F: Fabric + ?Sized>(
        fabric: &F,
        (from, to, network): (EndpointId, EndpointId, u8),
        whole: u64,
        uses: Vec<(u32, u32)>,
    ) -> Self {
        let time = |bytes| {
            let put = Msg {
                network,
                ..Msg::new(0, MsgKind::Put, from, to, bytes)
            };
            fabric.quiet(&put)
        };
        let (latency, moving) = (time(0), time(whole).saturating_sub(time(0)));
        Wire {
            start: TimePs::ZERO,
            rate: (whole as f64 * 1e12 / moving.0.max(1) as f64) as u64,
            latency,
            uses,
        }
    }

    /// How long a message of `bytes` takes alone, its start and latency included.
    pub fn alone(&self, bytes: u64) -> TimePs {
        self.start + BytesPerSec(self.rate as f64).time(Bytes(bytes)) + self.latency
    }
}

/// The three completions of a message, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The source buffer may be overwritten.
    SourceFree,
    /// The data are visible at the target.
    Delivered,
    /// The initiator knows that the data are visible.
    Acknowledged,
}

/// A completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Handle of the message.
    pub op: u32,
    /// Which of the three completions.
    pub event: Event,
    /// When.
    pub at: TimePs,
    /// Index within the target set of a multicast or an aggregation, else 0.
    pub target: u32,
}

/// The times of all three completions of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Time of [`Event::SourceFree`].
    pub source_free: TimePs,
    /// Time of [`Event::Delivered`].
    pub delivered: TimePs,
    /// Time of [`Event::Acknowledged`].
    pub acknowledged: TimePs,
}

/// The most that an endpoint sends and receives through all its links; `None` where the fabric knows no such bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PortRates {
    /// Most that it sends.
    pub out: Option<BytesPerSec>,
    /// Most that it receives.
    pub into: Option<BytesPerSec>,
}

/// Some of the endpoints, and the most that crosses their border.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkCut {
    /// By endpoint asked for, whether it is inside.
    pub inside: Vec<bool>,
    /// Most that leaves.
    pub out: BytesPerSec,
    /// Most that enters.
    pub into: BytesPerSec,
}

/// Why a fabric that holds messages has no next event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stuck {
    /// One sentence per waiting message: who waits for what.
    pub waiting: Vec<String>,
}

/// How messages of a pair of endpoints go, for a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Time before the first byte moves.
    pub start: TimePs,
    /// Most bytes per second of one message.
    pub rate: u64,
    /// From the departure of the last byte to its arrival.
    pub latency: TimePs,
    /// Links of the route, and how often each byte crosses them.
    pub uses: Vec<(u32, u32)>,
}

/// All ways of messages between some endpoints of a fabric in which links alone limit what is carried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// How many endpoints were asked for.
    pub nodes: usize,
    /// Bytes per second of each link. Where messages of a pair follow each other, what they carry together is a link,
    /// too.
    pub capacities: Vec<u64>,
    /// The ways.
    pub all: Vec<Way>,
}

/// The route of messages from one endpoint to another on one of the networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Place of the sender among the endpoints asked for.
    pub from: usize,
    /// Place of the receiver.
    pub to: usize,
    /// Links, and how often each byte crosses them.
    pub uses: Vec<(u32, u32)>,
}

/// A link, or something else that messages compete for, and the bytes per second that it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Its number.
    pub link: u32,
    /// Bytes per second.
    pub rate: u64,
}

/// What each byte of a message passes once for each target, also where switches copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates {
    /// Place of the sender among the endpoints asked for.
    pub from: usize,
    /// Place of the receiver.
    pub to: usize,
    /// The link out of the sender; the narrowest one, where that is shared with other targets.
    pub first: Gate,
    /// The narrowest.
    pub narrowest: Gate,
    /// The one with the smallest share for each pair whose messages pass it.
    pub busiest: Gate,
    /// The link into the receiver.
    pub last: Gate,
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

    /// From the next [`LinkTable::clear`] on, tell busy time by bins, or no longer.
    pub fn watch(&mut self, watch: Watch) {
        self.bins = watch.bins(self.names.len());
    }

    /// `link` moves something from `from` to `to`.
    #[inline]
    pub fn busy(&mut self, link: usize, from: TimePs, to: TimePs) {
        self.busy_ps[link] += (to - from).0;
        if let Some(bins) = &mut self.bins {
            bins.add(link, from, to);
        }
    }

    /// Forget all loads.
    pub fn clear(&mut self) {
        self.busy_ps.fill(0);
        self.bytes.fill(0);
        self.peak.fill(0);
        if let Some(bins) = &mut self.bins {
            bins.clear();
        }
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

/// An interconnect model.
///
/// Contract with the engine: `now` never decreases over the calls; `advance(until)` processes
/// events in time order, stops at the first instant that yields a [`Done`], appends all `Done` of
/// that instant in a deterministic order and returns the instant reached (at most `until`).
/// A multicast or an aggregation yields one `Delivered` per target, and one `SourceFree` and one `Acknowledged`. What
/// a message does not want ([`Msg::wanted`]) may be omitted, because it would change nothing.
pub trait Fabric {
    /// Forget all messages and loads. `sets` are those of multicasts, aggregations and barriers.
    fn reset(&mut self, seed: u64, sets: &[Vec<EndpointId>]);

    /// From now on every message stands for `channels` equal channels, which are not counted where absent; asked for
    /// before the first message. A fabric that does not limit what one channel carries has nothing to do.
    fn bundle(&mut self, channels: Option<u32>) {
        let _ = channels;
    }

    /// From the next reset on, tell the busy time of links by bins of time, or no longer.
    fn watch(&mut self, watch: Watch);

    /// Take all messages released at `now`, in operation order.
    fn offer(&mut self, now: TimePs, released: &[Msg]);

    /// All completions of `m`, where they depend on nothing that is offered later; the message is
    /// then done with, and `offer` is not called for it. A fabric that can always tell needs no
    /// events of its own, which makes it several times faster.
    fn answer(&mut self, now: TimePs, m: &Msg) -> Option<Times> {
        let _ = (now, m);
        None
    }

    /// Whether `answer` never declines, except for multicasts, and depends on nothing but earlier
    /// messages of the same source. Such a fabric needs no order among sources, see
    /// `linkwright-sim/src/pass/mod.rs`.
    fn order_free(&self) -> bool {
        false
    }

    /// Whether all endpoints are alike and messages take the same time between any two of them: one endpoint
    /// then represents all where all do the same, see `linkwright-sim/src/symmetric`.
    fn endpoints_alike(&self) -> bool {
        false
    }

    /// Most bytes that move at once, where a message is simulated in packets or lines, one by one; `None` where its
    /// size does not change the work.
    fn piece_bytes(&self) -> Option<u64> {
        None
    }

    /// `answer` where every endpoint sends the like of `m` at the same time, so that what `m.from` gets
    /// is what `m.to` gets; asked in the order of sending.
    fn alike(&mut self, now: TimePs, m: &Msg) -> Option<Times> {
        self.answer(now, m)
    }

    /// Hardware barrier over set `group` entered by all at `now`; `None` where the machine has none.
    fn barrier(&mut self, now: TimePs, group: u32) -> Option<TimePs> {
        let _ = (now, group);
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

    /// Links crossed from `from` to `to` by a message on `network`.
    fn hops(&self, from: EndpointId, to: EndpointId, network: u8) -> u32;

    /// Why no message gets from `from` to `to` on `network`, and the cure; `None` where one does.
    /// Asked for every pair of a schedule before it runs.
    fn no_route(&self, from: EndpointId, to: EndpointId, network: u8) -> Option<String> {
        let _ = (from, to, network);
        None
    }

    /// How messages go from `from` to `to` on `network`; `None` where they do not, or where the fabric has no links.
    fn wire(&self, from: EndpointId, to: EndpointId, network: u8) -> Option<Wire> {
        let _ = (from, to, network);
        None
    }

    /// How long the initiator of `m` is at work before its first byte moves; part of what `m` takes. Zero where the
    /// fabric itself lets the messages of an initiator wait for each other.
    fn start_up(&self, m: &Msg) -> TimePs {
        let _ = m;
        TimePs::ZERO
    }

    /// Least times of any message with data from `from` to `to`: before its first byte enters a port or crosses a cut,
    /// and between its last byte and its delivery. Zero where none is known.
    fn ends(&self, from: EndpointId, to: EndpointId, network: u8) -> (TimePs, TimePs) {
        let _ = (from, to, network);
        (TimePs::ZERO, TimePs::ZERO)
    }

    /// Bytes per second of each link of [`Fabric::wire`].
    fn capacities(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Loads since the last reset.
    fn links(&self) -> &LinkTable;

    /// The ports of `endpoint` for messages on any of `networks`.
    fn port(&self, endpoint: EndpointId, networks: &[u8]) -> PortRates {
        let _ = (endpoint, networks);
        PortRates::default()
    }

    /// Cuts that may be narrow, of the endpoints at `places`, for messages on any of `networks`. All other endpoints
    /// may relay what crosses, so a cut counts every way over them.
    fn cuts(&self, places: &[EndpointId], networks: &[u8]) -> Vec<NetworkCut> {
        let _ = (places, networks);
        Vec::new()
    }

    /// Every way of messages between the endpoints at `nodes` on any of `networks`, and what links carry at most.
    /// `None` where messages choose their way, where data are copied or combined on it, or where not only links count.
    fn ways(&self, nodes: &[EndpointId], networks: &[u8]) -> Option<Ways> {
        let _ = (nodes, networks);
        None
    }

    /// What the messages between all pairs of `nodes` on any of `networks` pass; `None` where that is not known, or where
    /// they choose their way.
    fn gates(&self, nodes: &[EndpointId], networks: &[u8]) -> Option<Vec<Gates>> {
        let _ = (nodes, networks);
        None
    }

    /// Whether as much leaves endpoints as arrives at them, so that a multicast leaves its source once for each target;
    /// otherwise once may do for all.
    fn multicasts_are_copies(&self) -> bool {
        false
    }

    /// Whether data of `sources` can be combined on the way to `targets`, by a message on `network`. Only such
    /// aggregations are offered.
    fn aggregates(&self, sources: &[EndpointId], targets: &[EndpointId], network: u8) -> bool {
        let _ = (sources, targets, network);
        false
    }

    /// By how much data for many endpoints occupy the port of each for a shorter time than data for one; `None` where
    /// they do not. [`Fabric::port`] then tells the rate of data for many.
    fn cheap_copies(&self) -> Option<CheapCopies> {
        None
    }

    /// Whether something on the way may combine data, so that a rank need not receive them one by one.
    fn combines_on_the_way(&self) -> bool {
        false
    }

    /// Least time between two messages that leave the same endpoint, of any size; zero where none is known.
    fn gap(&self) -> TimePs {
        TimePs::ZERO
    }

    /// Least time from offer to delivery of any message with data from `from` to `to`, multicasts included.
    fn least(&self, from: EndpointId, to: EndpointId, network: u8) -> TimePs {
        let time = |kind| {
            let empty = Msg {
                network,
                ..Msg::new(0, kind, from, to, 0)
            };
            self.quiet(&empty)
        };
        time(MsgKind::Put).min(time(MsgKind::Get))
    }
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
