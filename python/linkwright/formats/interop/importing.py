"""Numbers of other tools as result rows: what a file says, and what the user states because it does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from linkwright.ask.question import Collective, Pattern
from linkwright.base.errors import UsageError, unknown
from linkwright.base.stats import bandwidth
from linkwright.base.units import NS_PER_S
from linkwright.store import schema

SHOWN = 60  # characters of a file's text in a message
NAME_MOST = 200


def is_name(text: str) -> bool:
    """Whether a text may name a machine in titles and tables."""
    return bool(text.strip()) and text.isprintable() and len(text) <= NAME_MOST


@dataclass(frozen=True)
class Defaults:
    """What the user states because a file may not."""

    collective: str | None = None
    ranks: int | None = None
    machine: str = "imported"

    def __post_init__(self) -> None:
        if self.collective is not None and not known_collective(self.collective):
            from linkwright import _native

            known = [str(row["key"]) for row in _native.collectives()]
            raise unknown("collective", self.collective, known, lists="linkwright list collectives")
        if not is_name(self.machine):
            raise UsageError(f"--machine {shown(self.machine)!r}: give 1 to {NAME_MOST} printable characters")


@dataclass(frozen=True)
class Imported:
    """One number of a foreign file: a time at one size."""

    line: int
    collective: str | None  # None: between two endpoints
    algorithm: str
    ranks: int
    size_bytes: int
    dtype: str
    op: str | None
    root: int
    metric: str  # `time`, `latency` or `bandwidth`
    value: float  # ns or B/s
    executor: str
    machine: str
    count: int = 1  # values that it is the median of


def shown(text: str) -> str:
    """A text of a file, fit for a message."""
    return "".join(c if c.isprintable() else "?" for c in text[:SHOWN]) + ("..." if len(text) > SHOWN else "")


def known_collective(name: str) -> bool:
    """Whether results of a collective of this name can be read."""
    from linkwright import _native

    return name in {str(row["key"]) for row in _native.collectives()}


def rows(run: str, found: Sequence[Imported]) -> list[dict]:
    """Result rows; rates follow from a collective's time."""
    return [_row(run, item, metric, value) for item in found for metric, value in _metrics(item)]


def _metrics(item: Imported) -> Iterator[tuple[str, float]]:
    if item.metric == "bandwidth" and item.value:
        yield "time", item.size_bytes / item.value * NS_PER_S
    elif item.metric == "latency":
        yield "time", 2 * item.value
    yield item.metric, item.value
    if item.collective:
        rates = {
            "alg_bw": bandwidth.alg_bw(item.size_bytes, item.value),
            "bus_bw": bandwidth.bus_bw(item.collective, item.ranks, item.size_bytes, item.value),
        }
        yield from ((metric, rate) for metric, rate in rates.items() if rate is not None)


def _row(run: str, item: Imported, metric: str, value: float) -> dict:
    kind = "a mean" if item.count == 1 else f"the median of {item.count} means,"
    about = ("imported", item.algorithm, item.ranks, item.size_bytes, item.dtype)
    measured: Collective | Pattern = Pattern(*about, root=item.root)
    if item.collective:
        measured = Collective(*about, root=item.root, collective=item.collective, op=item.op)
    return schema.row(
        **measured.columns(), run=run, machine=item.machine, executor=item.executor, placement="topology",
        metric=metric, value=value, unit=schema.METRICS[metric][0], status="ok",
        reason=f"imported from line {item.line}; {kind} without interval",
    )  # fmt: skip
