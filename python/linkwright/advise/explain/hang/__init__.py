"""Why a job hangs: which rank, in which call, and who waits for whom.

    dumps -> job (groups, calls, progress) -> the call that each rank is in -> who is missing there -> findings

Each rank is in the first of its calls that has not ended. A call waits for the ranks of its group that have not entered
it, or whose kernel has not begun because they are in another call. A rank that is waited for and waits for nobody is
the cause; if following the waits leads back to the start, the groups wait for one another in a cycle. Before all that,
calls with one number are compared: where ranks call different operations, sizes or types, the program differs between
ranks, and waiting is the result.

RAS gives numbers of operations in place of calls: the ranks with the lowest number are waited for. It is a snapshot of
a running job, so a difference is a hang only if it stays.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from linkwright.base.errors import UsageError
from linkwright.base.files import shown_name
from linkwright.formats.hangs import Dump

from .calls import called
from .counts import absent, counted
from .findings import Behind, Finding, Hang, Mismatch, NoDump
from .job import DumpedJob

MOST_FINDINGS = 20


def explain(dumps: Iterable[Dump], ignored: Iterable[Path] = ()) -> Hang:
    """Return what dumps of one job say about its hang.

    Args:
        dumps: one for each rank, or of several ranks; of two queries of RAS, in the order of time.
        ignored: files given with them that are not dumps.

    Raises:
        UsageError: two dumps are of one rank, or none was given.

    Example:
        >>> from linkwright.advise.explain import hang
        >>> from linkwright.formats.hangs import read_dump
        >>> hang.explain([read_dump(f"nccl_trace_rank_{rank}") for rank in range(8)])  # doctest: +SKIP

    """
    job = DumpedJob()
    files: list[Dump] = []  # without what they state
    snapshots: list[Dump] = []
    paths: dict[tuple[str, int], Path] = {}
    for dump in dumps:
        if dump.rank is not None and (before := paths.setdefault((dump.tool, dump.rank), dump.path)) != dump.path:
            raise UsageError(f"{before} and {dump.path} are both of rank {dump.rank}; give one dump of each rank")
        if dump.snapshot:
            snapshots.append(dump)
        else:
            job.add(dump)
        files.append(replace(dump, groups=(), calls=(), progress=(), conditions=()))
    if not files:
        raise UsageError("no dump was given; give those of all ranks")
    for at, dump in enumerate(snapshots):
        if not any(_same_job(dump, later) for later in snapshots[at + 1 :]):
            job.add(dump)
    moved = [_last(one) != _last(other) for one, other in itertools.pairwise(snapshots) if _same_job(one, other)]
    findings: list[Finding] = [*absent(job), *job.mismatches(), *counted(job)]
    findings += _named_once(called(job, {one.place.group for one in findings if isinstance(one, Mismatch)}))
    return Hang(
        tuple(dict.fromkeys(dump.tool for dump in files)),
        tuple(dict.fromkeys(shown_name(dump.path) for dump in files)),
        tuple(sorted(job.ranks)), max((group.size for group in job.groups.values() if group.size), default=None),
        len(job.groups), tuple(findings[:MOST_FINDINGS]), max(len(findings) - MOST_FINDINGS, 0), tuple(job.waits()),
        len(snapshots) == len(files), any(moved) if moved else None, job.unseen(),
        tuple((shown_name(dump.path), *complaint) for dump in files for complaint in dump.complaints),
        tuple(map(shown_name, ignored)),
    )  # fmt: skip


def _named_once(findings: Iterable[Finding]) -> list[Finding]:
    """The same, with one finding for ranks that several calls wait for."""
    found: list[Finding] = []
    for one in findings:
        for at, other in enumerate(found):
            if isinstance(one, Behind) and isinstance(other, Behind) and _ranks(one) == _ranks(other):
                waiting = tuple(sorted({*other.waiting, *one.waiting}))
                also = (*other.also, one.place)
                found[at] = replace(other, also=also, waiting=waiting, waiting_count=len(waiting))
                break
            if isinstance(one, NoDump) and isinstance(other, NoDump) and one.ranks == other.ranks:
                found[at] = replace(other, also=(*other.also, one.place))
                break
        else:
            found.append(one)
    return found


def _ranks(finding: Behind) -> list[int | None]:
    return [one.rank for one in finding.members]


def _last(dump: Dump) -> dict[tuple[str, str | None], int]:
    """How far the last rank of each group is, by operation."""
    found: dict[tuple[str, str | None], int] = {}
    for one in dump.progress:
        key = (one.group, one.operation)
        found[key] = min(one.launched, found.get(key, one.launched))
    return found


def _same_job(one: Dump, other: Dump) -> bool:
    """Whether two snapshots have a communicator in common."""
    return bool({group.key for group in one.groups} & {group.key for group in other.groups})
