"""A quantile of sorted values by linear interpolation, the same to the last bit as `numpy.percentile`.

That one imports `numpy.ma` on its first call, which takes as long as a small simulation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from linkwright.base.lazy import np


def quantile(ordered: Sequence[float] | np.ndarray, share: float) -> float:
    """The value below which a `share` of the `ordered` values lies."""
    place = (len(ordered) - 1) * share
    below = math.floor(place)
    part = place - below
    low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
    # From the nearer end, so that equal values give that value.
    return low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)


def percentiles(values: np.ndarray) -> list[float]:
    """The percentiles 0 to 100 of values in any order; none of no values."""
    ordered = np.sort(values)
    return [quantile(ordered, percent / 100) for percent in range(101)] if len(ordered) else []
