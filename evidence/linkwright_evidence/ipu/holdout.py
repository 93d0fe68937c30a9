"""From small to large: fitted on at most four IPUs, what does the model say of 8 and 16?

The fitted numbers are found again from the rows of one, two and four IPUs in the tables that they are fitted to; the
cells of 8 and 16 IPUs, which took no part, are then predicted.
"""

from __future__ import annotations

from collections.abc import Iterable

from linkwright_evidence import holdout
from linkwright_evidence.ipu import fit, given
from linkwright_evidence.ipu.bench import Bench
from linkwright_evidence.ipu.tables import Table

LARGE = ("four-boards", "system")


def is_small(row: dict[str, str]) -> bool:
    """Whether the fit may look at a row, as it was open and has at most four IPUs."""
    chosen = row["table"] in given.FIT_TABLES and row["split"] == "open" and row["metric"] not in given.NOT_FITTED
    return chosen and row.get("placement") not in LARGE


def results(bench: Bench, tables: Iterable[Table], progress) -> dict[str, list[dict]]:
    """Errors of the rows of 8 and 16 IPUs, table by table, and the numbers that were found."""
    tables = list(tables)
    found = fit.fit(bench, tables, is_small, progress)
    there = fit.with_values(bench, found)
    large = [
        each.cell(there, row)
        for each in tables
        for row in each.rows()
        if row.get("placement") in LARGE and row["value"] and "90pct" not in row["metric"]
    ]
    return holdout.tables(large, found, fit.shipped(bench))
