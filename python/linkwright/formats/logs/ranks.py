"""Operations that several ranks have timed: who waited, and how long the transfer took.

A collective in which every rank needs data of every other ends at about the same time everywhere. So the time of the
rank that came last is that of the transfer, and the times of the others hold their waiting for it:

    rank 0   |---- waits ----|-- transfer --|
    rank 4                   |-- transfer --|

A table has the transfer where all is known, and otherwise the times as they are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

# Collectives in which every rank needs data of every other one.
TOGETHER = ("allreduce", "allgather", "reduce_scatter", "alltoall")

_Table = TypeVar("_Table", bound=Hashable)
Times = dict[int, list[tuple[int, float]]]  # bytes -> lines and us


class Sample(NamedTuple):
    """One time of one rank.

    Attributes:
        collective: our key.
        size: bytes of the whole vector.
        time: us.
        line: where it stands.
        group: who communicates; None if nothing says.
        sequence: which operation of the group it is; None if nothing says.
        rank: who measured it; None if nothing says.
        chosen: the algorithm and protocol as the library says; empty if it does not.
    """

    collective: str
    size: int
    time: float
    line: int
    group: str | None = None
    sequence: int | None = None
    rank: int | None = None
    chosen: str = ""


@dataclass(frozen=True)
class Operation:
    """One operation, as its ranks have timed it.

    Attributes:
        group: who communicates.
        collective: our key.
        size: bytes of the whole vector.
        times: rank -> us.
        ranks: how many ranks the group has; None if nothing says.
        chosen: the algorithm and protocol as the library says; empty if it does not.
    """

    group: str
    collective: str
    size: int
    times: Mapping[int, float]
    ranks: int | None
    chosen: str = ""


def alone(operations: Iterable[Operation]) -> bool:
    """Whether times are of one rank of a group of several, so that they hold its waiting for the others."""
    return any(one.collective in TOGETHER and len(one.times) == 1 and one.ranks != 1 for one in operations)


def gathered(
    samples: Iterable[tuple[_Table, int | None, Sample]],
) -> tuple[dict[_Table, Times], tuple[Operation, ...]]:
    """Times by table and size, and the operations of which it is known who timed them.

    Args:
        samples: (table, how many ranks its group has, sample) of each time.
    """
    tables: dict[_Table, Times] = {}
    operations: dict[tuple[str, str, int, int], tuple[_Table, int | None, dict[int, Sample]]] = {}
    for table, ranks, one in samples:
        if one.group is None or one.sequence is None or one.rank is None:
            tables.setdefault(table, {}).setdefault(one.size, []).append((one.line, one.time))
            continue
        key = (one.group, one.collective, one.sequence, one.size)
        operations.setdefault(key, (table, ranks, {}))[2].setdefault(one.rank, one)
    found = []
    for (group, collective, _, size), (table, ranks, its) in operations.items():
        rows = tables.setdefault(table, {}).setdefault(size, [])
        last = min(its.values(), key=lambda one: one.time)
        whole = collective in TOGETHER and len(its) > 1
        rows += [(one.line, one.time) for one in ((last,) if whole else its.values())]
        found.append(
            Operation(group, collective, size, {rank: its[rank].time for rank in sorted(its)}, ranks, last.chosen)
        )
    return tables, tuple(found)
