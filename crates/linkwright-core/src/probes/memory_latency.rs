//! How long a load takes whose address is the result of the load before.

use super::{Axis, AxisKind, Better, Derived, Description, Metric};

/// Load-to-use latency by working set.
pub static MEMORY_LATENCY: Description = Description {
    key: "memory_latency",
    summary: "load-to-use latency of a pointer chase, by working set",
    description: "One operation is one load whose address is the value of the load before, so that none \
                  can overlap. The pointers form one cycle over all cache lines of the working set, in a \
                  random order that no prefetcher follows, or with a fixed stride that one may. While the \
                  curve is flat the working set fits into one level; a step is the end of a level. With \
                  neighbours, other cores work on memory of their own of the same size meanwhile: a \
                  latency that stays shows that nothing is shared.",
    axes: &[
        Axis {
            key: "working_set",
            kind: AxisKind::Bytes,
            summary: "bytes that the chase visits",
            default: "16K",
        },
        Axis {
            key: "order",
            kind: AxisKind::Word(&["random", "stride_64", "stride_256", "stride_4096"]),
            summary: "random, or a fixed stride in bytes",
            default: "random",
        },
        Axis {
            key: "pages",
            kind: AxisKind::Word(&["4K", "2M"]),
            summary: "size of the pages that the memory is mapped by",
            default: "4K",
        },
        Axis {
            key: "neighbours",
            kind: AxisKind::Count,
            summary: "other endpoints that work meanwhile",
            default: "0",
        },
        Axis {
            key: "neighbours_do",
            kind: AxisKind::Word(&["chase", "stream"]),
            summary: "what they do, each in memory of its own: the same chase, or reading as fast as they can",
            default: "chase",
        },
    ],
    metrics: &[Metric {
        key: "latency",
        unit: "ns",
        better: Better::Low,
        summary: "time of one load",
        from: Derived::Time,
    }],
    size_axis: Some("working_set"),
    table: "memory",
    source: "McVoy and Staelin, lmbench: Portable tools for performance analysis (USENIX 1996), lat_mem_rd; \
             random order as in Drepper, What every programmer should know about memory (2007)",
    waived: "where the working set is more than a quarter of the free memory, where 2 MiB pages are not \
             granted, or where there are fewer endpoints than neighbours plus one",
};
