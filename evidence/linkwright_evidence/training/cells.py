"""Published rows with their predictions, and rows of `--conditions FILE`."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from linkwright.base.errors import FileError
from linkwright_evidence import Options, asked, scoring
from linkwright_evidence.outcome import Cell, Role
from linkwright_evidence.published import reference_rows

from .predict import COLUMNS, Throughput, ThroughputModel

Row = dict[str, str]
VALUE, UNIT = "tokens_per_s_per_gpu", "tokens/s/GPU"
TARGET = scoring.Target(0.10, 0.20, 1.0)
# Columns of numbers, and what stands in them for none.
COUNTS, ABSENT = ("gpus", "gbs", "seq", "mbs", "fsdp", "tp", "pp", "cp", "vp", "ep"), ("", "-", "n/a", "none")
# Without which a row is none; the others are 1 where they are empty or missing.
NEEDED = ("task", "model", "system", "gpus", "precision", "gbs", "seq")


def published() -> list[Row]:
    """All open rows."""
    return reference_rows("training", "training_throughput.csv")


def read(file: Path) -> list[Row]:
    """The conditions in a CSV file; refuses a file that is not one."""
    rows: list[Row] = []
    for where, row in asked.rows(file, NEEDED):
        for name in COUNTS:
            text = row.get(name, "")
            counted = text.isascii() and text.isdigit() and len(text) < 9
            if not ((counted and (int(text) or name == "fsdp")) or (name not in NEEDED and text.lower() in ABSENT)):
                raise FileError(f"{where}: {name} is `{text[:40]}`; write a whole number above 0 and below 10^8")
        rows.append(row)
    return rows


def predictions(model: ThroughputModel, rows: Sequence[Row], options: Options) -> list[Throughput]:
    """The answer to each row, in order."""
    found = []
    for done, row in enumerate(rows, 1):
        found.append(model.of({name: row.get(name, "") for name in COLUMNS}))
        options.progress("training", done, len(rows))
    return found


def cells(rows: Sequence[Row], answers: Sequence[Throughput]) -> list[Cell]:
    """One cell for each row; without a prediction where the row is refused."""
    made = []
    for row, answer in zip(rows, answers, strict=True):
        keys = {name: row.get(name, "") for name in COLUMNS} | {"remark": answer.why}
        value = float(row[VALUE]) if row.get(VALUE) else None
        role: Role = "fitted" if row.get("role") == "calibration" and value else "predicted"
        made.append(Cell(_kind(row), keys, _rounded(answer), value, UNIT, "open" if value else "holdout", role=role))
    return made


def _kind(row: Row) -> str:
    experts = row.get("ep", "").isdigit()
    return f"{row['system'].removeprefix('DGX-')}, {'mixtures of experts' if experts else 'dense'}"


def _rounded(answer: Throughput) -> float | None:
    return None if answer.tokens_per_s is None else float(f"{answer.tokens_per_s:.5g}")


def rows(found: Sequence[Row], answers: Sequence[Throughput]) -> list[dict]:
    """The rows of `--conditions` as they were, with `predicted` and a remark."""
    return [
        {**row, "predicted": _rounded(answer), "fits": answer.fits, "remark": answer.why}
        for row, answer in zip(found, answers, strict=True)
    ]


def refused(found: Sequence[Row], answers: Sequence[Throughput]) -> list[dict]:
    """How many rows have no prediction, by reason."""
    counts: dict[tuple[str, str], int] = {}
    for row, answer in zip(found, answers, strict=True):
        if answer.tokens_per_s is None:
            counts[row["model"], answer.why] = counts.get((row["model"], answer.why), 0) + 1
    return [{"model": model, "rows": count, "reason": why} for (model, why), count in counts.items()]


def scores(made: Sequence[Cell]) -> list[dict]:
    """Errors of scored cells: all, then by task, system, model and precision."""
    groups: dict[str, list[Cell]] = {"all": [cell for cell in made if cell.scored]}
    for cell in groups["all"]:
        for name in ("task", "system", "model", "precision"):
            groups.setdefault(f"{name} {cell.keys[name]}", []).append(cell)
    found = []
    for name, its in groups.items():
        score = scoring.score(name, its)
        if score is None:
            continue
        signed = [scoring.relative_error(cell.predicted, cell.reference) or 0.0 for cell in its]
        found.append(
            {
                "rows_of": name,
                "rows": len(its),
                "median": round(100 * score.median, 1),
                "p90": round(100 * score.p90, 1),
                "bias": round(100 * statistics.median(signed), 1),
            }
        )
    return found
