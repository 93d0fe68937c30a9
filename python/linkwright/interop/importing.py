"""Reading the result files of other tools: every number, or an error that names the line at fault.

A truncated file, or two that were written into each other, would yield numbers that look right. A reader therefore
checks what its format promises (a header before numbers, all columns, growing sizes, the end), and refuses any other
file with the line and the cure. Nothing is guessed: what a file does not state (collective, ranks) must be given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from linkwright.errors import UsageError, unknown
from linkwright.experiment import Experiment
from linkwright.stats import bandwidth
from linkwright.store import schema
from linkwright.units import MAX_BYTES, MAX_S

SHOWN = 60  # characters of a file's text in a message
NAME_MOST = 200
# In the units of the formats: ten years in us, and 10^12 MB/s.
MOST_MICROS = MAX_S * 1e6
MOST_RATE = 1e12


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


def number_of(lines: Lines, number: int, text: str, what: str, most: float) -> float:
    """A decimal number of at most `most`."""
    if not re.fullmatch(r"\d{1,30}(\.\d{0,30})?(e[+-]?\d{1,3})?", text, re.ASCII | re.IGNORECASE):
        raise lines.refuse(number, f"{what} `{shown(text)}` is not a number; the line is cut or not of this format")
    if (value := float(text)) > most:
        raise lines.refuse(
            number, f"{what} `{shown(text)}` is beyond {most:g}; the line is damaged, or of another unit"
        )
    return value


def whole_of(lines: Lines, number: int, text: str, what: str, most: int) -> int:
    """A whole number of at most `most`."""
    if not re.fullmatch(r"\d{1,30}", text, re.ASCII):
        raise lines.refuse(
            number, f"{what} `{shown(text)}` is not a whole number; the line is cut or not of this format"
        )
    if (value := int(text)) > most:
        raise lines.refuse(number, f"{what} `{shown(text)}` is beyond {most}; the line is damaged")
    return value


def size_of(lines: Lines, number: int, text: str, times: int = 1) -> int:
    """A size in bytes, `times` as large."""
    return whole_of(lines, number, text, "size", MAX_BYTES // times) * times


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
