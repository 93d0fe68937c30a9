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
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from linkwright.base.errors import UsageError
from linkwright.base.files import shown_name
from linkwright.formats.hangs import CommGroup, Dump, Member, RankCall, RankProgress, RankStatus

FORMAT = 1  # of the document
MOST_FINDINGS = 20
MOST_UNSEEN = 1 << 16
MOST_ENDED = 256  # calls of a group that have ended, of each rank
# Operations whose sizes are alike on all ranks, and which of them: what goes in, what comes out, or both.
_ALIKE: Mapping[str, tuple[bool, bool]] = {
    "allreduce": (True, True), "broadcast": (True, True), "reduce": (True, False), "allgather": (False, True),
    "reduce_scatter": (True, False), "barrier": (False, False),
}  # fmt: skip
# Those of PyTorch whose parts are alike, too.
_EQUAL_PARTS = ("_allgather_base", "_all_gather_base", "_reduce_scatter_base")

What = Literal["operation", "elements", "dtype"]


@dataclass(frozen=True)
class CallPlace:
    """A call of a group: what ranks are in or should be in."""

    group: str
    operation: str
    sequence: int


@dataclass(frozen=True)
class Behind:
    """Ranks that have not entered a call, wait for nobody, and are waited for.

    Attributes:
        place: the call.
        members: who; fewer than `count` where the dump does not list all.
        count: how many.
        launched: the last call that they have entered; None of a send or receive.
        waiting: who waits for them; empty if the dump gives only how many.
        waiting_count: how many.
        snapshot: whether the job may have been running.
        also: further calls that wait for the same ranks.
    """

    kind: ClassVar[str] = "behind"
    place: CallPlace
    members: tuple[Member, ...]
    count: int
    launched: int | None
    waiting: tuple[int, ...]
    waiting_count: int
    snapshot: bool
    also: tuple[CallPlace, ...] = ()


@dataclass(frozen=True)
class Busy:
    """Ranks that have called, but whose kernels have not begun, although no other call holds them up."""

    kind: ClassVar[str] = "not_begun"
    place: CallPlace
    members: tuple[Member, ...]
    waiting: tuple[int, ...]


@dataclass(frozen=True)
class Mismatch:
    """Ranks that differ in a call; `values` are what they have, the most frequent first, each with its ranks."""

    kind: ClassVar[str] = "mismatch"
    place: CallPlace
    what: What
    values: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True)
class RankWait:
    """A rank in a call that cannot end before another rank comes."""

    rank: int
    place: CallPlace
    on: int


@dataclass(frozen=True)
class Cycle:
    """Ranks that wait for one another; `certain` unless the dumps do not say which kernels have begun."""

    kind: ClassVar[str] = "cycle"
    waits: tuple[RankWait, ...]
    certain: bool


@dataclass(frozen=True)
class Left:
    """Ranks in a call that others have completed."""

    kind: ClassVar[str] = "left_behind"
    place: CallPlace
    members: tuple[Member, ...]
    passed: tuple[int, ...]


@dataclass(frozen=True)
class Inside:
    """A call that all ranks of its group have entered alike, and none has completed.

    Attributes:
        place: the call.
        ranks: who.
        complete: whether the dumps tell which ranks the group has; otherwise others may be missing.
    """

    kind: ClassVar[str] = "inside"
    place: CallPlace
    ranks: tuple[int, ...]
    complete: bool


@dataclass(frozen=True)
class NoDump:
    """Ranks of which nothing is known where it decides who is waited for.

    Attributes:
        place: a call that may wait for them.
        ranks: who.
        given: those of whom there is a dump that does not reach back far enough.
        tool: whose dumps are missing.
        also: further such calls.
    """

    kind: ClassVar[str] = "no_dump"
    place: CallPlace
    ranks: tuple[int, ...]
    given: tuple[int, ...]
    tool: str
    also: tuple[CallPlace, ...] = ()


