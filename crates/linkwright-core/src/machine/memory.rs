//! What it costs a rank to move bytes itself, by where they lie: `[path.NAME.memory]`.
//!
//! On a machine with coherent caches a put is a loop of loads and stores by the rank that initiates it.
//! The time of a byte depends on where its line is: in a near or far cache of that rank, or modified in the
//! cache of another rank.
//!
//! ```text
//! [path.message.memory]
//! eager = 48 B                       a put of at most this size travels with its notice; the receiver moves it
//! prefetch = 192 B                   streams of at least this size prefetch into the chunk behind their end
//! run = 300 ns                       added cost of every contiguous run of bytes
//! look = 200 ns                      added cost of every message that a rank sees
//! together = true                    combinations into one place, and copies, in a row are in flight together
//! [[path.message.memory.cache]]      of a rank, nearest first; the last has no `size`: the memory
//! size = 32 KiB  rate = 50 GB/s      per byte read or written
//! total = 900 GB/s                   rate for all ranks together, which also share its size
//! [[path.message.memory.other]]      lines held by another rank, nearest level first
//! level = "package"                  the innermost `[[level]]` that both ranks share
//! start = 60 ns                      once for each chunk of them
//! read_rate = 5 GB/s  write_rate = 10 GB/s
//! lost_rate = 9 GB/s                 replaces both once the lines have moved from that rank's caches to a shared one
//! ```
//!
//! If all distances are alike, a single `other` without `level` is enough. Without any `other`, lines cost every rank
//! what they cost their own: on a GPU all lines lie in the L2, whoever wrote them. `linkwright-sim/src/residence.rs`
//! explains how lines are tracked.

use super::levels::Nearness;
use super::section::Section;
use crate::error::MachineError;
use crate::units::{Bytes, BytesPerSec, TimePs};

/// One cache of a rank, or the memory behind all of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cache {
    /// Bytes that a rank may touch before a line is evicted; the memory holds everything.
    pub size: Bytes,
    /// Per byte read or written.
    pub rate: BytesPerSec,
    /// Whether several ranks share it.
    pub shared: bool,
    /// Rate of all ranks together; `None`: each has its own rate, regardless of the others.
    pub total: Option<BytesPerSec>,
}

/// Lines that another rank holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Other {
    /// Index of the innermost level that both ranks share; `None`: any.
    pub level: Option<usize>,
    /// Added once per chunk.
    pub start: TimePs,
    /// Per byte read.
    pub read_rate: BytesPerSec,
    /// Per byte written.
    pub write_rate: BytesPerSec,
    /// Per byte of lines that moved from the other's caches to a shared one; `None`: as its own lines there.
    pub lost_rate: Option<BytesPerSec>,
}

/// What moving bytes costs the rank that does it.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// Largest put that travels with its notice.
    pub eager: Bytes,
    /// Shortest stream of accesses that prefetches; `None`: none does.
    pub prefetch: Option<Bytes>,
    /// Added cost of a contiguous run, for the rank that moves it.
    pub run: TimePs,
    /// Cost of seeing a message.
    pub look: TimePs,
    /// Whether combinations into one place, and copies, that follow each other without a wait are in flight together.
    pub together: bool,
    /// Nearest first; the last one holds everything.
    pub caches: Vec<Cache>,
    /// Nearest level first; the last holds for anything farther; if empty, as for a rank's own lines.
    pub others: Vec<Other>,
}

impl Memory {
    pub(super) fn read(mut s: Section<'_>, levels: &[&str]) -> Result<Memory, MachineError> {
        let memory = Memory {
            eager: s.optional_bytes("eager")?.unwrap_or(Bytes(0)),
            prefetch: s.optional_bytes("prefetch")?,
            run: s.optional_time("run")?.unwrap_or(TimePs::ZERO),
            look: s.optional_time("look")?.unwrap_or(TimePs::ZERO),
            together: s.optional_flag("together")?.unwrap_or(false),
            caches: read_caches(&mut s)?,
            others: read_others(&mut s, levels)?,
        };
        s.finish()?;
        Ok(memory)
    }

    /// The nearest cache that holds what a rank touched `distance` bytes ago.
    #[inline]
    pub fn cache_at(&self, distance: u64) -> usize {
        let found = self.caches.iter().position(|c| distance <= c.size.0);
        found.unwrap_or(self.caches.len() - 1)
    }

    /// The costs of lines that rank `b` holds for rank `a`: those of the innermost level that both share, if any.
    pub fn other_at(&self, nearness: &Nearness, a: usize, b: usize) -> Option<&Other> {
        let shared = nearness.shared(a, b);
        let found = (self.others.iter())
            .find(|other| other.level.is_none_or(|level| Some(level) <= shared));
        found.or(self.others.last())
    }

    /// The same with the caches that have a `total` divided among `ranks`.
    pub fn divided(&self, ranks: u32) -> Memory {
        let mut memory = self.clone();
        let count = memory.caches.len();
        for cache in memory.caches[..count - 1].iter_mut() {
            if cache.total.is_some() {
                cache.size = Bytes(cache.size.0 / u64::from(ranks.max(1)));
            }
        }
        memory
    }

    /// Bytes that a rank may touch and still find in some cache.
    pub fn cached(&self) -> Bytes {
        let caches = self.caches.iter().rev().skip(1);
        caches.map(|c| c.size).max().unwrap_or(Bytes(0))
    }

    /// Bytes that a rank may touch and still find in its own caches.
    pub fn own(&self) -> Bytes {
        let own = self.caches.iter().rev().skip(1).filter(|c| !c.shared);
        own.map(|c| c.size).max().unwrap_or(Bytes(0))
    }
}

fn read_caches(s: &mut Section<'_>) -> Result<Vec<Cache>, MachineError> {
    let mut caches: Vec<Cache> = Vec::new();
    let sections = s.sections("cache")?;
    let count = sections.len();
    for (i, mut cache) in sections.into_iter().enumerate() {
        let size = match i + 1 < count {
            true => cache.bytes("size")?,
            false => Bytes(u64::MAX),
        };
        if caches.last().is_some_and(|nearer| size <= nearer.size) {
            let problem = "not larger than the cache before; order caches by size";
            return Err(cache.inconsistent("size", problem));
        }
        caches.push(Cache {
            size,
            rate: cache.rate("rate")?,
            shared: cache.optional_flag("shared")?.unwrap_or(false),
            total: cache.optional_rate("total")?,
        });
        cache.finish()?;
    }
    match caches.is_empty() {
        true => Err(s.inconsistent("cache", "a memory needs at least one [[cache]]; add it")),
        false => Ok(caches),
    }
}

fn read_others(s: &mut Section<'_>, levels: &[&str]) -> Result<Vec<Other>, MachineError> {
    let mut others: Vec<Other> = Vec::new();
    for mut other in s.sections("other")? {
        let level = other.optional_name("level", levels)?;
        others.push(Other {
            level,
            start: other.optional_time("start")?.unwrap_or(TimePs::ZERO),
            read_rate: other.rate("read_rate")?,
            write_rate: other.rate("write_rate")?,
            lost_rate: other.optional_rate("lost_rate")?,
        });
        other.finish()?;
    }
    Ok(others)
}
