"""Probes that only a GPU answers, measured by `linkwright.executors.cuda.probes`.

A GPU also answers probes of the catalogue whose axes fit: `memory_latency` (in pages of 2 MiB), `memory_bandwidth`,
and `cache_line` between any two SMs.
"""

from __future__ import annotations

import functools

from linkwright.base.errors import WaivedError

from . import Axes, Axis, Metric, ProbeKind, Setting

_LATENCY = Metric("latency", "ns", "low", "time of one operation", "time")
_ORDERS = ("random", "stride_128", "stride_4096")
_LINES = "Jin et al., Uncovering real GPU NoC characteristics: implications on interconnect architecture (MICRO 2024)"
_PAIRS = (
    Axis("bytes", "bytes", "size of a message", "32K"),
    Axis("through", "word", "where messages go", "l2", ("l2", "cluster")),
    Axis("cluster", "count", "blocks of a cluster: 2, 4, 8 or 16", "2"),
)
_UNDER_LOAD = (
    "Luo et al., Benchmarking and dissecting the Nvidia Hopper GPU architecture (2024); under load as in Jin et al., "
    "Uncovering real GPU NoC characteristics (MICRO 2024)"
)
_SMS = "SMs that take part at once"
_PAIRS_WAIVED = (
    "on a host, for an odd number of SMs; `cluster` also on a GPU without clusters, and where they do not fit"
)


def _bandwidth(summary: str) -> Metric:
    return Metric("bandwidth", "B/s", "high", summary, "counted_rate")


def _on_a_gpu(key: str, axes: Axes, setting: Setting) -> dict:
    raise WaivedError(f"probe {key}: waived: it needs the SMs of a GPU; measure it with --on cuda")


def _probe(
    key: str, summary: str, description: str, axes: tuple[Axis, ...], source: str, waived: str, **more
) -> ProbeKind:
    return ProbeKind(
        key=key, summary=summary, description=description, axes=axes, source=source, waived=waived,
        metrics=more.pop("metrics", (_LATENCY,)), measure=functools.partial(_on_a_gpu, key), **more,
    )  # fmt: skip


