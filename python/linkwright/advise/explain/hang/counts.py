"""What follows from numbers of operations, which RAS gives in place of calls, and from the states of ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from linkwright.formats.hangs import RankProgress, RankStatus

from .findings import Absent, Behind, CallPlace, Cycle, Finding, Mismatch, RankWait
from .job import DumpedJob, by_value


def counted(job: DumpedJob) -> list[Finding]:
    """What numbers of operations say; RAS gives these in place of calls."""
    found: list[Finding] = []
    for group, progress in job.counts.items():
        by_operation: dict[str | None, list[RankProgress]] = {}
        for one in progress:
            by_operation.setdefault(one.operation, []).append(one)
        size = job.groups[group].size if group in job.groups else None
        uneven = {
            operation: _completed_by_rest(its, size)
            for operation, its in by_operation.items()
            if len({one.launched for one in its}) > 1
        }
        order = _other_order(job, group, uneven)
        if order:
            found.append(order)
            continue
        found += [_behind(job, group, operation, its) for operation, its in uneven.items()]
    return found if any(isinstance(one, Mismatch) for one in found) else _with_cycle(job, found)


def _with_cycle(job: DumpedJob, found: list[Finding]) -> list[Finding]:
    """The same, those first whose ranks wait nowhere else; and a cycle of communicators that wait for one another."""
    behind = [one for one in found if isinstance(one, Behind)]
    related = {group.name for group in job.groups.values() if group.ranks}
    # Finding -> (another in which a rank waits that is behind in it, this rank)
    follows = {
        at: [
            (other, min(both))
            for other, two in enumerate(behind)
            if two.place.group != one.place.group and {one.place.group, two.place.group} <= related
            and (both := {member.rank or 0 for member in one.members} & set(two.waiting))
        ]
        for at, one in enumerate(behind)
    }  # fmt: skip
    roots: list[Finding] = [behind[at] for at in follows if not follows[at]]
    for start in follows:
        path: list[tuple[int, int]] = []
        at = start
        while follows[at] and at not in [place for place, _ in path]:
            other, rank = follows[at][0]
            path.append((at, rank))
            at = other
        if path and at == start:
            ranks = [rank for _, rank in path]
            places = [behind[place].place for place, _ in path[1:]] + [behind[start].place]
            waits = tuple(map(RankWait, ranks, places, (*ranks[1:], ranks[0])))
            return [Cycle(waits, False), *roots]
    return roots or found


def _completed_by_rest(progress: list[RankProgress], size: int | None) -> list[RankProgress]:
    """The same; where one set alone is not listed, it is the rest of the group."""
    unlisted = [one for one in progress if len(one.ranks) != one.count]
    if len(unlisted) != 1 or size is None or sum(one.count for one in progress) != size:
        return progress
    listed = {rank for one in progress if one is not unlisted[0] for rank in one.ranks}
    rest = tuple(rank for rank in range(size) if rank not in listed)
    return [replace(one, ranks=rest) if one is unlisted[0] and len(rest) == one.count else one for one in progress]


def _other_order(job: DumpedJob, group: str, uneven: Mapping[str | None, list[RankProgress]]) -> Mismatch | None:
    """Ranks with the same number of operations in all, but of different kinds."""
    if len(uneven) < 2:
        return None
    by_rank: dict[int, dict[str, int]] = {}
    for operation, its in uneven.items():
        for one in its:
            for rank in one.ranks:
                by_rank.setdefault(rank, {})[operation or "operation"] = one.launched
    complete = [its for its in by_rank.values() if len(its) == len(uneven)]
    if len(complete) != len(by_rank) or len({sum(its.values()) for its in complete}) != 1:
        return None
    said = {rank: ", ".join(f"{count:,} {name}" for name, count in its.items()) for rank, its in by_rank.items()}
    total = sum(complete[0].values())
    return Mismatch(CallPlace(job.name(group), "operations", total), "operation", by_value(said))


def _behind(job: DumpedJob, group: str, operation: str | None, progress: list[RankProgress]) -> Behind:
    lowest = min(one.launched for one in progress)
    last = [one for one in progress if one.launched == lowest]
    others = [one for one in progress if one.launched > lowest]
    ranks = [rank for one in last for rank in one.ranks]
    waiting = [rank for one in others for rank in one.ranks]
    count = sum(one.count for one in others)
    return Behind(
        CallPlace(job.name(group), operation or "operation", lowest + 1), job.members(group, ranks),
        sum(one.count for one in last), lowest, tuple(sorted(waiting)) if len(waiting) == count else (), count, True,
    )  # fmt: skip


# Conditions, the gravest first.
_GRAVITY = ("dead", "error", "unresponsive", "abort", "nocomm", "init", "finalize", "running")


def absent(job: DumpedJob) -> list[Finding]:
    """Ranks and processes that are not as the rest."""
    of_processes = [one for one in job.conditions if one.group is None]
    of_ranks: dict[tuple[str, str, str], RankStatus] = {}
    for one in job.conditions:
        if one.group is not None:
            key: tuple[str, str, str] = (one.group, one.status, one.text)
            before = of_ranks.get(key)
            merged = (
                replace(one, members=(*before.members, *one.members), count=before.count + one.count) if before else one
            )
            of_ranks[key] = merged
    found: list[Finding] = []
    for (group, _, _), condition in of_ranks.items():
        states = {other.status: other.count for (of, _, _), other in of_ranks.items() if of == group and other.text}
        largest = max(states.values(), default=0)
        if condition.status == "running" or (condition.text and condition.count == largest and len(states) > 1):
            continue
        matched, of_processes = _processes(condition, of_processes)
        rest = tuple((status, count) for status, count in states.items() if status != condition.status)
        found.append(Absent(matched, job.name(group), rest))
    found += [Absent(one, None, ()) for one in of_processes]
    return sorted(found, key=lambda one: _GRAVITY.index(one.condition.status) if isinstance(one, Absent) else 0)


def _processes(condition: RankStatus, processes: list[RankStatus]) -> tuple[RankStatus, list[RankStatus]]:
    """A condition of ranks with what is said of their processes, and the processes that remain."""
    if condition.status != "unresponsive":
        return condition, processes
    total = sum(one.count for one in processes)
    if total != condition.count or not processes:
        return condition, processes
    dead = all(one.status == "dead" for one in processes)
    members = condition.members
    its = [member for one in processes for member in one.members]
    if len(its) == len(members) == 1:
        members = (replace(its[0], rank=members[0].rank),)
    return replace(condition, status="dead" if dead else "unresponsive", members=members), []
