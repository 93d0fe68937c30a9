//! Limits of a problem that do not depend on its bytes: how soon ranks can hear from each other.

use super::arrival;
use super::demand::Whole;
use super::distance::{tree, Distances, Pace, Way};
use super::fan_in::Lags;
use super::problem::Site;
use super::Limit;
use crate::fabric::Fabric;
use linkwright_core::TimePs;
use linkwright_schedule::Collective;

impl<F: Fabric + ?Sized> Site<'_, F> {
    pub(super) fn latency(&self) -> Option<Limit> {
        // The order of a pattern's messages is its own.
        let Whole {
            collective,
            ranks,
            root,
            bytes,
        } = self.demand.collective()?;
        let notices = collective == Collective::Barrier;
        if ranks < 2 || bytes == 0 && !notices {
            return None;
        }
        let nodes = [self.places(), self.memories].concat();
        let distances = Distances {
            notices,
            nodes: &nodes,
            ..self.distances()
        };
        // A receiver of data handles their arrival, unless ranks move the data themselves.
        let handling = match notices || self.setup.path.memory.is_some() {
            true => 0,
            false => self.setup.path.receive.0,
        };
        let more = [collective as u32, root];
        let farthest = || self.farthest(&distances, collective, root as usize);
        let (from, to, time) = (*self.kept_for(&nodes, &more, farthest))?;
        let pair = Limit::of_time(
            "latency",
            format!("from rank {from} to rank {to}"),
            TimePs(time + handling),
        );
        let spreads = !matches!(collective, Collective::Reduce | Collective::Gather);
        let gap = self.character.gap.0;
        if !spreads || gap == 0 || !self.character.endpoints_alike {
            return Some(pair);
        }
        let told = TimePs(tree(ranks.into(), Pace::of_news(gap, time)) + handling);
        Some(match told > pair.time {
            true => Limit::of_time(
                "latency",
                format!("from one rank to {} others", ranks - 1),
                told,
            ),
            false => pair,
        })
    }

    /// The time until a rank has heard from all others, one message at a time.
    pub(super) fn hearing(&self) -> Option<Limit> {
        let (collective, ranks) = self.gathers()?;
        let lags = self.lags()?;
        let time = lags.hearing(&self.distances(), ranks)?;
        let what = format!(
            "to one rank from {} others, one message at a time",
            ranks - 1
        );
        let fused = collective.reduces() && self.character.combines_on_the_way;
        (!fused).then(|| Limit::of_time("latency", what, time))
    }

    /// The time until a rank has the sum of all contributions, one addition at a time.
    pub(super) fn summing(&self) -> Option<Limit> {
        let (collective, ranks) = self.gathers()?;
        let path = &self.setup.path;
        let elsewhere = path.fused_combine || self.character.combines_on_the_way;
        if !collective.reduces() || elsewhere || path.memory.is_some() {
            return None;
        }
        let time = self.lags()?.summing(&self.distances(), ranks)?;
        let what = format!("contributions of {ranks} ranks, added one at a time");
        Some(Limit::of_time("compute", what, time))
    }

    /// The collective and its ranks, if some rank needs data of all others.
    fn gathers(&self) -> Option<(Collective, u32)> {
        let of = self.demand.collective()?;
        let spreads = matches!(
            of.collective,
            Collective::Broadcast | Collective::Scatter | Collective::Pattern
        );
        let moves = of.bytes > 0 || of.collective == Collective::Barrier;
        (!spreads && moves && of.ranks > 1).then_some((of.collective, of.ranks))
    }

    /// Least times among ranks, where they are few or all alike.
    pub(super) fn lags(&self) -> Option<Lags> {
        let nodes = self.places();
        match self.character.endpoints_alike {
            true => Some(Lags::new(&self.distances(), nodes.len())),
            false if nodes.len() > arrival::MOST => None,
            false => Some(*self.kept(nodes, || Lags::new(&self.distances(), nodes.len()))),
        }
    }

    /// The ranks as news sees them.
    pub(super) fn distances(&self) -> Distances<'_, F> {
        Distances {
            fabric: self.fabric,
            network: self.network,
            setup: self.setup,
            networks: self.networks,
            notices: false,
            nodes: self.places(),
        }
    }

    /// Two ranks, far apart, of which the second must hear from the first, and how long that takes at least.
    fn farthest(
        &self,
        distances: &Distances<'_, F>,
        collective: Collective,
        root: usize,
    ) -> Option<(usize, usize, u64)> {
        let count = self.places().len();
        if self.character.endpoints_alike {
            let time = distances.hop(self.places()[0], self.places()[1]);
            return Some(match collective {
                Collective::Reduce | Collective::Gather => ((root == 0) as usize, root, time),
                _ if collective.is_rooted() => (root, (root == 0) as usize, time),
                _ => (0, 1, time),
            });
        }
        let from = |rank| {
            let (other, time) = distances.farthest(rank, count, Way::From)?;
            Some((rank, other, time))
        };
        match collective {
            Collective::Broadcast | Collective::Scatter => from(root),
            Collective::Reduce | Collective::Gather => {
                let (other, time) = distances.farthest(root, count, Way::To)?;
                Some((other, root, time))
            }
            _ => {
                let first = from(0)?;
                let back = from(first.1)?;
                Some(if back.2 > first.2 { back } else { first })
            }
        }
    }
}
