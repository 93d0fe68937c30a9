//! Latency while others use the same memory or cache.

use super::description::{Axis, AxisKind, Better, Derived, Description, Metric};

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
