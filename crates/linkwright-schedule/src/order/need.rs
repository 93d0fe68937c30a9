//! What has to be known about an earlier operation.

use crate::accesses::NONE;
use crate::ir::{OpKind, Schedule};

/// What about an earlier operation has to be known before a later one may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Its source may be overwritten.
    SourceFree,
    /// Its data are at this participant.
    DeliveredAt(u32),
}

/// The need that operation `id` is complete in every respect.
pub(super) fn full_completion(out: &Schedule, id: u32) -> Need {
    let op = &out.ops[id as usize];
    match op.kind {
        OpKind::Multicast | OpKind::Aggregate => Need::DeliveredAt(NONE),
        OpKind::Put | OpKind::Get | OpKind::Notice => Need::DeliveredAt(op.to),
        _ => Need::DeliveredAt(op.from),
    }
}
