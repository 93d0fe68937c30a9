//! How fast memory is read and written, by block size, width of one access and number of threads.

use super::description::{Axis, AxisKind, Better, Derived, Description, Metric};

/// Streaming bandwidth by block size.
pub static MEMORY_BANDWIDTH: Description = Description {
    key: "memory_bandwidth",
    summary: "read, write, copy and triad bandwidth, by block size, load width and threads",
    description: "One operation is one pass of every thread over blocks of its own: one array for read and \
                  write, two for copy, three for triad (a = b + s c, in 64-bit floats), each of the block \
                  size. Counted bytes are those that the program reads and writes, summed over threads. \
                  Moved bytes are an estimate of what travels: a line that is written without being \
                  read is fetched first (write-allocate), unless its stores are non-temporal.",
    axes: &[
        Axis::new("block", AxisKind::Bytes, "bytes of one array of one thread", "16K"),
        Axis::new("kernel", AxisKind::Word(&["read", "write", "copy", "triad"]), "what is done with each element", "read"),
        Axis::new("width", AxisKind::Word(&["widest", "32", "64", "128", "256", "512", "non_temporal"]), "bits of one load or store; non_temporal: the widest, with stores that bypass the caches", "widest"),
        Axis::new("threads", AxisKind::Count, "endpoints that work at once, each in memory of its own", "1"),
    ],
    metrics: &[
        Metric::new("bandwidth", "B/s", Better::High, "counted bytes per second, sum of all threads", Derived::CountedRate),
        Metric::new("moved_bandwidth", "B/s", Better::High, "the same, including lines that are fetched because they are written", Derived::MovedRate),
    ],
    size_axis: Some("block"),
    table: "memory",
    source: "McCalpin, Memory bandwidth and machine balance in current high performance computers (1995), STREAM",
    waived: "where the processor lacks the width, where the blocks are more than a quarter of the free \
             memory, or where there are fewer endpoints than threads",
};
