//! What it costs to hand one cache line from one core to another.

use super::{Axis, AxisKind, Better, Derived, Description, Metric};

/// Core-to-core latency of a cache line.
pub static CACHE_LINE: Description = Description {
    key: "cache_line",
    summary: "a cache line from one core to another: compare-and-swap, two lines, one way",
    description: "One operation is one passing of a line from the first core of the pair to the second, half a \
                  round trip where there is one. compare_and_swap: both swap a number in one line, in \
                  turn. read_write: each writes a line of its own and reads the other's. one_way: the first \
                  writes the time into a line, the second reads it and the clock; this needs clocks \
                  that agree between cores. Lines are new for each pair and launch, and first touched by \
                  one of the two, because a line has a home, and it matters whose.",
    axes: &[
        Axis {
            key: "how",
            kind: AxisKind::Word(&["compare_and_swap", "read_write", "one_way"]),
            summary: "how the line is handed over",
            default: "compare_and_swap",
        },
        Axis {
            key: "touched_by",
            kind: AxisKind::Word(&["first", "second"]),
            summary: "which of the two touches the lines first",
            default: "first",
        },
    ],
    metrics: &[Metric {
        key: "latency",
        unit: "ns",
        better: Better::Low,
        summary: "one way; of a round trip, half of it",
        from: Derived::Time,
    }],
    size_axis: None,
    table: "cache_line",
    source: "core-to-core-latency by N. Viennot, for compare-and-swap and read/write",
    waived: "where there are fewer than two endpoints; one_way also where the clock is not the time-stamp \
             counter, or where the clocks of the two cores disagree",
};
