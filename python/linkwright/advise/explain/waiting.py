"""Per rank: how much of a collective's time is transfer, and how much is waiting for the rank that comes last.

In a collective in which every rank needs data of every other, the rank with the shortest time came last, and its time
is the transfer's (`formats/logs/ranks.py`). What another rank took beyond that, it waited.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from linkwright.formats.logs import TimedOperation
from linkwright.formats.logs.ranks import TOGETHER

# Of all ranks' time, below which waiting does not matter.
LITTLE = 0.1
# Of the operations, in which the same rank has to come last to be named as the cause.
MOSTLY = 0.5
_MOST_SHOWN = 1 << 16  # ranks


@dataclass(frozen=True)
class RankTime:
    """The operations of one rank.

    Attributes:
        rank: which.
        time: us, of all operations together.
        waiting: us of it, for others.
        last: in how many operations it came last.
    """

    rank: int
    time: float
    waiting: float
    last: int


@dataclass(frozen=True)
class Arrivals:
    """The operations of one group, collective and size.

    Attributes:
        group: who communicates.
        collective: our key.
        size: bytes of the whole vector.
        count: how many operations.
        size_of_group: how many ranks the group has; None if nothing says.
        chosen: the algorithm and protocol as the library says; empty if it does not.
        transfer: us of one operation, on average.
        ranks: those that were timed.
        share: of all ranks' time, spent waiting.
        last: the rank that comes last mostly; None if none does, or if waiting does not matter.
    """

    group: str
    collective: str
    size: int
    count: int
    size_of_group: int | None
    chosen: str
    transfer: float
    ranks: tuple[RankTime, ...]
    share: float
    last: RankTime | None


def arrivals(operations: Iterable[TimedOperation]) -> list[Arrivals]:
    """Return transfer and waiting of every group, collective and size, those with most waiting first.

    Operations that fewer ranks have timed than others of their kind are left out, as are collectives whose ranks do
    not all wait for one another.
    """
    kinds: dict[tuple[str, str, int], list[TimedOperation]] = {}
    for one in operations:
        if one.collective in TOGETHER and len(one.times) > 1:
            kinds.setdefault((one.group, one.collective, one.size), []).append(one)
    found = [_of(its) for its in kinds.values()]
    return sorted(found, key=lambda one: -sum(rank.waiting for rank in one.ranks))


def _of(its: Sequence[TimedOperation]) -> Arrivals:
    """The operations of one kind."""
    most = max(len(one.times) for one in its)
    its = [one for one in its if len(one.times) == most]
    times: dict[int, float] = {}
    last: dict[int, int] = {}
    transfer = 0.0
    for one in its:
        first = min(one.times, key=lambda rank: one.times[rank])
        last[first] = last.get(first, 0) + 1
        transfer += one.times[first]
        for rank, time in one.times.items():
            times[rank] = times.get(rank, 0.0) + time
    shortest = {rank: sum(min(one.times.values()) for one in its if rank in one.times) for rank in times}
    ranks = tuple(
        RankTime(rank, time, time - shortest[rank], last.get(rank, 0)) for rank, time in sorted(times.items())
    )[:_MOST_SHOWN]
    share = sum(rank.waiting for rank in ranks) / sum(rank.time for rank in ranks)
    latest = max(ranks, key=lambda rank: rank.last)
    named = latest if share >= LITTLE and latest.last >= MOSTLY * len(its) else None
    first_one = its[0]
    return Arrivals(
        first_one.group, first_one.collective, first_one.size, len(its), first_one.ranks, first_one.chosen,
        transfer / len(its), ranks, share, named,
    )  # fmt: skip
