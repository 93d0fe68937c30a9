//! How fast square matrices are multiplied, by size, precision and number of threads.

use super::description::{Axis, AxisKind, Better, Derived, Description, Metric};

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
