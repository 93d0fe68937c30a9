"""Copies between GPUs: one pair at a time, one way and both ways, by the driver and by kernels; their groups.

A single pair takes the time of its route (`quiet`); both directions at once are simulated, as they may share links.
"""

from __future__ import annotations

import functools
from dataclasses import replace

from linkwright import _native
from linkwright.ask.answer import How, ask
from linkwright.base.stats.clusters import Cluster, clusters
from linkwright_evidence.outcome import Cell
from linkwright_evidence.published import reference_cell, reference_rows

from .machine_pair import DGX1, GPUS, GX8, LARGE_BYTES, Machines, gb_per_s, gib_per_s, paper_cell

COPY, DMA = "copy", "dma"
SIZES = tuple(4 << (2 * i) for i in range(14))  # 4 B to 256 MiB
# Of figure 9: three of the four sizes are named.
LATENCY_SIZES = (4, 100_000, 1_000_000)
# Bars of a plot that differ by less look alike.
LATENCY_GAP = 0.15
# Columns of Tartan -> pair that stands for them; the model does not tell `staged`, peer access off, from routed.
PAIRS = {"neighbour": (0, 1), "routed": (0, 5), "staged": (0, 5)}
SHARE_FROM_BYTES = 64 << 20  # rows that the rate of a link was read off
# The paper's cells -> pair.
PAPER_PAIRS = {
    (DGX1, "copy one hop"): (0, 1), (DGX1, "copy two hops"): (0, 5),
    (GX8, "copy same riser"): (0, 1), (GX8, "copy other riser"): (0, 4),
}  # fmt: skip

Pair = tuple[int, int]


def all_pairs() -> list[Pair]:
    """All ordered pairs of different GPUs."""
    return [(a, b) for a in range(GPUS) for b in range(GPUS) if a != b]


def times_s(machine: _native.Machine, pairs: list[Pair], size_bytes: int, network: str = COPY) -> dict[Pair, float]:
    """Seconds of one copy, for pairs that `network` connects."""
    found = _native.quiet(machine, pairs, size_bytes, machine.networks.index(network))
    return {pair: route[1] / 1e12 for pair, route in zip(pairs, found, strict=True) if route is not None}


def time_s(machine: _native.Machine, pair: Pair, size_bytes: int) -> float:
    """Seconds of one copy."""
    return times_s(machine, [pair], size_bytes)[pair]


def both_ways_s(machine: _native.Machine, pair: Pair, size_bytes: int) -> float:
    """Seconds until copies in both directions, begun together, are complete."""
    builder = _native.Builder("pattern", GPUS, 2 * size_bytes, element_bytes=1)
    builder.buffer("output", 2)
    builder.step()
    builder.put(pair[0], pair[1], "output", 0)
    builder.put(pair[1], pair[0], "output", 1)
    return ask(machine, builder.finish(), How(path=COPY, issue="unlimited")).time.s


def matrix(machine: _native.Machine, size_bytes: int = LARGE_BYTES, network: str = COPY) -> dict[Pair, float]:
    """GiB/s of every pair."""
    times = times_s(machine, all_pairs(), size_bytes, network)
    return {pair: gib_per_s(size_bytes, time) for pair, time in times.items()}


def bandwidth_groups(machine: _native.Machine) -> list[Cluster]:
    """Groups of pairs by the rate of large copies, fastest first."""
    return clusters(matrix(machine))


def latency_groups(machine: _native.Machine, size_bytes: int) -> list[Cluster]:
    """Groups of targets by the time of a copy from GPU 0."""
    pairs = [(0, target) for target in range(1, GPUS)]
    return clusters(times_s(machine, pairs, size_bytes), LATENCY_GAP)


def cells(machines: Machines) -> list[Cell]:
    """The paper's copies and Tartan's sweep."""
    found = []
    for row in reference_rows("gpu-nodes", "interconnect.csv"):
        pair = PAPER_PAIRS.get((row["machine"], row["quantity"]))
        if pair:
            machine = dict(machines.items())[row["machine"]]
            rate = gib_per_s(LARGE_BYTES, time_s(machine, pair, LARGE_BYTES))
            # Only the rate of the DGX-1's links comes from elsewhere.
            role = "predicted" if (row["machine"], row["quantity"]) == (DGX1, "copy one hop") else "fitted"
            found.append(replace(paper_cell(row, "copies", rate), role=role))
        elif row["quantity"] == "host copy":
            machine = dict(machines.items())[row["machine"]]
            rate = gb_per_s(LARGE_BYTES, time_s(machine, (GPUS, 0), LARGE_BYTES))
            found.append(replace(paper_cell(row, "host copies", rate), role="input"))
    return found + [_tartan_cell(machines.dgx1, row) for row in reference_rows("gpu-nodes", "tartan.csv")]


def _tartan_cell(machine: _native.Machine, row: dict[str, str]) -> Cell:
    kind, column = row["column"].split()
    size = int(row["size_bytes"])
    keys = {"id": row["id"], "column": row["column"], "size_bytes": size}
    table = f"Tartan, time, {column}" if kind == "t" else f"Tartan, rate, {row['column']}"
    cell = reference_cell(row, table, keys, _tartan(machine, kind, PAIRS[column], size))
    return replace(cell, role="fitted") if _seen(kind, column, size) else cell


def _seen(kind: str, column: str, size: int) -> bool:
    """Whether a number of the machine was set by looking at this row of Tartan."""
    if kind == "bi":
        return column == "routed" and size == LARGE_BYTES
    return column == "routed" or (column == "neighbour" and (size == SIZES[0] or size >= SHARE_FROM_BYTES))


@functools.cache
def _tartan(machine: _native.Machine, kind: str, pair: Pair, size: int) -> float:
    if kind == "bi":
        return gb_per_s(2 * size, both_ways_s(machine, pair, size))
    time = time_s(machine, pair, size)
    return 1e6 * time if kind == "t" else gb_per_s(size, time)
