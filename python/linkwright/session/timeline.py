"""What happens over the time of a simulated schedule: how busy links are, what ranks do, what decided the time.

    links     the share of each bin of time for which each link was busy, all bins of one width
    states    per rank the intervals in which it sends, receives, waits or reduces, one at a time
    path      the critical path: what the time was spent on, without gaps, and the slack of each operation on it

A rank *reduces* while it combines, copies or computes. Otherwise it *sends* as long as it starts a transfer, or data of
its own are on their way; otherwise it *receives* as long as data are on their way to it, and until it has handled
them; otherwise it *waits*, from its arrival to its finish. Who waits for a notice waits.

All times count from the moment at which a rank without delay arrives. Where the path of a machine runs a schedule
several times, links and states are those of all runs, and the critical path is that of the run that is timed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from linkwright import _native
from linkwright.base import units
from linkwright.base.lazy import np

if TYPE_CHECKING:
    import numpy.typing as npt

BINS = 200
STATES = ("send", "receive", "wait", "reduce")
SPENT = ("latency", "serialisation", "waiting", "overhead", "compute")

_Array: TypeAlias = "npt.NDArray[Any]"


@dataclass(frozen=True)
class Steps:
    """The critical path as columns, in the order of time; there is no time between two steps.

    Attributes:
        operation: its number in the schedule; -1 while a rank has not arrived.
        source, target: ranks (or memories, behind the ranks) between which it moves data; -1 without an operation.
        spent: what the time was spent on, a number of SPENT.
        begin_us, end_us: when.
        slack_us: how much later the operation could surely end without a later end of the whole; NaN without an
            operation, and where barriers of the machine order operations.
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
        span_us: until the last rank has finished all that it does.
        edges_us: where bins begin, and the end of the last one, which is `span_us` or later; all are equally long.
            Their number is that asked for or somewhat less, down to half of it.
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


def of(answer: _native.Answer) -> Timeline:
    """The timeline of an answer that kept `operations`, `links` and `bins`."""
    times, links = answer.timeline, answer.links
    edges = np.arange(times.bins + 1) * units.Time(times.width_ps).us
    last_ps = max(answer.ranks.finish_ps.max(), times.end_ps.max(initial=0))
    return Timeline(
        span_us=units.Time(int(last_ps)).us,
        edges_us=edges,
        links=tuple(links.name),
        bytes=links.bytes,
        busy=times.busy_share.reshape(len(links.name), times.bins),
        rank=times.rank,
        state=times.state,
        begin_us=units.in_us(times.begin_ps),
        end_us=units.in_us(times.end_ps),
        path=_path(answer),
    )


def _path(answer: _native.Answer) -> Steps:
    path, slack = answer.path, answer.operations.slack_ps
    operation = path.operation
    known = operation >= 0
    table = answer.schedule.operations()

    def column(values: _Array, default: float) -> _Array:
        return np.where(known, values[operation], default) if len(values) else np.full(len(operation), default)

    return Steps(
        operation=operation,
        source=column(table["from"].astype(np.int64), -1),
        target=column(table["to"].astype(np.int64), -1),
        spent=np.array([SPENT.index(name) for name in path.spent], np.uint8),
        begin_us=units.in_us(path.begin_ps),
        end_us=units.in_us(path.end_ps),
        slack_us=column(np.empty(0) if slack is None else units.in_us(slack), np.nan),
    )
