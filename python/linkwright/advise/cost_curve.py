"""Times of one collective over sizes, a straight line between points, and how far they are from the simulation."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwright.base.errors import UsageError
from linkwright.base.units import format_size

# The largest error of a middle that is not made a point, and how often halves are halved.
WITHIN, ROUNDS = 0.02, 3


@dataclass(frozen=True)
class Error:
    """How far a curve is from the simulation at sizes that are no points of it, as shares of the simulated time.

    Where nothing was checked, as with a single point, the error is not known, whatever the shares say.
    """

    checked: int  # sizes that were compared
    median: float
    p90: float
    largest: float


@dataclass(frozen=True)
class CostCurve:
    """The times of one collective on one number of ranks.

    Attributes:
        collective: its name.
        ranks: ranks that take part.
        sizes: sizes of the points in bytes, ascending.
        times_us: their times in microseconds, never falling.
        algorithms: what was fastest at each.
        error: how far times between the points are from the simulation.
    """

    collective: str
    ranks: int
    sizes: tuple[int, ...]
    times_us: tuple[float, ...]
    algorithms: tuple[str, ...]
    error: Error

    def time_us(self, size: int) -> float:
        """The time of a size in bytes, in microseconds; up to the first point it is that of the first point."""
        sizes, times = self.sizes, self.times_us
        after = bisect_left(sizes, size)
        if after == 0:
            return times[0]
        if after == len(sizes):
            raise UsageError(
                f"{self.collective} of {format_size(size)} B: the table ends at {format_size(sizes[-1])} B; "
                "build it with larger sizes"
            )
        low, high = sizes[after - 1], sizes[after]
        return times[after - 1] + (times[after] - times[after - 1]) * (size - low) / (high - low)

    def algorithm(self, size: int) -> str:
        """What is fastest at the nearest point that is not smaller."""
        return self.algorithms[min(bisect_left(self.sizes, size), len(self.sizes) - 1)]


def error_of(curve: Sequence[float], simulated: Sequence[float]) -> Error:
    """The error of times on a curve against simulated ones, but those that take no time (one rank alone)."""
    pairs = [(on_curve, time) for on_curve, time in zip(curve, simulated, strict=True) if time]
    if not pairs:
        return Error(0, 0.0, 0.0, 0.0)
    shares = [abs(on_curve / time - 1) for on_curve, time in pairs]
    return Error(len(shares), *(float(np.quantile(shares, q)) for q in (0.5, 0.9, 1.0)))


def rising(times_us: Sequence[float]) -> list[float]:
    """The times made to rise: the geometric mean of the largest so far and the smallest from there on."""
    times = np.asarray(times_us, float)
    so_far, from_here = np.maximum.accumulate(times), np.minimum.accumulate(times[::-1])[::-1]
    return [float(time) for time in np.where(so_far == from_here, times, np.sqrt(so_far * from_here))]


# What a table holds: the name and the digest of the machine, the algorithms that were asked for, the data type, curves.
Fields = tuple[str, str, str, str, tuple[CostCurve, ...]]
