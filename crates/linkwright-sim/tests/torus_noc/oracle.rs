//! A slow oracle that moves single flits, cycle by cycle.
//!
//! One network, writes with acknowledgements or posted, static channels. Routers hold real flits in real
//! buffers, links pick the next lane in turn, credits are counted per flit. Effects that the fabric computes
//! in closed form (turns on a link, worms that stand still) follow from these rules. Heads that request a
//! lane in one cycle are drawn by lot: any order of ports or places would favour packets already in a
//! ring over those that enter it, or the reverse, and would move the load at which it saturates.

use std::collections::VecDeque;

use linkwright_sim::fabric::Msg;

use super::common::Random;

/// Of the 16 lanes of a link those that writes on static channels use: two bits.
const LANES: usize = 4;
const RESPONSE: usize = 1;
const DATELINE: usize = 2;

/// A grid of places with its mesh links, numbered before the two of the interface.
#[derive(Clone, Copy)]
pub struct Net {
    pub width: u32,
    pub height: u32,
    /// Links both ways and the shorter way around, or east and south only.
    pub shortest: bool,
    /// Place of each endpoint.
    pub place: fn(u32) -> (u32, u32),
}

impl Net {
    fn ports(&self) -> usize {
        self.inject() + 2
    }

    /// Mesh links of a place: east, west, south, north; or east, south.
    fn inject(&self) -> usize {
        if self.shortest {
            4
        } else {
            2
        }
    }

    fn eject(&self) -> usize {
        self.inject() + 1
    }

    fn link(&self, at: (u32, u32), port: usize) -> usize {
        (at.1 * self.width + at.0) as usize * self.ports() + port
    }

    fn links(&self) -> usize {
        (self.width * self.height) as usize * self.ports()
    }

    /// Lanes from the sending interface to the receiving one.
    fn route(&self, from: (u32, u32), to: (u32, u32), response: bool) -> Vec<usize> {
        let base = if response { RESPONSE } else { 0 };
        let mut at = [from.0, from.1];
        let mut path = vec![self.link(from, self.inject()) * LANES + base];
        for (axis, (to, size)) in [(to.0, self.width), (to.1, self.height)]
            .into_iter()
            .enumerate()
        {
            let ahead = (to + size - at[axis]) % size;
            let backwards = self.shortest && 2 * ahead > size;
            let port = if self.shortest { 2 * axis } else { axis } + usize::from(backwards);
            let mut dateline = 0;
            while at[axis] != to {
                path.push(self.link((at[0], at[1]), port) * LANES + base + dateline);
                let step = if backwards { size - 1 } else { 1 };
                let next = (at[axis] + step) % size;
                let wraps = if backwards {
                    next > at[axis]
                } else {
                    next < at[axis]
                };
                dateline = if wraps { DATELINE } else { dateline };
                at[axis] = next;
            }
        }
        path.push(self.link((at[0], at[1]), self.eject()) * LANES + response as usize);
        path
    }
}

#[derive(Clone)]
struct Packet {
    message: usize,
    flits: u32,
    response: bool,
    /// Lanes from the sending interface to the receiving one.
    path: Vec<usize>,
    /// How many of them it has been granted.
    granted: usize,
}

/// A packet that may send on a lane.
#[derive(Clone, Copy)]
struct Owner {
    packet: usize,
    /// Lane before this one, if there is one.
    before: Option<usize>,
    /// Flits that have not entered the link.
    left: u32,
}

/// A flit in the buffer behind a lane.
struct Flit {
    packet: usize,
    /// When it is there.
    at: u64,
    /// A head that has not asked for its next lane.
    asks: bool,
}

