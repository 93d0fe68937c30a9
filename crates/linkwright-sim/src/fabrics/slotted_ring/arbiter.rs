//! The central data arbiter: which waiting lines start in a bus cycle.
//!
//! A line waits at its *source*, the element that holds the data. It starts when the source's port
//! out, the receiver's port in and a ring of the shorter way are free, so that it disturbs nothing in
//! flight.
//!
//! ```text
//!   ready lines, by age --> [outside] --> [window] --> rings     a window of four: the four oldest lines of the chip
//! ```
//!
//! The arbiter considers the lines in its window alone: all lines, the oldest of each source, or as many of the
//! oldest of the whole chip. A line that cannot start keeps its place, so lines for a busy receiver hold up others
//! whose way is free. Lines enter by age, whatever their source. A window of the whole chip therefore starves nobody:
//! a line that is passed over stays, until the window holds only such lines. In a cycle the arbiter goes round:
//!
//! 1. It considers the lines whose source port is free.
//! 2. Of those for one receiver, only the first in turn whose sender is free when the receiver opens for it counts:
//!    the memory controller's, then the oldest (`receiver_order = "age"`). An element close to a hot receiver could
//!    otherwise start so much later that it never gets in.
//! 3. The memory controller goes first, the others round robin; each request whose path is free starts.
//!
//! With no window, age decides at receivers only: if all traffic goes one way, a long path through segments that
//! others keep taking in turn can wait for ever.
//!
//! Nothing is polled: a look that starts nothing returns the time at which the first request could start.

use std::collections::VecDeque;

use super::config::{ReceiverOrder, RingConfig, Sees, MOST_ELEMENTS};
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
    /// Lines that the arbiter does not see yet, by age.
    outside: VecDeque<Waiting>,
    /// Lines that it sees; by source and receiver, oldest first.
    waiting: Vec<VecDeque<Waiting>>,
    /// Turn of the oldest of each; `u64::MAX` where none waits.
    oldest: Box<[[u64; MOST_ELEMENTS]; MOST_ELEMENTS]>,
    /// Receivers for which lines wait at a source.
    receivers: [u16; MOST_ELEMENTS],
    /// Sources at which lines wait for a receiver.
    senders: [u16; MOST_ELEMENTS],
    /// Which of them is the first in turn.
    first_sender: [u8; MOST_ELEMENTS],
    /// Receivers for which lines wait anywhere.
    wanted: u16,
    /// Lines in the window.
    window: u32,
    /// Lines that wait at a source, seen or not.
    lengths: [u32; MOST_ELEMENTS],
    /// How much earlier than at its receiver a line starts at its source, by source and receiver; the most of all.
    ahead: Box<[[u8; MOST_ELEMENTS]; MOST_ELEMENTS]>,
    longest: u64,
    out_free: [u64; MOST_ELEMENTS],
    in_free: [u64; MOST_ELEMENTS],
    sees: Sees,
    by_age: bool,
    memory: u8,
    turn: u8,
    age: u64,
    /// Of the present round.
    seen: Vec<Seen>,
}

/// What puts lines from elsewhere behind those of the memory controller.
const BEHIND: u64 = 1 << 48;

/// A request that the arbiter sees in a round: the oldest of its source for its receiver. One word, since the
/// requests of a round are sorted: by rank of the source, then turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seen(u64);

impl Seen {
    fn new(rank: u8, turn: u64, from: u8, to: u8) -> Self {
        Seen(u64::from(rank) << 58 | turn << 8 | u64::from(from) << 4 | u64::from(to))
    }

    fn turn(self) -> u64 {
        self.0 << 6 >> 14
    }

    fn from(self) -> u8 {
        (self.0 >> 4) as u8 % MOST_ELEMENTS as u8
    }

    fn to(self) -> u8 {
        self.0 as u8 % MOST_ELEMENTS as u8
    }
}

const _: () = assert!(MOST_ELEMENTS == 16, "four bits name an element");

