//! Where data lie when a rank moves them itself, and so what each operation costs it.
//!
//! Coherent caches hold a line where it was touched last. Operation ids are a correct order of execution, so
//! one replay by id tells, for every chunk, who touched it last and how long ago:
//!
//! ```text
//!   distance of a chunk to a rank = bytes that the rank touched since it began to touch the chunk last
//!
//!   read    the rank holds it                         its nearest cache that is larger than the distance
//!           another modified it and still holds it    `other`: start, and read_rate
//!   write   no other rank holds it                    as above
//!           others hold it                            `other`: start, and write_rate
//!           another has lost it to a shared cache     `lost_rate`, or that cache by the distance of the other
//! ```
//!
//! After a write a rank alone holds the chunk; after a read it shares the chunk. Streams of accesses run
//! ahead: a rank that touches a chunk of at least `prefetch` bytes also takes the beginning of the next chunk of the
//! same buffer, and the next rank to write there pays `other.start` once.
//!
//! A cache with a `total` serves the ranks that move data at once, each its share, and each has its share of the size.
//! At once are operations of the same *depth*, how many must come before it by dependencies or at its own rank: a guess
//! that is right where all ranks do the same, as the SMs of a GPU mostly do at its L2.
//!
//! Where the memory says `together`, operations in a row that nothing of another rank separates overlap, as do the
//! targets of a multicast: only the first pays `combine_start` and `run`, and a sum is written once.
//!
//! What is measured is warm, so the schedule is replayed several times and only the last replay counts. Ranks that
//! repeat a short collective alternate between `buffer_sets`, which lie side by side in the caches.
//!
//! Leaves out: lines that two chunks share, conflicts in a cache, what other programs do to it.
//!
//! Source: stack distances as in Mattson, Gecsei, Slutz and Traiger, "Evaluation techniques for storage
//! hierarchies" (1970); costs of coherence by who holds a line as in Ramos and Hoefler, "Modeling
//! communication in cache-coherent SMP systems" (HPDC 2013).

use crate::messages::Messages;
use crate::setup::Setup;
use linkwright_core::machine::memory::Other;
use linkwright_core::machine::{Memory, Nearness};
use linkwright_core::{Bytes, BytesPerSec, TimePs};
use linkwright_schedule::ir::{BufferId, Combine, Op, OpKind};
use linkwright_schedule::Schedule;
use std::collections::HashMap;

/// Replays before the one that counts.
const WARM: u32 = 2;

/// What every operation costs in addition to the software around it, in picoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moved {
    /// To its initiator.
    pub issue: Vec<u64>,
    /// To the receiver of an eager put.
    pub landing: Vec<u64>,
}

/// Which chunk of which buffer of which participant, in which set of buffers.
type Key = (u32, u32, u8, u32);

/// The ranks that have touched a chunk.
#[derive(Clone, Debug, Default)]
struct Chunk {
    /// Holders, and what their clocks of touched bytes said when they began.
    holders: Vec<(u32, u64)>,
    /// Whether the one holder has modified it.
    modified: bool,
    /// Ranks that ran ahead into its beginning.
    ahead: Vec<u32>,
}

struct Replay<'a> {
    messages: &'a Messages<'a>,
    memory: Memory,
    nearness: &'a Nearness,
    /// By operation, how many ranks move data with it.
    movers: Vec<u32>,
    /// The same of the operation under way.
    at_once: u32,
    /// Operations in flight together with the one before them of the same rank; empty where none are.
    joined: Vec<bool>,
    chunks: HashMap<Key, Chunk>,
    /// Bytes that each rank has touched.
    clocks: Vec<u64>,
    set: u32,
}

/// Whether `op` travels with its notice, so that the receiver moves it.
pub(crate) fn is_eager(op: &Op, messages: &Messages<'_>, memory: &Memory) -> bool {
    let to_rank = op.to != op.from && op.to < messages.schedule.ranks;
    op.kind == OpKind::Put && to_rank && (1..=memory.eager.0).contains(&messages.bytes(op))
}

impl Moved {
    /// Costs of all operations on a path with `memory`.
    pub fn new(setup: &Setup, memory: &Memory, messages: &Messages<'_>) -> Self {
        let schedule = messages.schedule;
        let mut replay = Replay {
            messages,
            memory: memory.divided(schedule.ranks),
            nearness: &setup.nearness,
            movers: match memory.caches.iter().any(|cache| cache.total.is_some()) {
                true => movers(schedule),
                false => vec![1; schedule.ops().len()],
            },
            at_once: 1,
            joined: match memory.together {
                true => joined(messages),
                false => Vec::new(),
            },
            chunks: HashMap::new(),
            clocks: vec![0; schedule.ranks as usize],
            set: 0,
        };
        let mut moved = Moved::default();
        let sets = setup.buffer_sets.max(1);
        for round in 0..(WARM + 1) * sets {
            replay.set = round % sets;
            moved = replay.once(setup);
        }
        moved
    }
}

