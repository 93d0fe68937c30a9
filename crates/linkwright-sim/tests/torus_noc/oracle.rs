//! A slow oracle that moves single flits, cycle by cycle.
//!
//! One network, writes with acknowledgements or posted, static channels. Routers hold real flits in real
//! buffers, links pick the next lane in turn, credits are counted per flit. What the fabric computes
//! in closed form (turns on a link, worms that stand still) happens here by itself.

use std::collections::VecDeque;

use linkwright_sim::fabric::Msg;

const LANES: usize = 16;
const RESPONSE: usize = 6;
const DATELINE: usize = 8;

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

    /// Links with lanes, from the sending interface to the receiving one.
    fn route(&self, from: (u32, u32), to: (u32, u32), response: bool) -> Vec<(usize, usize)> {
        let base = if response { RESPONSE } else { 0 };
        let mut at = [from.0, from.1];
        let mut path = vec![(self.link(from, self.inject()), base)];
        for (axis, (to, size)) in [(to.0, self.width), (to.1, self.height)]
            .into_iter()
            .enumerate()
        {
            let ahead = (to + size - at[axis]) % size;
            let backwards = self.shortest && 2 * ahead > size;
            let port = if self.shortest { 2 * axis } else { axis } + usize::from(backwards);
            let mut dateline = 0;
            while at[axis] != to {
                path.push((self.link((at[0], at[1]), port), base + dateline));
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
        path.push((self.link((at[0], at[1]), self.eject()), response as usize));
        path
    }
}

#[derive(Clone)]
struct Packet {
    message: usize,
    flits: u32,
    response: bool,
    /// Links with lanes, from the sending interface to the receiving one.
    path: Vec<(usize, usize)>,
    /// Flits that have entered each link.
    entered: Vec<u32>,
    granted: usize,
}

/// A flit in a buffer: its packet, the position of the link before the buffer, when it is there.
type Flit = (usize, usize, u64);

pub struct Oracle {
    net: Net,
    packets: Vec<Packet>,
    /// Packets that may send on a lane, and those that wait for it, in order.
    owners: Vec<Vec<usize>>,
    waiting: Vec<VecDeque<usize>>,
    buffers: Vec<VecDeque<Flit>>,
    turn: Vec<usize>,
    /// Packets of each place not yet given to its interface.
    queued: Vec<VecDeque<usize>>,
    /// Whether each place is sending a packet.
    busy: Vec<bool>,
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
            buffers: vec![VecDeque::new(); links * LANES],
            turn: vec![0; links],
            queued: vec![VecDeque::new(); places],
            busy: vec![false; places],
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
        let entered = vec![0; path.len()];
        self.packets.push(Packet {
            message,
            flits,
            response,
            path,
            entered,
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
        let (link, channel) = self.packets[packet].path[self.packets[packet].granted];
        self.waiting[link * LANES + channel].push_back(packet);
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
        // Heads in front of their buffers ask for the next lane.
        for lane in 0..self.buffers.len() {
            if let Some(&(packet, position, at)) = self.buffers[lane].front() {
                let p = &self.packets[packet];
                if p.granted == position + 1 && at <= now {
                    let (link, channel) = p.path[position + 1];
                    let next = link * LANES + channel;
                    if !self.waiting[next].contains(&packet) {
                        self.waiting[next].push_back(packet);
                    }
                }
            }
        }
        for lane in 0..self.waiting.len() {
            while self.owners[lane].len() < self.limit(lane) {
                let Some(packet) = self.waiting[lane].pop_front() else {
                    break;
                };
                self.owners[lane].push(packet);
                self.packets[packet].granted += 1;
            }
        }
        for link in 0..self.turn.len() {
            self.send_one(link, now, later);
        }
    }

    /// A link sends the next flit in turn, of those that can go.
    fn send_one(&mut self, link: usize, now: u64, later: &mut VecDeque<(u64, usize)>) {
        let lanes = link * LANES..(link + 1) * LANES;
        let candidates: Vec<(usize, usize)> = lanes
            .flat_map(|l| self.owners[l].iter().map(move |&p| (l, p)))
            .collect();
        for step in 0..candidates.len() {
            let choice = (self.turn[link] + step) % candidates.len();
            let (lane, packet) = candidates[choice];
            let p = &self.packets[packet];
            let position = p.path.iter().position(|&(l, c)| l * LANES + c == lane);
            let position = position.expect("an owner has the lane on its path");
            if p.entered[position] == p.flits || !self.credit(lane) {
                continue;
            }
            if position > 0 {
                let (before, channel) = p.path[position - 1];
                let buffer = &mut self.buffers[before * LANES + channel];
                match buffer.front() {
                    Some(&(front, _, at)) if front == packet && at <= now => buffer.pop_front(),
                    _ => continue,
                };
            }
            let port = link % self.net.ports();
            let latency = if port < self.net.inject() { 9 } else { 5 };
            let p = &mut self.packets[packet];
            p.entered[position] += 1;
            let tail = p.entered[position] == p.flits;
            if port != self.net.eject() {
                self.buffers[lane].push_back((packet, position, now + latency));
            } else if tail {
                // The tail has entered at the end of this cycle.
                later.push_back((now + 1 + latency, packet));
                later.make_contiguous().sort();
            }
            if tail {
                // A request keeps its place at the receiver until its response has left.
                let keeps = port == self.net.eject() && !self.packets[packet].response;
                if !keeps {
                    self.owners[lane].retain(|&owner| owner != packet);
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
        self.owners[requests].retain(|&p| packets[p].message != message);
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
