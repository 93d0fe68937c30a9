"""Bandwidth of a collective, and the size at which half of the peak is reached.

    alg_bw = S / t                 S as defined for the collective, see `size_bytes`
    bus_bw = alg_bw * f            f = bytes that each rank must send or receive, over S

f assumes that every rank drives one port and that data are moved the least number of times, so bus_bw
compares with the speed of a port for any number of ranks (nccl-tests, doc/PERFORMANCE.md). Rates are
summarised as times and then converted: the interval of a rate is that of the time, turned round.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Traffic:
    """How one collective counts its bytes."""

    size_text: str
    factor_text: str
    factor: Callable[[int], float]


def _shared(p: int) -> float:
    return (p - 1) / p


# Collective -> what S means, and the factor of bus_bw over p ranks.
COLLECTIVES = {
    "allreduce": Traffic("the whole array", "2(p-1)/p", lambda p: 2 * _shared(p)),
    "reduce_scatter": Traffic("one rank's own block times p", "(p-1)/p", _shared),
    "allgather": Traffic("one rank's own block times p", "(p-1)/p", _shared),
    "alltoall": Traffic("one rank's own block times p", "(p-1)/p", _shared),
    "gather": Traffic("one rank's own block times p", "(p-1)/p", _shared),
    "scatter": Traffic("one rank's own block times p", "(p-1)/p", _shared),
    "broadcast": Traffic("the whole array", "1", lambda p: 1.0),
    "reduce": Traffic("the whole array", "1", lambda p: 1.0),
}


def alg_bw(size_bytes: int, time_ns: float) -> float | None:
    """S / t in bytes per second; None where no bytes or no time make it meaningless."""
    return size_bytes / time_ns * 1e9 if size_bytes and time_ns > 0 else None


def bus_bw(collective: str, ranks: int, size_bytes: int, time_ns: float) -> float | None:
    """alg_bw times the collective's factor; None where the collective has none (barrier, patterns)."""
    rate = alg_bw(size_bytes, time_ns)
    traffic = COLLECTIVES.get(collective)
    return None if rate is None or traffic is None else rate * traffic.factor(ranks)


def half_peak_size(sizes: Sequence[int], rates: Sequence[float]) -> float | None:
    """n_1/2: the smallest size that reaches half of the peak rate, interpolated on logarithms.

    None where even the smallest size reaches it: then the sweep does not show where it lies.
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