@dataclass(frozen=True)
class Absent:
    """Ranks or processes that are dead, unresponsive, in another state, or report an error."""

    kind: ClassVar[str] = "absent"
    condition: RankStatus
    group: str | None
    rest: tuple[tuple[str, int], ...]  # state of the other ranks -> how many


Finding = Behind | Busy | Mismatch | Cycle | Left | Inside | NoDump | Absent


@dataclass(frozen=True)
class Waiting:
    """Ranks in one call, and those that it waits for; `on_in` are the calls that these are in themselves."""

    place: CallPlace
    ranks: tuple[int, ...]
    on: tuple[int, ...]
    on_in: tuple[CallPlace, ...]


@dataclass(frozen=True)
class Hang:
    """All that dumps say of a job that hangs.

    Attributes:
        tools: which tools wrote the dumps.
        paths: the files.
        ranks: of whom something is known.
        size: ranks of the largest group; None if nothing says.
        groups: how many communicators or process groups.
        findings: the causes, the surest first; empty if nothing is wrong in the dumps.
        more: how many further findings there are.
        waits: who waits for whom.
        snapshot: whether all of it is a snapshot of a running job.
        moved: whether the ranks that are behind went on between two snapshots of the job; None if there is only one.
        unseen: ranks of which no line is in a log.
        complaints: (file, line, what is wrong) of what was not understood.
        ignored: files that are not dumps.
    """

    tools: tuple[str, ...]
    paths: tuple[str, ...]
    ranks: tuple[int, ...]
    size: int | None
    groups: int
    findings: tuple[Finding, ...]
    more: int
    waits: tuple[Waiting, ...]
    snapshot: bool
    moved: bool | None = None
    unseen: tuple[int, ...] = ()
    complaints: tuple[tuple[str, int, str], ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether operations of all ranks are there, as far as is known which ranks there are."""
        return bool(self.ranks) and self.groups > 0 and len(self.ranks) >= (self.size or 0)

    def document(self) -> dict[str, Any]:
        """The answer as plain values, for JSON."""
        findings = [{"kind": one.kind} | asdict(one) for one in self.findings]
        passes = not findings and not self.complaints and self.is_whole
        return {"format": FORMAT, "passes": passes} | asdict(self) | {"findings": findings}


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
    job = _Job()
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
    findings: list[Finding] = [*_absent(job), *job.mismatches(), *_counted(job)]
    findings += _named_once(_called(job, {one.place.group for one in findings if isinstance(one, Mismatch)}))
    return Hang(
        tuple(dict.fromkeys(dump.tool for dump in files)), tuple(shown_name(dump.path) for dump in files),
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


_Place = tuple[str, int]  # group, number


class _Job:
    """The dumps of a job, put together."""

    def __init__(self) -> None:
        self.tool = ""
        self.groups: dict[str, CommGroup] = {}
        self.places: dict[tuple[str, int], Member] = {}  # group, rank -> where it runs
        self.calls: dict[_Place, dict[int, list[RankCall]]] = {}
        self.sends: dict[int, list[RankCall]] = {}  # open sends and receives of a rank
        self.current: dict[int, RankCall] = {}
        self.launched: dict[_Place, int] = {}  # group, rank -> the last that it entered
        self.completed: dict[_Place, int] = {}
        self.unsure: set[_Place] = set()  # group, rank, where older calls are gone
        self.counts: dict[str, list[RankProgress]] = {}
        self.conditions: list[RankStatus] = []
        self.ranks: set[int] = set()
        self.timed = True  # whether dumps tell which kernels have begun
        self._missing: dict[_Place, tuple[set[int], set[int], set[int]]] = {}

    def _keys(self, dump: Dump) -> dict[str, str]:
        """Key of a group in the dump -> key in the job: groups of one name may have different ranks."""
        keys = {}
        for group in dump.groups:
            key, number = group.key, 1
            while key in self.groups and group.ranks and self.groups[key].ranks not in ((), group.ranks):
                key, number = f"{group.key} [{number}]", number + 1
            before = self.groups.get(key)
            if before is None or (group.ranks and not before.ranks):
                name = group.name if key == group.key else f"{group.name} of ranks {compact(group.ranks)}"
                self.groups[key] = replace(group, key=key, name=name)
            self.places.update({(key, one.rank): one for one in group.members if one.rank is not None})
            keys[group.key] = key
        return keys

    def add(self, dump: Dump) -> None:
        """Take a dump; of the calls that have ended, only the last."""
        keys = self._keys(dump)
        self.tool = self.tool or dump.tool
        if dump.rank is not None:
            self.ranks.add(dump.rank)
        last = {progress.group: progress.launched for progress in dump.progress if progress.operation is None}
        for original in dump.calls:
            self.ranks.add(original.rank)
            is_open = original.state != "completed"
            if not is_open and original.sequence < last.get(original.group, 0) - MOST_ENDED:
                continue
            call = replace(original, group=keys.get(original.group, original.group))
            self.timed = self.timed and call.state != "entered"
            if call.p2p:
                if is_open:
                    self.sends.setdefault(call.rank, []).append(call)
            else:
                at = (call.group, call.sequence)
                self.calls.setdefault(at, {}).setdefault(call.rank, []).append(call)
                entered = (call.group, call.rank)
                self.launched[entered] = max(self.launched.get(entered, 0), call.sequence)
            before = self.current.get(call.rank)
            if is_open and (before is None or call.order < before.order):
                self.current[call.rank] = call
        for one in dump.progress:
            progress = replace(one, group=keys.get(one.group, one.group))
            self.ranks.update(progress.ranks)
            if progress.operation is not None or not progress.ranks or dump.snapshot:
                self.counts.setdefault(progress.group, []).append(progress)
                continue
            for rank in progress.ranks:
                at = (progress.group, rank)
                self.launched[at] = max(self.launched.get(at, 0), progress.launched)
                if progress.completed is not None:
                    self.completed[at] = max(self.completed.get(at, 0), progress.completed)
                if not progress.since_begin:
                    self.unsure.add(at)
        self.conditions += [
            replace(one, group=keys.get(one.group, one.group) if one.group else None) for one in dump.conditions
        ]

    def name(self, group: str) -> str:
        return self.groups[group].name if group in self.groups else group

    def members(self, group: str, ranks: Iterable[int]) -> tuple[Member, ...]:
        return tuple(self.places.get((group, rank), Member(rank)) for rank in sorted(ranks))

    def of_group(self, group: str) -> set[int]:
        """The ranks of a group, as far as they are known."""
        found = self.groups[group].ranks if group in self.groups else ()
        return set(found) or {rank for key, rank in self.launched if key == group}

    def is_complete(self, group: str) -> bool:
        """Whether it is known which ranks a group has."""
        return group in self.groups and bool(self.groups[group].ranks)

    def unseen(self) -> tuple[int, ...]:
        """Ranks below the highest of which nothing is known, where no dump tells which ranks the groups have."""
        if not self.ranks or any(group.ranks or group.size for group in self.groups.values()):
            return ()
        return tuple(sorted(set(range(min(max(self.ranks), MOST_UNSEEN))) - self.ranks))

    def place(self, call: RankCall) -> CallPlace:
        operation = call.operation if call.peer is None else f"{call.operation} with rank {call.peer}"
        return CallPlace(self.name(call.group), operation, call.sequence)

    def inside(self) -> dict[_Place, list[int]]:
        """Call of a group -> the ranks that are in it; sends and receives are not among them."""
        found: dict[_Place, list[int]] = {}
        for rank, call in sorted(self.current.items()):
            if not call.p2p:
                found.setdefault((call.group, call.sequence), []).append(rank)
        return found

    def missing(self, at: _Place) -> tuple[set[int], set[int], set[int]]:
        """Of a call: who has to come first, of whom nothing is known, and who has completed it."""
        if at not in self._missing:
            self._missing[at] = self._classed(*at)
        return self._missing[at]

    def _classed(self, group: str, sequence: int) -> tuple[set[int], set[int], set[int]]:
        first, unknown, passed = set(), set(), set()
        for rank in self.of_group(group):
            calls = self.calls.get((group, sequence), {}).get(rank, ())
            current = self.current.get(rank)
            launched = self.launched.get((group, rank))
            if any(call.state == "completed" for call in calls) or self.completed.get((group, rank), -1) >= sequence:
                passed.add(rank)
            elif calls:
                elsewhere = current is not None and (
                    current.p2p or (current.group, current.sequence) != (group, sequence)
                )
                if calls[0].state != "started" and elsewhere and (self.timed or calls[0].state == "entered"):
                    first.add(rank)
            elif current is not None and not current.p2p and current.group == group and current.sequence > sequence:
                passed.add(rank)  # collectives of a group end in their order
            elif launched is None or (launched < sequence and (group, rank) in self.unsure):
                unknown.add(rank)
            elif launched < sequence:
                first.add(rank)
        return first, unknown, passed

    def awaited(self, call: RankCall) -> tuple[set[int], set[int]]:
        """Who has to come before a call ends, and of whom nothing is known."""
        if not call.p2p:
            first, unknown, _ = self.missing((call.group, call.sequence))
            return first - {call.rank}, unknown - {call.rank}
        first, unknown = set(), set()
        batch = [
            one for one in self.sends.get(call.rank, ()) if (one.group, one.sequence) == (call.group, call.sequence)
        ]
        for one in batch:
            other = one.peer
            if other is None or other == call.rank:
                continue
            if other not in self.ranks:
                unknown.add(other)
            elif not self._meets(one, other):
                first.add(other)
        return first, unknown

    def _meets(self, call: RankCall, other: int) -> bool:
        """Whether the other rank has made the call that a send or receive needs, and is in it."""
        wanted = "recv" if call.operation == "send" else "send"
        current = self.current.get(other)
        return any(
            one.operation == wanted and one.group == call.group and one.peer == call.rank
            and (one.state == "started" or current is None or (current.p2p and current.sequence == one.sequence))
            for one in self.sends.get(other, ())
        )  # fmt: skip

    def mismatches(self) -> list[Mismatch]:
        """For each group the first call in which ranks differ."""
        found: dict[str, Mismatch] = {}
        for at in sorted(self.calls, key=lambda at: at[1]):
            group, sequence = at
            if group in found or len(its := self.calls[at]) < 2:
                continue
            if all(call.state == "completed" for calls in its.values() for call in calls):
                continue
            for what, said in _differences(its, complete=set(its) >= self.of_group(group)):
                values = _by_value(said)
                first = its[values[0][1][0]][0]
                found[group] = Mismatch(CallPlace(self.name(group), first.operation, sequence), what, values)
                break
        return list(found.values())

    def waits(self) -> list[Waiting]:
        """Calls with ranks in them that wait for others."""
        found = []
        nodes: dict[object, list[int]] = {}
        for rank, call in sorted(self.current.items()):
            nodes.setdefault((call.group, call.sequence, call.rank if call.p2p else None), []).append(rank)
        for ranks in nodes.values():
            call = self.current[ranks[0]]
            first, _ = self.awaited(call)
            if first:
                inside = dict.fromkeys(self.place(self.current[rank]) for rank in sorted(first) if rank in self.current)
                found.append(Waiting(self.place(call), tuple(ranks), tuple(sorted(first)), tuple(inside)))
        return found


def _differences(its: Mapping[int, list[RankCall]], complete: bool) -> Iterable[tuple[What, dict[int, str]]]:
    """What ranks call, if it differs; `complete` says that all ranks of the group are there."""
    operations = {rank: " + ".join(call.operation for call in calls) for rank, calls in its.items()}
    if len(set(operations.values())) > 1:
        yield "operation", operations
        return
    sizes = {rank: " + ".join(filter(None, (_size(call) for call in calls))) for rank, calls in its.items()}
    if len(set(sizes.values())) > 1:
        yield "elements", sizes
        return
    dtypes = {rank: ", ".join(dict.fromkeys(d for c in calls for d in c.dtypes)) for rank, calls in its.items()}
    known = {rank: text for rank, text in dtypes.items() if text}
    if len(set(known.values())) > 1:
        yield "dtype", known
        return
    first = next(iter(its.values()))[0]
    sent = [call.elements_in for calls in its.values() for call in calls]
    received = [call.elements_out for calls in its.values() for call in calls]
    if complete and first.operation == "alltoall" and None not in (*sent, *received):
        totals = sum(one or 0 for one in sent), sum(one or 0 for one in received)
        if totals[0] != totals[1]:
            text = f"{totals[0]:,} elements sent and {totals[1]:,} received"
            yield "elements", dict.fromkeys(its, text)


def _size(call: RankCall) -> str:
    """The sizes that have to agree, in words; empty if none has to."""
    both = any(call.variant.lower().endswith(name) for name in _EQUAL_PARTS)
    into, out = (True, True) if both else _ALIKE.get(call.operation, (False, False))
    sizes = [value for value, wanted in ((call.elements_in, into), (call.elements_out, out)) if wanted]
    if None in sizes:
        return ""
    said = [f"{value:,}" for value in dict.fromkeys(sizes)]
    return f"{' to '.join(said)} elements" if said else ""


def _by_value(said: Mapping[int, str]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Value -> its ranks, the most frequent first."""
    found: dict[str, list[int]] = {}
    for rank in sorted(said):
        found.setdefault(said[rank], []).append(rank)
    return tuple((value, tuple(ranks)) for value, ranks in sorted(found.items(), key=lambda one: -len(one[1])))


def _called(job: _Job, differing: set[str]) -> Iterable[Finding]:
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


def _cycle(job: _Job) -> Cycle | None:
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


def _sure(job: _Job, wait: RankWait) -> bool:
    """Whether the one that is waited for has surely not come: it has not called, or its kernel has not begun."""
    call = job.current[wait.rank]
    its = job.calls.get((call.group, call.sequence), {}).get(wait.on, ())
    return call.p2p or not its or its[0].state == "scheduled"


def _key(call: RankCall) -> object:
    return (call.group, call.sequence, call.rank if call.p2p else None)


def _one_of_each(job: _Job) -> list[tuple[int, RankCall]]:
    """A rank of each call that ranks are in, the lowest."""
    found: dict[object, tuple[int, RankCall]] = {}
    for rank, call in sorted(job.current.items()):
        found.setdefault(_key(call), (rank, call))
    return list(found.values())


def _counted(job: _Job) -> list[Finding]:
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


def _with_cycle(job: _Job, found: list[Finding]) -> list[Finding]:
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


def _other_order(job: _Job, group: str, uneven: Mapping[str | None, list[RankProgress]]) -> Mismatch | None:
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
    return Mismatch(CallPlace(job.name(group), "operations", total), "operation", _by_value(said))


def _behind(job: _Job, group: str, operation: str | None, progress: list[RankProgress]) -> Behind:
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


def _absent(job: _Job) -> list[Finding]:
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


def compact(ranks: Iterable[int]) -> str:
    """Ranks as people write them: 0-3, 7."""
    parts = []
    for _, run in itertools.groupby(enumerate(sorted(set(ranks))), key=lambda one: one[1] - one[0]):
        numbers = [rank for _, rank in run]
        parts.append(str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}")
    return ", ".join(parts)
