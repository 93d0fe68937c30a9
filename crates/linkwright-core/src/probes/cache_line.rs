//! The cost of handing a cache line from one core to another.

use super::description::{Axis, AxisKind, Better, Derived, Description, Metric};

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
