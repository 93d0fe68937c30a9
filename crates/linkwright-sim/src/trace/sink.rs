//! What a trace consists of, whatever its form: tracks, slices on them, values of counters, arrows between slices.

use std::io;
use std::ops::Range;

/// A line of a trace.
pub(super) struct Track<'a> {
    /// Number, at least 1.
    pub id: u64,
    /// The track under which it is shown.
    pub parent: Option<u64>,
    /// What readers see.
    pub name: &'a str,
    /// Whether it shows values instead of slices.
    pub counts: bool,
}

/// Something that lasts for a time.
pub(super) struct Slice<'a> {
    pub track: u64,
    pub name: &'a str,
    /// Picoseconds.
    pub from: u64,
    pub to: u64,
    /// What else is known of it, by number of [`ARGUMENTS`].
    pub arguments: &'a [(usize, u64)],
    /// Arrows that begin here.
    pub leaving: &'a [u64],
    /// Arrows that end here; what they left comes earlier in the trace.
    pub arriving: Range<u64>,
}

/// Names of arguments.
pub(super) const ARGUMENTS: [&str; 3] = ["operation", "step", "bytes"];
pub(super) const OPERATION: usize = 0;
pub(super) const STEP: usize = 1;
pub(super) const BYTES: usize = 2;

/// A form of traces. Slices of one track come in the order of time, or one within another.
pub(super) trait Sink {
    /// Before everything else.
    fn begin(&mut self) -> io::Result<()>;

    /// A track, before its first slice or value; tracks with the same parent are shown in the order of their coming.
    fn track(&mut self, track: &Track<'_>) -> io::Result<()>;

    /// A slice.
    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()>;

    /// From `at` on, the counter has this value.
    fn value(&mut self, track: u64, at: u64, value: f64) -> io::Result<()>;

    /// After everything else.
    fn end(&mut self) -> io::Result<()>;
}
