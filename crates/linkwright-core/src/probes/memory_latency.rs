//! How long a load takes when its address is the result of the previous load.

use super::description::{Axis, AxisKind, Better, Derived, Description, Metric};

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
