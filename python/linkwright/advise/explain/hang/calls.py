"""What follows from the calls that ranks are in: who is behind, left, busy, or in a cycle."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from linkwright.formats.hangs import RankCall

from .findings import Behind, Busy, Cycle, Finding, Inside, Left, NoDump, RankWait
from .job import DumpedJob


def called(job: DumpedJob, differing: set[str]) -> Iterable[Finding]:
    """What follows from the calls that ranks are in; groups that differ are explained already."""
    cycle = _cycle(job)
    if cycle:
        yield cycle
    pairs: set[frozenset[int | None]] = set()
    for at, ranks in sorted(job.inside().items(), key=lambda one: -len(one[1])):
        if job.name(at[0]) in differing:
            continue
        call = job.current[ranks[0]]
        place = job.place(call)
        first, unknown, passed = job.missing(at)
        causes = {rank for rank in first if rank not in job.current}
        if causes:
            launched = max(job.launched.get((at[0], rank), 0) for rank in causes)
            members = job.members(at[0], causes)
            yield Behind(place, members, len(causes), launched, tuple(ranks), len(ranks), False)
        late = {rank for rank in ranks if job.current[rank].state == "scheduled"}
        begun = [rank for rank in ranks if job.current[rank].state == "started"]
        if late and begun and not first:
            yield Busy(place, job.members(at[0], late), tuple(begun))
        elif unknown and not causes:
            yield NoDump(place, tuple(sorted(unknown)), tuple(sorted(unknown & job.ranks)), job.tool)
        elif passed and not first:
            yield Left(place, job.members(at[0], ranks), tuple(sorted(passed)))
        elif not first and not (cycle and any(wait.place == place for wait in cycle.waits)):
            yield Inside(place, tuple(ranks), job.is_complete(at[0]))
    for rank, call in sorted(job.current.items()):
        if not call.p2p:
            continue
        first, unknown = job.awaited(call)
        causes = {other for other in first if other not in job.current}
        pair = frozenset((rank, call.peer))
        if causes:
            yield Behind(job.place(call), job.members(call.group, causes), len(causes), None, (rank,), 1, False)
        elif unknown:
            yield NoDump(job.place(call), tuple(sorted(unknown)), (), job.tool)
        elif not first and pair not in pairs:
            pairs.add(pair)
            yield Inside(job.place(call), (rank,), True)


def _cycle(job: DumpedJob) -> Cycle | None:
    """The shortest cycle of ranks that wait for one another."""
    awaited = {rank: job.awaited(call)[0] & job.current.keys() for rank, call in _one_of_each(job)}
    same: dict[object, int] = {_key(call): rank for rank, call in reversed(_one_of_each(job))}
    best: list[int] = []
    for start in awaited:
        came: dict[int, tuple[int, int]] = {}  # rank that stands for a call -> (one before, who is waited for)
        queue = deque([start])
        while queue and start not in came:
            rank = queue.popleft()
            for other in sorted(awaited[rank]):
                stands = same[_key(job.current[other])]
                if stands not in came:
                    came[stands] = (rank, other)
                    queue.append(stands)
        if start in came:
            path, at = [], start
            while True:
                at, other = came[at]
                path.append(other)
                if at == start:
                    break
            if not best or len(path) < len(best):
                best = path[::-1]
    if not best:
        return None
    lowest = best.index(min(best))
    best = best[lowest:] + best[:lowest]
    waits = tuple(
        RankWait(rank, job.place(job.current[rank]), other)
        for rank, other in zip(best, (*best[1:], best[0]), strict=True)
    )
    certain = all(_sure(job, wait) for wait in waits)
    return Cycle(waits, certain)


def _sure(job: DumpedJob, wait: RankWait) -> bool:
    """Whether the one that is waited for has surely not come: it has not called, or its kernel has not begun."""
    call = job.current[wait.rank]
    its = job.calls.get((call.group, call.sequence), {}).get(wait.on, ())
    return call.p2p or not its or its[0].state == "scheduled"


def _key(call: RankCall) -> object:
    return (call.group, call.sequence, call.rank if call.p2p else None)


def _one_of_each(job: DumpedJob) -> list[tuple[int, RankCall]]:
    """A rank of each call that ranks are in, the lowest."""
    found: dict[object, tuple[int, RankCall]] = {}
    for rank, call in sorted(job.current.items()):
        found.setdefault(_key(call), (rank, call))
    return list(found.values())
