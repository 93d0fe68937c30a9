//! The limit of the problem: what no schedule of a collective beats on a machine.
//!
//! | limit | value |
//! |---|---|
//! | latency | of the farthest two ranks of which one must hear from the other, over any relays; or the best tree of messages, where endpoints send or handle one at a time |
//! | port | bytes that must leave or enter a rank / rate of its port; or bytes that all must receive / rate of all ports |
//! | cut | bytes that must leave or enter some ranks / rate of all links across their border |
//! | links | what the messages cost at least, at prices of links / what all links earn in a second; see [`super::prices`] |
//! | arrival | the least time before the first byte passes a port, a cut or any link, plus the bytes behind it / rate there; or what links carry, each from when its sender can have something; see [`super::growth`] |
//! | memory | bytes that ranks must read and write / the rate of the fastest cache, where ranks move data themselves |
//! | compute | the first message, plus all combinations / rate of the arithmetic of all ranks; or the best tree of additions |
//!
//! Bytes are those of [`Demand`]. What counts is what the machine could do, not what schedules make of it: memories of
//! the machine may receive, relay and combine, a multicast leaves its source once, switches combine, a rank may use all
//! lanes.

use super::arrival::{self, Table};
use super::demand::{Demand, Whole};
use super::distance::Distances;
use super::fan_in::{handling, Lags};
use super::prices::{self, Market};
use super::{Limit, Limits};
use crate::fabric::{Character, Fabric};
use crate::network::{Network, NetworkCut, PortRates};
use crate::setup::Setup;
use linkwright_core::machine::{Engine, Memo, Memory};
use linkwright_core::{Bytes, BytesPerSec, EndpointId, Machine, TimePs};
use linkwright_schedule::Collective;
use std::sync::Arc;

/// What the limit of all links is about.
const OVER_LINKS: &str = "received by all, over all links at once";

/// The limits of a problem.
pub struct Found {
    /// All of them.
    pub limits: Limits,
    /// The cut behind the limit of that name.
    pub cut: Option<NetworkCut>,
}

/// The limits of `demand` for ranks at the places of `setup` on `machine`, whose fabric is `fabric`. The fabric is idle
/// afterwards.
pub fn find<F: Fabric + ?Sized>(
    demand: &Demand,
    fabric: &mut F,
    setup: &Setup,
    machine: &Machine,
) -> Found {
    let networks = setup.networks.all();
    let memories = machine.ranks()..machine.endpoints().len();
    let memories: Vec<_> = memories.map(|place| EndpointId(place as u32)).collect();
    let hardware = barrier(demand, fabric, setup);
    let site = Site {
        demand,
        fabric: &*fabric,
        character: fabric.character(),
        network: fabric.network(),
        setup,
        networks: &networks,
        memories: &memories,
        handling: match hardware {
            Some(_) => 0, // who waits at a barrier has nothing to handle
            None => handling(&setup.path),
        },
        memo: machine.memo(),
    };
    let (cut, narrowest) = site.cut().unzip();
    let arrivals = site.arrivals(cut.as_ref().zip(narrowest.as_ref()));
    let within = |limit: Limit| match hardware {
        Some(barrier) => Limit {
            time: limit.time.min(barrier),
            ..limit
        },
        None => limit,
    };
    let latency = match demand.is_barrier() {
        true => site.latency().map(within),
        false => site.latency(),
    };
    let limits = [
        latency,
        site.hearing().map(within),
        site.each_port(),
        site.all_ports(),
    ]
    .into_iter();
    let others = [
        cut,
        site.links(),
        site.memory(),
        site.compute(),
        site.summing(),
    ]
    .into_iter();
    Found {
        limits: Limits::known(limits.chain(others).flatten().chain(arrivals)),
        cut: narrowest,
    }
}

/// How long the shortest barrier in hardware takes, if it may bring the news.
fn barrier<F: Fabric + ?Sized>(demand: &Demand, fabric: &mut F, setup: &Setup) -> Option<TimePs> {
    if !demand.is_barrier() && handling(&setup.path) == 0 {
        return None;
    }
    let sets = [setup.placement[..1].to_vec()];
    fabric.reset(&setup.conditions(&sets));
    fabric.barrier(TimePs::ZERO, 0)
}

/// A problem at its place.
pub(super) struct Site<'a, F: ?Sized> {
    pub(super) demand: &'a Demand,
    pub(super) fabric: &'a F,
    pub(super) character: Character,
    pub(super) network: &'a dyn Network,
    pub(super) setup: &'a Setup,
    pub(super) networks: &'a [u8],
    pub(super) memories: &'a [EndpointId],
    /// Picoseconds that each arrival keeps its rank at work.
    pub(super) handling: u64,
    pub(super) memo: &'a Memo,
}

