"""Groups of nearly equal values in a table of pairs: one hop and two, inside and across, outliers.

Values sorted by size are cut where neighbours differ by more than a share of the smaller one. With noise of one or
two percent and levels at least ten percent apart, this needs neither a number of groups nor a distribution.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from linkwright.base.lazy import np

GAP = 0.05


@dataclass(frozen=True)
class Cluster:
    """Members with nearly one value."""

    median: float
    low: float
    high: float
    members: tuple[Hashable, ...]


def clusters(values: Mapping[Any, float], gap: float = GAP) -> list[Cluster]:
    """The groups of `values`, largest first; equal values stay in the order in which they came."""
    found: list[list[tuple[Hashable, float]]] = []
    for member, value in sorted(values.items(), key=lambda item: -item[1]):
        if found and found[-1][-1][1] <= value * (1 + gap):
            found[-1].append((member, value))
        else:
            found.append([(member, value)])
    return [_cluster(group) for group in found]


def _cluster(group: list[tuple[Hashable, float]]) -> Cluster:
    values = [value for _, value in group]
    return Cluster(float(np.median(values)), min(values), max(values), tuple(member for member, _ in group))