impl Arbiter {
    pub fn new(config: &RingConfig, rings: &Rings) -> Self {
        let count = config.elements.len();
        let mut ahead = Box::new([[0; MOST_ELEMENTS]; MOST_ELEMENTS]);
        for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))) {
            ahead[from][to] = rings.hops(from as u8, to as u8).max(1) - 1;
        }
        Arbiter {
            ahead,
            count,
            waiting: vec![VecDeque::new(); count * count],
            oldest: Box::new([[u64::MAX; MOST_ELEMENTS]; MOST_ELEMENTS]),
            outside: VecDeque::new(),
            receivers: [0; MOST_ELEMENTS],
            senders: [0; MOST_ELEMENTS],
            first_sender: [0; MOST_ELEMENTS],
            wanted: 0,
            window: 0,
            lengths: [0; MOST_ELEMENTS],
            longest: (count as u64 / 2).max(1) - 1,
            out_free: [0; MOST_ELEMENTS],
            in_free: [0; MOST_ELEMENTS],
            sees: config.sees,
            by_age: config.receiver_order == ReceiverOrder::Age,
            memory: config.memory,
            turn: 0,
            age: 0,
            seen: Vec::new(),
        }
    }

    /// A line becomes ready; returns a cycle before which it cannot start (`u64::MAX`: not seen yet).
    #[inline]
    pub fn push(&mut self, line: Waiting) -> u64 {
        let line = Waiting {
            age: self.age,
            ..line
        };
        self.age += 1;
        self.lengths[usize::from(line.from)] += 1;
        if self.has_room(line.from) {
            self.admit(line);
            return self.ports(line.from, line.to);
        }
        self.outside.push_back(line);
        u64::MAX
    }

    /// Whether a line of `source` that becomes the youngest in the window has a place there.
    #[inline]
    fn has_room(&self, source: u8) -> bool {
        match self.sees {
            Sees::All => true,
            Sees::Oldest => self.receivers[usize::from(source)] == 0,
            Sees::Limited(depth) => self.window < depth,
        }
    }

    /// Order at a receiver: the memory controller's lines first, the others by age.
    #[inline]
    fn turn_of(&self, line: &Waiting) -> u64 {
        match line.from == self.memory {
            true => line.age,
            false => line.age | BEHIND,
        }
    }

    /// A line enters the window.
    #[inline]
    fn admit(&mut self, line: Waiting) {
        let turn = self.turn_of(&line);
        let (from, to) = (usize::from(line.from), usize::from(line.to));
        let queue = &mut self.waiting[from * self.count + to];
        if queue.is_empty() {
            let first = usize::from(self.first_sender[to]);
            if self.senders[to] == 0 || turn < self.oldest[first][to] {
                self.first_sender[to] = line.from;
            }
            self.oldest[from][to] = turn;
            self.wanted |= 1 << to;
            self.receivers[from] |= 1 << to;
            self.senders[to] |= 1 << from;
        }
        queue.push_back(line);
        self.window += 1;
    }

    /// Lines outside that now have a place enter, by age; returns when the first of them could start.
    #[inline]
    fn refill(&mut self) -> u64 {
        let (mut at, mut wake) = (0, u64::MAX);
        while at < self.outside.len() && !self.is_full() {
            if !self.has_room(self.outside[at].from) {
                at += 1;
            } else if let Some(line) = self.outside.remove(at) {
                self.admit(line);
                wake = wake.min(self.ports(line.from, line.to));
            }
        }
        wake
    }

    /// Whether the window has no place left.
    #[inline]
    fn is_full(&self) -> bool {
        matches!(self.sees, Sees::Limited(depth) if self.window >= depth)
    }

    /// Lines that wait at `element`.
    #[inline]
    pub fn waiting_at(&self, element: u8) -> u32 {
        self.lengths[usize::from(element)]
    }

    /// Start all lines that can start at `now`; returns when the next could (`u64::MAX`: none waits).
    pub fn look(&mut self, now: u64, rings: &mut Rings, grants: &mut Vec<Grant>) -> u64 {
        loop {
            let before = grants.len();
            let wake = self.round(now, rings, grants);
            // Whoever has started lets others come to the fore, so only a round without a start knows when to wake.
            if grants.len() == before {
                // Lines that enter the window are considered from the next cycle on.
                return wake.min(self.refill().max(now + 1));
            }
        }
    }

    /// Go round once; returns when the first of the lines that are left could start, if none has started.
    fn round(&mut self, now: u64, rings: &mut Rings, grants: &mut Vec<Grant>) -> u64 {
        let mut seen = std::mem::take(&mut self.seen);
        let mut wake = self.see(now, &mut seen);
        for request in &seen {
            let (from, to) = (request.from(), request.to());
            let at = self.ports(from, to);
            let (ring, at) = match at > now {
                true => (0, at),
                false => rings.earliest(from, to),
            };
            match at > now {
                true => wake = at.min(wake),
                false => grants.push(self.grant(now, *request, ring, rings)),
            }
        }
        self.seen = seen;
        wake
    }

    /// Collect the requests visible at `now`, in turn; returns when the next needed port is free.
    #[inline]
    fn see(&self, now: u64, seen: &mut Vec<Seen>) -> u64 {
        seen.clear();
        let mut wake = u64::MAX;
        let mut left = self.wanted;
        while left != 0 {
            let to = left.trailing_zeros() as u8;
            left &= left - 1;
            let receiver = usize::from(to) % MOST_ELEMENTS;
            let at = self.opens(to);
            if at > now {
                wake = wake.min(at);
                continue;
            }
            let mut oldest = None::<Seen>;
            let mut senders = self.senders[receiver];
            while senders != 0 {
                let from = senders.trailing_zeros() as u8;
                senders &= senders - 1;
                let source = usize::from(from) % MOST_ELEMENTS;
                if self.out_free[source] > now {
                    wake = wake.min(self.out_free[source]);
                    continue;
                }
                let turn = self.oldest[source][receiver];
                if self.by_age && oldest.is_some_and(|other| other.turn() < turn) {
                    continue;
                }
                if !self.by_age {
                    seen.extend(oldest);
                }
                oldest = Some(Seen::new(self.rank(from), turn, from, to));
            }
            seen.extend(oldest);
        }
        if seen.len() > 1 {
            seen.sort_unstable();
        }
        wake
    }

    /// A time before which no line can start towards `to`: by age, it is the turn of its oldest sender.
    #[inline]
    fn opens(&self, to: u8) -> u64 {
        let receiver = usize::from(to) % MOST_ELEMENTS;
        let gate = self.in_free[receiver].saturating_sub(self.longest);
        if !self.by_age {
            return gate;
        }
        let sender = usize::from(self.first_sender[receiver]) % MOST_ELEMENTS;
        let at = self.in_free[receiver].saturating_sub(u64::from(self.ahead[sender][receiver]));
        match self.out_free[sender] <= at {
            true => at,
            false => gate,
        }
    }

    /// First cycle in which both ports are free for a line from `from` to `to`.
    #[inline]
    fn ports(&self, from: u8, to: u8) -> u64 {
        let (from, to) = (
            usize::from(from) % MOST_ELEMENTS,
            usize::from(to) % MOST_ELEMENTS,
        );
        let receiver = self.in_free[to].saturating_sub(u64::from(self.ahead[from][to]));
        receiver.max(self.out_free[from])
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
    fn grant(&mut self, now: u64, chosen: Seen, ring: usize, rings: &mut Rings) -> Grant {
        let (from, to) = (usize::from(chosen.from()), usize::from(chosen.to()));
        let queue = &mut self.waiting[from * self.count + to];
        let line = queue.pop_front().expect("it waits");
        let next = queue.front().copied();
        self.oldest[from][to] = next.map_or(u64::MAX, |next| self.turn_of(&next));
        if next.is_none() {
            self.receivers[from] &= !(1 << to);
            self.senders[to] &= !(1 << from);
            if self.senders[to] == 0 {
                self.wanted &= !(1 << to);
            }
        }
        let (mut turn, mut left) = (u64::MAX, self.senders[to]);
        while left != 0 {
            let sender = left.trailing_zeros() as usize % MOST_ELEMENTS;
            left &= left - 1;
            if self.oldest[sender][to] < turn {
                turn = self.oldest[sender][to];
                self.first_sender[to] = sender as u8;
            }
        }
        self.lengths[from] -= 1;
        self.window -= 1;
        let length = u64::from(line.length);
        rings.take(ring, line.from, line.to, now, length);
        self.out_free[from] = now + length;
        self.in_free[to] = now + u64::from(self.ahead[from][to]) + length;
        if line.from != self.memory {
            self.turn = (line.from + 1) % MOST_ELEMENTS as u8;
        }
        Grant { line, ring }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkwright_core::Machine;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn config(changes: &[(&str, &str)]) -> RingConfig {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../python/linkwright/machines/cell-be.toml"
        );
        let machine =
            Machine::parse(&std::fs::read_to_string(file).unwrap(), "cell-be.toml").unwrap();
        let change = |machine: Machine, &(key, value): &(&str, &str)| {
            machine.with_value(key, value).unwrap()
        };
        RingConfig::from_machine(&changes.iter().fold(machine, change)).unwrap()
    }

    /// (cycle, line) of every start of `lines`, given as (cycle, source, receiver) in order of time.
    fn starts(
        config: &RingConfig,
        lines: &[(u64, u8, u8)],
        in_each_cycle: bool,
    ) -> Vec<(u64, u64)> {
        let mut rings = Rings::new(config);
        let mut arbiter = Arbiter::new(config, &rings);
        let (mut grants, mut found) = (Vec::new(), Vec::new());
        let (mut next, mut wake, mut now) = (0, u64::MAX, 0);
        while found.len() < lines.len() {
            while next < lines.len() && lines[next].0 <= now {
                let (_, from, to) = lines[next];
                let line = Waiting {
                    age: 0,
                    owner: (0, 0),
                    from,
                    to,
                    length: 8,
                    bytes: 128,
                };
                wake = wake.min(arbiter.push(line).max(now));
                next += 1;
            }
            if wake <= now || in_each_cycle {
                wake = arbiter.look(now, &mut rings, &mut grants);
                found.extend(grants.drain(..).map(|grant| (now, grant.line.age)));
            }
            now += 1;
            assert!(now < 100_000, "somebody waits for ever");
        }
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn asking_in_every_cycle_starts_nothing_sooner(
            mut lines in vec((0..400u64, 0..12u8, 0..12u8), 1..120),
            sees in 0..3usize,
            order in 0..2usize,
        ) {
            lines.sort_unstable();
            let sees = ["\"all\"", "\"oldest\"", "\"limited\""][sees];
            let order = ["\"age\"", "\"round_robin\""][order];
            let config = config(&[("fabric.arbiter_sees", sees), ("fabric.receiver_order", order)]);
            prop_assert_eq!(starts(&config, &lines, false), starts(&config, &lines, true));
        }
    }

    #[test]
    fn requests_sort_by_rank_then_age_up_to_the_largest() {
        let (last, oldest) = (MOST_ELEMENTS as u8, (1 << 50) - 1);
        let seen = Seen::new(last, oldest, last - 1, last - 1);
        let parts = (seen.turn(), seen.from(), seen.to());
        assert_eq!(parts, (oldest, last - 1, last - 1));
        assert!(Seen::new(last - 1, oldest, last - 1, 0) < Seen::new(last, 0, 0, 0));
        assert!(Seen::new(0, 7, last - 1, last - 1) < Seen::new(0, 8, 0, 0));
    }
}
