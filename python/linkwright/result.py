"""The result of one experiment, as Python code and notebooks see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from linkwright.base import extras
from linkwright.base.errors import UsageError, unknown
from linkwright.base.units import NS_PER_US
from linkwright.session.insight import Insight, Table
from linkwright.session.timeline import Timeline
from linkwright.show import shown

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Result:
    """The result of one experiment: the time of the slowest rank, and everything else as tidy rows.

    Attributes:
        rows: one dictionary per metric, with the columns that docs/formats.md lists.
        insight: why a simulation took its time, for `links`, `trace`, `critical_path` and `slack`; None for a
            measurement.
    Example:
        >>> import linkwright as lw
        >>> result = lw.simulate(lw.schedule("allreduce", "ring", ranks=4, size="4K"), "loggp")
        >>> result
        <Result allreduce, 4 ranks, 4K on loggp: 9.20 us, 20 % of limit>
        >>> result.time_us, result.limit_us, result.limit_name
        (9.19824, 1.8, 'latency')
        >>> result.bound_us, result.bound_name
        (8.4, 'latency')
        >>> len(result.rows)
        12
        >>> result = lw.simulate(lw.schedule("allreduce", "ring", ranks=4, size="4K"), "loggp", links=True, trace=True)
        >>> path = result.critical_path.frame()
        >>> path[["kind", "from", "to", "latency_us", "overhead_us"]].head(2).values.tolist()
        [['put', 3, 0, 1.0, 0.4], ['put', 0, 1, 1.0, 0.4]]
        >>> result.slack.frame().slack_us.tolist() == [0.0] * 24
        True
        >>> result.links, len(result.trace)
        (<links: 4 rows of link, busy_us, busy_share, bytes, peak_messages>, 24)
        >>> timeline = lw.simulate(lw.schedule("allreduce", "ring", ranks=4, size="4K"), "loggp", bins=20).timeline
        >>> timeline.links[0], timeline.busy.shape, len(timeline.path)
        ('rank 0 out', (4, 18), 27)
    """

    rows: list[dict[str, Any]]
    insight: Insight | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        return f"<Result {shown.line(self.rows)}>"

    def _repr_html_(self) -> str:
        """The table that a notebook shows."""
        return shown.table(self.rows)

    def row(self, metric: str) -> dict[str, Any]:
        """The row of one metric.

        Args:
            metric: the name of the metric, such as `time` (ns), `alg_bw` or `bus_bw` (bytes per second).
        Returns:
            The row, a dictionary.
        Raises:
            UnknownNameError: the result has no such metric.
        Example:
            >>> import linkwright as lw
            >>> result = lw.simulate(lw.schedule("allreduce", "ring", ranks=4, size="4K"), "loggp")
            >>> result.row("time")["value"], result.row("time")["unit"]
            (9198.24, 'ns')
        """
        for row in self.rows:
            if row["metric"] == metric:
                return row
        raise unknown("metric", metric, [str(row["metric"]) for row in self.rows])

    @property
    def time_us(self) -> float:
        """The time of the slowest rank in microseconds; of a measurement, the median over launches."""
        return float(self.row("time")["value"]) / NS_PER_US

    @property
    def limit_us(self) -> float | None:
        """The limit of the problem in microseconds, which no schedule beats on the described machine; None if none is
        known, as on a measured machine."""
        return self._us("limit")

    @property
    def limit_name(self) -> str | None:
        """The name of the limit in `limit_us`; `limits` explains it."""
        return self._name("limit")

    @property
    def bound_us(self) -> float | None:
        """What this schedule could not beat with its own traffic, in microseconds; None if none is known."""
        return self._us("bound")

    @property
    def bound_name(self) -> str | None:
        """The name of the bound in `bound_us`."""
        return self._name("bound")

    @property
    def links(self) -> Table:
        """How long each link was busy, and what it carried, busiest first; asked for by `simulate(..., links=True)`."""
        return self._insight().links

    @property
    def trace(self) -> Table:
        """When each operation began and ended; asked for, like the next two, by `simulate(..., trace=True)`."""
        return self._insight().trace

    @property
    def critical_path(self) -> Table:
        """The chain of operations that decided the time, in order, and what the time of each was spent on: latency,
        serialisation, waiting (for links, ports or ranks that came late), overhead or computing."""
        return self._insight().critical_path

    @property
    def slack(self) -> Table:
        """How much later each operation could surely end without a later end of the whole. It may be more, because an
        operation counts as late together with what its lane does next, and less where it would meet other messages."""
        return self._insight().slack

    @property
    def timeline(self) -> Timeline:
        """How busy each link was in each bin of time, what each rank did when, and the critical path, as arrays; asked
        for by `simulate(..., bins=200)`."""
        return self._insight().timeline

    def _insight(self) -> Insight:
        if self.insight is None:
            raise UsageError("this result is not a simulation of a described machine; use one of lw.simulate")
        return self.insight

    def _us(self, column: str) -> float | None:
        time_ns = self.row("time")[column]
        return None if time_ns is None else float(time_ns) / NS_PER_US

    def _name(self, column: str) -> str | None:
        name = self.row("time")[f"{column}_name"]
        return None if name is None else str(name)

    def frame(self) -> pd.DataFrame:
        """The tidy rows as a pandas frame.

        Returns:
            A frame with one row per metric and the columns that docs/formats.md lists, the metric and its value
            first.
        Example:
            >>> import linkwright as lw
            >>> result = lw.simulate(lw.schedule("allreduce", "ring", ranks=4, size="4K"), "loggp")
            >>> frame = result.frame()
            >>> frame[frame.metric == "time"].value.tolist()
            [9198.24]
        """
        pd = extras.load("pandas", "analysis", "a data frame")
        return pd.DataFrame(self.rows, columns=shown.columns(list(self.rows[0])))
