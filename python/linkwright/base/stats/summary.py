"""From raw samples to one number with its spread.

Samples of one launch are not independent, so there are two levels: each launch gives its median, and
the interval is taken over the launch medians. The value is the median of the launch medians; minimum,
95th and 99th percentile and maximum are over all samples. If the launch medians form two groups, the
summary names both and gives the value and interval of the larger one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwright.base.lazy import np

from . import grade
from .modes import Mode, modes


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

    @property
    def precision(self) -> float | None:
        """Half the width of the interval over the median, a share; None without an interval."""
        return grade.precision(self.median, self.ci_low, self.ci_high)

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
    everything = np.concatenate(launches)
    p95, p99 = np.percentile(everything, (95, 99))
    return Summary(
        median=main.median,
        ci_low=main.interval[0] if main.interval else None,
        ci_high=main.interval[1] if main.interval else None,
        launches=len(launches),
        samples=len(everything),
        min=float(everything.min()),
        p95=float(p95),
        p99=float(p99),
        max=float(everything.max()),
        modes=found,
    )