impl<F: Fabric + ?Sized> Site<'_, F> {
    /// Participants of the problem; of a collective the ranks.
    pub(super) fn places(&self) -> &[EndpointId] {
        let all = &self.setup.placement;
        match self.demand.collective() {
            None => all,
            Some(whole) => &all[..all.len().min(whole.ranks as usize)],
        }
    }

    /// The busiest port.
    fn each_port(&self) -> Option<Limit> {
        let places = self.places();
        let ranks: Vec<u32> = match self.demand.collective() {
            Some(Whole { ranks, root, .. }) if self.character.endpoints_alike => {
                vec![root, (root == 0 && ranks > 1) as u32]
            }
            whole => (0..whole.map_or(places.len() as u32, |whole| whole.ranks)).collect(),
        };
        let through = self.demand.through(&ranks);
        let mut busiest: Option<Limit> = None;
        for (rank, (out, into)) in ranks.into_iter().zip(through) {
            let place = places[(rank as usize).min(places.len() - 1)];
            let port = self.network.port(place, self.networks);
            let sides = [("out of", out, port.out), ("into", into, port.into)];
            for (side, bytes, rate) in sides {
                let time = rate.map_or(TimePs::ZERO, |rate| rate.time(Bytes(bytes)));
                if busiest.as_ref().map_or(TimePs::ZERO, |b| b.time) < time {
                    let what = format!("{side} rank {rank}");
                    busiest = rate.map(|rate| Limit::of_rate("port", what, bytes, rate));
                }
            }
        }
        busiest
    }

    /// What passes behind the first byte that can.
    fn arrivals(&self, cut: Option<(&Limit, &NetworkCut)>) -> Vec<Limit> {
        let (demand, count) = (self.demand, self.places().len());
        let nodes = [self.places(), self.memories].concat();
        let Some(Whole { root, bytes, .. }) = demand.collective() else {
            return self.behind_first(&nodes, cut).into_iter().collect();
        };
        if bytes == 0 || count < 2 || nodes.len() > arrival::MOST {
            return Vec::new();
        }
        let table = self.table(&nodes);
        let mut ranks = vec![root as usize, 0, count / 2, count - 1];
        ranks.sort_unstable();
        ranks.dedup();
        let through = |rank| {
            let port = self.network.port(nodes[rank], self.networks);
            table.through(demand, rank, port)
        };
        let total = self.all_ports();
        let of = |limit: &Limit| Some((limit.bytes, limit.rate?));
        let total = total.as_ref().and_then(of);
        let everywhere = "into all ranks and memories together";
        let total = total.and_then(|(bytes, rate)| table.total(everywhere, bytes, rate));
        let links = self.links();
        let links = links.as_ref().and_then(of);
        let links = links.and_then(|(bytes, rate)| table.total(OVER_LINKS, bytes, rate));
        let total = total.into_iter().chain(links);
        let what = "across the narrowest cut";
        let cut = cut.and_then(|(limit, cut)| table.across(what, cut, (limit.bytes, limit.rate?)));
        let mut limits: Vec<Limit> = ranks.into_iter().flat_map(through).collect();
        limits.extend(total.chain(cut));
        limits.extend(self.growth(&nodes, &table));
        limits
    }

    /// Times between all pairs.
    pub(super) fn table(&self, nodes: &[EndpointId]) -> Arc<Table> {
        let distances = Distances {
            nodes,
            ..self.distances()
        };
        self.kept(nodes, || Table::new(&distances, self.places().len()))
    }

    /// Times among `nodes` on the path, which are the same for every size and schedule.
    pub(super) fn kept<T: Send + Sync + 'static>(
        &self,
        nodes: &[EndpointId],
        make: impl FnOnce() -> T,
    ) -> Arc<T> {
        self.kept_for(nodes, &[], make)
    }

    /// The same, for what depends on `more`, too.
    pub(super) fn kept_for<T: Send + Sync + 'static>(
        &self,
        nodes: &[EndpointId],
        more: &[u32],
        make: impl FnOnce() -> T,
    ) -> Arc<T> {
        let path = &self.setup.path;
        let begin = (path.start + path.per_run).0;
        let key = nodes.iter().map(|node| node.0).chain([u32::MAX]);
        let key = key.chain(self.networks.iter().map(|&network| u32::from(network)));
        let key = key.chain([self.places().len() as u32]);
        let key = key.chain(halves(begin)).chain(halves(path.notice_start.0));
        (self.memo).get(key.chain(more.iter().copied()).collect(), make)
    }

    /// All ports together.
    fn all_ports(&self) -> Option<Limit> {
        let ranks = self.demand.collective()?.ranks;
        let received = self.received();
        if received == 0 {
            return None;
        }
        let ports = self.ports(ranks);
        let total = |side: fn(&PortRates) -> Option<BytesPerSec>| {
            let known: Option<Vec<f64>> = ports.iter().map(|p| side(p).map(|r| r.0)).collect();
            let sum = known?.iter().sum::<f64>();
            Some(BytesPerSec(match self.character.endpoints_alike {
                true => sum * f64::from(ranks),
                false => sum,
            }))
        };
        let into = total(|port| port.into);
        let out = total(|port| port.out).filter(|_| self.character.multicasts_are_copies);
        let limit = |rate: Option<BytesPerSec>, side: &str| {
            let what = format!("{side} all ranks and memories together");
            Some(Limit::of_rate("port", what, received, rate?))
        };
        [limit(into, "into"), limit(out, "out of")]
            .into_iter()
            .flatten()
            .max_by_key(|limit| limit.time)
    }

    /// Bytes that all participants must receive together.
    fn received(&self) -> u64 {
        match (
            self.character.combines_on_the_way,
            self.character.cheap_copies,
        ) {
            (true, _) => self.demand.received_combined(),
            (false, Some(copies)) => self.demand.received_apart(copies),
            (false, None) => self.demand.received(),
        }
    }

    /// The ports of all ranks and memories, or of one that is like all.
    fn ports(&self, ranks: u32) -> Vec<PortRates> {
        let places = self.places();
        let taken = match self.character.endpoints_alike && self.memories.is_empty() {
            true => &places[..1],
            false => &places[..places.len().min(ranks as usize)],
        };
        let of = |&place: &EndpointId| self.network.port(place, self.networks);
        // Where copies are cheap, other data count several times. Memories have one rate for both, so theirs is raised.
        let times = self.character.cheap_copies.map_or(1, |copies| copies.times) as f64;
        let faster = |port: PortRates| PortRates {
            out: port.out.map(|rate| BytesPerSec(rate.0 * times)),
            into: port.into.map(|rate| BytesPerSec(rate.0 * times)),
        };
        let memories = self.memories.iter().map(of).map(faster);
        taken.iter().map(of).chain(memories).collect()
    }

    /// The cuts of the machine, which are the same for every size and schedule.
    fn cuts(&self) -> Arc<Vec<NetworkCut>> {
        if self.character.endpoints_alike {
            return Arc::default();
        }
        let cuts = || self.network.cuts(self.places(), self.networks);
        self.memo.get(self.places_and(&[]), cuts)
    }

    /// Places and networks as a key, with `more`.
    pub(super) fn places_and(&self, more: &[u32]) -> Vec<u32> {
        let key = self.places().iter().map(|place| place.0);
        let networks = self.networks.iter().map(|&network| u32::from(network));
        let key = key.chain([u32::MAX]).chain(networks);
        key.chain(more.iter().copied()).collect()
    }

    /// The cut that takes longest.
    fn cut(&self) -> Option<(Limit, NetworkCut)> {
        let (cuts, borders) = (self.cuts(), self.borders());
        let cuts = [&cuts[..], &borders[..]].concat();
        let bytes = self.demand.across(&cuts);
        let sides = (cuts.iter().zip(&bytes)).flat_map(|(cut, &(out, into))| {
            [(cut, out, cut.out, true), (cut, into, cut.into, false)]
        });
        let mut longest: Option<(TimePs, &NetworkCut, u64, BytesPerSec, bool)> = None;
        for (cut, bytes, rate, wanted) in sides.filter(|side| side.1 > 0 && side.2 .0 > 0.0) {
            let time = rate.time(Bytes(bytes));
            if longest.is_none_or(|longest| longest.0 < time) {
                longest = Some((time, cut, bytes, rate, wanted));
            }
        }
        let (_, cut, bytes, rate, wanted) = longest?;
        let inside: Vec<bool> = cut.inside.iter().map(|&is| is == wanted).collect();
        let what = match self.demand {
            Demand::Exchange { .. } => self.named_border(&inside),
            Demand::Pattern(_) | Demand::Collective(_) => named("out of", &inside),
        };
        Some((Limit::of_rate("cut", what, bytes, rate), cut.clone()))
    }

    /// What the messages cost at least at the prices of links, for few nodes with fixed ways.
    fn links(&self) -> Option<Limit> {
        let Whole {
            collective,
            ranks,
            root,
            bytes,
        } = self.demand.collective()?;
        let (p, nodes) = (self.places().len(), [self.places(), self.memories].concat());
        if p != ranks as usize || nodes.len() > prices::MOST || self.character.endpoints_alike {
            return None;
        }
        let key = nodes.iter().map(|node| node.0).chain([u32::MAX]);
        let key = key.chain(self.networks.iter().map(|&network| u32::from(network)));
        let key = key
            .chain([u32::MAX, collective as u32, root, ranks])
            .collect();
        let each = (self.memo).get(key, || {
            let ways = self.network.ways(&nodes, self.networks)?;
            let market = Market::new(&ways, (collective, p, root as usize))?;
            Some(market.seconds_per_byte()).filter(|&each| each > 0.0)
        });
        let moved = moved(collective, ranks, bytes);
        let received = self.received();
        let rate = BytesPerSec(received as f64 / ((*each)? * moved as f64));
        (moved > 0).then(|| Limit::of_rate("links", OVER_LINKS.into(), received, rate))
    }

    /// Ranks that move the data themselves read and write each byte.
    fn memory(&self) -> Option<Limit> {
        let memory = self.setup.path.memory.as_ref()?;
        let ranks = self.demand.collective()?.ranks;
        if self.setup.path.engine != Engine::Rank {
            return None; // any number of lanes may do it
        }
        let bytes = 2 * self.received();
        let rate = BytesPerSec(fastest(memory) * f64::from(ranks));
        let what = "read and written by all ranks together".to_string();
        Some(Limit::of_rate("memory", what, bytes, rate))
    }

    fn compute(&self) -> Option<Limit> {
        let Whole {
            collective,
            ranks,
            bytes,
            ..
        } = self.demand.collective()?;
        let path = &self.setup.path;
        // What a memory or a switch combines costs no rank anything.
        let memory = path.fused_combine && !self.memories.is_empty();
        let elsewhere = memory || self.character.combines_on_the_way;
        if !collective.reduces() || elsewhere || ranks < 2 || bytes == 0 {
            return None;
        }
        // A rank may combine arrivals while its arithmetic unit combines other data.
        let units = match path.fused_combine || path.memory.is_some() {
            true => 2,
            false => 1,
        };
        let (p, all) = (u128::from(ranks), u128::from(ranks - 1) * u128::from(bytes));
        let share = (all / p / units) as u64;
        let time = path.combine_time(Bytes(share), self.setup.arithmetic);
        let first = self.lags().map_or(TimePs::ZERO, Lags::data);
        let what = match units {
            1 => format!("combined by each of {ranks} ranks"),
            _ => format!("combined by each of {ranks} ranks, half of it as it arrives"),
        };
        Some(Limit {
            bytes: share,
            ..Limit::of_time("compute", what, first + time)
        })
    }
}

