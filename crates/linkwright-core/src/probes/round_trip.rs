//! How long until the reply to a request has arrived, by the bytes of both and by transport.

use super::description::{Axis, AxisKind, Better, Derived, Description, Metric};

/// Round trip of a request and its reply.
pub static ROUND_TRIP: Description = Description {
    key: "round_trip",
    summary: "round trip of a request and a reply, by the bytes of both and by transport",
    description: "One operation is one request of `in_bytes` from a client and one reply of `out_bytes` to it, \
                  one at a time. The other side answers when the last byte of the request has arrived, so \
                  the two transfers add, and does nothing else. Measured, client and server are two processes \
                  pinned to two cores; modelled, they are a host and its accelerator. Through user \
                  buffers, data are copied on both sides; in place, they are written and read where the \
                  other side has them; by word stores, the request goes as 8-byte stores past the cache \
                  (MMIO) and the reply in place. Every trip carries fresh data; all bytes are checked before \
                  and after the timed region.",
    axes: &[
        Axis::new("in_bytes", AxisKind::Bytes, "bytes of the request", "64"),
        Axis::new("out_bytes", AxisKind::Bytes, "bytes of the reply", "64"),
        Axis::new("transport", AxisKind::Word(&[
                "user_buffers",
                "in_place",
                "word_store",
                "pipe",
                "unix_socket",
                "tcp",
                "process_vm_readv",
            ]), "shared or device memory with copies, in place or by word stores; or a mechanism of the kernel", "user_buffers"),
    ],
    metrics: &[
        Metric::new("round_trip_p50", "ns", Better::Low, "median of the trips", Derived::Time),
        Metric::new("round_trip_mean", "ns", Better::Low, "mean of the trips of a launch; the median of these over launches", Derived::Column),
        Metric::new("round_trip_p99", "ns", Better::Low, "99th percentile of the trips of a launch; the median of these over launches", Derived::Column),
    ],
    size_axis: Some("in_bytes"),
    table: "round_trip",
    source: "\"IO Round Trip\" of the Vollo accelerator documentation (grid and questions); McVoy and Staelin, \
             lmbench: portable tools for performance analysis (1996)",
    waived: "where the system forbids the transport, such as process_vm_readv by its ptrace scope",
};
