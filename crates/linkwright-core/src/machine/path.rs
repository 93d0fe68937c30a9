//! What software adds to a message: the recipe `[path.NAME]`.
//!
//! A fabric models wires; a path models the program at both ends. A machine may offer several (a write
//! and a read, or a direct path and one through a staging buffer), and a run chooses one by name. For a
//! transfer of `n` bytes in `r` contiguous runs, the issuing lane is busy for
//!
//! ```text
//! start + r * per_run          then the fabric carries the message,
//!                              then the lane waits for `completion`,
//! barrier                      then checks that it has come,
//! notice_start                 and, with signal = true, sends a notice to the receiver,
//! ```
//!
//! and the receiver, once delivered (or notified), spends `receive` and then combines:
//!
//! ```text
//! combine(n) = combine_start + ceil(n / combine_tile) * (tile_handling + combine_per_tile)
//!              + n / combine_rate
//! ```
//!
//! `phase_start` is paid once for everything that a rank initiates in one step of a schedule. A program of
//! compiled exchanges spends it before each exchange, however many messages that has. Every compute pays
//! `compute_start`, every local copy `copy_start`.
//!
//! With `scratch = "own"` every contribution that arrives lands in scratch of its own, as messages do that a
//! library receives wherever there is room; with `"shared"`, the default, a sender waits until the one receive
//! buffer is ready.
//!
//! With `engine = "rank"` a rank does one thing at a time, as a thread on a processor does: all its lanes
//! become one, in the order of operation ids. With `[path.NAME.memory]` ([`super::memory`]) it also moves the
//! bytes itself: a put then costs `start` and what its loads and stores cost where the lines lie, a combination
//! that it carries included; `receive` is paid for eager puts only.
//!
//! With `[path.NAME.protocol]` ([`super::protocol`]) an allreduce runs as kernels do it: window by window, several
//! times back to back.
//!
//! With `lanes = n` transfers of a rank start in n lanes at most, as many as it has processors or queues for them: a
//! schedule with more lanes shares them, lane i with lane i modulo n. Arithmetic has a lane of its own.
//!
//! With `channels` every message stands for that many equal channels, as kernels of a GPU library cut it; a
//! transport of the fabric may say what one of them carries. A run or the plan of a library may ask for another number.
//!
//! A cost that the file leaves out is zero. `like = "NAME"` takes it from a path further up instead, so
//! that a number is written once. In LogGP terms `start` is the
//! overhead of sending and `receive` that of receiving; `completion = "source_free"`. A kernel that
//! writes, waits for the acknowledgement and then raises a semaphore has `completion =
//! "acknowledged"` and `signal = true`. What a path does not describe: contention, which is the
//! fabric's, and data dependencies, which are the schedule's.

use super::memory::Memory;
use super::protocol::Protocol;
use super::section::Section;
use crate::error::MachineError;
use crate::units::{Bytes, BytesPerSec, TimePs};

crate::words! {
    /// Which completion of a message frees its place in the issue window.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Completion {
        /// The source buffer may be overwritten.
        SourceFree = "source_free",
        /// The data are at the target.
        #[default]
        Delivered = "delivered",
        /// The initiator knows that the data are at the target.
        Acknowledged = "acknowledged",
    }
}

crate::words! {
    /// Where contributions land that cannot be combined on arrival, or that follow others.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Scratch {
        /// In as few buffers as possible, which must be ready.
        #[default]
        Shared = "shared",
        /// Each in scratch of its own, as far as there is memory.
        Own = "own",
    }
}

crate::words! {
    /// Which parts of a rank work at the same time.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Engine {
        /// Every lane independently: a processor with data movers, or several processors.
        #[default]
        Lanes = "lanes",
        /// One operation after another, whatever their lanes.
        Rank = "rank",
    }
}

