"""Why a simulated schedule takes its time: tables that `simulate` gives with the result, each with a data frame.

    links           how long each link was busy, and what it carried
    trace           when each operation was issued, and when it was complete
    critical path   the chain of operations that decided the makespan, and what the time of each was spent on
    slack           how much later an operation could end without a later end of the whole
    timeline        links, ranks and the critical path over time, see timeline.py

An operation counts as late together with all that its lane does afterwards, though the lane may have time to catch up:
the slack is what is certain, and may be more. It does not see contention: an operation that comes later may meet others
on its links, and then take longer than it did.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from linkwright import _native
from linkwright.base import extras, units
from linkwright.base.errors import UsageError
from linkwright.base.lazy import np
from linkwright.session import timeline
from linkwright.session.timeline import Timeline

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

Column: TypeAlias = "list[str] | npt.NDArray[Any]"
_SPENT = ("latency", "serialisation", "waiting", "overhead", "compute")
_FEW = 10


@dataclass(frozen=True)
class Table:
    """One answer as columns of equal length; times are in microseconds.

    Attributes:
        name: what the rows are.
        columns: the values by name.
    """

    name: str
    columns: Mapping[str, Column] = field(repr=False)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self)} rows of {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        """The first rows, as a notebook shows them."""
        return str(self.frame().head(_FEW).to_html(index=False))

    def frame(self) -> pd.DataFrame:
        """The table as a pandas frame."""
        pd = extras.load("pandas", "analysis", "a data frame")
        return pd.DataFrame(dict(self.columns))


class Insight:
    """All tables of one simulation."""

    def __init__(self, answer: _native.Answer) -> None:
        self._answer = answer

    @functools.cached_property
    def links(self) -> Table:
        """Busiest first; a share is of the makespan."""
        if not self._answer.how.links:
            raise UsageError("links: not recorded; simulate with links=True")
        busy, others = _links(self._answer)
        return Table("links", {"link": others.pop("link"), "busy_us": units.in_us(busy), **others})

    @functools.cached_property
    def trace(self) -> Table:
        """By operation."""
        issued, done = self._times()
        columns: dict[str, Column] = {"start_us": units.in_us(issued), "end_us": units.in_us(done)}
        return Table("trace", self._described(np.arange(len(done))) | columns)

    @functools.cached_property
    def critical_path(self) -> Table:
        """In the order of time, one row per operation; the time between two rows is none."""
        self._times()
        path = self._answer.path
        operation, start, end = path.operation, path.begin_ps, path.end_ps
        first = np.flatnonzero(np.r_[True, operation[1:] != operation[:-1]]) if len(operation) else np.array([], int)
        spent = np.array(path.spent)
        took = units.in_us(end - start)
        causes: dict[str, Column] = {f"{name}_us": _sums(np.where(spent == name, took, 0.0), first) for name in _SPENT}
        last = np.r_[first[1:], len(operation)] - 1 if len(first) else first
        columns: dict[str, Column] = {"start_us": units.in_us(start[first]), "end_us": units.in_us(end[last])}
        return Table("critical path", self._described(operation[first]) | columns | causes)

    @functools.cached_property
    def slack(self) -> Table:
        """By operation."""
        _, done = self._times()
        columns: dict[str, Column] = {"end_us": units.in_us(done), "slack_us": units.in_us(self._slack_ps())}
        return Table("slack", self._described(np.arange(len(done))) | columns)

    @functools.cached_property
    def timeline(self) -> Timeline:
        """Links, ranks and the critical path over time."""
        if not self._answer.how.bins:
            raise UsageError(f"timeline: not recorded; simulate with bins={timeline.BINS}")
        return timeline.of(self._answer)

    def _times(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        if not self._answer.how.operations:
            raise UsageError("times of operations: not recorded; simulate with trace=True")
        return self._answer.operations.issued_ps, self._answer.operations.done_ps

    def _described(self, operations: npt.NDArray[Any]) -> dict[str, Column]:
        """What operations are; -1 is a rank that has not arrived."""
        assert self._answer.schedule, "only answers of a sweep lack it"
        table = self._answer.schedule.operations()
        known = operations >= 0
        columns: dict[str, Column] = {"operation": operations}
        columns["kind"] = [table["kind"][at] if at >= 0 else "arrival" for at in operations.tolist()]
        for name in ("from", "to", "bytes"):
            values = table[name].astype(np.int64)
            columns[name] = np.where(known, values[operations], -1) if len(values) else operations
        return columns

    def _slack_ps(self) -> npt.NDArray[Any]:
        self._times()
        slack = self._answer.operations.slack_ps
        if slack is None:
            raise UsageError("slack: this machine has its own barriers, whose order is not recorded by operation")
        return slack


def _sums(values: npt.NDArray[Any], first: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The sum of each group, from where it begins."""
    return np.add.reduceat(values, first) if len(first) else values


def link_rows(answer: _native.Answer) -> list[dict[str, object]]:
    """The load of every link, busiest first."""
    busy, others = _links(answer)
    columns = {"link": others.pop("link"), "busy_ns": units.in_ns(busy), **others}
    lists = [column if isinstance(column, list) else column.tolist() for column in columns.values()]
    return [dict(zip(columns, values, strict=True)) for values in zip(*lists, strict=True)]


def _links(answer: _native.Answer) -> tuple[npt.NDArray[Any], dict[str, Column]]:
    """The busy time of links in ps, busiest first, and the other columns; a share is of the whole time."""
    links = answer.links
    order = np.argsort(-links.busy_ps.astype(np.int64), kind="stable")
    name, busy = links.name, links.busy_ps[order]
    columns: dict[str, Column] = {
        "link": [name[at] for at in order],
        "busy_share": busy / max(1, answer.time.ps),
        "bytes": links.bytes[order],
        "peak_messages": links.peak[order],
    }
    return busy, columns
