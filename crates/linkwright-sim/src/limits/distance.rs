//! How long news takes from one rank to another, over any number of messages.
//!
//! ```text
//!   direct               start + least time of a message a -> b
//!   over others, at least     (start + least time out of a) + (start + least time into b)
//! ```
//!
//! The smaller of the two is sound whatever relays, and where a direct message wins, as on most machines, it is exact.
//! On a small machine where relays may win, the shortest way over all of them is searched.
//!
//! Where an endpoint sends one message at a time, news for all takes at least as long as the best tree: everyone who
//! knows tells the next, each a `gap` after the one before (Karp, Sahay, Santos and Schauser, "Optimal broadcast and
//! summation in the LogP model", 1993).

use crate::fabric::{Fabric, Msg, MsgKind};
use crate::network::Network;
use crate::setup::Setup;
use linkwright_core::{EndpointId, TimePs};
use std::collections::BTreeMap;

/// Endpoints among which the shortest way is searched.
const SEARCHED: usize = 128;

/// The machine as news sees it.
pub(super) struct Distances<'a, F: ?Sized> {
    pub fabric: &'a F,
    /// That of the fabric.
    pub network: &'a dyn Network,
    pub setup: &'a Setup,
    pub networks: &'a [u8],
    /// Whether a notice is enough, as for a barrier.
    pub notices: bool,
    /// Everywhere that news may pass.
    pub nodes: &'a [EndpointId],
}

/// Which way from the fixed end.
#[derive(Clone, Copy)]
pub(super) enum Way {
    From,
    To,
}

impl<F: Fabric + ?Sized> Distances<'_, F> {
    /// Least time from offer to delivery of any message with data, multicasts included.
    fn least(&self, from: EndpointId, to: EndpointId, network: u8) -> TimePs {
        let empty = |kind| {
            let message = Msg {
                network,
                ..Msg::new(0, kind, from, to, 0)
            };
            self.fabric.quiet(&message)
        };
        let known = self.network.least(from, to, network);
        known.unwrap_or_else(|| empty(MsgKind::Put).min(empty(MsgKind::Get)))
    }

    /// Least time of one message, in picoseconds; `u64::MAX` where none gets there.
    pub fn hop(&self, from: EndpointId, to: EndpointId) -> u64 {
        let path = &self.setup.path;
        let mut least = u64::MAX;
        for &network in self.networks {
            if self.network.no_route(from, to, network).is_some() {
                continue;
            }
            let data = self.least(from, to, network) + path.start + path.per_run;
            least = least.min(data.0);
            if self.notices {
                let notice = Msg {
                    network,
                    ..Msg::new(0, MsgKind::Notice, from, to, 0)
                };
                least = least.min((path.notice_start + self.fabric.quiet(&notice)).0);
            }
        }
        least
    }

    /// Index of the node that is farthest from (or for) node `fixed`, among the first `ranks`, and its distance.
    pub fn farthest(&self, fixed: usize, ranks: usize, way: Way) -> Option<(usize, u64)> {
        let hop = |a: usize, b: usize| match way {
            Way::From => self.hop(self.nodes[a], self.nodes[b]),
            Way::To => self.hop(self.nodes[b], self.nodes[a]),
        };
        let count = self.nodes.len();
        let direct: Vec<u64> = (0..count)
            .map(|other| if other == fixed { 0 } else { hop(fixed, other) })
            .collect();
        let others = || (0..ranks).filter(|&other| other != fixed);
        let far = others().max_by_key(|&other| (direct[other], std::cmp::Reverse(other)))?;
        let nearest = (0..count)
            .filter(|&n| n != fixed)
            .map(|n| direct[n])
            .min()?;
        let last = (0..count).filter(|&n| n != far && n != fixed);
        let last = last.map(|n| hop(n, far)).min().unwrap_or(u64::MAX);
        let relayed = nearest.saturating_add(last);
        if direct[far] <= relayed {
            return Some((far, direct[far]));
        }
        if count > SEARCHED {
            return Some((far, relayed));
        }
        let shortest = shortest(fixed, direct, hop);
        others()
            .map(|other| (other, shortest[other]))
            .max_by_key(|&(_, time)| time)
    }
}

/// Lengths of the shortest ways from `start`, given those of the `direct` ones (Dijkstra 1959).
pub(super) fn shortest(
    start: usize,
    direct: Vec<u64>,
    hop: impl Fn(usize, usize) -> u64,
) -> Vec<u64> {
    let mut least = direct;
    let mut waiting: Vec<usize> = (0..least.len()).filter(|&node| node != start).collect();
    while let Some(at) = (0..waiting.len()).min_by_key(|&i| least[waiting[i]]) {
        let node = waiting.swap_remove(at);
        for &other in &waiting {
            least[other] = least[other].min(least[node].saturating_add(hop(node, other)));
        }
    }
    least
}

/// Times of the best tree: everyone who knows tells the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// From the start until the first one knows.
    pub first: u64,
    /// Between two messages of the same sender.
    pub gap: u64,
    /// From when somebody knows until its own first message has arrived.
    pub hop: u64,
}

impl Pace {
    /// The pace of news that takes `hop` with each message.
    pub fn of_news(gap: u64, hop: u64) -> Self {
        Pace {
            first: hop,
            gap,
            hop,
        }
    }
}

/// Least time until `ranks` ranks know what one of them knew first. Backwards in time, it is the least time until one rank
/// has heard from all:
/// a rank that handles arrivals, or adds contributions, one at a time takes them in a `gap` apart.
pub(super) fn tree(ranks: u64, Pace { first, gap, hop }: Pace) -> u64 {
    if gap == 0 || hop == 0 {
        return if ranks > 1 { first } else { 0 };
    }
    let (mut know, mut last) = (1u64, 0);
    // By time of arrival, the number of messages.
    let mut due = BTreeMap::from([(first, 1u64)]);
    while know < ranks {
        let (at, count) = due.pop_first().expect("whoever knows sends on");
        (know, last) = (know.saturating_add(count), at);
        for next in [at + gap, at + hop] {
            let arriving = due.entry(next).or_default();
            *arriving = arriving.saturating_add(count);
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::Pace;

    fn tree(ranks: u64, hop: u64, gap: u64) -> u64 {
        super::tree(ranks, Pace::of_news(gap, hop))
    }

    #[test]
    fn the_best_tree_is_that_of_logp() {
        // Figure 3 of Culler and others (1993): p = 8, L + 2 o = 10, g = 4; the last of eight knows at 24.
        assert_eq!(tree(8, 10, 4), 24);
        // With a gap as long as a hop, the number of those who know doubles with each hop.
        assert_eq!(
            [1, 2, 3, 4, 8, 9].map(|p| tree(p, 5, 5)),
            [0, 5, 10, 10, 15, 20]
        );
        assert_eq!(tree(1 << 20, 3, 3), 60);
        assert_eq!(tree(1000, 7, 0), 7);
    }

    /// Two contributions are one after first = 5. Then 2 = gap later a third, and so on: 5, 7, 9, 11, .. until what
    /// arrives is itself a sum: that of 5 is there at 5 + 8 = 13 and counts double, together with the sixth at 13.
    #[test]
    fn sums_of_sums_take_a_hop_more() {
        let pace = Pace {
            first: 5,
            gap: 2,
            hop: 8,
        };
        let at = |ranks| super::tree(ranks, pace);
        assert_eq!([1, 2, 3, 4, 5].map(at), [0, 5, 7, 9, 11]);
        assert_eq!([6, 7, 8].map(at), [13, 13, 15]);
    }
}