PROBES = (
    _probe(
        "sm_load_latency",
        "load-to-use latency of one SM, by what the load passes through and by working set",
        "One operation is one 8-byte load whose address is the value of the previous load, one per 128-byte line. "
        "`shared` loads from the shared memory of the block, `l1` through the L1 and the levels behind it, `l2` past "
        "the L1, `cluster` from the shared memory of another SM. The working set decides which level answers. "
        "`threads` SMs chase at once, each through memory of its own, or in a cluster through that of the next SM.",
        (
            Axis("through", "word", "what a load passes through", "l1", ("shared", "l1", "l2", "cluster")),
            Axis("working_set", "bytes", "bytes that the chase visits", "16K"),
            Axis("order", "word", "random, or a fixed stride in bytes", "random", _ORDERS),
            Axis("threads", "count", _SMS, "1"),
        ),
        "Saavedra and Smith, Measuring cache and TLB performance (1995); Wong et al., Demystifying GPU "
        "microarchitecture through microbenchmarking (ISPASS 2010)",
        "on a host; where the working set is more than a quarter of the GPU's memory, or than a block's shared "
        "memory; `cluster` also on a GPU without clusters",
        size_axis="working_set",
    ),
    _probe(
        "sm_l2_latency",
        "latency of single lines of the L2: those near an SM, and those of the far partition",
        "One operation is one 8-byte access to a line of the L2, past the L1, whose address is the result of the "
        "previous access; the value is the mean over lines. Lines are timed one by one; if their latencies form two "
        "groups, these are the near and the far partition. A copy kept by the near partition may answer a `load`; an "
        "`atomic` addition of zero happens where the line has its home. `threads` SMs access lines at once.",
        (
            Axis("access", "word", "a load past the L1, or an atomic addition", "load", ("load", "atomic")),
            Axis("working_set", "bytes", "bytes of the lines that are timed", "256K"),
            Axis("threads", "count", _SMS, "1"),
        ),
        _LINES,
        "on a host; for fewer lines than 2, or more than their numbers fit into a block's shared memory",
        metrics=(
            Metric("latency", "ns", "low", "mean over lines, of the slowest SM", "time"),
            Metric("near", "ns", "low", "median of the near lines, or of all if they form one group", "column"),
            Metric("far", "ns", "low", "median of the far lines; absent if all lines form one group", "column"),
            Metric("near_share", "1", "", "share of the lines that are near", "column"),
            Metric("nearest", "ns", "low", "5th percentile over lines", "column"),
            Metric("farthest", "ns", "low", "95th percentile over lines", "column"),
        ),
        size_axis="working_set",
    ),
    _probe(
        "sm_l2_bandwidth",
        "bandwidth of reading lines of the L2, by partition",
        "One operation is one pass over lines of the L2, past the L1, with all threads of the SMs that take part. "
        "Lines that are `near` or `far` from each SM are identified first, by atomic additions as in sm_l2_latency; "
        "all SMs read the same number of lines.",
        (
            Axis("side", "word", "which lines", "near", ("near", "far", "any")),
            Axis("working_set", "bytes", "bytes from which lines are chosen", "256K"),
            Axis("threads", "count", _SMS, "1"),
        ),
        _LINES,
        "on a host; `near` and `far` on a GPU whose L2 shows one partition",
        metrics=(_bandwidth("bytes that all SMs read over their time"),),
        size_axis="working_set",
    ),
    _probe(
        "sm_cluster_latency",
        "half a round trip between two SMs of a cluster through distributed shared memory",
        "One operation passes a count from one block of a cluster to another, or back: each waits at a word of its "
        "own shared memory, which the other writes. The hardware places the blocks.",
        (
            Axis("threads", "count", "blocks of the cluster: 2, 4, 8 or 16", "2"),
            Axis("first", "count", "the block that sends the request", "0"),
            Axis("peer", "count", "the block that replies", "1"),
        ),
        "Luo et al., Benchmarking and dissecting the Nvidia Hopper GPU architecture (2024)",
        "on a host, on a GPU without clusters (before sm_90), and where the GPU forms no cluster of that size",
    ),
    _probe(
        "sm_pair_bandwidth",
        "bandwidth of messages from SM to SM, by path, size and number of pairs",
        "One operation is one message of every pair: one SM waits for one of two slots to be free and writes, the "
        "other waits for the message and reads. Through the `l2` both lie in global memory; in a `cluster` the writer "
        "stores into the shared memory of the reader. The bandwidth is the sum over all pairs.",
        (*_PAIRS, Axis("threads", "count", "SMs that take part: twice the pairs", "2")),
        _UNDER_LOAD,
        _PAIRS_WAIVED,
        metrics=(_bandwidth("bytes that all pairs move over their time"),),
        size_axis="bytes",
    ),
    _probe(
        "sm_loaded_latency",
        "half a round trip between two SMs while other pairs send each other messages",
        "One operation passes a word from the first SM to the second, or back, while all other pairs send messages as "
        "in sm_pair_bandwidth, without a pause; their bandwidth is a metric too. With two SMs there is no load.",
        (*_PAIRS, Axis("threads", "count", "SMs that take part: twice the pairs, the first of which is timed", "2")),
        _UNDER_LOAD,
        _PAIRS_WAIVED,
        metrics=(_LATENCY, Metric("load_bandwidth", "B/s", "", "bytes per second that the other pairs move", "column")),
        size_axis="bytes",
    ),
    _probe(
        "sm_barrier",
        "a barrier of SMs: a counter in the L2, or the hardware of a cluster",
        "One operation is one barrier of all threads of all blocks that take part, 256 threads each. `grid` adds to a "
        "counter in the L2 and waits for it, with a barrier of the block on either side; `cluster` is the instruction.",
        (
            Axis("how", "word", "which barrier", "grid", ("grid", "cluster")),
            Axis("threads", "count", _SMS, "2"),
        ),
        "CUDA C++ programming guide, cooperative groups and thread block clusters",
        "on a host; `cluster` also on a GPU without clusters and for other numbers than 2, 4, 8, 16",
    ),
    _probe(
        "gpu_copy",
        "a copy between the host and its GPU, by size, direction and kind of host memory",
        "One operation is one copy by the driver. The caller waits for each, so small sizes show the latency of a "
        "call and large ones the link; or it waits for a number of `queued` copies, so the link is never idle. "
        "Pageable memory goes through buffers of the driver, pinned memory does not.",
        (
            Axis("bytes", "bytes", "size of a copy", "64K"),
            Axis("direction", "word", "where to", "to_device", ("to_device", "to_host")),
            Axis("memory", "word", "kind of host memory", "pinned", ("pageable", "pinned")),
            Axis("queued", "count", "copies that the caller starts before it waits", "1"),
        ),
        "nvbandwidth, host to device and device to host by the copy engine",
        "on a host without a GPU; where the copy is more than a quarter of the GPU's memory",
        metrics=(_LATENCY, _bandwidth("bytes of a copy over its time")),
        size_axis="bytes",
    ),
    _probe(
        "sm_atomic",
        "an atomic addition whose result is used, at one word or at many",
        "One operation is one addition by every thread that takes part, each waiting for the result of its previous "
        "one. With `same` all add to one word, which the L2 serialises; with `own` each warp has a line of its own.",
        (
            Axis("at", "word", "one word for all, or a line for each warp", "same", ("same", "own")),
            Axis("warps", "count", "warps of 32 threads on each SM", "1"),
            Axis("threads", "count", _SMS, "1"),
        ),
        "PTX ISA, atom",
        "on a host; for more than 32 warps",
        metrics=(_LATENCY, Metric("add_rate", "1/s", "high", "additions of all threads per second", "work_rate")),
    ),
)
