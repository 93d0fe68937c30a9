//! Greedy matching on the time-expanded network: each pair takes, whenever it is free, a chunk that its target lacks.
//!
//! ```text
//!   time      0          1          2            chunks a b c d start at 0 1 2 3 of a ring
//!   0 -> 1    a          d          c            each pair is matched with one chunk at a time
//!   1 -> 2    b          a          d
//! ```
//!
//! Of the chunks that the sender has and the target neither has nor expects, the one goes that fewest endpoints have;
//! a seed breaks ties. Pairs and links may differ: a transfer takes its own time and keeps its links as in
//! [`super::clock`]. A slow pair does not begin what would come sooner over another one: it must arrive within
//! `patience` times what the fastest pair into the target takes.
//!
//! The matching finds an allgather or a broadcast. Run on the reversed network and read backwards, it is a
//! reduce-scatter or a reduce.
//!
//! Source: Won, Elavazhagan, Srinivasan, Gupta and Krishna, "TACOS: Topology-aware collective algorithm synthesizer for
//! distributed machine learning" (MICRO 2024).

use super::clock::Clock;
use super::plan::{Plan, Task};
use super::wires::{Pair, Wires};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a matching is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// Slices of the block of each root.
    pub slices: u32,
    /// Bytes of a slice.
    pub bytes: u64,
    /// Times that a transfer may take of what the fastest pair into its target takes.
    pub patience: f64,
    /// Transfers of a pair that may be on their way at once.
    pub window: u32,
    /// Breaks ties.
    pub seed: u64,
}

/// Spread a block from each of `roots`, block i from root i.
pub fn spread(wires: &Wires, roots: &[u32], wish: Wish) -> Plan {
    let mut matching = Matching::new(wires, roots, wish);
    matching.run();
    Plan {
        tasks: matching.tasks,
        blocks: roots.len() as u32,
        slices: wish.slices,
    }
}

/// Chunk in an endpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Missing,
    Expected,
    There,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A chunk arrives at an endpoint.
    Arrival(u32, u32),
    /// A pair may be free; the first number is drawn, so that equal pairs come in any order.
    Free(u64, u32),
}

struct Matching<'a> {
    wires: &'a Wires,
    /// By endpoint and chunk.
    state: Vec<State>,
    chunks: usize,
    /// Chunks that each endpoint neither has nor expects.
    lacking: Vec<usize>,
    /// Endpoints that have or expect each chunk.
    holders: Vec<u32>,
    clock: Clock<'a>,
    /// By pair, whether it waits for its sender to get something.
    idle: Vec<bool>,
    /// Pairs that are fast enough for their target.
    usable: Vec<bool>,
    events: BinaryHeap<Reverse<(u64, What)>>,
    random: u64,
    tasks: Vec<Task>,
}

impl<'a> Matching<'a> {
    fn new(wires: &'a Wires, roots: &[u32], wish: Wish) -> Self {
        let n = wires.endpoints() as usize;
        let chunks = roots.len() * wish.slices as usize;
        let mut state = vec![State::Missing; n * chunks];
        let mut lacking = vec![chunks; n];
        for (block, &root) in roots.iter().enumerate() {
            let first = root as usize * chunks + block * wish.slices as usize;
            state[first..][..wish.slices as usize].fill(State::There);
            lacking[root as usize] -= wish.slices as usize;
        }
        Matching {
            wires,
            state,
            chunks,
            lacking,
            holders: vec![1; chunks],
            clock: Clock::new(wires, wish.bytes, wish.window),
            idle: vec![false; wires.pairs().len()],
            usable: usable(wires, wish),
            events: BinaryHeap::new(),
            random: wish.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            tasks: Vec::new(),
        }
    }

    fn run(&mut self) {
        for pair in 0..self.wires.pairs().len() as u32 {
            if self.usable[pair as usize] {
                let drawn = self.draw();
                self.events.push(Reverse((0, What::Free(drawn, pair))));
            }
        }
        while let Some(Reverse((now, what))) = self.events.pop() {
            match what {
                What::Arrival(endpoint, chunk) => self.arrive(endpoint, chunk, now),
                What::Free(_, pair) => self.offer(pair, now),
            }
        }
    }

    fn arrive(&mut self, endpoint: u32, chunk: u32, now: u64) {
        self.state[endpoint as usize * self.chunks + chunk as usize] = State::There;
        for &pair in self.wires.out(endpoint) {
            if std::mem::replace(&mut self.idle[pair as usize], false) {
                let drawn = self.draw();
                self.events.push(Reverse((now, What::Free(drawn, pair))));
            }
        }
    }

    /// Match `pair` with a chunk, if it is free; otherwise it comes again.
    fn offer(&mut self, pair: u32, now: u64) {
        let described = self.wires.pair(pair);
        if self.lacking[described.to as usize] == 0 {
            return;
        }
        let free = self.clock.free(pair);
        if free > now {
            let drawn = self.draw();
            self.events.push(Reverse((free, What::Free(drawn, pair))));
            return;
        }
        let Some(chunk) = self.choose(described.from as usize, described.to as usize) else {
            self.idle[pair as usize] = true;
            return;
        };
        self.send(pair, chunk, now);
    }

    /// The chunk that `to` lacks, `from` has and fewest others have.
    fn choose(&mut self, from: usize, to: usize) -> Option<u32> {
        let (have, lack) = (
            &self.state[from * self.chunks..],
            &self.state[to * self.chunks..],
        );
        let chunks = 0..self.chunks;
        let fit = chunks.filter(|&c| have[c] == State::There && lack[c] == State::Missing);
        let turn = (self.random >> 17) as usize % self.chunks;
        let rarest = |&c: &usize| (self.holders[c], (c + self.chunks - turn) % self.chunks);
        fit.min_by_key(rarest).map(|c| c as u32)
    }

    fn send(&mut self, pair: u32, chunk: u32, now: u64) {
        let target = self.wires.pair(pair).to;
        self.state[target as usize * self.chunks + chunk as usize] = State::Expected;
        self.lacking[target as usize] -= 1;
        self.holders[chunk as usize] += 1;
        let arrival = self.clock.issue(pair, now);
        let event = What::Arrival(target, chunk);
        self.events.push(Reverse((arrival, event)));
        let free = What::Free(self.draw(), pair);
        let at = self.clock.free(pair).max(now);
        self.events.push(Reverse((at, free)));
        self.tasks.push(Task {
            pair,
            chunk,
            reduce: false,
        });
    }

    /// The next random number (Marsaglia, "Xorshift RNGs", 2003).
    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

/// By pair, whether it is fast enough; the fastest pair into and out of each endpoint always is.
fn usable(wires: &Wires, wish: Wish) -> Vec<bool> {
    let n = wires.endpoints() as usize;
    let mut fastest = vec![u64::MAX; n];
    for pair in wires.pairs() {
        let best = &mut fastest[pair.to as usize];
        *best = pair.time_ps(wish.bytes).min(*best);
    }
    let quick = |pair: &Pair| {
        pair.time_ps(wish.bytes) as f64 <= fastest[pair.to as usize] as f64 * wish.patience
    };
    match wires.only(quick) {
        Ok(_) => wires.pairs().iter().map(quick).collect(),
        Err(_) => vec![true; wires.pairs().len()],
    }
}
