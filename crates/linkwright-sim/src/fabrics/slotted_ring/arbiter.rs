//! The central data arbiter: which waiting lines start in a bus cycle.
//!
//! A line waits at its *source*, the element that holds the data. It starts when the source's port
//! out, the receiver's port in and a ring of the shorter way are free, so that it disturbs nothing in
//! flight. In a cycle the arbiter goes round:
//!
//! 1. Of every source whose port is free it sees all requests, the oldest, or a few of the oldest.
//! 2. Of the requests it sees for one receiver only the oldest counts (`receiver_order = "age"`): an
//!    element close to a hot receiver could otherwise start so much later that it never gets in.
//! 3. The memory controller goes first, the others round robin; what is free starts.
//!
//! Nothing is polled: a look that finds nothing free tells when the first of the requests could start.

use std::collections::VecDeque;

use super::config::{ReceiverOrder, RingConfig, Sees, MILLI, MOST_ELEMENTS};
use super::rings::Rings;

/// A line that waits at its source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// Order of becoming ready.
    pub age: u64,
    /// Unit and queue entry of its command.
    pub owner: (u8, u8),
    pub from: u8,
    pub to: u8,
    /// Bus cycles of data.
    pub length: u8,
    pub put: bool,
    pub bytes: u16,
}

/// A line that starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    pub line: Waiting,
    pub ring: usize,
}

/// Ports and waiting lines of all elements.
#[derive(Clone, Debug)]
pub(super) struct Arbiter {
    count: usize,
    /// Lines by source and receiver, oldest first.
    waiting: Vec<VecDeque<Waiting>>,
    /// Age of the oldest of each; `u64::MAX` where none waits.
    oldest: Vec<[u64; MOST_ELEMENTS]>,
    /// Receivers by source, in order of age; kept only where the arbiter does not see all.
    order: Vec<VecDeque<u8>>,
    /// Receivers for which lines wait at a source.
    receivers: [u16; MOST_ELEMENTS],
    /// Lines that wait at a source.
    lengths: [u32; MOST_ELEMENTS],
    /// Bit `e` is set where lines wait at element `e`.
    busy: u16,
    out_free: [u64; MOST_ELEMENTS],
    in_free: [u64; MOST_ELEMENTS],
    /// Thousandths of a cycle that the port in has still to idle.
    in_rest: [u64; MOST_ELEMENTS],
    last_sender: [u8; MOST_ELEMENTS],
    sees: Sees,
    by_age: bool,
    memory: u8,
    turn: u8,
    change_milli: u64,
    age: u64,
}

/// The best request that can start, so far.
#[derive(Clone, Copy)]
struct Chosen {
    rank: u8,
    age: u64,
    from: u8,
    to: u8,
    ring: usize,
}

impl Arbiter {
    pub fn new(config: &RingConfig) -> Self {
        let count = config.elements.len();
        Arbiter {
            count,
            waiting: vec![VecDeque::new(); count * count],
            oldest: vec![[u64::MAX; MOST_ELEMENTS]; count],
            order: vec![VecDeque::new(); count],
            receivers: [0; MOST_ELEMENTS],
            lengths: [0; MOST_ELEMENTS],
            busy: 0,
            out_free: [0; MOST_ELEMENTS],
            in_free: [0; MOST_ELEMENTS],
            in_rest: [0; MOST_ELEMENTS],
            last_sender: [u8::MAX; MOST_ELEMENTS],
            sees: config.sees,
            by_age: config.receiver_order == ReceiverOrder::Age,
            memory: config.memory,
            turn: 0,
            change_milli: config.sender_change_milli,
            age: 0,
        }
    }

    /// A line becomes ready; tells before which cycle it certainly does not start.
    #[inline]
    pub fn push(&mut self, line: Waiting, rings: &Rings) -> u64 {
        let (from, to) = (usize::from(line.from), usize::from(line.to));
        let queue = &mut self.waiting[from * self.count + to];
        if queue.is_empty() {
            self.oldest[from][to] = self.age;
            self.receivers[from] |= 1 << to;
            self.busy |= 1 << from;
        }
        queue.push_back(Waiting {
            age: self.age,
            ..line
        });
        self.age += 1;
        self.lengths[from] += 1;
        if self.sees != Sees::All {
            self.order[from].push_back(line.to);
        }
        self.ports(line.from, line.to, rings)
    }

    /// Lines that wait at `element`.
    #[inline]
    pub fn waiting_at(&self, element: u8) -> u32 {
        self.lengths[usize::from(element)]
    }

