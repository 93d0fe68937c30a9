"""Reading other people's result files: numbers in, or the line that is wrong.

A file that was cut, or two that were written into each other, would give numbers that look right. So a
reader checks what its format promises (a header before numbers, all columns, growing sizes, the end)
and otherwise refuses the file with the line and the cure. Nothing is guessed: what a file does not say
(collective, ranks) must be given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from linkwright.errors import UsageError
from linkwright.experiment import Experiment
from linkwright.stats import bandwidth
from linkwright.store import schema


@dataclass(frozen=True)
class Said:
    """What the user says because a file may not."""

    collective: str | None = None
    ranks: int | None = None
    machine: str = "imported"


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


class Lines:
    """The lines of a file with their numbers, and errors that name both."""

    def __init__(self, path: Path, text: str):
        self.path = path
        self.lines = text.splitlines()

    def __iter__(self):
        return enumerate(self.lines, 1)

    def refuse(self, number: int, problem: str) -> UsageError:
        """The error for line `number`."""
        return UsageError(f"{self.path}:{number}: {problem}")


def check_growth(lines: Lines, number: int, size: int, before: int | None) -> None:
    """Within one table sizes grow; where they do not, two outputs were mixed."""
    if before is not None and size <= before:
        raise lines.refuse(
            number, f"size {size} follows {before}; within one table sizes grow, so two outputs were mixed: split them"
        )


def number_of(lines: Lines, number: int, text: str, what: str) -> float:
    """A number that is finite and not negative."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise lines.refuse(number, f"{what} `{text}` is no number; the line is cut or not of this format")
    return value


def rows(run: str, found: Sequence[Imported]) -> list[dict]:
    """Result rows; rates follow from a collective's time."""
    rows = []
    for item in found:
        experiment = Experiment(
            "imported", item.collective, item.algorithm, item.ranks, item.size_bytes, item.dtype, item.op, item.root
        )

        def add(metric: str, value: float | None, item=item, experiment=experiment) -> None:
            if value is not None:
                rows.append(_row(run, item, experiment, metric, value))

        if item.metric == "bandwidth":
            add("time", item.size_bytes / item.value * 1e9 if item.value else None)
        elif item.metric == "latency":
            add("time", 2 * item.value)
        add(item.metric, item.value)
        if item.collective:
            add("alg_bw", bandwidth.alg_bw(item.size_bytes, item.value))
            add("bus_bw", bandwidth.bus_bw(item.collective, item.ranks, item.size_bytes, item.value))
    return rows


def _row(run: str, item: Imported, experiment: Experiment, metric: str, value: float) -> dict:
    return schema.row(
        run=run, experiment=experiment.key, machine=item.machine, executor=item.executor, collective=item.collective,
        algorithm=item.algorithm, ranks=item.ranks, size_bytes=item.size_bytes, dtype=item.dtype, op=item.op,
        metric=metric, value=value, unit=schema.METRICS[metric][0], status="ok",
        reason=f"imported from line {item.line}; a mean without interval", placement="topology",
    )  # fmt: skip
