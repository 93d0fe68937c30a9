"""What happens over the time of a simulated schedule: how busy links are, what ranks do, what decided the time.

    links     the share of each bin of time for which each link was busy, all bins of one width
    states    per rank the intervals in which it sends, receives, waits or reduces, one at a time
    path      the critical path: what the time was spent on, without gaps, and the slack of each operation on it

A rank *reduces* while it combines, copies or computes. Otherwise it *sends* as long as data of its own are on their way,
from their injection to their delivery; otherwise it *receives* as long as data are on their way to it, and until it has
handled them; otherwise it *waits*, from its arrival to its finish.

All times count from the moment at which a rank without delay arrives. Where the path of a machine runs a schedule several
times, links and states are those of all runs, and the critical path is that of the run that is timed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linkwright import _native

BINS = 200
STATES = ("send", "receive", "wait", "reduce")
SPENT = ("latency", "serialisation", "waiting", "overhead", "compute")

_Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Steps:
    """The critical path as columns, in the order of time; there is no time between two steps.

    Attributes:
        operation: its number in the schedule; -1 while a rank has not arrived.
        source, target: ranks (or memories, behind the ranks) between which it moves data; -1 without an operation.
        spent: what the time was spent on, a number of SPENT.
        begin_us, end_us: when.
        slack_us: how much later the operation could surely end without a later end of the whole.
    """

    operation: _Array
    source: _Array
    target: _Array
    spent: _Array
    begin_us: _Array
    end_us: _Array
    slack_us: _Array

    def __len__(self) -> int:
        return len(self.operation)


@dataclass(frozen=True)
class Timeline:
    """One simulated schedule over time.

    Attributes:
        span_us: until the last rank has finished.
        edges_us: where bins begin, and the end of the last one, which is `span_us` or later; all are equally long.
        links: names of the links.
        bytes: that each link carried.
        busy: the share of each bin (column) for which a link (row) was busy, float32.
        rank, state, begin_us, end_us: intervals, by rank and then by time; a state is a number of STATES.
        path: the critical path.
    """

    span_us: float
    edges_us: _Array
    links: tuple[str, ...]
    bytes: _Array
    busy: _Array
    rank: _Array
    state: _Array
    begin_us: _Array
    end_us: _Array
    path: Steps


def of(schedule: _native.Schedule, found: _native._Simulation, slack_ps: _Array) -> Timeline:
    """The timeline of what `_native.simulate` found for `schedule` with `operations` and `links`.

    Args:
        schedule: as it was simulated.
        found: the answer.
        slack_ps: of each operation.
    """
    links = found["links"]
    span_us = float(found["finish_ps"].max()) / 1e6
    busy_us = links["busy_ps"] / 1e6
    edges = np.array([0.0, max(span_us, float(busy_us.max(initial=0.0)))])
    return Timeline(
        span_us=span_us,
        edges_us=edges,
        links=tuple(links["name"]),
        bytes=links["bytes"],
        busy=(busy_us / max(edges[1], 1e-9)).astype(np.float32)[:, None],
        **_states(schedule, found),
        path=_path(schedule, found, slack_ps),
    )


def _path(schedule: _native.Schedule, found: _native._Simulation, slack_ps: _Array) -> Steps:
    path, table = found["path"], schedule.operations()
    operation = path["operation"]
    known = operation >= 0

    def column(values: _Array) -> _Array:
        return np.where(known, values.astype(np.int64)[operation], -1) if len(values) else operation

    return Steps(
        operation=operation,
        source=column(table["from"]),
        target=column(table["to"]),
        spent=np.array([SPENT.index(name) for name in path["spent"]], np.uint8),
        begin_us=path["from_ps"] / 1e6,
        end_us=path["to_ps"] / 1e6,
        slack_us=np.where(known, slack_ps[operation], 0) / 1e6 if len(slack_ps) else np.zeros(len(operation)),
    )


def _states(schedule: _native.Schedule, found: _native._Simulation) -> dict[str, _Array]:
    table = schedule.operations()
    rows = zip(
        table["kind"], table["from"].tolist(), table["to"].tolist(), found["op_issued_ps"].tolist(),
        found["op_delivered_ps"].tolist(), found["op_done_ps"].tolist(), strict=True,
    )  # fmt: skip
    does: list[list[tuple[int, int, int]]] = [[] for _ in found["start_ps"]]
    for kind, source, target, issued, delivered, done in rows:
        if kind in ("local", "compute"):
            does[source].append((issued, done, 3))
            continue
        for rank, end, state in ((source, delivered, 0), (target, done, 1)):
            if rank < len(does):
                does[rank].append((issued, end, state))
    columns: tuple[list[int], ...] = ([], [], [], [])
    for rank, (start, finish) in enumerate(zip(found["start_ps"].tolist(), found["finish_ps"].tolist(), strict=True)):
        for interval in _swept(does[rank], start, finish):
            for column, value in zip(columns, (rank, *interval), strict=True):
                column.append(value)
    rank, begin, end, state = (np.array(column, np.int64) for column in columns)
    return {
        "rank": rank.astype(np.uint32),
        "state": state.astype(np.uint8),
        "begin_us": begin / 1e6,
        "end_us": end / 1e6,
    }


def _swept(does: list[tuple[int, int, int]], start: int, finish: int) -> list[tuple[int, int, int]]:
    """Intervals of one rank from what goes on at once."""
    turns = sorted([(begin, state, 1) for begin, end, state in does if end > begin]
                   + [(end, state, -1) for begin, end, state in does if end > begin])  # fmt: skip
    count, at, found = [0, 0, 1, 0], start, []
    for moment, state, change in [*turns, (finish, 2, 0)]:
        if moment > at:
            now = next(one for one in (3, 0, 1, 2) if count[one])
            if found and found[-1][2] == now and found[-1][1] == at:
                found[-1] = (found[-1][0], moment, now)
            else:
                found.append((at, moment, now))
            at = moment
        count[state] += change
    return found