impl Replay<'_> {
    fn once(&mut self, setup: &Setup) -> Moved {
        let schedule = self.messages.schedule;
        let count = schedule.ops().len();
        let mut moved = Moved {
            issue: vec![0; count],
            landing: vec![0; count],
        };
        for (id, op) in schedule.ops().iter().enumerate() {
            if !op.moves_data() {
                continue;
            }
            self.at_once = self.movers[id];
            let joined = self.joined.get(id).is_some_and(|&joined| joined);
            let fused = op.is_message() && op.combine == Combine::Reduce;
            let combining = match fused {
                true => {
                    let bytes = Bytes(self.messages.bytes(op));
                    let begun = if joined {
                        setup.path.combine_start
                    } else {
                        TimePs::ZERO
                    };
                    setup.path.combine_time(bytes, setup.arithmetic).0 - begun.0
                }
                false => 0,
            };
            if is_eager(op, self.messages, &self.memory) {
                moved.issue[id] = self.touch_all(op, op.from, false) as u64;
                moved.landing[id] =
                    setup.path.receive.0 + combining + self.touch_all(op, op.to, true) as u64;
                continue;
            }
            let by = op.initiator();
            let mut time = 0.0;
            for (number, &target) in schedule.targets(op).iter().enumerate() {
                let begun = joined || number > 0 && self.memory.together;
                let summed = joined && op.combine == Combine::Reduce;
                time += self.copy(op, by, target, begun, summed);
            }
            moved.issue[id] = combining + time as u64;
        }
        moved
    }

    /// Rank `by` reads the source chunks of `op` and writes them at `target`. What has `begun` with another operation
    /// pays no `run`; what is `summed` with the one before it is written with that one.
    fn copy(&mut self, op: &Op, by: u32, target: u32, begun: bool, summed: bool) -> f64 {
        let same_place = op.from == target && op.src_buffer == op.dst_buffer;
        let schedule = self.messages.schedule;
        let mut time = 0.0;
        for (src, dst, count) in schedule.chunk_ranges(op) {
            let before = time;
            if same_place && src == dst && op.combine == Combine::Replace {
                continue;
            }
            for i in 0..count {
                time += self.touch(by, (op.from, op.src_buffer), src + i, false);
                if !summed {
                    time += self.touch(by, (target, op.dst_buffer), dst + i, true);
                }
            }
            if time > before && !begun {
                time += self.memory.run.0 as f64;
            }
        }
        time
    }

    /// Rank `by` reads the source chunks of `op`, or writes them at itself.
    fn touch_all(&mut self, op: &Op, by: u32, writes: bool) -> f64 {
        let mut time = 0.0;
        for (src, dst, count) in self.messages.schedule.chunk_ranges(op) {
            let (first, place) = match writes {
                true => (dst, (by, op.dst_buffer)),
                false => (src, (op.from, op.src_buffer)),
            };
            for chunk in first..first + count {
                time += self.touch(by, place, chunk, writes);
            }
        }
        time
    }

    /// Picoseconds for rank `by` to read or write a whole chunk.
    fn touch(&mut self, by: u32, (at, buffer): (u32, BufferId), chunk: u32, writes: bool) -> f64 {
        let schedule = self.messages.schedule;
        let span = schedule
            .buffer(buffer)
            .span(schedule.elements, chunk..chunk + 1);
        let bytes = (span.end - span.start) * u64::from(schedule.element_bytes);
        if bytes == 0 {
            return 0.0;
        }
        let key = (self.set, at, buffer.0, chunk);
        let state = self.chunks.entry(key).or_default();
        let found = find(&self.memory, &self.clocks, state, by, writes);
        let at = |rate: BytesPerSec| bytes as f64 * 1e12 / rate.0;
        let mut time = match found {
            Place::Cache(cache) => at(self.rate(cache)),
            Place::Other(rank) => match self.other(by, rank) {
                Some(other) if writes => other.start.0 as f64 + at(other.write_rate),
                Some(other) => other.start.0 as f64 + at(other.read_rate),
                None => at(self.rate(0)),
            },
            Place::Lost(rank, cache) => {
                let lost = self.other(by, rank).and_then(|other| other.lost_rate);
                at(lost.unwrap_or(self.rate(cache)))
            }
        };
        let alone = matches!(found, Place::Cache(_));
        time += self.run_ahead(by, key, bytes, writes && alone);
        let now = self.clocks[by as usize];
        let state = self.chunks.get_mut(&key).expect("made above");
        if writes {
            state.holders.clear();
        }
        state.modified = writes || state.modified && state.holders.iter().all(|h| h.0 == by);
        match state.holders.iter_mut().find(|holder| holder.0 == by) {
            Some(holder) => holder.1 = now,
            None => state.holders.push((by, now)),
        }
        self.clocks[by as usize] = now + bytes;
        time
    }

    /// Streams into and beyond a chunk; what it costs `by` to take its beginning back.
    fn run_ahead(&mut self, by: u32, key: Key, bytes: u64, pays: bool) -> f64 {
        let Some(shortest) = self.memory.prefetch else {
            return 0.0;
        };
        let (set, at, buffer, chunk) = key;
        let state = self.chunks.get_mut(&key).expect("made above");
        let thief = state.ahead.iter().copied().find(|&rank| rank != by);
        if pays || !state.ahead.contains(&by) {
            state.ahead.retain(|&rank| rank == by);
            state.ahead.push(by);
        }
        if bytes >= shortest.0 {
            let next = (self.chunks.entry((set, at, buffer, chunk + 1))).or_default();
            if !next.ahead.contains(&by) {
                next.ahead.push(by);
            }
        }
        match thief {
            Some(thief) if pays => {
                let other = self.other(by, thief);
                other.map_or(0.0, |other| other.start.0 as f64)
            }
            _ => 0.0,
        }
    }

    /// The costs of lines that `holder` has.
    fn other(&self, by: u32, holder: u32) -> Option<&Other> {
        let (a, b) = (self.messages.endpoint(by), self.messages.endpoint(holder));
        self.memory.other_at(self.nearness, a.index(), b.index())
    }

    /// What a rank gets of a cache now.
    fn rate(&self, cache: usize) -> BytesPerSec {
        let cache = &self.memory.caches[cache];
        let share = cache.total.map(|total| total.0 / f64::from(self.at_once));
        BytesPerSec(share.map_or(cache.rate.0, |share| share.min(cache.rate.0)))
    }
}

