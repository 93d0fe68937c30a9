"""What a host gave at best, over all its runs.

    runs/ID/best.json    what this run saw, by host     written when the run ends, deleted with it
    best seen          = the best of all runs/*/best.json of the same host, and of this run

A run writes only into its own folder, so that runs side by side do not meet. A file that is damaged, of another format
or of another host counts for nothing.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from linkwright.ask.question import Question
from linkwright.base import files
from linkwright.store import environment

from .bounds import Bounds
from .measured import Measured
from .peaks import Peaks

NAME = "best.json"
FORMAT = 1


@dataclass(frozen=True)
class Host:
    """What must be equal for numbers of two runs to be about the same hardware."""

    name: str
    processor: str
    processors: int
    executor: str
    machine: str

    @classmethod
    def here(cls, executor: str, machine: str) -> Host:
        """This host, as `executor` sees it."""
        return cls(platform.node(), environment.processor_name(), os.cpu_count() or 0, executor, machine)


@dataclass(frozen=True)
class Best:
    """The best of messages and of computing."""

    bounds: Bounds = field(default_factory=Bounds)
    peaks: Peaks = field(default_factory=Peaks)

    @classmethod
    def of(cls, found: Iterable[tuple[Question, Measured | None]], *, shares_memory: bool) -> Best:
        """From everything that was measured; messages only where ranks share one memory."""
        found = list(found)
        return cls(Bounds.of(found) if shares_memory else Bounds(), Peaks.of(found))

    def merged(self, other: Best) -> Best:
        """The better of both, number by number."""
        return Best(self.bounds.merged(other.bounds), self.peaks.merged(other.peaks))

    def time(self, question: Question, measured: Measured) -> tuple[float, str] | None:
        """The time of a question in ns at best, and the name of what it follows from; None where unknown."""
        return self.bounds.best(question) or self.peaks.best(question, measured)


def remembered(folder: Path, host: Host, mine: Best) -> Best:
    """Write what the run in `folder` saw, and return the best of all runs next to it."""
    others = {its: seen for its, seen in _read(folder / NAME).items() if its != host}
    text = json.dumps({"format": FORMAT, "hosts": [_entry(*each) for each in {**others, host: mine}.items()]}, indent=1)
    files.write_text(folder / NAME, text + "\n")
    for path in sorted(folder.parent.glob(f"*/{NAME}")):
        if path.parent != folder:
            mine = mine.merged(_read(path).get(host, Best()))
    return mine


def _entry(host: Host, seen: Best) -> dict[str, object]:
    return {
        "host": dataclasses.asdict(host),
        "cache_line_ns": seen.bounds.line_ns,
        "copy_rates_bytes_per_ns": [[carried, rate] for carried, rate in sorted(seen.bounds.rates.items())],
        "fma_peaks_per_ns": [[*key, rate] for key, rate in sorted(seen.peaks.flops.items())],
        "stores_ns": [[*key, time_ns] for key, time_ns in sorted(seen.peaks.stores.items())],
    }


def _read(path: Path) -> dict[Host, Best]:
    """What a run saw, by host; nothing if the file is missing, damaged or of another format."""
    try:
        found = json.loads(files.kept(path).decode("utf-8"))
        if found["format"] != FORMAT:
            return {}
        return {Host(**entry["host"]): _best(entry) for entry in found["hosts"]}
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return {}


def _best(entry: dict) -> Best:
    line = entry["cache_line_ns"]
    rates = {int(carried): _positive(rate) for carried, rate in entry["copy_rates_bytes_per_ns"]}
    flops = {(str(dtype), int(threads)): _positive(rate) for dtype, threads, rate in entry["fma_peaks_per_ns"]}
    stores = {(int(block), int(threads)): _positive(time) for block, threads, time in entry["stores_ns"]}
    return Best(Bounds(None if line is None else _positive(line), rates), Peaks(flops, stores))


def _positive(number: float | str) -> float:
    value = float(number)
    if not (math.isfinite(value) and value > 0):
        raise ValueError(number)
    return value
