//! A message on its way: what the engine offers a fabric, and what it gets back.

use linkwright_core::{EndpointId, TimePs};

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