pub struct Oracle {
    net: Net,
    packets: Vec<Packet>,
    /// Who may send on a lane, and the packets that wait for it, in order.
    owners: Vec<Vec<Owner>>,
    waiting: Vec<VecDeque<usize>>,
    buffers: Vec<VecDeque<Flit>>,
    turn: Vec<usize>,
    /// Packets of each place not yet given to its interface.
    queued: Vec<VecDeque<usize>>,
    /// Whether each place is sending a packet.
    busy: Vec<bool>,
    random: Random,
    finite: bool,
    /// No acknowledgements.
    posted: bool,
    delivered: Vec<u64>,
    /// Messages that are over.
    ended: usize,
}

impl Oracle {
    /// Cycle of delivery of each message; message `i` is offered in cycle `offered[i]`, never
    /// earlier than the one before.
    pub fn run(
        net: Net,
        messages: &[Msg],
        offered: &[u64],
        finite: bool,
        posted: bool,
    ) -> Vec<u64> {
        let (links, places) = (net.links(), (net.width * net.height) as usize);
        let mut oracle = Oracle {
            net,
            packets: Vec::new(),
            owners: vec![Vec::new(); links * LANES],
            waiting: vec![VecDeque::new(); links * LANES],
            buffers: (0..links * LANES).map(|_| VecDeque::new()).collect(),
            turn: vec![0; links],
            queued: vec![VecDeque::new(); places],
            busy: vec![false; places],
            random: Random(1),
            finite,
            posted,
            delivered: vec![0; messages.len()],
            ended: 0,
        };
        let (mut now, mut next) = (0, 0);
        let mut later = VecDeque::new();
        while oracle.ended < messages.len() {
            while next < messages.len() && offered[next] <= now {
                oracle.offer(next, &messages[next]);
                next += 1;
            }
            for place in 0..places {
                if !oracle.busy[place] {
                    oracle.next_packet(place);
                }
            }
            oracle.cycle(now, &mut later, messages);
            now += 1;
            assert!(now < 10_000_000, "the oracle is stuck");
        }
        oracle.delivered
    }

    fn offer(&mut self, index: usize, message: &Msg) {
        let (from, to) = (
            (self.net.place)(message.from.0),
            (self.net.place)(message.to.0),
        );
        let flits = 1 + message.bytes.div_ceil(32) as u32;
        let packet = self.packet(index, flits, from, to, false);
        let place = self.net.link(from, 0) / self.net.ports();
        self.queued[place].push_back(packet);
    }

    fn packet(
        &mut self,
        message: usize,
        flits: u32,
        from: (u32, u32),
        to: (u32, u32),
        response: bool,
    ) -> usize {
        let path = self.net.route(from, to, response);
        self.packets.push(Packet {
            message,
            flits,
            response,
            path,
            granted: 0,
        });
        self.packets.len() - 1
    }

    /// An interface asks for the first lane of its next packet.
    fn next_packet(&mut self, place: usize) {
        let packet = self.queued[place].pop_front();
        self.busy[place] = packet.is_some();
        if let Some(packet) = packet {
            self.ask(packet);
        }
    }

    fn ask(&mut self, packet: usize) {
        let p = &self.packets[packet];
        self.waiting[p.path[p.granted]].push_back(packet);
    }

    fn limit(&self, lane: usize) -> usize {
        let port = lane / LANES % self.net.ports();
        match (port == self.net.eject(), lane % LANES) {
            (true, 0) => 12,
            (true, _) => 4,
            _ => 1,
        }
    }

    /// Whether a flit may enter the buffer behind `lane`.
    fn credit(&self, lane: usize) -> bool {
        if !self.finite || lane / LANES % self.net.ports() == self.net.eject() {
            return true;
        }
        let own = self.buffers[lane].len();
        let first = lane - lane % LANES;
        let shared: usize = (first..first + LANES)
            .map(|l| self.buffers[l].len().saturating_sub(1))
            .sum();
        own == 0 || own < 16 && shared < 48
    }

