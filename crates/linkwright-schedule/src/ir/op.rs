//! An operation, and what others wait for: its kind, what it does at its destination, its edges.

use super::{BufferId, COMPUTE_LANE};

linkwright_core::words! {
    /// What an operation does.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[repr(u8)]
    pub enum OpKind {
        /// Transfer initiated by the source.
        Put = "put",
        /// Transfer initiated by the destination.
        Get = "get",
        /// One source, several destinations; `to` is an index into [`Schedule::sets`](super::Schedule::sets).
        Multicast = "multicast",
        /// Several sources, combined on the way to several destinations; `to` is an index into
        /// [`Schedule::aggregations`](super::Schedule::aggregations). Its initiator, `from`, is the first of the destinations.
        Aggregate = "aggregate",
        /// Copy or combination within one rank.
        Local = "local",
        /// Arithmetic without data of the schedule; work in operations.
        Compute = "compute",
        /// Arrival of one rank at a barrier; done when all ranks of the set `to` have arrived.
        Barrier = "barrier",
        /// Orders everything earlier of a rank before everything later of it.
        Fence = "fence",
        /// A message without data: what its edges wait for has happened.
        Notice = "notice",
    }
}

/// What arriving data do to the data at the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Combine {
    /// Overwrite.
    Replace,
    /// Combine with the reduction operator of the run.
    Reduce,
}

linkwright_core::words! {
    /// Which way an operation prefers to go; results never depend on it.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    #[repr(u8)]
    pub enum Hint {
        /// No preference.
        #[default]
        None = "-",
        /// Along the first axis, upwards.
        PlusX = "+x",
        /// Along the first axis, downwards.
        MinusX = "-x",
        /// Along the second axis, upwards.
        PlusY = "+y",
        /// Along the second axis, downwards.
        MinusY = "-y",
    }
}

impl Hint {
    /// Up or down an axis; axes beyond the second have no hint.
    pub fn along(axis: u8, ahead: bool) -> Self {
        match (axis, ahead) {
            (0, true) => Hint::PlusX,
            (0, false) => Hint::MinusX,
            (1, true) => Hint::PlusY,
            (1, false) => Hint::MinusY,
            _ => Hint::None,
        }
    }

    /// The other way along the same axis.
    pub fn opposite(self) -> Self {
        match self {
            Hint::PlusX => Hint::MinusX,
            Hint::MinusX => Hint::PlusX,
            Hint::PlusY => Hint::MinusY,
            Hint::MinusY => Hint::PlusY,
            Hint::None => Hint::None,
        }
    }
}

/// One operation; see [`Schedule`](super::Schedule) for its edges and scattered ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Participant that holds the data, or the acting rank; see [`Schedule::sources`](super::Schedule::sources).
    pub from: u32,
    /// Participant that gets the data; a set index for multicasts and barriers, the index of both sets for
    /// aggregations.
    pub to: u32,
    /// First source chunk; index into the range table when `scattered`.
    pub src: u32,
    /// First destination chunk; index into the range table when `scattered`.
    pub dst: u32,
    /// Number of chunks; number of ranges when `scattered`; index of the work for computes.
    pub count: u32,
    /// Step in which the author wrote it.
    pub step: u32,
    /// What it does.
    pub kind: OpKind,
    /// Overwrite or combine.
    pub combine: Combine,
    /// Buffer read.
    pub src_buffer: BufferId,
    /// Buffer written.
    pub dst_buffer: BufferId,
    /// Queue of the initiator in which it is issued.
    pub lane: u8,
    /// Preferred way.
    pub hint: Hint,
    /// Whether the chunks are listed in the range table.
    pub scattered: bool,
    /// Whether a fence of its initiator stands right before it, without a place of its own.
    pub fenced: bool,
}

impl Op {
    /// The notice that `from` sends to `to` for the sake of this operation, in its step and lane.
    pub(crate) fn notice(&self, from: u32, to: u32) -> Self {
        Op {
            from,
            to,
            src: 0,
            dst: 0,
            count: 0,
            kind: OpKind::Notice,
            combine: Combine::Replace,
            src_buffer: BufferId(0),
            dst_buffer: BufferId(0),
            hint: Hint::None,
            scattered: false,
            fenced: false,
            ..*self
        }
    }

    /// The local operation of `rank` that brings what this one left in `scratch` to its place.
    pub(crate) fn landing(&self, scratch: BufferId, rank: u32) -> Self {
        Op {
            from: rank,
            to: rank,
            kind: OpKind::Local,
            src_buffer: scratch,
            lane: COMPUTE_LANE,
            hint: Hint::None,
            fenced: false,
            ..*self
        }
    }

    /// The rank that issues the operation and does its waiting.
    #[inline]
    pub fn initiator(&self) -> u32 {
        match self.kind {
            OpKind::Get => self.to,
            _ => self.from,
        }
    }

    /// Whether data or a signal travel between two participants.
    #[inline]
    pub fn is_message(&self) -> bool {
        matches!(
            self.kind,
            OpKind::Put | OpKind::Get | OpKind::Multicast | OpKind::Aggregate | OpKind::Notice
        )
    }

    /// Whether the operation moves one chunk to one place, as most do.
    #[inline]
    pub(crate) fn is_single(&self) -> bool {
        matches!(self.kind, OpKind::Put | OpKind::Get | OpKind::Local)
            && self.count == 1
            && !self.scattered
    }

    /// Whether the operation reads and writes chunks.
    #[inline]
    pub fn moves_data(&self) -> bool {
        matches!(
            self.kind,
            OpKind::Put | OpKind::Get | OpKind::Multicast | OpKind::Aggregate | OpKind::Local
        )
    }
}

/// "Wait for operation `op`", as seen by the initiator of the waiting operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge(u32);

const ACKNOWLEDGED: u32 = 1 << 31;

impl Edge {
    /// Wait until `op` is complete as far as it concerns the waiter: delivered where the waiter is
    /// a destination, source free where it is the source, finished where it is local.
    pub fn on(op: u32) -> Self {
        Edge(op)
    }

    /// Wait until the initiator of `op`, who is the waiter, knows that the data are delivered.
    pub fn acknowledged(op: u32) -> Self {
        Edge(op | ACKNOWLEDGED)
    }

    /// The same wait for another operation.
    pub(crate) fn with_op(self, op: u32) -> Self {
        Edge((self.0 & ACKNOWLEDGED) | op)
    }

    /// The operation waited for.
    #[inline]
    pub fn op(self) -> u32 {
        self.0 & !ACKNOWLEDGED
    }

    /// Whether the acknowledgement is waited for, not only a free source.
    #[inline]
    pub fn is_acknowledged(self) -> bool {
        self.0 & ACKNOWLEDGED != 0
    }
}

/// What a satisfied edge tells its waiter about the operation waited for.
///
/// An operation completes three times: its source is free, its data are delivered (a multicast or an
/// aggregation target by target, in any order), and its initiator knows so. A delivery of the one target of a
/// transfer implies that the source is free; the delivery at one target of a multicast does not. That at
/// one target of an aggregation does, for all sources: their data are in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The source may be overwritten.
    SourceFree,
    /// The data of a multicast are at the waiter; nothing is known of the other targets.
    DeliveredHere,
    /// All sources of an aggregation are free, and its data are at the waiter; nothing is known of the
    /// other targets.
    CombinedHere,
    /// The source is free, and the data are at every target.
    Delivered,
}
