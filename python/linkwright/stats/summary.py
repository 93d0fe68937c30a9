"""From raw samples to one number with its spread.

Samples of one launch are not independent, so there are two levels: each launch gives its median, and
the interval is taken over the launch medians. The value is the median of the launch medians; minimum,
95th and 99th percentile and maximum are over all samples. If the launch medians form two groups, the
summary names both and gives the value and interval of the larger one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwright._native import measurement

from .interval import MIN_VALUES, median_interval
from .modes import Mode, modes

# Half width of the interval over the median at which measuring stops.
LATENCY_TOLERANCE = measurement.LATENCY_TOLERANCE
BANDWIDTH_TOLERANCE = measurement.BANDWIDTH_TOLERANCE
# Messages of at least this many bytes are limited by bandwidth on every described machine.
BANDWIDTH_FROM_BYTES = 64 << 10


@dataclass(frozen=True)
class Summary:
    """The reported statistics of one experiment."""

    median: float
    ci_low: float | None
    ci_high: float | None
    launches: int
    samples: int
    min: float
    p95: float
    p99: float
    max: float
    modes: tuple[Mode, ...]

    def converged(self, tolerance: float) -> bool:
        """Whether the interval's half width is within `tolerance` of the median."""
        if self.ci_low is None or self.ci_high is None:
            return False
        return (self.ci_high - self.ci_low) / 2 <= tolerance * self.median

    def __str__(self) -> str:
        interval = "" if self.ci_low is None else f" [{self.ci_low:.4g}, {self.ci_high:.4g}]"
        return f"{self.median:.4g}{interval} over {self.launches} launches"


def summarise(launches: Sequence[np.ndarray]) -> Summary:
    """The summary of the samples of each launch; every launch has at least one sample."""
    if not launches or any(len(launch) == 0 for launch in launches):
        raise ValueError("a summary needs at least one launch and one sample in each")
    medians = np.array([np.median(launch) for launch in launches])
    found = modes(medians)
    main = max(found, key=lambda mode: mode.share)
    interval = median_interval(medians[list(main.members)])
    everything = np.concatenate(launches)
    p95, p99 = np.percentile(everything, (95, 99))
    return Summary(
        median=main.median,
        ci_low=interval[0] if interval else None,
        ci_high=interval[1] if interval else None,
        launches=len(launches),
        samples=len(everything),
        min=float(everything.min()),
        p95=float(p95),
        p99=float(p99),
        max=float(everything.max()),
        modes=found,
    )


def tolerance_of(size_bytes: int | None) -> float:
    """The tolerance of latencies or, for large messages, of bandwidths."""
    return BANDWIDTH_TOLERANCE if (size_bytes or 0) >= BANDWIDTH_FROM_BYTES else LATENCY_TOLERANCE


def enough_launches(launches: int) -> bool:
    """Whether an interval exists at all."""
    return launches >= MIN_VALUES