    fn cycle(&mut self, now: u64, later: &mut VecDeque<(u64, usize)>, messages: &[Msg]) {
        while later.front().is_some_and(|&(at, _)| at <= now) {
            let (at, packet) = later.pop_front().expect("checked");
            self.arrived(packet, at, messages);
        }
        let mut heads = Vec::new();
        for flit in self.buffers.iter_mut().flat_map(VecDeque::front_mut) {
            if flit.asks && flit.at <= now {
                flit.asks = false;
                heads.push(flit.packet);
            }
        }
        while !heads.is_empty() {
            let drawn = self.random.below(heads.len() as u64) as usize;
            self.ask(heads.swap_remove(drawn));
        }
        for lane in 0..self.waiting.len() {
            while let Some(&packet) = self.waiting[lane].front() {
                if self.owners[lane].len() == self.limit(lane) {
                    break;
                }
                self.waiting[lane].pop_front();
                let p = &mut self.packets[packet];
                let before = p.granted.checked_sub(1).map(|last| p.path[last]);
                p.granted += 1;
                self.owners[lane].push(Owner {
                    packet,
                    before,
                    left: p.flits,
                });
            }
        }
        for link in 0..self.turn.len() {
            self.send_one(link, now, later);
        }
    }

    /// A link sends the next flit in turn, of those that can go.
    fn send_one(&mut self, link: usize, now: u64, later: &mut VecDeque<(u64, usize)>) {
        let lanes = link * LANES..(link + 1) * LANES;
        let places = |lane: usize| (0..self.owners[lane].len()).map(move |place| (lane, place));
        let candidates = lanes.clone().map(|lane| self.owners[lane].len()).sum();
        for step in 0..candidates {
            let choice = (self.turn[link] + step) % candidates;
            let chosen = lanes.clone().flat_map(places).nth(choice);
            let (lane, place) = chosen.expect("there are as many");
            let Owner {
                packet,
                before,
                left,
            } = self.owners[lane][place];
            if left == 0 || !self.credit(lane) {
                continue;
            }
            if let Some(before) = before {
                let buffer = &mut self.buffers[before];
                match buffer.front() {
                    Some(flit) if flit.packet == packet && flit.at <= now => buffer.pop_front(),
                    _ => continue,
                };
            }
            self.owners[lane][place].left -= 1;
            let port = link % self.net.ports();
            let at = now + if port < self.net.inject() { 9 } else { 5 };
            let tail = left == 1;
            if port != self.net.eject() {
                let asks = left == self.packets[packet].flits;
                self.buffers[lane].push_back(Flit { packet, at, asks });
            } else if tail {
                // The tail has entered at the end of this cycle.
                later.push_back((at + 1, packet));
                later.make_contiguous().sort();
            }
            if tail {
                // A request keeps its place at the receiver until its response has left.
                let keeps = port == self.net.eject() && !self.packets[packet].response;
                if !keeps {
                    self.owners[lane].remove(place);
                }
                if port == self.net.inject() {
                    self.left_interface(packet, link / self.net.ports());
                }
            }
            self.turn[link] = choice + 1;
            return;
        }
    }

    fn left_interface(&mut self, packet: usize, place: usize) {
        if self.packets[packet].response {
            let message = self.packets[packet].message;
            self.leaves_receiver(message, place);
        } else {
            self.next_packet(place);
        }
    }

    /// The request of `message` gives up its place at the receiver.
    fn leaves_receiver(&mut self, message: usize, place: usize) {
        let requests = (place * self.net.ports() + self.net.eject()) * LANES;
        let packets = &self.packets;
        self.owners[requests].retain(|owner| packets[owner.packet].message != message);
    }

    fn arrived(&mut self, packet: usize, at: u64, messages: &[Msg]) {
        let Packet {
            message, response, ..
        } = self.packets[packet];
        if response {
            self.ended += 1;
            return;
        }
        self.delivered[message] = at;
        let m = &messages[message];
        let place = self.net.place;
        if self.posted {
            self.ended += 1;
            let to = self.net.link(place(m.to.0), 0) / self.net.ports();
            return self.leaves_receiver(message, to);
        }
        let answer = self.packet(message, 1, place(m.to.0), place(m.from.0), true);
        self.ask(answer);
    }
}
