"""Result rows as a file whose suffix says the format: .json .csv .parquet .md."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from linkwright.errors import UsageError

from . import schema
from .files import write_text, write_whole

Rows = Sequence[dict[str, object]]


def as_json(rows: Rows) -> str:
    """One document: the format's version and the rows."""
    return json.dumps({"format": schema.FORMAT, "rows": list(rows)}, indent=1, allow_nan=False) + "\n"


def as_csv(rows: Rows) -> str:
    """A header and one line for each row; null is the empty field."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(schema.RESULTS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_markdown(rows: Rows) -> str:
    """A table without the columns that are null in every row."""
    columns = [name for name in schema.RESULTS if any(row[name] is not None for row in rows)]
    lines = [columns, ["---"] * len(columns)]
    lines += [["" if row[name] is None else str(row[name]).replace("|", "\\|") for name in columns] for row in rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _write_parquet(rows: Rows, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist(list(rows), schema=schema.arrow_schema(schema.RESULTS))
    write_whole(path, lambda temporary: pq.write_table(table, temporary))


# Suffix -> writer. One entry for each format.
FORMATS: dict[str, Callable[[Rows, Path], None]] = {
    ".json": lambda rows, path: write_text(path, as_json(rows)),
    ".csv": lambda rows, path: write_text(path, as_csv(rows)),
    ".parquet": _write_parquet,
    ".md": lambda rows, path: write_text(path, as_markdown(rows)),
}


def check_suffix(path: Path) -> None:
    """Refuse an unknown suffix or a missing folder before anything is measured."""
    if path.suffix not in FORMATS:
        raise UsageError(f"--output {path}: unknown suffix `{path.suffix}`; known: {', '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise UsageError(f"--output {path}: folder {path.parent} does not exist; create it first")


def write(rows: Rows, path: Path) -> None:
    """Write `rows` to `path`, whole."""
    check_suffix(path)
    FORMATS[path.suffix](rows, path)
