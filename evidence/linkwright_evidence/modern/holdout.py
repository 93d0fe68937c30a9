"""One table left out, and one site left out: what the fitted numbers say of tables that had no part in them.

For each fit, its numbers are found again without one of its tables (or without all tables of one site), and the tables
left out are predicted. `ratio` is their median error over that with the shipped numbers; near 1, the numbers are those
of the mechanism and not of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from linkwright.libraries.settings import Setting
from linkwright.libraries.times import Model
from linkwright_evidence import Options

from . import cells, fit
from .cells import Table

NOTE = (
    "The fitted numbers found again without one table, or without one site, and the median error of what was left out "
    "over that with the shipped numbers. `all` is the median over rows."
)
# Relative errors below this are noise: their ratio says nothing.
LEAST = 0.02
# A fit starts at its end, so that one round of few factors shows whether a table held a number in place.
ROUNDS = 1
STEPS = ((0.8, 1, 1.25), (0.9, 1, 1.1))


def rows(options: Options) -> list[dict]:
    """The rows of `--holdout-scale`."""
    found = []
    todo = [(one, by) for one in fit.FITS for by in ("table", "site")]
    for done, (one, by) in enumerate(todo, 1):
        found += _left_out(one, by)
        options.progress("left out", done, len(todo))
    return found


def _left_out(one: fit.Fit, by: str) -> list[dict]:
    tables = cells.tables(one.tables)
    names: dict[str, list[Table]] = {}
    for table in tables:
        names.setdefault(_KEYS[by](table), []).append(table)
    if len(names) < 2:
        return []
    return [
        _row(one, f"{by} {name}", out, [table for table in tables if table not in out]) for name, out in names.items()
    ]


_KEYS: Mapping[str, Callable[[Table], str]] = {
    "table": lambda table: table.id,
    "site": lambda table: table.setting.site if isinstance(table.setting, Setting) else "",
}


def _row(one: fit.Fit, name: str, out: Collection[Table], others: Collection[Table]) -> dict:
    found = fit.refit(one, list(others), rounds=ROUNDS, rows=STEPS)
    shipped, without = (_median(out, changes) for changes in ({}, found))
    return {
        "fit": one.name,
        "left_out": name,
        "tables": len(out),
        "median_percent": round(100 * shipped, 1),
        "left_out_percent": round(100 * without, 1),
        "ratio": round(max(without, LEAST) / max(shipped, LEAST), 2),
    }


def _median(tables: Collection[Table], changes: Mapping[str, str]) -> float:
    found = cells.cells(tables, cells.predictions(Model(changes), tables, Options()))
    score = cells.pooled(found, lambda cell: not cell.erratum)
    return score.median if score else 0.0
