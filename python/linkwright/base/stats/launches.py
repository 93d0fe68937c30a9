"""The median of each launch, which is one launch's value of an experiment."""

from __future__ import annotations

from linkwright.base.lazy import np
from linkwright.base.rows import Rows, given


def launch_medians(samples: Rows) -> dict[str, np.ndarray]:
    """Experiment -> the median time of the slowest rank in each launch that was not set aside."""
    if not len(samples):
        return {}
    slowest = samples[~given(samples["rank"])]
    if "set_aside" in slowest:  # runs of earlier versions do not say which launches were disturbed
        slowest = slowest[~given(slowest["set_aside"])]
    return {experiment: medians(part) for (experiment,), part in slowest.by("experiment", sort=True)}


def medians(samples: Rows) -> np.ndarray:
    """The median time of each launch, in nanoseconds, in the order of launches."""
    return np.array([np.median(part["value_ns"]) for _, part in samples.by("launch", sort=True)])
