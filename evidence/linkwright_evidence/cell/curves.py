"""Figures 4 and 5: one SPE, latency and bandwidth by size, from blocking to nonblocking.

A batch is issued and then waited for; batches of 32 exceed the queue of 16, so the SPU stalls. Each of the four
operations is `put` or `get` at `memory` or at the local store of SPE 1.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable

from linkwright_evidence import Options, parallel_by_case
from linkwright_evidence.cell import known, streams
from linkwright_evidence.cell.chip import BATCHES, MEMORY, SIZES

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


def measure(machine, options: Options, issues: Iterable[str] = BATCHES, what: str = "latency and bandwidth") -> Points:
    """Every point of both figures, or those of some `issues`."""
    cases = itertools.product(OPERATIONS, issues, SIZES)
    return parallel_by_case(functools.partial(point, machine), cases, options, what)


def point(machine, op: str, issue: str, size: int) -> streams.Rates:
    """One point of either figure."""
    partner, get = OPERATIONS[op]
    return streams.measure(machine, streams.one(partner, get, size), issue)


PANELS = dict(zip(OPERATIONS, "aceg", strict=True))


def figure_4(points: Points, other: Points) -> dict[str, list[dict]]:
    """4a and 4b: blocking latency and bandwidth of the four operations, in both readings of the data phase."""
    tables = {"figure_4a": [], "figure_4b": []}
    for reading, found in (("four lines", points), ("one line", other)):
        for key, rates in found.items():
            if key[1] == "blocking":
                about = {"operation": key[0], "reading": reading, "size_bytes": key[2]}
                ns, rate = (known.point(unit, *key) if found is points else None for unit in ("ns", "GB/s"))
                latency = {"latency_ns": rates.dma_ns, "published_latency_ns": ns}
                bandwidth = {"bandwidth_gb_per_s": rates.total, "published_bandwidth_gb_per_s": rate}
                tables["figure_4a"].append(about | latency)
                tables["figure_4b"].append(about | bandwidth)
    return tables


def figure_5(points: Points) -> dict[str, list[dict]]:
    """5a to 5h: time of one DMA of a batch and bandwidth, a panel for each operation."""
    tables = {}
    for op, letter in PANELS.items():
        keys = [key for key in points if key[0] == op]
        about = [{"batch": NAMES[issue], "size_bytes": size} for _, issue, size in keys]
        times = [{"latency_ns": points[key].dma_ns} for key in keys]
        rates = [
            {"bandwidth_gb_per_s": points[key].total, "published_bandwidth_gb_per_s": known.point("GB/s", *key)}
            for key in keys
        ]
        whole = [{"batch_latency_ns": points[key].dma_ns * (BATCH_OF[key[1]] or 16384)} for key in keys]
        tables[f"figure_5{letter}"] = [a | t | w for a, t, w in zip(about, times, whole, strict=True)]
        tables[f"figure_5{chr(ord(letter) + 1)}"] = [a | r for a, r in zip(about, rates, strict=True)]
    return tables