    /// Start at most one line at `now`; or tell when the next could start (`u64::MAX`: none waits).
    #[inline]
    pub fn look(&mut self, now: u64, rings: &mut Rings) -> Result<Grant, u64> {
        let (mut wake, mut chosen) = (u64::MAX, None);
        // The oldest visible line for each receiver, and its source.
        let mut best = [(u64::MAX, 0u8); MOST_ELEMENTS];
        let (mut found, mut left) = (0u16, self.busy);
        while left != 0 {
            let source = left.trailing_zeros() as u8;
            left &= left - 1;
            if self.out_free[usize::from(source)] > now {
                wake = wake.min(self.out_free[usize::from(source)]);
                continue;
            }
            let mut receivers = self.visible(source);
            while receivers != 0 {
                let to = receivers.trailing_zeros() as u8;
                receivers &= receivers - 1;
                let age = self.oldest[usize::from(source)][usize::from(to)];
                if !self.by_age {
                    self.consider(now, (source, to, age), rings, &mut chosen, &mut wake);
                } else if age < best[usize::from(to)].0 {
                    best[usize::from(to)] = (age, source);
                    found |= 1 << to;
                }
            }
        }
        while found != 0 {
            let to = found.trailing_zeros() as u8;
            found &= found - 1;
            let (age, source) = best[usize::from(to)];
            self.consider(now, (source, to, age), rings, &mut chosen, &mut wake);
        }
        let chosen = chosen.ok_or(wake)?;
        Ok(self.grant(now, chosen, rings))
    }

    /// Receivers whose lines at `source` the arbiter sees.
    #[inline]
    fn visible(&self, source: u8) -> u16 {
        let order = &self.order[usize::from(source)];
        let depth = match self.sees {
            Sees::All => return self.receivers[usize::from(source)],
            Sees::Oldest => 1,
            Sees::Limited(depth) => depth.max(1) as usize,
        };
        order.iter().take(depth).fold(0, |set, to| set | 1 << to)
    }

    /// Take the line from `from` to `to` if it can start and comes before what was chosen so far.
    #[inline]
    fn consider(
        &self,
        now: u64,
        (from, to, age): (u8, u8, u64),
        rings: &Rings,
        chosen: &mut Option<Chosen>,
        wake: &mut u64,
    ) {
        let rank = self.rank(from);
        if chosen.is_some_and(|other| (other.rank, other.age) < (rank, age)) {
            return;
        }
        let ports = self.ports(from, to, rings);
        if ports > now {
            *wake = ports.min(*wake);
            return;
        }
        let (ring, at) = rings.earliest(from, to);
        if at > now {
            *wake = at.min(*wake);
            return;
        }
        *chosen = Some(Chosen {
            rank,
            age,
            from,
            to,
            ring,
        });
    }

    /// First cycle in which both ports are free for a line from `from` to `to`.
    #[inline]
    fn ports(&self, from: u8, to: u8, rings: &Rings) -> u64 {
        let way = u64::from(rings.hops(from, to).max(1) - 1);
        let receiver = self.in_free[usize::from(to)].saturating_sub(way);
        receiver.max(self.out_free[usize::from(from)])
    }

    /// The memory controller first, then round robin.
    #[inline]
    fn rank(&self, source: u8) -> u8 {
        match source == self.memory {
            true => 0,
            false => 1 + (source + MOST_ELEMENTS as u8 - self.turn) % MOST_ELEMENTS as u8,
        }
    }

    #[inline]
    fn grant(&mut self, now: u64, chosen: Chosen, rings: &mut Rings) -> Grant {
        let (from, to) = (usize::from(chosen.from), usize::from(chosen.to));
        let queue = &mut self.waiting[from * self.count + to];
        let line = queue.pop_front().expect("it waits");
        self.oldest[from][to] = queue.front().map_or(u64::MAX, |next| next.age);
        if queue.is_empty() {
            self.receivers[from] &= !(1 << to);
            if self.receivers[from] == 0 {
                self.busy &= !(1 << from);
            }
        }
        self.lengths[from] -= 1;
        if self.sees != Sees::All {
            let order = &mut self.order[from];
            let at = order.iter().position(|&other| other == line.to);
            order.remove(at.expect("it is in the order"));
        }
        let length = u64::from(line.length);
        rings.take(chosen.ring, line.from, line.to, now, length);
        self.out_free[from] = now + length;
        let way = u64::from(rings.hops(line.from, line.to).max(1) - 1);
        self.in_free[to] = now + way + length;
        if line.put && self.last_sender[to] != line.from {
            if self.last_sender[to] != u8::MAX {
                self.in_rest[to] += self.change_milli;
                self.in_free[to] += self.in_rest[to] / MILLI;
                self.in_rest[to] %= MILLI;
            }
            self.last_sender[to] = line.from;
        }
        if line.from != self.memory {
            self.turn = (line.from + 1) % MOST_ELEMENTS as u8;
        }
        Grant {
            line,
            ring: chosen.ring,
        }
    }
}
