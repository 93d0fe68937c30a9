//! The questions, in reading order.

use super::convolution::CONVOLUTION;
use super::description::{Axis, AxisKind, Better, Derived, Description, Metric};

/// Every probe, in reading order.
pub static CATALOGUE: &[&Description] = &[
    &MEMORY_LATENCY,
    &MEMORY_BANDWIDTH,
    &LOADED_LATENCY,
    &CACHE_LINE,
    &ROUND_TRIP,
    &FMA_PEAK,
    &MATMUL,
    &CONVOLUTION,
    &RANDOM,
];

/// Load-to-use latency by working set.
pub static MEMORY_LATENCY: Description = Description {
    key: "memory_latency",
    summary: "load-to-use latency of a pointer chase, by working set",
    description: "One operation is one load whose address is the value of the previous load, so loads \
                  cannot overlap. The pointers form one cycle over all cache lines of the working set, in a \
                  random order that no prefetcher follows, or with a fixed stride that one may. While the \
                  curve is flat the working set fits into one level; a step is the end of a level. With \
                  neighbours, other cores meanwhile work on memory of their own of the same size: if the \
                  latency does not change, nothing is shared.",
    axes: &[
        Axis::new("working_set", AxisKind::Bytes, "bytes that the chase visits", "16K"),
        Axis::new("order", AxisKind::Word(&["random", "stride_64", "stride_256", "stride_4096"]), "random, or a fixed stride in bytes", "random"),
        Axis::new("pages", AxisKind::Word(&["4K", "2M"]), "size of the pages that map the memory", "4K"),
        Axis::new("neighbours", AxisKind::Count, "other endpoints that work meanwhile", "0"),
        Axis::new("neighbours_do", AxisKind::Word(&["chase", "stream"]), "what they do, each in memory of its own: the same chase, or reading as fast as they can", "chase"),
    ],
    metrics: &[Metric::new("latency", "ns", Better::Low, "time of one load", Derived::Time)],
    size_axis: Some("working_set"),
    table: "memory",
    source: "McVoy and Staelin, lmbench: Portable tools for performance analysis (USENIX 1996), lat_mem_rd; \
             random order as in Drepper, What every programmer should know about memory (2007)",
    waived: "where the working set is more than a quarter of the free memory, where 2 MiB pages are not \
             granted, or where there are fewer endpoints than neighbours plus one",
};

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

/// Latency against injected bandwidth.
pub static LOADED_LATENCY: Description = Description {
    key: "loaded_latency",
    summary: "latency while others read: at memory, at the shared cache, between two cores",
    description: "One operation is one dependent load at memory or at the shared cache, or half a round trip of \
                  a cache line between two cores. Meanwhile the injectors read memory of their own at the \
                  same place in pieces of 4 KiB and pause between pieces: the shorter the pause, the \
                  more bandwidth they inject, which is a metric of its own. Latency over \
                  injected bandwidth bends up where the place saturates.",
    axes: &[
        Axis::new("at", AxisKind::Word(&["memory", "shared_cache", "core_to_core"]), "what is shared", "memory"),
        Axis::new("pause", AxisKind::Count, "nanoseconds that an injector waits after each 4 KiB", "0"),
        Axis::new("injectors", AxisKind::Count, "other endpoints that read", "1"),
    ],
    metrics: &[
        Metric::new("latency", "ns", Better::Low, "time of one load, or half a round trip", Derived::Time),
        Metric::new("injected_bandwidth", "B/s", Better::Neither, "bytes per second that all injectors read meanwhile", Derived::Column),
    ],
    size_axis: None,
    table: "memory",
    source: "the loaded-latency test of Intel Memory Latency Checker, as its documentation describes it",
    waived: "where the machine does not report a shared cache, where there are fewer endpoints than injectors \
             plus one (two between cores), or where the memory is more than a quarter of what is free",
};