/// By operation, how many ranks move data at its depth.
fn movers(schedule: &Schedule) -> Vec<u32> {
    let mut depths: Vec<u32> = Vec::with_capacity(schedule.ops().len());
    let mut own = vec![0; schedule.ranks as usize];
    let mut at: Vec<u32> = Vec::new();
    for (_, op, edges) in schedule.ops_with_edges() {
        let last = edges.iter().map(|edge| depths[edge.op() as usize] + 1);
        let last = last.max();
        let by = op.initiator();
        let depth = last.unwrap_or(0).max(own[by as usize]);
        own[by as usize] = depth + u32::from(op.moves_data());
        depths.push(depth);
        at.resize(at.len().max(depth as usize + 1), 0);
        // Another operation of the rank that moves data lies deeper, so ranks are counted once.
        at[depth as usize] += u32::from(op.moves_data());
    }
    depths.iter().map(|&depth| at[depth as usize]).collect()
}

/// By operation, whether it is in flight together with the operation before it of the same rank: both are messages
/// that the rank moves, nothing of another rank comes in between, and both combine into one place, or copy from
/// participants other than their target.
fn joined(messages: &Messages<'_>) -> Vec<bool> {
    let schedule = messages.schedule;
    let by = |id: u32| schedule.ops()[id as usize].initiator();
    let mut waits = vec![false; schedule.ops().len()];
    let mut awaited = waits.clone();
    for (id, _, edges) in schedule.ops_with_edges() {
        for edge in edges.iter().filter(|edge| by(edge.op()) != by(id)) {
            waits[id as usize] = true;
            awaited[edge.op() as usize] = true;
        }
    }
    let mut last: Vec<Option<usize>> = vec![None; schedule.ranks as usize];
    let mut joined = vec![false; waits.len()];
    for (id, op) in schedule.ops().iter().enumerate() {
        let Some(before) = last[op.initiator() as usize].replace(id) else {
            continue;
        };
        let first = &schedule.ops()[before];
        joined[id] = !waits[id] && !awaited[before] && alike(schedule, first, op);
    }
    joined
}

/// Whether both combine into one place, or both copy from other participants to separate places of one; each moves one
/// contiguous run.
fn alike(schedule: &Schedule, first: &Op, next: &Op) -> bool {
    let moves = |op: &Op| matches!(op.kind, OpKind::Put | OpKind::Get) && op.from != op.to;
    let into = |op: &Op| {
        let mut ranges = schedule
            .chunk_ranges(op)
            .map(|(_, dst, count)| (dst, dst + count));
        ranges.next().filter(|_| ranges.next().is_none())
    };
    let (Some(one), Some(other)) = (into(first), into(next)) else {
        return false;
    };
    let placed = match next.combine {
        Combine::Reduce => one == other,
        Combine::Replace => one.1 <= other.0 || other.1 <= one.0,
    };
    moves(first)
        && moves(next)
        && placed
        && first.kind == next.kind
        && first.to == next.to
        && first.combine == next.combine
        && first.dst_buffer == next.dst_buffer
}

