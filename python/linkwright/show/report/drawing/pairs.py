"""What a drawing is coloured by: the latency of every pair of endpoints, as the run has it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from linkwright.base.rows import among, smallest
from linkwright.base.stats import grade

from ..runs import Run, natural
from ..sections.groups import groups


@dataclass(frozen=True)
class Pairs:
    """Latencies in seconds by (source, destination), at the smallest size of the run."""

    size_bytes: float | None
    values: dict[tuple[str, str], float] = field(default_factory=dict)
    sure: frozenset[tuple[str, str]] = frozenset()  # pairs with an interval within 10 %, or modelled

    @cached_property
    def names(self) -> list[str]:
        """The endpoints that took part, in natural order."""
        return sorted({name for pair in self.values for name in pair}, key=natural)

    @property
    def first(self) -> str | None:
        """The endpoint from which a drawing looks at the others."""
        return self.names[0] if self.names else None

    def between(self, a: str, b: str) -> float | None:
        """The mean of both directions, or the one that was run."""
        found = [self.values[pair] for pair in ((a, b), (b, a)) if pair in self.values]
        return sum(found) / len(found) if found else None

    def from_first(self, name: str) -> float | None:
        """The latency between the first endpoint and this one; None of the first itself."""
        return None if self.first is None or name == self.first else self.between(self.first, name)


def pairs(run: Run, machine: str) -> Pairs:
    """The matrix of latencies of a machine; empty if the run has none."""
    for group in sorted(groups(run), key=lambda group: group.is_probe):  # stable: messages before cache lines
        rows = group.matrices.get(machine)
        if rows is None or group.metric not in ("latency", "time"):
            continue
        size = smallest(rows["size_bytes"])
        rows = rows[(rows["source"] != rows["destination"]) & ((rows["size_bytes"] == size) | (size != size))]
        ends = list(zip(rows["source"], rows["destination"], strict=True))
        values = {pair: float(value) for pair, value in zip(ends, rows["value"], strict=True)}
        trusted = rows["modelled"] | among(rows["grade"], (grade.TIGHT, grade.FAIR_GRADE))
        sure = frozenset(pair for pair, is_sure in zip(ends, trusted, strict=True) if is_sure)
        return Pairs(None if size != size else float(size), values, sure)
    return Pairs(None)
