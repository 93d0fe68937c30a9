"""The columns of `results.parquet` and `samples.parquet`, and the words in them: `schema.toml` names them all.

Results are tidy: one row for each metric of each experiment. A missing value is null and `reason`
says why; it is never 0 and never the text N/A.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

FORMAT = 4
STATUS = ("ok", "failed", "waived", "out-of-time", "disturbed")

_TABLES: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _columns(table: str) -> dict[str, tuple[str, bool, str]]:
    """Column -> (type; may be null; meaning)."""
    return {name: (one["type"], one["null"], one["meaning"]) for name, one in _TABLES[table].items()}


RESULTS, SAMPLES = _columns("results"), _columns("samples")
FLAGS: dict[str, str] = _TABLES["flags"]
CODES: dict[str, str] = _TABLES["codes"]
# Metric -> (unit, better, meaning). `better` is `low` or `high`, or `` where neither is.
METRICS: dict[str, tuple[str, str, str]] = {
    name: (one["unit"], one["better"], one["meaning"]) for name, one in _TABLES["metrics"].items()
}

# What a value is compared with, in its own unit; the column of the name of each.
COMPARED = ("limit", "bound", "best_seen")
COMPARED_NAMES = tuple(f"{column}_name" for column in COMPARED)


def row(**values: object) -> dict[str, object]:
    """A result row: every column, null where not given. An unknown column is a bug."""
    extra = values.keys() - RESULTS.keys()
    if extra:
        raise KeyError(f"no such result column: {sorted(extra)}")
    assert values.get("status") in STATUS, values.get("status")
    return {name: values.get(name) for name in RESULTS}


def changed(row: dict[str, object], **values: object) -> dict[str, object]:
    """The row with other values in some columns: a tenth of what `row` costs."""
    made = {**row, **values}
    if len(made) > len(RESULTS):
        raise KeyError(f"no such result column: {sorted(values.keys() - RESULTS.keys())}")
    assert made["status"] in STATUS, made["status"]
    return made
