"""A job as its dumps show it: groups, calls, and the call that each rank is in."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace

from linkwright.formats.hangs import CommGroup, Dump, Member, RankCall, RankProgress, RankStatus

from .findings import CallPlace, Mismatch, Waiting, What

MOST_UNSEEN = 1 << 16
MOST_ENDED = 256  # calls of a group that have ended, of each rank
# Operations whose sizes are alike on all ranks, and which of them: what goes in, what comes out, or both.
_ALIKE: Mapping[str, tuple[bool, bool]] = {
    "allreduce": (True, True), "broadcast": (True, True), "reduce": (True, False), "allgather": (False, True),
    "reduce_scatter": (True, False), "barrier": (False, False),
}  # fmt: skip
# Those of PyTorch whose parts are alike, too.
_EQUAL_PARTS = ("_allgather_base", "_all_gather_base", "_reduce_scatter_base")

_Place = tuple[str, int]  # group, number


class DumpedJob:
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
        self.rings: set[int] = set()  # ranks that have dumped their last calls
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
            self.rings.add(dump.rank)
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
        """The name of a group in messages."""
        return self.groups[group].name if group in self.groups else group

    def members(self, group: str, ranks: Iterable[int]) -> tuple[Member, ...]:
        """Ranks of a group, with where they run."""
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
        """A call as findings name it."""
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
            elif current and not current.p2p and current.group == group and current.sequence > sequence:
                # Collectives of a group end in their order, but a ring may have lost one that is still open.
                (unknown if rank in self.rings and current.state != "started" else passed).add(rank)
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
                values = by_value(said)
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


def by_value(said: Mapping[int, str]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Value -> its ranks, the most frequent first."""
    found: dict[str, list[int]] = {}
    for rank in sorted(said):
        found.setdefault(said[rank], []).append(rank)
    return tuple((value, tuple(ranks)) for value, ranks in sorted(found.items(), key=lambda one: -len(one[1])))


def compact(ranks: Iterable[int]) -> str:
    """Ranks as people write them: 0-3, 7."""
    parts = []
    for _, run in itertools.groupby(enumerate(sorted(set(ranks))), key=lambda one: one[1] - one[0]):
        numbers = [rank for _, rank in run]
        parts.append(str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}")
    return ", ".join(parts)
