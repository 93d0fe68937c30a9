"""When everything takes place: nodes run as soon as what they wait for is finished and their processor is free.

    rank 0   compute 10 us  . . . . | allreduce | compute ...
    rank 1   compute 14 us          | allreduce | compute ...
                            waiting   both begin and end at once

A rank has one processor of the host, one device and one unit that moves memory; each does one node at a time, that
which the trace issued first among those that may run. A meeting starts when the last of its members has arrived and
the one before it in its channel is finished. It keeps no processor busy, so computation may hide it. Nodes without a
time only order others. Time is an integer number of picoseconds.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from linkwright.advise.predict.trace.groups import MESSAGE, Meeting
from linkwright.advise.predict.trace.nodes import LABELS, MEMORY, Trace
from linkwright.advise.predict.trace.order import followers, told
from linkwright.base.errors import FileError

DEVICE, HOST, MEMORY_UNIT = range(3)
NOT_YET = -1


@dataclass(frozen=True)
class Replayed:
    """What the files say, on any machine; activities are the nodes, rank after rank, and then the meetings."""

    traces: Sequence[Trace]
    orders: Sequence[Sequence[int]]
    before: Sequence[Sequence[Sequence[int]]]
    meetings: Sequence[Meeting]

    @property
    def first(self) -> list[int]:
        """For each rank, the activity of its first node; at the end, the number of nodes."""
        found = [0]
        for trace in self.traces:
            found.append(found[-1] + len(trace.nodes))
        return found


@dataclass(frozen=True)
class Replay:
    """Times of all activities, in ps; `caused_by` is what had to finish for an activity to begin, or NOT_YET."""

    ready_ps: list[int]  # of nodes: when all that they wait for is finished
    start_ps: list[int]
    end_ps: list[int]
    caused_by: list[int]


def unit_of(trace: Trace, place: int) -> int:
    """The processor of a node that does not communicate."""
    node = trace.nodes[place]
    if node.host:
        return HOST
    return MEMORY_UNIT if node.type in MEMORY else DEVICE


def replay(program: Replayed, work_ps: Sequence[int], meeting_ps: Sequence[int]) -> Replay:
    """Run everything; `work_ps` is the time of every node that computes, `meeting_ps` that of every meeting."""
    run = _Run(program, work_ps, meeting_ps)
    run.all()
    return run.times


class _Run:
    def __init__(self, program: Replayed, work_ps: Sequence[int], meeting_ps: Sequence[int]):
        self.program, self.first = program, program.first
        count = self.first[-1]
        self._duration = [*work_ps, *meeting_ps]
        self._left, self._after, self._rank, self._unit, self._priority = [], [], [], [], []
        for rank, (trace, order, before) in enumerate(zip(program.traces, program.orders, program.before, strict=True)):
            base = self.first[rank]
            self._left += [len(own) for own in before]
            self._after += [[base + other for other in own] for own in followers(before)]
            self._rank += [rank] * len(before)
            self._unit += [rank * 3 + unit_of(trace, place) for place in range(len(before))]
            positions = [0] * len(order)
            for position, place in enumerate(order):
                positions[place] = position
            self._priority += positions
        self._meeting: dict[int, int] = {}
        self._absent, self._channel_before, self._channel_after = [], [], []
        last: dict[str, int] = {}
        for number, one in enumerate(program.meetings):
            activity = count + number
            for rank, place in zip(one.ranks, one.places, strict=True):
                self._meeting[self.first[rank] + place] = activity
            self._absent.append(1 if one.kind == MESSAGE else len(one.ranks))
            self._channel_before.append(last.get(one.channel, NOT_YET))
            self._channel_after.append(NOT_YET)
            if one.channel in last:
                self._channel_after[last[one.channel] - count] = activity
            last[one.channel] = activity
        self._count = count
        self._busy = [False] * (3 * len(program.traces))
        self._queues: list[list[tuple[int, int]]] = [[] for _ in self._busy]
        activities = count + len(program.meetings)
        self.times = Replay([NOT_YET] * count, *([NOT_YET] * activities for _ in range(3)))
        self._freed_by = [NOT_YET] * count  # the last of what a node waited for
        self._last = [NOT_YET] * len(self._busy)  # that a processor did
        self._touched: set[int] = set()  # processors that may begin something now
        self._events: list[tuple[int, int]] = []  # (end, activity)

    def all(self) -> None:
        """From the nodes that wait for nothing until no event is left."""
        for node in range(self._count):
            if not self._left[node]:
                self._ready(node, 0, NOT_YET)
        self._next(0)
        while self._events:
            # A processor chooses when everything that ends at this moment has ended.
            now = self._events[0][0]
            while self._events and self._events[0][0] == now:
                self._finished(heapq.heappop(self._events)[1], now)
            self._next(now)
        if NOT_YET in self.times.end_ps:
            raise self._stuck()

    def _begin(self, activity: int, now: int, cause: int) -> None:
        self.times.start_ps[activity], self.times.caused_by[activity] = now, cause
        heapq.heappush(self._events, (now + self._duration[activity], activity))

    def _ready(self, node: int, now: int, cause: int) -> None:
        """All that the node waits for is finished."""
        self.times.ready_ps[node], self._freed_by[node] = now, cause
        if node in self._meeting:
            self._arrived(node, self._meeting[node], now, cause)
        elif not self._duration[node]:
            self._begin(node, now, cause)
        else:
            heapq.heappush(self._queues[self._unit[node]], (self._priority[node], node))
            self._touched.add(self._unit[node])

    def _arrived(self, node: int, meeting: int, now: int, cause: int) -> None:
        """A node that communicates is reached; the data of a late receive are there already."""
        if node in self._needed(meeting - self._count):
            self._absent[meeting - self._count] -= 1
            self._gather(meeting, now, cause)
        elif self.times.end_ps[meeting] != NOT_YET:
            self._begin(node, now, cause)

    def _next(self, now: int) -> None:
        """Let idle processors begin what was issued first."""
        for unit in sorted(self._touched):
            if not self._busy[unit] and self._queues[unit]:
                self._busy[unit] = True
                node = heapq.heappop(self._queues[unit])[1]
                waited = self.times.ready_ps[node] < now
                self._begin(node, now, self._last[unit] if waited else self._freed_by[node])
        self._touched.clear()

    def _gather(self, meeting: int, now: int, cause: int) -> None:
        """Begin a meeting if nothing is missing."""
        number = meeting - self._count
        before = self._channel_before[number]
        if not self._absent[number] and (before == NOT_YET or self.times.end_ps[before] != NOT_YET):
            self._begin(meeting, now, cause)

    def _finished(self, activity: int, now: int) -> None:
        self.times.end_ps[activity] = now
        if activity < self._count:
            self._release(activity, now, activity)
            if self._duration[activity]:
                unit = self._unit[activity]
                self._busy[unit], self._last[unit] = False, activity
                self._touched.add(unit)
            return
        for node in self._nodes_of(activity - self._count):
            if (ready := self.times.ready_ps[node]) != NOT_YET:
                self.times.start_ps[node] = max(ready, self.times.start_ps[activity])
                self.times.end_ps[node], self.times.caused_by[node] = now, activity
                self._release(node, now, activity)
        following = self._channel_after[activity - self._count]
        if following != NOT_YET:
            self._gather(following, now, activity)

    def _release(self, node: int, now: int, cause: int) -> None:
        for other in self._after[node]:
            self._left[other] -= 1
            if not self._left[other]:
                self._ready(other, now, cause)

    def _stuck(self) -> FileError:
        """The error that shows nodes of several ranks that wait for each other."""
        seen: dict[int, int] = {}
        node = self.times.end_ps.index(NOT_YET)
        while node not in seen:
            seen[node] = len(seen)
            node = self._awaited(node)
        circle = [self._shown(one) for one, number in seen.items() if number >= seen[node]]
        return FileError(
            f"{self.program.traces[0].file}: ranks wait for each other in a cycle: {told(circle)}; give traces of "
            "the same step, or correct the groups"
        )

    def _awaited(self, node: int) -> int:
        """One unfinished node that an unfinished node waits for."""
        end, rank = self.times.end_ps, self._rank[node]
        for place in self.program.before[rank][node - self.first[rank]]:
            if end[self.first[rank] + place] == NOT_YET:
                return self.first[rank] + place
        meeting = self._meeting[node] - self._count
        for member in self._needed(meeting):
            if self.times.ready_ps[member] == NOT_YET:
                return member
        return self._nodes_of(self._channel_before[meeting] - self._count)[0]

    def _nodes_of(self, meeting: int) -> list[int]:
        one = self.program.meetings[meeting]
        return [self.first[rank] + place for rank, place in zip(one.ranks, one.places, strict=True)]

    def _needed(self, meeting: int) -> list[int]:
        """The nodes without which a meeting cannot begin: all of a collective, the sender of a message."""
        nodes = self._nodes_of(meeting)
        return nodes[:1] if self.program.meetings[meeting].kind == MESSAGE else nodes

    def _shown(self, node: int) -> str:
        rank = self._rank[node]
        return f"rank {rank} {self.program.traces[rank].nodes[node - self.first[rank]].shown}"


def works(trace: Trace, place: int) -> bool:
    """Whether a node has work to time: neither a communication nor a label."""
    node = trace.nodes[place]
    return not node.communicates and node.type not in LABELS
