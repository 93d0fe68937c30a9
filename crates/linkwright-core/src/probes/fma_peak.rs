//! The most floating-point operations per second: the limit of every product and every convolution.

use super::{Axis, AxisKind, Better, Derived, Description, Metric};

/// Fused multiply-adds on registers.
pub static FMA_PEAK: Description = Description {
    key: "fma_peak",
    summary: "most floating-point operations per second, multiply-adds on registers only",
    description: "One operation is a row of fused multiply-adds of the widest vectors that the processor has, \
                  on every thread, with enough of them independent to fill all units; a multiply-add counts \
                  as two. Nothing touches memory. What a product or a convolution reaches is a share of this.",
    axes: &[
        Axis {
            key: "dtype",
            kind: AxisKind::Word(&["f64", "f32", "f16"]),
            summary: "data type of the elements",
            default: "f32",
        },
        Axis {
            key: "threads",
            kind: AxisKind::Count,
            summary: "endpoints that work at once",
            default: "1",
        },
    ],
    metrics: &[Metric {
        key: "flop_rate",
        unit: "Flop/s",
        better: Better::High,
        summary: "floating-point operations per second, sum of all threads",
        from: Derived::WorkRate,
    }],
    size_axis: None,
    table: "compute",
    source: "12 independent accumulators: more than two units of latency 4 or 5 need",
    waived: "for 16-bit elements, which no processor multiplies and adds in this way on every core we know; \
             where there are fewer endpoints than threads",
};
