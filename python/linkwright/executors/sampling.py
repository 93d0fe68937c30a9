"""Warm up, then sample until the samples agree or the time is over.

For executors that repeat a schedule from Python; `threads` and `mpi` follow the same rules in the native half.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from linkwright import _native
from linkwright.base.lazy import np
from linkwright.base.stats.interval import median_interval

from .process import Sampling

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Most rounds of a warm-up by default, how many in a row must agree, and how closely.
_WARMUPS = _native.measurement.WARMUP_AT_MOST
_AGREEING, _WITHIN = _native.measurement.WARMUP_AGREEING, _native.measurement.WARMUP_WITHIN
# Most repetitions of a round, and the longest that it should take.
_REPETITIONS = 32
_ROUND_NS = 20e6

# From a number of repetitions to the time of each, in ns, by (repetition, rank).
Repeat: TypeAlias = "Callable[[int], NDArray[np.float64]]"


class Samples(NamedTuple):
    """What was sampled: `ranks_ns` by (sample, rank), and whether the warm-up ended because its rounds agreed."""

    ranks_ns: NDArray[np.float64]
    warmed_up: bool

    @property
    def values_ns(self) -> list[float]:
        """The time of the slowest rank, sample by sample, as `Record.values_ns` takes it."""
        return list(map(float, np.round(self.ranks_ns.max(axis=1), 2)))


def take_samples(repeat: Repeat, sampling: Sampling, end_s: float) -> Samples:
    """Warm up and sample by the rules of all executors.

    Args:
        repeat: runs the experiment so many times in a row, and returns the time of each repetition and rank, in ns,
            as an array of shape (repetitions, ranks). Each repetition begins only when all ranks are ready.
        sampling: how many samples to take at most, and when they agree well enough.
        end_s: when to stop, by `time.monotonic()`, in seconds. One round is taken even if that is over.
    Returns:
        The samples.
    Example:
        >>> import time
        >>> import numpy as np
        >>> from linkwright.executor_api import Options, Sampling, take_samples
        >>> sampling = Sampling.of(Options(samples=40), number=0, budget_s=1.0)
        >>> samples = take_samples(lambda count: np.full((count, 2), 5.0), sampling, time.monotonic() + 1)
        >>> len(samples.values_ns), samples.values_ns[0], samples.warmed_up
        (40, 5.0, True)
    """
    one_ns = float(repeat(2).max())
    count = int(min(_REPETITIONS, sampling.samples, max(1, _ROUND_NS / max(one_ns, 1))))
    warmed_up = warm_up(lambda: repeat(count).max(axis=1), sampling, end_s)
    taken, looked_at = repeat(count), 0
    while len(taken) < sampling.samples and time.monotonic() < end_s:
        if len(taken) >= 2 * max(1, looked_at):
            looked_at = len(taken)
            if settled(taken.max(axis=1), sampling.settle_within):
                break
        taken = np.vstack([taken, repeat(count)])
    return Samples(taken[: sampling.samples], warmed_up)


def warm_up(several: Callable[[], NDArray[np.float64]], sampling: Sampling, end_s: float) -> bool:
    """Take rounds of times; whether the medians of the last ones agreed before half of the time was over."""
    until = end_s - sampling.budget_s / 2
    at_most = _WARMUPS if sampling.warmup_at_most is None else sampling.warmup_at_most
    medians: list[float] = []
    while len(medians) < at_most and time.monotonic() < until:
        medians.append(float(np.median(several())))
        if _agree(medians):
            return True
    return False


def _agree(medians: list[float]) -> bool:
    """Whether the last batches of a warm-up differ by no more than noise."""
    last = medians[-_AGREEING:]
    return len(last) == _AGREEING and max(last) <= min(last) * (1 + _WITHIN)


def settled(values_ns: NDArray[np.float64], within: float | None) -> bool:
    """Whether the interval of the median is narrow enough to stop; None: take all samples."""
    interval = None if within is None else median_interval(values_ns)
    if within is None or interval is None:
        return False
    low, high = interval
    return (high - low) / 2 <= within * float(np.median(values_ns))
