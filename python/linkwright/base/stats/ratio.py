"""The 95 % interval of the ratio of two measurements, from the ranks of all pairwise ratios.

If the second measurement is the first one stretched by a factor r, the Mann-Whitney statistic of a and b / r has a
known distribution, whatever that of the values. The factors that the test does not reject lie between the k-th
smallest and the k-th largest of the n m ratios b_j / a_i, where

    P(U <= k - 1) <= 2.5 %,    U the number of pairs that a random order of n and m values puts in one order

This is the interval that belongs to the rank test. Dividing the opposite ends of both
medians' intervals would require both to be wrong at once, and is about twice as wide. The method assumes that both
sides have the same distribution except for the factor.

Source: Moses (1953); Hollander, Wolfe and Chicken, "Nonparametric statistical methods" (2014), section 4.3.
"""

from __future__ import annotations

import functools
import math

from linkwright.base.lazy import np

from .interval import CONFIDENCE, MIN_VALUES


def ratio_interval(first: np.ndarray, second: np.ndarray) -> tuple[float, float] | None:
    """Lower and upper end of the interval of second over first; None below six values on either side."""
    if min(len(first), len(second)) < MIN_VALUES:
        return None
    ratios = np.sort(np.divide.outer(second, first), axis=None)
    rank = rank_of(len(first), len(second))
    return float(ratios[rank - 1]), float(ratios[-rank])


def p_value(first: np.ndarray, second: np.ndarray) -> float:
    """How often two samples of one distribution are at least this far apart: the exact two-sided rank test of Mann and
    Whitney. A tie counts half, and the halves of an odd number of ties as none."""
    n, m = len(first), len(second)
    above = np.subtract.outer(second, first)
    order = int(np.sum(above < 0) + np.sum(above == 0) / 2)
    below = sum(_orders(n, m)[: min(order, n * m - order) + 1])
    return min(1.0, 2 * below / math.comb(n + m, n))


@functools.cache
def rank_of(n: int, m: int) -> int:
    """The largest k with P(U <= k - 1) <= 2.5 %."""
    least = (1 - CONFIDENCE) / 2 * math.comb(n + m, n)
    below = 0
    for k, count in enumerate(_orders(n, m)):
        below += count
        if below > least:
            return k
    raise AssertionError("all orders together are more than a share of them")


def _orders(n: int, m: int) -> list[int]:
    """How many orders of n and m values have U = 0, 1, 2 ...: the Gaussian binomial coefficients."""
    counts = [1] + [0] * (n * m)
    for i in range(1, m + 1):
        for power in range(n * m, n + i - 1, -1):  # times 1 - q^(n + i)
            counts[power] -= counts[power - n - i]
        for power in range(i, n * m + 1):  # over 1 - q^i
            counts[power] += counts[power - i]
    return counts
