//! The load of a phase on the links between chips.
//!
//! A *stream* is all that one tile sends to one chip in a phase. A link needs, for each stream,
//!
//! ```text
//!   max(units * message_cost, bytes / rate)
//! ```
//!
//! that is its bytes and, for a shorter stream, a *rest* that fills up the least time of a stream.
//! Bytes of all streams add up on every link of their routes, and links in series pipeline. The
//! rest is paid at the first rail, by the streams of one source chip, and on the rung, where both
//! directions share the time; the rests of both stages add up.
//!
//! Words stream through. Longer messages are stored before they are sent on, so time at the port and time on
//! the links add up where one follows the other: the last stream of a port still has its own link time ahead,
//! and the links begin once the first stream is sent:
//!
//! ```text
//!   latency + max(port + bytes of the flow / rate,  longest stream + bytes of all flows / rate)
//!           + rest + packet_fill * rails
//! ```
//!
//! On a board a stream that needs several packets uses both links of the rung; a shorter one takes the
//! link of its destination tile, so streams that all go to one tile share one link.

use super::config::{Config, Links};
use super::ladder::{Exit, Ladder, Route, EXITS};
use crate::fabric::Msg;
use linkwright_core::{Bytes, TimePs};

/// A stream under way.
#[derive(Clone, Copy, Debug)]
struct Stream {
    chips: Route,
    to: u32,
    bytes: u64,
    /// Whether any of its messages is longer than a word.
    long: bool,
}

/// All streams from one chip to another.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    used: bool,
    /// Heaviest port at either end, with all that it moves in the phase.
    port: u64,
    /// Longest stream, which its source sends before the links can begin.
    stream: u64,
    /// Stored bytes of this flow alone: on the second link of a rung, and on all other links.
    own: [u64; 2],
    long: bool,
    /// Latest start of a multicast at the destination.
    spread: TimePs,
    /// Load of the second pass of a multicast at its own chip.
    second: u64,
}

/// One message to another chip, or one copy of a multicast.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copy {
    /// Source and destination chip.
    pub chips: Route,
    /// Source endpoint.
    pub from: u32,
    /// Destination endpoint, any of several.
    pub to: u32,
    /// Payload.
    pub bytes: u64,
    /// Heavier port of both ends.
    pub port: u64,
    /// Later start at the destination.
    pub spread: TimePs,
    /// Load of the second pass at the own chip.
    pub second: u64,
}

/// The traffic of one phase between chips.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    chips: u32,
    flows: Vec<Flow>,
    streams: Vec<Stream>,
    /// Stream of (source endpoint, destination chip), plus one; 0 for none.
    stream_of: Vec<u32>,
    /// Bytes by link, in messages longer than a word and in all.
    pub stored: Vec<u64>,
    pub bytes: Vec<u64>,
    /// Rest of the streams of (source chip, first rail).
    rail_rest: Vec<u64>,
    /// Rest of the streams on each link of a rung.
    rung_rest: Vec<u64>,
    /// Words from other chips into an endpoint, each a message, and the longest latency of their routes.
    arrivals: Vec<(u32, TimePs)>,
    touched: Vec<(u32, u32)>,
}

impl Traffic {
    pub fn new(chips: u32, endpoints: usize) -> Self {
        let links = Ladder::link(chips, Exit::Up) as usize;
        let endpoints = if chips > 1 { endpoints } else { 0 };
        Traffic {
            chips,
            flows: vec![Flow::default(); (chips * chips) as usize],
            streams: Vec::new(),
            stream_of: vec![0; endpoints * chips as usize],
            stored: vec![0; links],
            bytes: vec![0; links],
            rail_rest: vec![0; links * chips as usize],
            rung_rest: vec![0; links],
            arrivals: vec![(0, TimePs::ZERO); endpoints],
            touched: Vec::new(),
        }
    }

    /// Forget the phase.
    pub fn clear(&mut self) {
        for &(stream, to) in &self.touched {
            self.stream_of[stream as usize] = 0;
            self.arrivals[to as usize] = (0, TimePs::ZERO);
        }
        if !self.touched.is_empty() {
            self.flows.fill(Flow::default());
            for loads in [
                &mut self.stored,
                &mut self.bytes,
                &mut self.rail_rest,
                &mut self.rung_rest,
            ] {
                loads.fill(0);
            }
        }
        self.touched.clear();
        self.streams.clear();
    }

