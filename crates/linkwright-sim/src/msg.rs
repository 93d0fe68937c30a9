//! A message in flight: what the engine offers a fabric, and the completions that it gets back.

use linkwright_core::{EndpointId, TimePs};

/// What a message does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MsgKind {
    /// Data pushed by `from`.
    Put,
    /// Data pulled by `to`: a request travels to `from`, and the data travels back.
    Get,
    /// A signal without data, such as a semaphore increment.
    Notice,
    /// One source, the targets of set [`Msg::set`].
    Multicast,
    /// The data of set [`Msg::sources`], combined in flight and sent to the targets of set [`Msg::set`].
    Aggregate,
}

/// A message offered to a fabric.
#[derive(Clone, Copy, Debug)]
pub struct Msg {
    /// The engine's handle, returned in [`Done`].
    pub op: u32,
    /// Where the data is; for an aggregation its initiator, the first target.
    pub from: EndpointId,
    /// Where the data goes; unused by multicasts and aggregations.
    pub to: EndpointId,
    /// Payload in bytes; 0 for notices.
    pub bytes: u64,
    /// Contiguous runs at the target, at least 1; some fabrics charge for each.
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
    /// A message of one run on network 0, with all completions wanted.
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

/// Which completions the engine waits for besides delivery, which it always waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Whether it waits for [`Event::SourceFree`].
    pub source_free: bool,
    /// Whether it waits for [`Event::Acknowledged`].
    pub acknowledged: bool,
}

impl Wanted {
    /// All three.
    pub const ALL: Wanted = Wanted {
        source_free: true,
        acknowledged: true,
    };
    /// Delivery alone.
    pub const DELIVERY: Wanted = Wanted {
        source_free: false,
        acknowledged: false,
    };
}

/// The three completions of a message, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The source buffer may be overwritten.
    SourceFree,
    /// The data is visible at the target.
    Delivered,
    /// The initiator knows that the data is visible.
    Acknowledged,
}

/// A completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Handle of the message.
    pub op: u32,
    /// Which completion.
    pub event: Event,
    /// Time at which it happens.
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
