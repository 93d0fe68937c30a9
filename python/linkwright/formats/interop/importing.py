"""Numbers of other tools as result rows: what a file says, and what the user states because it does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from linkwright.ask.question import Collective, Pattern, collectives
from linkwright.base.errors import UsageError, unknown
from linkwright.base.lazy import np
from linkwright.base.stats import bandwidth, grade
from linkwright.base.stats.interval import median_interval
from linkwright.base.units import NS_PER_S, counted
from linkwright.store import schema
from linkwright.store.record import Record

SHOWN = 60  # characters of a file's text in a message
NAME_MOST = 200
Samples = Sequence[Sequence[tuple[float, float]]]  # (start, duration) in ns of each rank, repetition by repetition


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
            raise unknown("collective", self.collective, collectives(), lists="linkwright list collectives")
        if not is_name(self.machine):
            raise UsageError(f"--machine {shown(self.machine)!r}: give 1 to {NAME_MOST} printable characters")


@dataclass(frozen=True)
class Imported:
    """One number of a foreign file: a time at one size."""

    line: int
    collective: str | None  # None: between two endpoints
    algorithm: str
    ranks: int
    size_bytes: int | None  # None: not known
    dtype: str
    op: str | None
    root: int
    metric: str  # `time`, `latency` or `bandwidth`
    value: float  # ns or B/s
    executor: str
    machine: str
    messages: int = 1  # of this size, from each rank
    values: tuple[float, ...] = ()  # that it is the median of, where they are several
    samples: tuple[Samples, ...] = ()  # of each file, where it has those of all ranks

    @property
    def count(self) -> int:
        """How many values it is the median of."""
        return len(self.values) or 1


def shown(text: str) -> str:
    """A text of a file, fit for a message."""
    return "".join(c if c.isprintable() else "?" for c in text[:SHOWN]) + ("..." if len(text) > SHOWN else "")


def known_collective(name: str) -> bool:
    """Whether results of a collective of this name can be read."""
    return name in collectives()


def rows(run: str, found: Sequence[Imported]) -> list[dict]:
    """Result rows; rates follow from a collective's time."""
    return [_row(run, item, *one) for item in found for one in _spread(item)]


def records(found: Sequence[Imported]) -> list[Record]:
    """The values of what was measured several times, each as a launch of its own; of zones, the times of all cores."""
    made = []
    for item in found:
        key = _measured(item).key
        for at, samples in enumerate(item.samples):
            each = np.array(samples).transpose(1, 2, 0).tolist()
            slowest = [max(ns for _, ns in its) for its in samples]
            made.append(Record(experiment=key, launch=at, values_ns=slowest, first_ns=slowest[0], ranks_ns=each))
        times = [] if item.samples else [dict(_metrics(item, value))["time"] for value in item.values]
        made += [Record(experiment=key, launch=at, values_ns=[ns], first_ns=ns) for at, ns in enumerate(times)]
    return made


def _spread(item: Imported) -> Iterator[tuple[str, float, tuple[float, float] | None]]:
    """(metric, value, its interval); rates follow from a collective's time."""
    interval = median_interval(np.array(item.values))
    ends = [dict(_metrics(item, end)) for end in interval or ()]
    for metric, value in _metrics(item, item.value):
        its = sorted(end[metric] for end in ends)
        yield metric, value, (its[0], its[1]) if its else None
    if item.samples:
        each = np.concatenate([np.array(samples)[..., 1] for samples in item.samples])
        yield "time_rank_median", float(np.median(np.median(each, axis=1))), None
        yield "time_rank_min", float(np.median(each.min(axis=1))), None


def _metrics(item: Imported, value: float) -> Iterator[tuple[str, float]]:
    if item.metric == "bandwidth" and value:
        yield "time", (item.size_bytes or 0) / value * NS_PER_S
    elif item.metric == "latency":
        yield "time", 2 * value
    yield item.metric, value
    if item.samples and item.size_bytes:
        yield "bandwidth", item.size_bytes * item.messages * item.ranks / value * NS_PER_S
    if item.collective:
        size = item.size_bytes or 0
        rates = {
            "alg_bw": bandwidth.alg_bw(size, value),
            "bus_bw": bandwidth.bus_bw(item.collective, item.ranks, size, value),
        }
        yield from ((metric, rate) for metric, rate in rates.items() if rate is not None)


def _row(run: str, item: Imported, metric: str, value: float, interval: tuple[float, float] | None) -> dict:
    kind = "a mean" if item.count == 1 else f"the median of {item.count} means"
    if item.samples:
        entries = sum(map(len, item.samples))
        kind = f"the median of {counted(entries, 'repetition')} in {counted(len(item.samples), 'file')}"
    low, high = interval or (None, None)
    precision = grade.precision(value, low, high)
    return schema.row(
        **_measured(item).columns(), run=run, machine=item.machine, executor=item.executor, placement="topology",
        metric=metric, value=value, unit=schema.METRICS[metric][0], status="ok", ci_low=low, ci_high=high,
        n=item.count if interval else None, precision=precision, grade=grade.grade(precision) if interval else None,
        reason=f"imported from line {item.line}; {kind}{'' if interval else ' without interval'}",
    )  # fmt: skip


def _measured(item: Imported) -> Collective | Pattern:
    about = ("imported", item.algorithm, item.ranks, item.size_bytes, item.dtype)
    if item.collective:
        return Collective(*about, root=item.root, collective=item.collective, op=item.op)
    return Pattern(*about, root=item.root, messages=item.messages)