/// A number as part of a key.
pub(super) fn halves(ps: u64) -> [u32; 2] {
    [(ps >> 32) as u32, ps as u32]
}

/// Of a vector of `bytes`, those that move: where each rank has a block, whole blocks.
pub(super) fn moved(collective: Collective, ranks: u32, bytes: u64) -> u64 {
    match collective {
        Collective::Allreduce | Collective::Broadcast | Collective::Reduce => bytes,
        _ => bytes / u64::from(ranks) * u64::from(ranks),
    }
}

/// The fastest rate of a rank's reads or writes, in bytes per second.
fn fastest(memory: &Memory) -> f64 {
    let caches = memory.caches.iter().map(|cache| cache.rate.0);
    let others = memory.others.iter().flat_map(|other| {
        let lost = other.lost_rate.map_or(0.0, |rate| rate.0);
        [other.read_rate.0, other.write_rate.0, lost]
    });
    caches.chain(others).fold(0.0, f64::max)
}

/// Some ranks in words, from 0.
pub(super) fn named(side: &str, inside: &[bool]) -> String {
    let ranks: Vec<String> = (0..inside.len())
        .filter(|&rank| inside[rank])
        .map(|rank| rank.to_string())
        .collect();
    let count = ranks.len();
    match count {
        0..=8 => format!("{side} ranks {}", ranks.join(", ")),
        _ => format!("{side} {count} ranks: {}, ...", ranks[..6].join(", ")),
    }
}
