"""Figures 4 and 5: one SPE, latency and bandwidth by size, from blocking to nonblocking.

A batch is issued and then waited for; batches of 32 exceed the queue of 16, so the SPU stalls. Each of the four
operations is `put` or `get` at `memory` or at the local store of SPE 1.
"""

from __future__ import annotations

from linkwright.studies import Options, parallel
from linkwright.studies.cell import streams
from linkwright.studies.cell.chip import BATCHES, MEMORY, SIZES

OPERATIONS = {
    "put to memory": (MEMORY, False),
    "get from memory": (MEMORY, True),
    "put to local store": (1, False),
    "get from local store": (1, True),
}
BATCH_OF = {"blocking": 1, "unlimited": None} | {f"batch({k})": k for k in (2, 4, 8, 16, 32)}
NAMES = {"blocking": "blocking", "unlimited": "nonblocking"} | {f"batch({k})": f"batch {k}" for k in (2, 4, 8, 16, 32)}

# (operation, issue, size) -> rates.
Points = dict[tuple[str, str, int], streams.Rates]


def measure(machine, options: Options) -> Points:
    """Every point of both figures."""
    cases = [(op, issue, size) for op in OPERATIONS for issue in BATCHES for size in SIZES]

    def one(case: tuple[str, str, int]) -> streams.Rates:
        op, issue, size = case
        partner, get = OPERATIONS[op]
        return streams.measure(machine, streams.one(partner, get, size), issue)

    return dict(zip(cases, parallel(one, cases, options, "latency and bandwidth"), strict=True))


def blocking(machine, op: str, size: int) -> streams.Rates:
    """One point of figure 4."""
    partner, get = OPERATIONS[op]
    return streams.measure(machine, streams.one(partner, get, size), "blocking")


def figure_4(points: Points, other: Points) -> list[dict]:
    """Blocking latency and bandwidth of the four operations, in both readings of the data phase."""
    rows = []
    for reading, found in (("four lines", points), ("one line", other)):
        for (op, issue, size), rates in found.items():
            if issue == "blocking":
                figures = {"latency_ns": rates.dma_ns, "bandwidth_gbs": rates.total}
                rows.append({"operation": op, "reading": reading, "size_bytes": size, **figures})
    return rows


def figure_5(points: Points) -> list[dict]:
    """Latency of a batch and of one DMA of it, and bandwidth, by operation and batch."""
    rows = []
    for (op, issue, size), rates in points.items():
        batch = BATCH_OF[issue]
        figures = {
            "batch_latency_ns": rates.dma_ns * batch if batch else None,
            "latency_ns": rates.dma_ns,
            "bandwidth_gbs": rates.total,
        }
        rows.append({"operation": op, "batch": NAMES[issue], "size_bytes": size, **figures})
    return rows