/// Core-to-core latency of a cache line.
pub static CACHE_LINE: Description = Description {
    key: "cache_line",
    summary: "a cache line from one core to another: compare-and-swap, two lines, one way",
    description: "One operation hands a line from the first core of the pair to the second; where the line comes \
                  back, it is half a round trip. compare_and_swap: both swap a number in one line, in turn. \
                  read_write: each writes its own line and reads the other's. one_way: the first writes the \
                  time into a line, and the second reads it and the clock; this needs clocks that agree \
                  between cores. Lines are new for each pair and launch. One of the two cores touches them \
                  first, because a line has a home and its place matters.",
    axes: &[
        Axis::new("how", AxisKind::Word(&["compare_and_swap", "read_write", "one_way"]), "how the line is handed over", "compare_and_swap"),
        Axis::new("touched_by", AxisKind::Word(&["first", "second"]), "which of the two touches the lines first", "first"),
    ],
    metrics: &[Metric::new("latency", "ns", Better::Low, "one way, or half of a round trip", Derived::Time)],
    size_axis: None,
    table: "cache_line",
    source: "core-to-core-latency by N. Viennot, for compare-and-swap and read/write",
    waived: "where there are fewer than two endpoints; one_way also where the clock is not the time-stamp \
             counter, or where the clocks of the two cores disagree",
};

/// Round trip of a request and its reply.
pub static ROUND_TRIP: Description = Description {
    key: "round_trip",
    summary: "round trip of a request and a reply, by the bytes of both and by transport",
    description: "One operation is one request of `in_bytes` from a client and one reply of `out_bytes` to it, \
                  one at a time. The other side answers when the last byte of the request has arrived, so \
                  the two transfers add, and does nothing else. Measured, client and server are two processes \
                  pinned to two cores; modelled, they are a host and its accelerator. Through user \
                  buffers, data are copied on both sides; in place, they are written and read where the \
                  other side has them; by word stores, the request goes as 8-byte stores past the cache \
                  (MMIO) and the reply in place. Every trip carries fresh data; all bytes are checked before \
                  and after the timed region.",
    axes: &[
        Axis::new("in_bytes", AxisKind::Bytes, "bytes of the request", "64"),
        Axis::new("out_bytes", AxisKind::Bytes, "bytes of the reply", "64"),
        Axis::new("transport", AxisKind::Word(&[
                "user_buffers",
                "in_place",
                "word_store",
                "pipe",
                "unix_socket",
                "tcp",
                "process_vm_readv",
            ]), "shared or device memory with copies, in place or by word stores; or a mechanism of the kernel", "user_buffers"),
    ],
    metrics: &[
        Metric::new("round_trip_p50", "ns", Better::Low, "median of the trips", Derived::Time),
        Metric::new("round_trip_mean", "ns", Better::Low, "mean of the trips of a launch; the median of these over launches", Derived::Column),
        Metric::new("round_trip_p99", "ns", Better::Low, "99th percentile of the trips of a launch; the median of these over launches", Derived::Column),
    ],
    size_axis: Some("in_bytes"),
    table: "round_trip",
    source: "\"IO Round Trip\" of the Vollo accelerator documentation (grid and questions); McVoy and Staelin, \
             lmbench: portable tools for performance analysis (1996)",
    waived: "where the system forbids the transport, such as process_vm_readv by its ptrace scope",
};

/// Fused multiply-adds on registers.
pub static FMA_PEAK: Description = Description {
    key: "fma_peak",
    summary: "peak floating-point rate: multiply-adds on registers only",
    description: "One operation is a sequence of fused multiply-adds on the processor's widest vectors, on every \
                  thread, with enough of them independent to fill all units. A multiply-add counts as two \
                  operations. Nothing touches memory. The rate is the upper limit of every matrix product and \
                  convolution.",
    axes: &[
        Axis::new("dtype", AxisKind::Word(&["f64", "f32", "f16"]), "data type of the elements", "f32"),
        Axis::new("threads", AxisKind::Count, "endpoints that work at once", "1"),
    ],
    metrics: &[Metric::new("flop_rate", "Flop/s", Better::High, "floating-point operations per second, sum of all threads", Derived::WorkRate)],
    size_axis: None,
    table: "compute",
    source: "12 independent accumulators: more than two units of latency 4 or 5 need",
    waived: "for 16-bit elements, which not every core multiplies and adds this way; where there are fewer endpoints than threads",
};

