//! What has to be proved of two accesses to one chunk, and which completion proves it.

use crate::ir::Completion;
pub(super) use crate::order::Need;

/// A pair to prove: before the later operation starts, `op` meets `need`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hazard {
    pub op: u32,
    pub need: Need,
    pub buffer: u8,
    pub participant: u32,
    pub chunk: u32,
}

/// Whether a completion seen by `waiter` is what is needed.
#[inline]
pub(super) fn meets(known: Option<Completion>, need: Need, waiter: u32) -> bool {
    match known {
        Some(Completion::Delivered) => true,
        Some(Completion::SourceFree) => need == Need::SourceFree,
        Some(Completion::DeliveredHere) => need == Need::DeliveredAt(waiter),
        Some(Completion::CombinedHere) => {
            need == Need::SourceFree || need == Need::DeliveredAt(waiter)
        }
        None => false,
    }
}