/// Where the lines of a chunk are for a rank.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// In one of its caches, or a shared one.
    Cache(usize),
    /// In the caches of another rank.
    Other(u32),
    /// Another rank had them last and has lost them to this shared cache.
    Lost(u32, usize),
}

fn find(memory: &Memory, clocks: &[u64], chunk: &Chunk, by: u32, writes: bool) -> Place {
    let since = |&(rank, began): &(u32, u64)| clocks[rank as usize] - began;
    let mine = chunk.holders.iter().find(|holder| holder.0 == by);
    let others = || chunk.holders.iter().filter(|holder| holder.0 != by);
    if let Some(mine) = mine.filter(|_| !writes) {
        return Place::Cache(memory.cache_at(since(mine)));
    }
    let wanted = writes || chunk.modified;
    let own = memory.own().0;
    if let Some(holder) = others().find(|h| since(h) <= own).filter(|_| wanted) {
        return Place::Other(holder.0);
    }
    let Some(nearest) = others().min_by_key(|h| since(h)) else {
        return Place::Cache(memory.cache_at(mine.map_or(u64::MAX, since)));
    };
    let distance = since(nearest).max(own.saturating_add(1));
    let cache = memory.cache_at(distance);
    match wanted && distance <= memory.cached().0 {
        true => Place::Lost(nearest.0, cache),
        false => Place::Cache(cache),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkwright_core::machine::memory::Cache;
    use linkwright_core::machine::Path;
    use linkwright_core::TimePs;
    use linkwright_schedule::builder::{Builder, Shape};
    use linkwright_schedule::{Buffer, Collective};

    const PER_NS: f64 = 1e9;

    /// 1 ns per byte within 1000 B, 4 ns beyond; 50 ns and 2 ns per byte of another's line.
    fn memory(prefetch: Option<Bytes>) -> Memory {
        let cache = |size, rate| Cache {
            size: Bytes(size),
            rate: BytesPerSec(rate),
            shared: false,
            total: None,
        };
        Memory {
            eager: Bytes(0),
            prefetch,
            run: TimePs::ZERO,
            look: TimePs::ZERO,
            together: false,
            caches: vec![cache(1000, PER_NS), cache(u64::MAX, PER_NS / 4.0)],
            others: vec![Other {
                level: None,
                start: TimePs::from_ns(50),
                read_rate: BytesPerSec(PER_NS / 2.0),
                write_rate: BytesPerSec(PER_NS / 2.0),
                lost_rate: None,
            }],
        }
    }

    /// Cost of every operation in ns.
    fn costs(schedule: &Schedule, prefetch: Option<Bytes>, buffer_sets: u32) -> Vec<u64> {
        let memory = memory(prefetch);
        let setup = Setup {
            buffer_sets,
            ..Setup::new(schedule.ranks, Path::default())
        };
        let messages = Messages::new(schedule, &setup.placement, &setup.networks);
        let moved = Moved::new(&setup, &memory, &messages);
        moved.issue.iter().map(|ps| ps / 1000).collect()
    }

    /// An allgather of two ranks: each puts its block of 100 B next to the other's.
    fn allgather() -> Schedule {
        let mut shape = Shape::new(2, 200);
        shape.element_bytes = 1;
        let mut b = Builder::new(Collective::Pattern, &shape);
        let data = b.buffer(Buffer::vector("output", 2));
        b.step();
        b.put(0, data.at(0), 1, data.at(0));
        b.put(1, data.at(1), 0, data.at(1));
        b.finish().unwrap()
    }

    #[test]
    fn streams_run_ahead_into_the_next_chunk() {
        // Rank 1 puts into 0:output[1], whose beginning rank 0 takes when it reads 0:output[0]; what rank 0
        // writes lies before everything that rank 1 touches.
        assert_eq!(costs(&allgather(), None, 1), [200, 200]);
        assert_eq!(costs(&allgather(), Some(Bytes(100)), 1), [200, 250]);
        assert_eq!(costs(&allgather(), Some(Bytes(101)), 1), [200, 200]);
    }

    #[test]
    fn two_sets_of_buffers_are_twice_as_far() {
        // 200 B for each set: 400 B. With six sets a chunk is touched 1200 B later.
        assert_eq!(costs(&allgather(), None, 2), [200, 200]);
        assert_eq!(costs(&allgather(), None, 6), [800, 800]);
    }
}