/// Software costs of one way to move data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// Name, from the table's header.
    pub name: String,
    /// One line that says what the path does.
    pub summary: String,
    /// Number of the network that messages of this path take; `None` leaves it to the hints.
    pub network: Option<u8>,
    /// Software start-up of a transfer at its initiator.
    pub start: TimePs,
    /// Software start-up of all transfers of one step together, at each initiator.
    pub phase_start: TimePs,
    /// Software start-up of a compute.
    pub compute_start: TimePs,
    /// Cost at the initiator for each contiguous run of the transfer.
    pub per_run: TimePs,
    /// Software cost at the receiver, once the data are there.
    pub receive: TimePs,
    /// Cost at the initiator of checking the completion.
    pub barrier: TimePs,
    /// Software cost of sending a notice.
    pub notice_start: TimePs,
    /// What the issuing lane waits for.
    pub completion: Completion,
    /// Whether the receiver learns of the data by a notice after the completion, rather than by
    /// their arrival.
    pub signal: bool,
    /// Whether a transfer may combine at the target; otherwise `lower` makes it a transfer into
    /// scratch and a local combine.
    pub fused_combine: bool,
    /// Where contributions land.
    pub scratch: Scratch,
    /// Fixed cost of a combine.
    pub combine_start: TimePs,
    /// Rate of arithmetic over the bytes of one operand.
    pub combine_rate: Option<BytesPerSec>,
    /// Grain of a combine; costs per tile are counted in whole tiles.
    pub combine_tile: Option<Bytes>,
    /// Arithmetic per tile.
    pub combine_per_tile: TimePs,
    /// Handling per tile, which remains when the arithmetic is removed.
    pub tile_handling: TimePs,
    /// Fixed cost of a local copy.
    pub copy_start: TimePs,
    /// Rate of a local copy.
    pub copy_rate: Option<BytesPerSec>,
    /// Which parts of a rank work at the same time.
    pub engine: Engine,
    /// Costs of a rank that moves bytes itself; `None`: the fabric moves them.
    pub memory: Option<Memory>,
    /// How kernels run an allreduce; `None`: once, in the transfers of its schedule.
    pub protocol: Option<Protocol>,
    /// How many equal channels a message stands for, where a transport limits what one carries.
    pub channels: Option<u32>,
    /// Most lanes of a rank from which transfers start at once; schedules with more share them. `None`: no bound.
    pub lanes: Option<u32>,
}

impl Path {
    /// Time to combine `bytes` into a local buffer; without `arithmetic` only what surrounds it.
    pub fn combine_time(&self, bytes: Bytes, arithmetic: bool) -> TimePs {
        let tiles = self.combine_tile.map_or(0, |t| bytes.0.div_ceil(t.0));
        let mut time = self.combine_start + self.tile_handling * tiles;
        if arithmetic {
            time += self.combine_per_tile * tiles;
            time += self.combine_rate.map_or(TimePs::ZERO, |r| r.time(bytes));
        }
        time
    }

    /// Time to copy `bytes` locally.
    pub fn copy_time(&self, bytes: Bytes) -> TimePs {
        self.copy_start + self.copy_rate.map_or(TimePs::ZERO, |r| r.time(bytes))
    }

    /// Read one path; `base` has the value of every key that the table leaves out.
    fn read(
        name: &str,
        s: &mut Section<'_>,
        base: Path,
        networks: &[&str],
        levels: &[&str],
    ) -> Result<Path, MachineError> {
        let time = |s: &mut Section<'_>, key, or: TimePs| Ok(s.optional_time(key)?.unwrap_or(or));
        let mut path = Path {
            name: name.to_string(),
            summary: s.text("summary")?,
            network: (s.optional_name("network", networks)?)
                .map_or(base.network, |i| Some(i as u8)),
            start: time(s, "start", base.start)?,
            phase_start: time(s, "phase_start", base.phase_start)?,
            compute_start: time(s, "compute_start", base.compute_start)?,
            per_run: time(s, "per_run", base.per_run)?,
            receive: time(s, "receive", base.receive)?,
            barrier: time(s, "barrier", base.barrier)?,
            notice_start: time(s, "notice_start", base.notice_start)?,
            completion: (s.optional_choice("completion", &Completion::NAMES)?)
                .map_or(base.completion, |i| Completion::ALL[i]),
            signal: s.optional_flag("signal")?.unwrap_or(base.signal),
            fused_combine: s
                .optional_flag("fused_combine")?
                .unwrap_or(base.fused_combine),
            scratch: (s.optional_choice("scratch", &Scratch::NAMES)?)
                .map_or(base.scratch, |i| Scratch::ALL[i]),
            combine_start: time(s, "combine_start", base.combine_start)?,
            combine_rate: s.optional_rate("combine_rate")?.or(base.combine_rate),
            combine_tile: s.optional_bytes("combine_tile")?.or(base.combine_tile),
            combine_per_tile: time(s, "combine_per_tile", base.combine_per_tile)?,
            tile_handling: time(s, "tile_handling", base.tile_handling)?,
            copy_start: time(s, "copy_start", base.copy_start)?,
            copy_rate: s.optional_rate("copy_rate")?.or(base.copy_rate),
            engine: (s.optional_choice("engine", &Engine::NAMES)?)
                .map_or(base.engine, |i| Engine::ALL[i]),
            memory: match s.optional_section("memory")? {
                Some(memory) => Some(Memory::read(memory, levels)?),
                None => base.memory,
            },
            protocol: base.protocol,
            channels: some(s, "channels", base.channels)?,
            lanes: some(s, "lanes", base.lanes)?,
        };
        path.check(s)?;
        if let Some(protocol) = s.optional_section("protocol")? {
            path.protocol = Some(Protocol::read(protocol, path.combine_tile)?);
        }
        Ok(path)
    }

