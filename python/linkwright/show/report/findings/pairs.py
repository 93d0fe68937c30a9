"""Pairs of endpoints that are far from others of their kind, and pairs whose two directions differ.

Only pairs with an interval within 10 % are judged: a wide one is far from anything by chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from linkwright.base.stats import near

from .. import quantity
from ..drawing.pairs import pairs
from ..model import Finding
from ..runs import Run

_NAMED = 2  # pairs that a sentence names


@dataclass(frozen=True)
class _Matrix:
    values: dict[near.Pair, float]
    modelled: bool

    @property
    def gap(self) -> float:
        return near.GAP_MODELLED if self.modelled else near.GAP_MEASURED


def _matrix(run: Run, machine: str) -> _Matrix | None:
    found = pairs(run, machine)
    modelled = bool(run.rows[run.rows["machine"] == machine]["modelled"].all())
    values = {pair: value for pair, value in found.values.items() if pair in found.sure}
    return _Matrix(values, modelled) if values else None


def far(run: Run, machine: str) -> Iterator[Finding]:
    """Measured pairs whose latency is far from that of most pairs with the same relation."""
    matrix = _matrix(run, machine)
    if matrix is None or matrix.modelled:  # the levels of a model are its description
        return
    relation = run.topology(machine).relation
    for group in near.near_groups(near.both_ways(matrix.values), relation, matrix.gap):
        if group.anomaly and group.typical:
            members = sorted(group.cluster.members)
            named = ", ".join(f"{a} – {b}" for a, b in members[:_NAMED])
            more = f" and {len(members) - _NAMED:,} more" if len(members) > _NAMED else ""
            take = "takes" if len(members) == 1 else "take"
            yield Finding(
                f"{named}{more} {take} {quantity.text(float(f'{group.cluster.median:.3g}'), 's')}",
                f"{group.cluster.median / group.typical:.2f}× the others of its kind ({group.name})",
                "Look for other programs on these processors, then measure again.",
                48,
            )


def uneven(run: Run, machine: str) -> Iterator[Finding]:
    """Pairs whose latency depends on the direction."""
    matrix = _matrix(run, machine)
    if matrix is None:
        return
    found = near.symmetry(matrix.values, matrix.gap)
    if found.uneven and found.worst:
        a, b = found.worst
        share = f"{found.uneven:,} of {found.compared:,} pairs do"
        yield Finding(
            f"{a} and {b} differ by {quantity.percent(found.worst_ratio - 1)} with the direction ({share})",
            "although half a round trip should not depend on who begins",
            "Measure again; if it persists, place the initiator on the faster side.",
            42 if not matrix.modelled else 15,
            odd=not matrix.modelled,
        )
