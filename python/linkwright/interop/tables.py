"""The rows of a run as they are, for spreadsheets and scripts."""

from __future__ import annotations

from linkwright.errors import unknown
from linkwright.store import export
from linkwright.store.run import Run

DESCRIPTION = (
    "All columns of `results.parquet`, one row for each metric of each experiment; docs/formats.md has their "
    "meaning. Constants of modelled machines lie as machine files in the run's folder."
)


def rows_of(run: Run, machine: str | None) -> list[dict]:
    """The result rows of a run, or of one of its machines."""
    rows = run.results().to_pylist()
    if machine is None:
        return rows
    known = list(dict.fromkeys(row["machine"] for row in rows))
    if machine not in known:
        raise unknown("machine in this run", machine, known)
    return [row for row in rows if row["machine"] == machine]


def as_csv(run: Run, machine: str | None) -> str:
    """A header and one line for each row."""
    return export.as_csv(rows_of(run, machine), {})


def as_json(run: Run, machine: str | None) -> str:
    """One document with the format's version and the rows."""
    return export.as_json(rows_of(run, machine), {})