    /// One message or copy.
    pub fn add(&mut self, copy: Copy, config: &Config, links: &Links) {
        let Route { from, to } = copy.chips;
        let long = copy.bytes > config.chip.word && links.stored;
        let flow = &mut self.flows[(from * self.chips + to) as usize];
        flow.used = true;
        flow.long |= long;
        flow.port = flow.port.max(copy.port);
        flow.spread = flow.spread.max(copy.spread);
        flow.second = flow.second.max(copy.second);
        let key = copy.from * self.chips + to;
        let slot = &mut self.stream_of[key as usize];
        if *slot == 0 {
            self.streams.push(Stream {
                chips: copy.chips,
                to: copy.to,
                bytes: 0,
                long: false,
            });
            *slot = self.streams.len() as u32;
        }
        let stream = &mut self.streams[*slot as usize - 1];
        stream.bytes += copy.bytes;
        stream.long |= long;
        let arrival = &mut self.arrivals[copy.to as usize];
        arrival.0 += u32::from(copy.bytes <= config.chip.word);
        arrival.1 = arrival.1.max(latency(links, copy.chips));
        self.touched.push((key, copy.to));
    }

    /// When the last message between chips is delivered, counted from the last arrival. `inward` are the
    /// loads of receiving ports.
    pub fn length(&mut self, config: &Config, links: &Links, inward: &[u64]) -> TimePs {
        for index in 0..self.streams.len() {
            self.load(self.streams[index], links);
        }
        let mut longest = TimePs::ZERO;
        for (index, flow) in (0u32..).zip(&self.flows).filter(|(_, flow)| flow.used) {
            let route = Route {
                from: index / self.chips,
                to: index % self.chips,
            };
            longest = longest.max(self.flow_time(route, flow, config, links));
        }
        let header = if links.header {
            config.chip.load(config.chip.word)
        } else {
            0
        };
        for &(_, to) in &self.touched {
            let (words, latency) = self.arrivals[to as usize];
            let load = inward[to as usize] + header * u64::from(words);
            longest = longest.max(latency + config.chip.time(load));
        }
        longest
    }

    fn flow_time(&self, route: Route, flow: &Flow, config: &Config, links: &Links) -> TimePs {
        let chip = &config.chip;
        let most = |loads: &[u64]| {
            let all = used_links(route).map(|link| loads[link as usize]);
            all.max().unwrap_or(0)
        };
        let start = latency(links, route);
        let fill = match flow.long {
            true => links.packet_fill * u64::from(route.rails()),
            false => TimePs::ZERO,
        };
        let own = flow.own[0].max(flow.own[1]);
        let last_stream = chip.time(flow.port) + links.rate.time(Bytes(own));
        let all_flows =
            chip.time(chip.load(flow.stream)) + links.rate.time(Bytes(most(&self.stored)));
        let in_series = start
            + last_stream.max(all_flows)
            + self.rest(route)
            + fill
            + flow.spread
            + chip.time(flow.second);
        let streamed = start + links.rate.time(Bytes(most(&self.bytes)));
        in_series.max(streamed)
    }

    /// Add the bytes and the rest of one stream to the links of its route.
    fn load(&mut self, stream: Stream, links: &Links) {
        let route = stream.chips;
        let striped = route.is_on_board() && stream.bytes > links.packet();
        let flow = &mut self.flows[(route.from * self.chips + route.to) as usize];
        flow.stream = flow.stream.max(stream.bytes);
        if stream.long {
            let (second, share) = own_share(route, stream.to, striped);
            flow.own[0] += if second { 0 } else { stream.bytes / share };
            flow.own[1] += if second || striped {
                stream.bytes / share
            } else {
                0
            };
        }
        for (link, share) in carriers(route, stream.to, striped) {
            self.bytes[link as usize] += stream.bytes / share;
            if stream.long {
                self.stored[link as usize] += stream.bytes / share;
            }
        }
        // Words stream through during the rest; only stored messages fill the least time.
        let carried = match stream.long {
            true => links.rate.time(Bytes(stream.bytes)).0,
            false => 0,
        };
        let rest = |units: u64| (units * links.message_cost.0).saturating_sub(carried);
        if let Some(rail) = route.rail_links().next() {
            let first = self.first_rail(route, rail);
            self.rail_rest[first] += rest(1);
        }
        if let Some(rung) = rung_link(route, stream.to) {
            self.rung_rest[rung as usize] += rest(links.rung_units);
            if links.rung_half_duplex {
                self.rung_rest[other_end(rung) as usize] += rest(links.rung_units);
            }
        }
    }