    /// Without a tile, costs per tile would silently never be paid.
    fn check(&self, s: &Section<'_>) -> Result<(), MachineError> {
        let per_tile = ["combine_per_tile", "tile_handling"];
        match self.combine_tile {
            None => match per_tile.into_iter().find(|k| s.has(k)) {
                Some(key) => {
                    Err(s.inconsistent(key, "needs `combine_tile`, the size of a tile; add it"))
                }
                None => Ok(()),
            },
            Some(Bytes(0)) => Err(s.inconsistent(
                "combine_tile",
                "a tile has at least one byte; write its size",
            )),
            Some(_) => Ok(()),
        }
    }
}

/// How many there are of something without which nothing moves.
fn some(
    s: &mut Section<'_>,
    key: &'static str,
    or: Option<u32>,
) -> Result<Option<u32>, MachineError> {
    match s.optional_count(key)?.map(u32::try_from) {
        None => Ok(or),
        Some(Ok(n)) if n > 0 => Ok(Some(n)),
        Some(_) => {
            let problem = format!("0 {key} carry nothing; write 1 to 4294967295");
            Err(s.inconsistent(key, problem))
        }
    }
}

/// All paths of `[path.*]`, the default first: the one with `default = true`, else the first.
///
/// A path may name one of the machine's `networks`; its messages then take that one, whatever a schedule
/// hints at.
pub(crate) fn read(
    mut all: Section<'_>,
    networks: &[String],
    levels: &[&str],
) -> Result<Vec<Path>, MachineError> {
    let networks: Vec<&str> = networks.iter().map(String::as_str).collect();
    let mut paths: Vec<Path> = Vec::new();
    let mut default = None;
    for name in all.names() {
        let mut s = all.section(name)?;
        if s.optional_flag("default")?.unwrap_or(false) {
            if default.is_some() {
                return Err(s.inconsistent("default", "a second default path; keep one"));
            }
            default = Some(paths.len());
        }
        let base = match s.optional_text("like")? {
            None => Path::default(),
            Some(like) => match paths.iter().find(|path| path.name == like) {
                Some(path) => path.clone(),
                None => {
                    let problem = format!("no path `{like}` stands above this one; move it up");
                    return Err(s.inconsistent("like", problem));
                }
            },
        };
        paths.push(Path::read(name, &mut s, base, &networks, levels)?);
        s.finish()?;
    }
    if paths.is_empty() {
        return Err(all.inconsistent("", "a machine needs at least one path; add [path.NAME]"));
    }
    all.finish()?;
    let default = paths.remove(default.unwrap_or(0));
    paths.insert(0, default);
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combine_counts_whole_tiles_and_keeps_handling_without_arithmetic() {
        let path = Path {
            combine_start: TimePs(5),
            combine_tile: Some(Bytes(2048)),
            combine_per_tile: TimePs(64_000),
            tile_handling: TimePs(40_000),
            combine_rate: Some(BytesPerSec(1e9)),
            ..Path::default()
        };
        // 2049 bytes are two tiles: 5 + 2 * (40,000 + 64,000) + 2,049,000 ps
        assert_eq!(path.combine_time(Bytes(2049), true), TimePs(2_257_005));
        assert_eq!(path.combine_time(Bytes(2049), false), TimePs(80_005));
        assert_eq!(path.copy_time(Bytes(1 << 20)), TimePs::ZERO);
    }
}
