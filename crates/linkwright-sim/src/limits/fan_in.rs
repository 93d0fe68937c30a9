//! How long until a rank has heard from all others, one message at a time.
//!
//! ```text
//!   hearing   each message keeps its receiver at work   | first message | handled | handled | ...
//!   summing   each addition keeps a rank's arithmetic   | first data    | added   | added   | ...
//! ```
//!
//! A message may bring news of several ranks, and an operand may be a sum. So the least time is that of the best tree
//! ([`super::distance::tree`]), backwards. This holds whatever carries the data:
//!
//! - A rank uses data of another rank only after a message, a notice or a get that depends on that rank. Its receiver
//!   handles each of them, even where the data themselves came over a memory.
//! - One addition takes in one operand that another rank has made, and a rank does one addition at a time. On a path
//!   with signals, an operand that is itself a sum must come, and a notice must say that it is there.

use super::distance::{tree, Distances, Pace};
use crate::fabric::{Fabric, Msg, MsgKind};
use linkwright_core::machine::{Completion, Path};
use linkwright_core::{Bytes, TimePs};

/// Picoseconds that any arrival keeps its rank busy.
pub(super) fn handling(path: &Path) -> u64 {
    match &path.memory {
        Some(memory) => memory.look.0,
        None => path.receive.0,
    }
}

/// Least times among ranks, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lags {
    /// From rank to rank, of a message with data.
    data: u64,
    /// The same of a notice.
    notice: u64,
}

impl Lags {
    /// The least times among the first `ranks` nodes; two are enough where all are alike.
    pub fn new<F: Fabric + ?Sized>(distances: &Distances<'_, F>, ranks: usize) -> Self {
        let ranks = match distances.fabric.character().endpoints_alike {
            true => ranks.min(2),
            false => ranks,
        };
        let nodes = &distances.nodes[..ranks];
        let pairs = nodes
            .iter()
            .flat_map(|a| nodes.iter().map(move |b| (*a, *b)));
        let mut least = Lags {
            data: u64::MAX,
            notice: u64::MAX,
        };
        for (a, b) in pairs.filter(|(a, b)| a != b) {
            least.data = least.data.min(distances.hop(a, b));
            for &network in distances.networks {
                if distances.network.no_route(a, b, network).is_none() {
                    let notice = Msg {
                        network,
                        ..Msg::new(0, MsgKind::Notice, a, b, 0)
                    };
                    least.notice = least.notice.min(distances.fabric.quiet(&notice).0);
                }
            }
        }
        least.notice = least
            .notice
            .saturating_add(distances.setup.path.notice_start.0);
        least
    }

    /// Until a rank has heard from `ranks` ranks, itself included; `None` where handling takes no time.
    pub fn hearing<F: Fabric + ?Sized>(self, of: &Distances<'_, F>, ranks: u32) -> Option<TimePs> {
        let handling = handling(&of.setup.path);
        let hop = self.data.min(self.notice).saturating_add(handling);
        (handling > 0 && hop < u64::MAX)
            .then(|| TimePs(tree(ranks.into(), Pace::of_news(handling, hop))))
    }

    /// Until a rank has added up the contributions of `ranks` ranks, itself included, where none is added on the way.
    pub fn summing<F: Fabric + ?Sized>(self, of: &Distances<'_, F>, ranks: u32) -> Option<TimePs> {
        let path = &of.setup.path;
        let addition = path.combine_time(Bytes(1), of.setup.arithmetic).0;
        let told = match path.signal && path.completion != Completion::SourceFree {
            true => self.notice,
            false => 0,
        };
        let first = self.data.saturating_add(addition);
        let hop = first.saturating_add(told);
        (addition > 0 && hop < u64::MAX).then(|| {
            TimePs(tree(
                ranks.into(),
                Pace {
                    first,
                    gap: addition,
                    hop,
                },
            ))
        })
    }

    /// Least time of a message with data.
    pub fn data(self) -> TimePs {
        TimePs(self.data)
    }
}
