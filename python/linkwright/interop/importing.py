"""Reading the result files of other tools: every number, or an error that names the line at fault.

A truncated file, or two that were written into each other, would yield numbers that look right. A reader therefore
checks what its format promises (a header before numbers, all columns, growing sizes, the end), and refuses any other
file with the line and the cure. Nothing is guessed: what a file does not state (collective, ranks) must be given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from linkwright.errors import UsageError
from linkwright.experiment import Experiment
from linkwright.stats import bandwidth
from linkwright.store import schema


@dataclass(frozen=True)
class Defaults:
    """What the user states because a file may not."""

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
        raise lines.refuse(number, f"{what} `{text}` is not a number; the line is cut or not of this format")
    return value


def rows(run: str, found: Sequence[Imported]) -> list[dict]:
    """Result rows; rates follow from a collective's time."""
    return [_row(run, item, metric, value) for item in found for metric, value in _metrics(item)]


def _metrics(item: Imported) -> Iterator[tuple[str, float]]:
    if item.metric == "bandwidth" and item.value:
        yield "time", item.size_bytes / item.value * 1e9
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
    measured = Experiment(
        "imported", item.collective, item.algorithm, item.ranks, item.size_bytes, item.dtype, item.op, item.root
    )
    return schema.row(
        **measured.columns(), run=run, machine=item.machine, executor=item.executor, placement="topology",
        metric=metric, value=value, unit=schema.METRICS[metric][0], status="ok",
        reason=f"imported from line {item.line}; a mean without interval",
    )  # fmt: skip