    /// Index of the rest of a source chip on its first rail.
    fn first_rail(&self, route: Route, rail: u32) -> usize {
        (route.from * Ladder::link(self.chips, Exit::Up) + rail) as usize
    }

    /// Rest of all stages of a route.
    fn rest(&self, route: Route) -> TimePs {
        let rail = route
            .rail_links()
            .next()
            .map_or(0, |rail| self.rail_rest[self.first_rail(route, rail)]);
        let rungs = match (route.rungs(), route.is_on_board()) {
            (0, _) => 0,
            (_, true) => [Exit::Rung0, Exit::Rung1]
                .map(|exit| self.rung_rest[Ladder::link(route.from, exit) as usize])
                .into_iter()
                .max()
                .unwrap_or(0),
            (_, false) => self.rung_rest[Ladder::link(route.from, Exit::Through) as usize],
        };
        TimePs(rail + rungs)
    }
}

/// Latency of a route for one word.
pub(super) fn latency(links: &Links, route: Route) -> TimePs {
    let rails = links.rail_hop * u64::from(route.rails());
    links.base + rails + links.rung_hop * u64::from(route.rungs())
}

/// The link of the rung that a route takes, for a message to endpoint `to`.
pub(super) fn rung_link(route: Route, to: u32) -> Option<u32> {
    let exit = match (route.rungs(), route.is_on_board(), to % 2) {
        (0, ..) => return None,
        (_, false, _) => Exit::Through,
        (_, true, 0) => Exit::Rung0,
        (_, true, _) => Exit::Rung1,
    };
    Some(Ladder::link(route.from, exit))
}

/// The same link of a rung, seen from the other chip of the board.
fn other_end(link: u32) -> u32 {
    let (chip, exit) = (link / EXITS, link % EXITS);
    (chip ^ 1) * EXITS + exit
}

/// The links that carry a stream, and the number of equal shares it is divided into there.
fn carriers(route: Route, to: u32, striped: bool) -> impl Iterator<Item = (u32, u64)> {
    let rungs = match striped {
        true => [rung_link(route, 0), rung_link(route, 1)],
        false => [rung_link(route, to), None],
    };
    let share = if striped { 2 } else { 1 };
    let rails = route.rail_links().map(|link| (link, 1));
    rails.chain(rungs.into_iter().flatten().map(move |link| (link, share)))
}

/// Whether a stream takes only the second link of a rung, and its number of shares.
fn own_share(route: Route, to: u32, striped: bool) -> (bool, u64) {
    let second = route.is_on_board() && to % 2 == 1 && !striped;
    (second, if striped { 2 } else { 1 })
}

/// All links that streams of a route may take.
fn used_links(route: Route) -> impl Iterator<Item = u32> {
    let pair = (0..2).map(move |to| rung_link(route, to));
    route.rail_links().chain(pair.flatten())
}

/// Time of one message to another chip, alone on the machine.
pub(super) fn alone(m: &Msg, route: Route, config: &Config, links: &Links) -> TimePs {
    let mut traffic = Traffic::new(config.chips(), 0);
    let load = config.chip.load(m.bytes);
    let long = m.bytes > config.chip.word && links.stored;
    let index = (route.from * config.chips() + route.to) as usize;
    traffic.flows[index].port = load;
    traffic.flows[index].long = long;
    let stream = Stream {
        chips: route,
        to: m.to.0,
        bytes: m.bytes,
        long,
    };
    traffic.load(stream, links);
    let header = match links.header && m.bytes <= config.chip.word {
        true => config.chip.load(config.chip.word),
        false => 0,
    };
    let collected = latency(links, route) + config.chip.time(load + header);
    let alone = traffic.flow_time(route, &traffic.flows[index], config, links);
    alone.max(collected)
}
