"""The accuracy of predictions: every study, ablation and hold-out is scored here.

    error     |predicted / published - 1|, of the cells that are scored (`Cell.scored`)
    p90       the error that nine cells in ten do not exceed
    within    share of cells whose error is at most 10 %

A table may have a target; its verdict names the parts that it misses. Pooled errors are shown too, but a table of many
nearly constant cells dominates them, so a pooled figure alone means little.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from linkwright_evidence.outcome import Cell

CLOSE = 0.10


def relative_error(predicted: object, reference: object) -> float | None:
    """Signed relative error; 0 or 1 for texts and references of 0; None if either value is missing."""
    if reference is None or predicted is None:
        return None
    if not is_number(predicted) or not is_number(reference):
        return float(str(predicted) != str(reference))
    return (predicted - reference) / reference if reference else float(predicted != 0)


def is_number(value: object) -> TypeGuard[float]:
    """Whether `value` can be compared as a number; a bool cannot."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


@dataclass(frozen=True)
class Target:
    """What a table should reach: median, 90th percentile (if set) and largest error."""

    median: float
    p90: float | None
    largest: float


@dataclass(frozen=True)
class Score:
    """The errors of some cells in ascending order; its figures need at least one."""

    name: str
    errors: tuple[float, ...]
    target: Target | None = None

    @property
    def median(self) -> float:
        """Median error."""
        return statistics.median(self.errors)

    @property
    def p90(self) -> float:
        """Error that 90 % of the cells do not exceed."""
        return self.errors[min(len(self.errors) - 1, int(0.9 * len(self.errors)))]

    @property
    def largest(self) -> float:
        """Largest error."""
        return self.errors[-1]

    def within(self, bound: float = CLOSE) -> float:
        """Share of cells whose error is at most `bound`."""
        return sum(error <= bound for error in self.errors) / len(self.errors)

    def summary(self) -> dict[str, float]:
        """The columns of a summary, as fractions."""
        figures = {"median": self.median, "p90": self.p90, "max": self.largest, "within_10_percent": self.within()}
        return {"scored": len(self.errors), **figures}

    def percent_row(self, digits: int = 1) -> dict[str, float]:
        """Median (rounded to `digits`), largest error and share within 10 %, in percent."""
        return {
            "median_percent": round(100 * self.median, digits),
            "largest_percent": round(100 * self.largest, 1),
            "within_10_percent": round(100 * self.within(), 1),
        }

    @property
    def misses(self) -> list[str]:
        """The parts of the target that are not met."""
        if self.target is None:
            return []
        missed = []
        if self.median > self.target.median:
            missed.append(f"median {self.median:.1%} above {self.target.median:.0%}")
        if self.target.p90 is not None and self.within() < 0.9:
            missed.append(f"{self.within():.0%} within {self.target.p90:.0%}, not 90 %")
        if self.largest > self.target.largest:
            missed.append(f"largest {self.largest:.1%} above {self.target.largest:.0%}")
        return missed

    @property
    def verdict(self) -> str:
        """Whether the target is met, in words; empty without a target."""
        if self.target is None:
            return ""
        return "FAILED: " + "; ".join(self.misses) if self.misses else "met"


def score(name: str, cells: Iterable[Cell], target: Target | None = None) -> Score | None:
    """The score of all scored cells together; None if there are none."""
    errors = tuple(sorted(cell.error for cell in cells if cell.scored and cell.error is not None))
    return Score(name, errors, target) if errors else None


def scores(cells: Iterable[Cell], targets: Mapping[str, Target | None] | None = None) -> list[Score]:
    """One score per table with scored cells; `targets` by the name of the table."""
    by_table: dict[str, list[Cell]] = {}
    for cell in cells:
        by_table.setdefault(cell.table, []).append(cell)
    found = [score(name, its, (targets or {}).get(name)) for name, its in by_table.items()]
    return [each for each in found if each]
