//! Peak floating-point rate: the limit of every matrix product and convolution.

use super::description::{Axis, AxisKind, Better, Derived, Description, Metric};

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
