"""Transfer and waiting of each rank, as text for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkwright.advise.explain.waiting import LITTLE, Arrivals, RankTime
from linkwright.base import units

from .shown import wrapped

MOST_KINDS = 3
MOST_RANKS = 16
BAR = 20


def of_arrivals(found: Sequence[Arrivals], waits: bool = False) -> Iterator[str]:
    """What each rank transferred and waited, of the collectives with most waiting.

    Args:
        found: collectives that several ranks have timed.
        waits: whether there are times that hold waiting, and nothing tells how much.
    """
    if waits and not found:
        yield from wrapped(
            "These times hold the waiting of ranks for one another, so a low rate need not be the network's. Give the "
            "files of all ranks (NCCL Inspector's JSON, PyTorch's traces) to tell waiting from transfer."
        )
    for number, one in enumerate(found[:MOST_KINDS]):
        if number:
            yield ""
        yield from _kind(one)
    if len(found) > MOST_KINDS:
        yield ""
        yield f"and {len(found) - MOST_KINDS} more collectives and sizes, with less waiting"


def _kind(one: Arrivals) -> Iterator[str]:
    size = units.format_size(one.size)
    lost = (one.size_of_group or 0) - len(one.ranks)
    ranks = f"{len(one.ranks)} of {one.size_of_group} ranks" if lost > 0 else f"{len(one.ranks)} ranks"
    yield from wrapped(
        f"{one.collective} of {f'{one.size:,} B' if size.isdigit() else size} in group {one.group}, {ranks}"
        f"{', ' + one.chosen if one.chosen else ''}, {units.counted(one.count, 'operation')}: transfer and waiting"
    )
    yield f"{'rank':>6} {'time':>11} {'waiting':>11} {'':>5}   came last"
    shown, left = _few(one.ranks)
    for rank in shown:
        share = rank.waiting / rank.time
        time, waiting = (units.format_us(value / one.count) for value in (rank.time, rank.waiting))
        last = f"{rank.last:>7,} of {one.count:,}"
        yield f"{rank.rank:>6} {time:>11} {waiting:>11} {share:>5.0%} {last} {'#' * round(BAR * share)}".rstrip()
    if left:
        yield f"{'...':>6} and {left} more ranks between these"
    yield from wrapped(_said(one))
    if lost > 0:
        yield from wrapped(
            f"{units.counted(lost, 'rank')} not in these files may come later still; the transfer is then shorter."
        )


def _said(one: Arrivals) -> str:
    transfer = units.format_us(one.transfer)
    if one.last is None and one.share < LITTLE:
        return f"The ranks come together: they wait {one.share:.0%} of their time, and the transfer takes {transfer}."
    if one.last is None:
        return (
            f"The transfer takes {transfer}; waiting is {one.share:.0%} of all ranks' time, and no rank is mostly the "
            "last: the work between the collectives varies."
        )
    most = max(one.ranks, key=lambda rank: rank.waiting)
    time, waiting = (units.format_us(value / one.count) for value in (most.time, most.waiting))
    return (
        f"Rank {one.last.rank} comes last in {one.last.last:,} of {one.count:,} and shows the transfer: {transfer}. "
        f"The others wait for it; rank {most.rank} waits {waiting} of {time} ({most.waiting / most.time:.0%}). The "
        f"network is not the cause of that: see what rank {one.last.rank} does before the call (more work, a slow GPU "
        "or host, input)."
    )


def _few(ranks: Sequence[RankTime]) -> tuple[Sequence[RankTime], int]:
    """At most so many: those that wait least and most."""
    if len(ranks) <= MOST_RANKS:
        return ranks, 0
    ordered = sorted(ranks, key=lambda rank: rank.waiting)
    half = MOST_RANKS // 2
    return (*ordered[:half], *ordered[-half:]), len(ranks) - 2 * half
