//! How fast random numbers are made, by generator, block size and number of threads.

use super::description::{Axis, AxisKind, Better, Derived, Description, Metric};

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
