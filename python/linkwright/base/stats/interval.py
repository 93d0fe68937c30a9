"""The 95 % interval of a median, from order statistics.

Of n independent values, the number that lie below the true median follows Binomial(n, 1/2), whatever
the distribution of the values. So the interval from the j-th smallest to the j-th largest value covers
the median with probability

    1 - 2 P(Binomial(n, 1/2) <= j - 1)

exactly (conservatively where values are tied). j is the largest rank that still gives 95 %. Below six
values even the whole range covers less than 95 %, so there is no interval.

Source: Hoefler and Belli, "Scientific benchmarking of parallel computing systems" (SC 2015), rule 5;
David and Nagaraja, "Order statistics", section 7.1.
"""

from __future__ import annotations

import functools

from linkwright._native import measurement
from linkwright.base.lazy import np

CONFIDENCE = measurement.CONFIDENCE
MIN_VALUES = measurement.MIN_LAUNCHES
_WHOLE = 1 << 53  # times this, a share becomes a whole number


@functools.cache
def rank_of(n: int) -> int:
    """The rank j (from 1) such that the j-th smallest and j-th largest of `n` values enclose the median."""
    if n < MIN_VALUES:
        raise ValueError(f"no 95 % interval exists for {n} values")
    # Largest j with P(Binomial <= j - 1) <= 2.5 %, in whole numbers: of 2^n outcomes, how many have so few below.
    most = int((1 - CONFIDENCE) / 2 * _WHOLE) * 2**n // _WHOLE
    rank, ways = 0, 1  # ways to choose `rank` of n
    outcomes = ways
    while outcomes <= most:
        rank += 1
        ways = ways * (n - rank + 1) // rank
        outcomes += ways
    return rank


def median_interval(values: np.ndarray) -> tuple[float, float] | None:
    """Lower and upper end of the interval of the median of `values`; None below six values."""
    n = len(values)
    if n < MIN_VALUES:
        return None
    rank = rank_of(n)
    ordered = np.sort(values)
    return float(ordered[rank - 1]), float(ordered[n - rank])
