"""Where the time of a replayed step goes: by cause on every rank, along the critical path, and by collective.

A moment of a rank belongs to the first of these that is true: its device computes, its memory moves data, a transfer
of its own is under way, it has arrived at one that has not begun, its host works. What is left after its last node is
waiting, too: the step ends when all ranks are finished. The causes of a rank add up to the step.

The critical path is the chain of nodes and transfers that ends last; each began when the one before it ended, so that
its times add up to the step as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from linkwright.advise.predict.trace.groups import MESSAGE, Meeting
from linkwright.advise.predict.trace.price import Price
from linkwright.advise.predict.trace.replay import DEVICE, HOST, MEMORY_UNIT, NOT_YET, Replay, Replayed, unit_of
from linkwright.base.units import PS_PER_NS

CAUSES = ("computation", "memory", "communication", "waiting", "host")
_COMPUTATION, _MEMORY, _COMMUNICATION, _WAITING, _HOST = range(len(CAUSES))
_CAUSE_OF_UNIT = {DEVICE: _COMPUTATION, MEMORY_UNIT: _MEMORY, HOST: _HOST}

NOT_MODELLED = (
    "each collective is simulated alone: those of different groups that overlap do not share links",
    "recorded times are of the recorded machine, times a factor; transfers do not slow down computation",
)


@dataclass(frozen=True)
class Segment:
    """A stretch of the critical path: a transfer, or work of one kind on one rank."""

    what: str  # a cause, or the kind of a meeting
    detail: str
    count: int
    time_ps: int


@dataclass(frozen=True)
class Row:
    """All meetings of one kind, size, number of ranks and price."""

    kind: str
    size_bytes: int
    ranks: int
    count: int
    price: Price
    share: float  # of the step, in the mean over all ranks; hidden or not

    @property
    def total_ps(self) -> int:
        """Time of all of them."""
        return self.count * self.price.time_ps


@dataclass(frozen=True)
class Outcome:
    """The forecast of one step on one machine."""

    app: str
    machine: str
    nodes: int
    step_ps: int
    ranks: list[tuple[int, ...]]  # time by cause of each rank, in the order of `CAUSES`
    path: list[Segment]
    rows: list[Row]
    notes: tuple[str, ...]

    def causes(self) -> dict[str, tuple[float, int, int]]:
        """Cause -> (mean, least, most) over the ranks, in ps; causes without time are left out."""
        columns = zip(*self.ranks, strict=True)
        found = {c: (sum(own) / len(own), min(own), max(own)) for c, own in zip(CAUSES, columns, strict=True)}
        return {cause: times for cause, times in found.items() if times[2]}

    def share(self, cause: str) -> float:
        """Share of the step, in the mean over the ranks."""
        return self.causes().get(cause, (0.0, 0, 0))[0] / self.step_ps if self.step_ps else 0.0

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "app": self.app,
            "kind": "trace",
            "machine": self.machine,
            "ranks": len(self.ranks),
            "nodes": self.nodes,
            "step_ns": self.step_ps / PS_PER_NS,
            "causes": {
                cause: {"mean_ns": mean / PS_PER_NS, "least_ns": least / PS_PER_NS, "most_ns": most / PS_PER_NS}
                for cause, (mean, least, most) in self.causes().items()
            },
            "by_rank": [
                {f"{cause}_ns": time / PS_PER_NS for cause, time in zip(CAUSES, own, strict=True)} for own in self.ranks
            ],
            "critical_path": [
                {"what": one.what, "detail": one.detail, "count": one.count, "time_ns": one.time_ps / PS_PER_NS}
                for one in self.path
            ],
            "collectives": [
                {
                    "kind": row.kind,
                    "size_bytes": row.size_bytes,
                    "ranks": row.ranks,
                    "count": row.count,
                    "once_ns": row.price.time_ps / PS_PER_NS,
                    "together_ns": row.total_ps / PS_PER_NS,
                    "share": row.share,
                    "algorithm": row.price.algorithm,
                }
                for row in self.rows
            ],
            "notes": list(self.notes),
            "not_modelled": list(NOT_MODELLED),
        }


def outcome(
    app: str, machine: str, program: Replayed, times: Replay, prices: Sequence[Price], notes: tuple[str, ...]
) -> Outcome:
    """What a replay says."""
    step_ps = max(times.end_ps)
    ranks = _by_rank(program, times, step_ps)
    path, rows = _path(program, times), _rows(program.meetings, prices, len(ranks), step_ps)
    return Outcome(app, machine, program.first[-1], step_ps, ranks, path, rows, notes)


def _by_rank(program: Replayed, times: Replay, step_ps: int) -> list[tuple[int, ...]]:
    found = []
    for first, trace in zip(program.first, program.traces, strict=False):
        changes: list[tuple[int, int, int]] = []  # time, cause, +1 or -1
        for place, node in enumerate(trace.nodes):
            activity = first + place
            ready, start, end = times.ready_ps[activity], times.start_ps[activity], times.end_ps[activity]
            if node.communicates:
                changes += _interval(ready, start, _WAITING) + _interval(start, end, _COMMUNICATION)
            elif start < end:
                changes += _interval(start, end, _CAUSE_OF_UNIT[unit_of(trace, place)])
        found.append(_swept(changes, step_ps))
    return found


def _interval(start: int, end: int, cause: int) -> list[tuple[int, int, int]]:
    return [(start, cause, 1), (end, cause, -1)] if start < end else []


def _swept(changes: list[tuple[int, int, int]], end: int) -> tuple[int, ...]:
    """Time by cause; what is not covered is waiting."""
    changes.sort()
    open_, spent, before = [0] * len(CAUSES), [0] * len(CAUSES), 0
    for now, cause, change in [*changes, (end, _WAITING, 0)]:
        if now > before:
            spent[next((c for c, number in enumerate(open_) if number), _WAITING)] += now - before
            before = now
        open_[cause] += change
    return tuple(spent)


def _path(program: Replayed, times: Replay) -> list[Segment]:
    """The critical path in the order of time, with equal neighbours as one."""
    activity = max(range(len(times.end_ps)), key=lambda one: (times.end_ps[one], -one))
    count, chain = program.first[-1], []
    transfers = {
        node for node, one in enumerate(n for trace in program.traces for n in trace.nodes) if one.communicates
    }
    while activity != NOT_YET:
        # The nodes of a meeting lead to it, and it has their time.
        if activity not in transfers and times.end_ps[activity] > times.start_ps[activity]:
            chain.append(activity)
        activity = times.caused_by[activity]
    chain.reverse()
    found: list[Segment] = []
    for segment in _segments(program, times, chain, count):
        if found and (found[-1].what, found[-1].detail) == (segment.what, segment.detail):
            last = found.pop()
            segment = replace(last, count=last.count + 1, time_ps=last.time_ps + segment.time_ps)
        found.append(segment)
    return found


def _segments(program: Replayed, times: Replay, chain: Sequence[int], count: int) -> Iterator[Segment]:
    ranks = [rank for rank, trace in enumerate(program.traces) for _ in trace.nodes]
    for activity in chain:
        time_ps = times.end_ps[activity] - times.start_ps[activity]
        if activity >= count:
            meeting = program.meetings[activity - count]
            yield Segment(meeting.kind, _detail(meeting), 1, time_ps)
        else:
            rank = ranks[activity]
            unit = unit_of(program.traces[rank], activity - program.first[rank])
            yield Segment(CAUSES[_CAUSE_OF_UNIT[unit]], f"rank {rank}", 1, time_ps)


def _detail(meeting: Meeting) -> str:
    if meeting.kind == MESSAGE:
        return f"{meeting.size_bytes:,} B, {meeting.ranks[0]} to {meeting.ranks[1]}"
    return f"{meeting.size_bytes:,} B, {len(meeting.ranks)} ranks"


def _rows(meetings: Sequence[Meeting], prices: Sequence[Price], ranks: int, step_ps: int) -> list[Row]:
    """The kinds of meetings, those that take most first."""
    counts = Counter(
        (one.kind, one.size_bytes, len(one.ranks), price) for one, price in zip(meetings, prices, strict=True)
    )
    rows = []
    for (kind, size, members, price), count in counts.items():
        share = count * price.time_ps * members / (ranks * step_ps) if step_ps else 0.0
        rows.append(Row(kind, size, members, count, price, share))
    return sorted(rows, key=lambda row: (-row.share, row.kind, row.size_bytes, row.ranks, row.price.algorithm))
