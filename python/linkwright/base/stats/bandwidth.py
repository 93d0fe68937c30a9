"""Bandwidth of a collective, and the size at which half of the peak is reached.

    alg_bw = S / t                 S as defined for the collective, see `size_bytes`
    bus_bw = alg_bw * f            f = bytes that each rank must send or receive, over S

f assumes that every rank drives one port and that data move the minimum number of times, so bus_bw compares
with the speed of a port for any number of ranks (nccl-tests, doc/PERFORMANCE.md). Rates are summarised as
times and then converted: the interval of a rate is the inverted interval of the time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from linkwright.base.units import NS_PER_S

# Collective -> the factor f as people write it; `linkwright._native.bus_factor` computes it.
FACTORS = {
    "allreduce": "2(p-1)/p",
    "reduce_scatter": "(p-1)/p",
    "allgather": "(p-1)/p",
    "alltoall": "(p-1)/p",
    "gather": "(p-1)/p",
    "scatter": "(p-1)/p",
    "broadcast": "1",
    "reduce": "1",
    "alltoallv": "1",
    "dispatch": "1",
    "combine": "1",
}


def alg_bw(size_bytes: int, time_ns: float) -> float | None:
    """S / t in bytes per second; None without bytes or time."""
    return size_bytes / time_ns * NS_PER_S if size_bytes and time_ns > 0 else None


def bus_bw(collective: str, ranks: int, size_bytes: int, time_ns: float) -> float | None:
    """alg_bw times the collective's factor; None where the collective has none (barrier, patterns)."""
    from linkwright import _native

    rate = alg_bw(size_bytes, time_ns)
    factor = _native.bus_factor(collective, ranks) if collective in FACTORS else None
    return rate * factor if rate is not None and factor is not None else None


def half_peak_size(sizes: Sequence[int], rates: Sequence[float]) -> float | None:
    """n_1/2: the smallest size that reaches half of the peak rate, interpolated on logarithms.

    None if even the smallest size reaches it: then the sweep does not show where it is.
    """
    points = sorted(zip(sizes, rates, strict=True))
    if not points:
        return None
    half = max(rates) / 2
    if points[0][1] >= half:
        return None
    for (size_a, rate_a), (size_b, rate_b) in itertools.pairwise(points):
        if rate_b >= half:
            share = (half - rate_a) / (rate_b - rate_a)
            return math.exp(math.log(size_a) + share * math.log(size_b / size_a))
    raise AssertionError("the peak itself reaches half of the peak")
