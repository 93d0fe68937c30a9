//! How long news takes from one rank to another, over any number of messages.
//!
//! ```text
//!   direct               start + least time of a message a -> b
//!   over others, at least     (start + least time out of a) + (start + least time into b)
//! ```
//!
//! The smaller of the two is sound whatever relays, and where a direct message wins, as on most machines, it is exact. On
//! a small machine where relays may win, the shortest way over all of them is searched.
//!
//! Where an endpoint can only send one message after another, one that all must hear of takes at least as long as the
//! best tree: all who know tell the next, each a `gap` after the one before (Karp, Sahay, Santos and Schauser, "Optimal
//! broadcast and summation in the LogP model", 1993).

use crate::fabric::{Fabric, Msg, MsgKind};
use crate::setup::Setup;
use linkwright_core::EndpointId;
use std::collections::BTreeMap;

/// Endpoints among which the shortest way is searched.
const SEARCHED: usize = 128;

/// The machine as news sees it.
pub(super) struct Distances<'a, F: ?Sized> {
    pub fabric: &'a F,
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
    /// Least time of one message, in picoseconds; `u64::MAX` where none gets there.
    pub fn hop(&self, from: EndpointId, to: EndpointId) -> u64 {
        let path = &self.setup.path;
        let mut least = u64::MAX;
        for &network in self.networks {
            if self.fabric.no_route(from, to, network).is_some() {
                continue;
            }
            let data = self.fabric.least(from, to, network) + path.start + path.per_run;
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

/// Lengths of the shortest ways from `start`, of which the `direct` ones are known (Dijkstra 1959).
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

/// Least time until `ranks` know what one knows, if a message takes `hop` and leaves its source `gap` after the one
/// before.
pub(super) fn tree(ranks: u64, hop: u64, gap: u64) -> u64 {
    if gap == 0 || hop == 0 {
        return if ranks > 1 { hop } else { 0 };
    }
    let (mut know, mut last) = (1u64, 0);
    // When how many messages arrive.
    let mut due = BTreeMap::from([(hop, 1u64)]);
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
    use super::tree;

    #[test]
    fn the_best_tree_is_that_of_logp() {
        // Figure 3 of Culler and others (1993): p = 8, L + 2 o = 10, g = 4; the last of eight knows at 24.
        assert_eq!(tree(8, 10, 4), 24);
        // As fast as messages arrive, all double; with a long gap each tells one.
        assert_eq!(
            [1, 2, 3, 4, 8, 9].map(|p| tree(p, 5, 5)),
            [0, 5, 10, 10, 15, 20]
        );
        assert_eq!(tree(1 << 20, 3, 3), 60);
        assert_eq!(tree(1000, 7, 0), 7);
    }
}
