//! How fast square matrices are multiplied, by size, precision and number of threads.

use super::{Axis, AxisKind, Better, Derived, Description, Metric};

/// Dense matrix product.
pub static MATMUL: Description = Description {
    key: "matmul",
    summary: "square matrix product C = A B, by n, precision and threads",
    description: "One operation is one product of two dense n x n matrices into a third, 2 n^3 floating-point \
                  operations whatever the method. Measured, it is NumPy's matmul, so the BLAS that NumPy was \
                  built with, and for 16-bit elements onnxruntime where it computes in them; on a GPU PyTorch's \
                  where it is installed, else CuPy's, on all SMs at once. The matrices stay \
                  the same, so small ones stay in the caches. The largest n is bounded by memory (three \
                  matrices in a quarter of what is free) and by time (some ten products within a launch's share).",
    axes: &[
        Axis {
            key: "n",
            kind: AxisKind::Count,
            summary: "rows and columns of each matrix",
            default: "1024",
        },
        Axis {
            key: "dtype",
            kind: AxisKind::Word(&["f64", "f32", "tf32", "f16", "bf16", "f8"]),
            summary: "data type of the elements; tf32, bf16 and f8 (e4m3, result in bf16) on GPUs; f16 on described machines: \
                      16-bit factors, wider sums",
            default: "f32",
        },
        Axis {
            key: "threads",
            kind: AxisKind::Count,
            summary: "endpoints that work on one product",
            default: "1",
        },
    ],
    metrics: &[Metric {
        key: "flop_rate",
        unit: "Flop/s",
        better: Better::High,
        summary: "2 n^3 over the time of one product",
        from: Derived::WorkRate,
    }],
    size_axis: None,
    table: "compute",
    source: "Jia, Tillman, Maggioni, Scarpazza, Dissecting the Graphcore IPU architecture via microbenchmarking \
             (2019), tables 5.1 and 5.2",
    waived: "where the matrices do not fit into memory or one product into the time budget; a type that no library \
             multiplies as such; on a GPU for more than one thread, which stands for all SMs",
};
