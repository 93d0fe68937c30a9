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
//! rest is paid where a chip sends to rails, by all its streams, and on the rung, where both
//! directions share the time; the rests of both stages add up. Streams of several tiles of a chip to several
//! boards are sorted at every board on their way: they pay the rest for each rail.
//!
//! Words leave their chip and stream through the links, which pass one per `word_interval`; their port takes
//! them when the links are done:
//!
//! ```text
//!   latency + max(source port, rest, words on the busiest link * word_interval) + target port
//! ```
//!
//! Longer messages are stored before they are sent on, so time at the port and time on
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

/// Which one of several things was met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Met {
    #[default]
    None,
    One(u32),
    Several,
}

impl Met {
    fn meet(&mut self, one: u32) {
        *self = match *self {
            Met::None => Met::One(one),
            same if same == Met::One(one) => same,
            _ => Met::Several,
        }
    }
}

/// The streams that leave a chip for other boards.
#[derive(Clone, Copy, Debug, Default)]
struct Leaving {
    tiles: Met,
    boards: Met,
    rest: u64,
}

impl Leaving {
    /// Whether streams of several tiles go to several boards.
    fn is_mixed(self) -> bool {
        (self.tiles, self.boards) == (Met::Several, Met::Several)
    }
}

/// A stream under way.
#[derive(Clone, Copy, Debug)]
struct Stream {
    chips: Route,
    from: u32,
    to: u32,
    bytes: u64,
    /// Messages of a word, which are not stored.
    words: u64,
    /// Whether any of its messages is longer than a word.
    long: bool,
}

/// All streams from one chip to another.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    used: bool,
    /// Heaviest ports at the source and at the target, with all that they move in the phase.
    ports: [u64; 2],
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
    /// Loads of the ports at the source and at the target.
    pub ports: [u64; 2],
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
    /// Words by link.
    words: Vec<u64>,
    /// By chip.
    leaving: Vec<Leaving>,
    /// Rest of the streams on each link of a rung.
    rung_rest: Vec<u64>,
    touched: Vec<u32>,
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
            words: vec![0; links],
            leaving: vec![Leaving::default(); chips as usize],
            rung_rest: vec![0; links],
            touched: Vec::new(),
        }
    }

    /// Forget the phase.
    pub fn clear(&mut self) {
        for &stream in &self.touched {
            self.stream_of[stream as usize] = 0;
        }
        if !self.touched.is_empty() {
            self.flows.fill(Flow::default());
            for loads in [
                &mut self.stored,
                &mut self.bytes,
                &mut self.words,
                &mut self.rung_rest,
            ] {
                loads.fill(0);
            }
            self.leaving.fill(Leaving::default());
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
        for (heaviest, load) in flow.ports.iter_mut().zip(copy.ports) {
            *heaviest = load.max(*heaviest);
        }
        flow.spread = flow.spread.max(copy.spread);
        flow.second = flow.second.max(copy.second);
        let key = copy.from * self.chips + to;
        let slot = &mut self.stream_of[key as usize];
        if *slot == 0 {
            self.streams.push(Stream {
                chips: copy.chips,
                from: copy.from,
                to: copy.to,
                bytes: 0,
                words: 0,
                long: false,
            });
            *slot = self.streams.len() as u32;
        }
        let stream = &mut self.streams[*slot as usize - 1];
        stream.bytes += copy.bytes;
        stream.words += u64::from(!long);
        stream.long |= long;
        self.touched.push(key);
    }

    /// When the last message between chips is delivered, counted from the last arrival.
    pub fn length(&mut self, config: &Config, links: &Links) -> TimePs {
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
        let [out, inward] = flow.ports.map(|load| chip.time(load));
        let streamed = start + links.rate.time(Bytes(most(&self.bytes)));
        let rest = self.rest(route, links);
        let in_series = match flow.long {
            true => {
                let own = links.rate.time(Bytes(flow.own[0].max(flow.own[1])));
                let stored = links.rate.time(Bytes(most(&self.stored)));
                let all_flows = chip.time(chip.load(flow.stream)) + stored;
                (out.max(inward) + own).max(all_flows) + rest
            }
            false => out.max(rest).max(links.word_interval * most(&self.words)) + inward,
        };
        let in_series = start + in_series + fill + flow.spread + chip.time(flow.second);
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
            self.words[link as usize] += stream.words / share;
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
        if !route.is_on_board() {
            let leaving = &mut self.leaving[route.from as usize];
            leaving.tiles.meet(stream.from);
            leaving.boards.meet(route.to / 2);
            leaving.rest += rest(1);
        }
        if let Some(rung) = rung_link(route, stream.to) {
            self.rung_rest[rung as usize] += rest(links.rung_units);
            if links.rung_half_duplex {
                self.rung_rest[other_end(rung) as usize] += rest(links.rung_units);
            }
        }
    }

    /// Rest of all stages of a route.
    fn rest(&self, route: Route, links: &Links) -> TimePs {
        let leaving = match route.is_on_board() {
            true => Leaving::default(),
            false => self.leaving[route.from as usize],
        };
        let rungs = match (route.rungs(), route.is_on_board()) {
            (0, _) => 0,
            (_, true) => [Exit::Rung0, Exit::Rung1]
                .map(|exit| self.rung_rest[Ladder::link(route.from, exit) as usize])
                .into_iter()
                .max()
                .unwrap_or(0),
            (_, false) => self.rung_rest[Ladder::link(route.from, Exit::Through) as usize],
        };
        let times = match links.sorted_by_board && leaving.is_mixed() {
            true => u64::from(route.rails()),
            false => 1,
        };
        TimePs((leaving.rest + rungs) * times)
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
    traffic.flows[index].ports = [load; 2];
    traffic.flows[index].long = long;
    let stream = Stream {
        chips: route,
        from: m.from.0,
        to: m.to.0,
        bytes: m.bytes,
        words: u64::from(!long),
        long,
    };
    traffic.load(stream, links);
    traffic.flow_time(route, &traffic.flows[index], config, links)
}