/// Dense matrix product.
pub static MATMUL: Description = Description {
    key: "matmul",
    summary: "square matrix product C = A B, by n, precision and threads",
    description: "One operation is one product of two dense n x n matrices into a third, 2 n^3 floating-point \
                  operations regardless of the method. On a host it is NumPy's matmul, that is, the BLAS that \
                  NumPy was built with, and for 16-bit elements onnxruntime where it computes in them; on a GPU \
                  it is PyTorch's where installed, else CuPy's, on all SMs at once. The matrices do not change, \
                  so small ones stay in the caches. n is limited by memory (three matrices in a quarter of \
                  what is free) and by time (about ten products within a launch's share).",
    axes: &[
        Axis::new("n", AxisKind::Count, "rows and columns of each matrix", "1024"),
        Axis::new("dtype", AxisKind::Word(&["f64", "f32", "tf32", "f16", "bf16", "f8"]), "data type of the elements; tf32, bf16 and f8 (e4m3, result in bf16) on GPUs; \
             f16 on described machines: 16-bit factors, wider sums", "f32"),
        Axis::new("threads", AxisKind::Count, "endpoints that work on one product", "1"),
    ],
    metrics: &[Metric::new("flop_rate", "Flop/s", Better::High, "2 n^3 over the time of one product", Derived::WorkRate)],
    size_axis: None,
    table: "compute",
    source: "Jia, Tillman, Maggioni, Scarpazza, Dissecting the Graphcore IPU architecture via microbenchmarking \
             (2019), tables 5.1 and 5.2",
    waived: "where the matrices do not fit into memory or one product into the time budget; a type that no library \
             multiplies as such; on a GPU for more than one thread, which stands for all SMs",
};

/// Pseudo-random generation.
pub static RANDOM: Description = Description {
    key: "random",
    summary: "pseudo-random numbers, by generator, block size and threads",
    description: "One operation fills a block with uniform 64-bit floats in [0, 1) of 53 random bits each; with \
                  several threads each has a generator and a block of its own. One call fills one block: small \
                  blocks show the cost of a call, large ones the rate. `store` fills the block with one \
                  value; storing alone is the limit of every generator at that block size. Floats from \
                  cuRAND have as many random bits as the generator provides, 32 or 53.",
    axes: &[
        Axis::new("generator", AxisKind::Word(&[
                "store",
                "numpy_pcg64",
                "numpy_pcg64dxsm",
                "numpy_mt19937",
                "numpy_philox",
                "numpy_sfc64",
                "rust_chacha8",
                "rust_chacha12",
                "rust_chacha20",
                "rust_pcg64",
                "rust_pcg64dxsm",
                "rust_pcg64mcg",
                "rust_xoshiro256pp",
                "curand_xorwow",
                "curand_mrg32k3a",
                "curand_mtgp32",
                "curand_mt19937",
                "curand_philox4",
                "machine",
            ]), "library and generator; rust_xoshiro256pp is rand's SmallRng, curand_* are a GPU's, `machine` what a described \
                      machine has", "numpy_pcg64"),
        Axis::new("block", AxisKind::Bytes, "bytes that one call fills, 8 per sample", "64K"),
        Axis::new("threads", AxisKind::Count, "endpoints that generate at once, each its own block", "1"),
    ],
    metrics: &[Metric::new("sample_rate", "1/s", Better::High, "random numbers per second, sum of all threads", Derived::WorkRate)],
    size_axis: Some("block"),
    table: "compute",
    source: "Jia, Tillman, Maggioni, Scarpazza, Dissecting the Graphcore IPU architecture via microbenchmarking \
             (2019), figures 5.4 and 5.5",
    waived: "where the machine has another generator; where there are fewer endpoints than threads; on a GPU for more \
             than one thread, which stands for all SMs",
};
