"""How each table meets its target, table by table, and what does not.

A table is scored on its open cells without misprints; parts that the study scores apart have a line of their own.
Pooled errors are shown too, but two tables hold a quarter of the cells and are nearly constant, so a pooled
figure alone would say little.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from linkwright.studies import Cell
from linkwright.studies.ipu.tables import Table, Target

POOLED_SHARE = 0.95
CLOSE = 0.10


@dataclass(frozen=True)
class Score:
    """The errors of one table."""

    name: str
    errors: tuple[float, ...]
    target: Target | None

    @property
    def median(self) -> float:
        """Median relative error."""
        return statistics.median(self.errors)

    @property
    def p90(self) -> float:
        """Error that 90 % of the cells do not exceed."""
        return self.errors[min(len(self.errors) - 1, int(0.9 * len(self.errors)))]

    @property
    def largest(self) -> float:
        """Largest relative error."""
        return self.errors[-1]

    @property
    def within(self) -> float:
        """Share of cells within 10 %."""
        return sum(error <= CLOSE for error in self.errors) / len(self.errors)

    @property
    def misses(self) -> list[str]:
        """What of the target is not met."""
        if self.target is None:
            return []
        missed = []
        if self.median > self.target.median:
            missed.append(f"median {self.median:.1%} above {self.target.median:.0%}")
        if self.target.p90 is not None and self.within < 0.9:
            missed.append(f"{self.within:.0%} within {self.target.p90:.0%}, not 90 %")
        if self.largest > self.target.largest:
            missed.append(f"largest {self.largest:.1%} above {self.target.largest:.0%}")
        return missed

    @property
    def verdict(self) -> str:
        """In words; nothing where there is no target."""
        if self.target is None:
            return ""
        return "FAILED: " + "; ".join(self.misses) if self.misses else "met"


def errors_of(cells: Iterable[Cell]) -> tuple[float, ...]:
    """Sorted errors of the cells that are scored."""
    scored = (cell for cell in cells if cell.reference is not None and cell.predicted is not None and not cell.erratum)
    return tuple(sorted(cell.error for cell in scored))


def scores(tables: Iterable[Table], cells: Iterable[Cell]) -> list[Score]:
    """One score per table and per part that is scored apart."""
    targets = {table.key: table.target for table in tables}
    cells = list(cells)
    found = []
    for name in dict.fromkeys(cell.table for cell in cells):
        errors = errors_of(cell for cell in cells if cell.table == name)
        if errors:
            found.append(Score(name, errors, targets.get(name)))
    return found


def pooled(name: str, cells: Iterable[Cell], keys: Iterable[str]) -> Score | None:
    """All scored cells of the tables `keys` together, parts scored apart left out."""
    keys = set(keys)
    errors = errors_of(cell for cell in cells if cell.table in keys)
    return Score(name, errors, None) if errors else None


def misses(cells: Iterable[Cell], limit: float) -> list[dict]:
    """Every scored cell whose error exceeds `limit`, largest first."""
    rows = [
        {
            "table": cell.table,
            "row": cell.keys["row"],
            "placement": cell.keys.get("placement", ""),
            "metric": cell.keys["metric"],
            "predicted": cell.predicted,
            "published": cell.reference,
            "error_percent": round(100 * cell.error, 1),
        }
        for cell in cells
        if cell.predicted is not None and cell.reference is not None and not cell.erratum and cell.error > limit
    ]
    return sorted(rows, key=lambda row: -row["error_percent"])
