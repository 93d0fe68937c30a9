"""Distance groups in a matrix of pair latencies: named groups, anomalous pairs, symmetry.

    pairs --(what they share, if known)--> kinds --(gaps between sorted values)--> groups
                                             |
                                             +-- a small group next to a large one of its kind: anomalies

Pairs that share the same parts of the machine (a core, a cache, a package) should be equally far apart, so each kind
of pair is cut into groups at gaps (`clusters`). A group with less than a tenth of the pairs of its kind is an anomaly:
a core on which something else runs, or a pair behind another die. Larger groups within a kind belong to the machine:
they are kinds that the kernel does not report, numbered by distance. Without a topology all pairs are of one kind and
the groups are its levels.

Limits: noise wider than the gap merges groups, and values that grow in steps smaller than the gap (a torus of many
hops, far out) form one group with a wide range.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .clusters import Cluster, clusters

# Least distance of two groups, as a share of the nearer: measured medians scatter, modelled ones do not.
GAP_MEASURED = 0.15
GAP_MODELLED = 0.02
ANOMALOUS_SHARE = 0.10

Pair = tuple[str, str]


@dataclass(frozen=True)
class NearGroup:
    """Pairs equally far apart, under a name."""

    name: str
    cluster: Cluster
    typical: float | None = None  # of an anomaly: the median of the group where it should be

    @property
    def anomaly(self) -> bool:
        """Whether these pairs are far from most of their kind."""
        return self.typical is not None


@dataclass(frozen=True)
class Symmetry:
    """How latencies differ between the two directions of a pair."""

    compared: int  # pairs with both directions
    uneven: int  # those that differ by more than the gap
    worst: Pair | None
    worst_ratio: float  # slower over faster direction of the worst pair


def near_groups(
    values: Mapping[Pair, float], relation: Callable[[str, str], str | None], gap: float
) -> list[NearGroup]:
    """The groups of all pairs, nearest first, anomalies after the groups."""
    kinds: dict[str | None, dict[Pair, float]] = {}
    for pair, value in values.items():
        kinds.setdefault(relation(*pair), {})[pair] = value
    found = [group for kind, members in kinds.items() for group in _of_kind(kind, members, gap)]
    return sorted(found, key=lambda group: (group.anomaly, group.cluster.median))


def both_ways(values: Mapping[Pair, float]) -> dict[Pair, float]:
    """Each pair once, with the mean of its two directions."""
    return {
        (a, b): (value + values.get((b, a), value)) / 2 for (a, b), value in values.items()
        if (b, a) not in values or (a, b) < (b, a)
    }  # fmt: skip


def symmetry(values: Mapping[Pair, float], gap: float) -> Symmetry:
    """Compares the two directions of each pair."""
    ratios = {}
    for (a, b), value in values.items():
        back = values.get((b, a))
        if back is not None and (b, a) not in ratios:
            ratios[a, b] = max(value, back) / min(value, back)
    worst = max(ratios, key=ratios.__getitem__, default=None)
    uneven = sum(ratio > 1 + gap for ratio in ratios.values())
    return Symmetry(len(ratios), uneven, worst, ratios[worst] if worst else 1.0)


def _of_kind(kind: str | None, members: Mapping[Pair, float], gap: float) -> list[NearGroup]:
    """The groups of one kind of pairs."""
    cut = clusters(members, gap)[::-1]
    least = ANOMALOUS_SHARE * len(members)
    usual = [group for group in cut if len(group.members) >= least] or [max(cut, key=lambda g: len(g.members))]
    named = [NearGroup(_name(kind, number, len(usual)), group) for number, group in enumerate(usual, 1)]
    odd = [group for group in cut if group not in usual]
    if kind is None and len(odd) > len(usual):  # many small groups and few large ones: the levels of a large machine
        return [NearGroup(_name(None, number, len(cut)), group) for number, group in enumerate(cut, 1)]
    for group in odd:
        nearest = min(usual, key=lambda u: abs(u.median - group.median))
        named.append(NearGroup(_name(kind, usual.index(nearest) + 1, len(usual)), group, nearest.median))
    return named


def _name(kind: str | None, number: int, of: int) -> str:
    if kind is None:
        return f"level {number}" if of > 1 else "all pairs"
    return kind if of == 1 else f"{kind}, distance {number}"
