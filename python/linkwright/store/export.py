"""Result rows as a file whose suffix says the format: .json .csv .parquet .md."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from linkwright.errors import UsageError

from . import schema
from .files import check_place, write_text, write_whole

if TYPE_CHECKING:
    from linkwright._native import Machine

Rows = Sequence[dict[str, object]]
# Machine -> its numbers, each with unit, status and source.
Constants = dict[str, list[dict[str, str]]]


def as_json(rows: Rows, constants: Constants) -> str:
    """One document: the format's version, every constant of the machines that were modelled, the rows."""
    document = {"format": schema.FORMAT, "machines": constants, "rows": list(rows)}
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def as_csv(rows: Rows, constants: Constants) -> str:
    """A header and one line for each row; null is the empty field. The format has no room for constants."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(schema.RESULTS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_markdown(rows: Rows, constants: Constants) -> str:
    """A table without the columns that are null in every row."""
    columns = [name for name in schema.RESULTS if any(row[name] is not None for row in rows)]
    lines = [columns, ["---"] * len(columns)]
    lines += [["" if row[name] is None else str(row[name]).replace("|", "\\|") for name in columns] for row in rows]
    table = "".join("| " + " | ".join(line) + " |\n" for line in lines)
    return table + "".join(_constants_list(name, numbers) for name, numbers in constants.items())


def _constants_list(machine: str, numbers: list[dict[str, str]]) -> str:
    lines = [f"- `{n['key']}` = {n['value']} {n['unit']} ({n['status']}: {n['source']})\n" for n in numbers]
    return f"\nConstants of {machine}:\n\n" + "".join(lines)


def _write_parquet(rows: Rows, constants: Constants, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = schema.arrow_schema(schema.RESULTS, machines=json.dumps(constants))
    table = pa.Table.from_pylist(list(rows), schema=columns)
    write_whole(path, lambda temporary: pq.write_table(table, temporary))


def _text(render: Callable[[Rows, Constants], str]) -> Callable[[Rows, Constants, Path], None]:
    return lambda rows, constants, path: write_text(path, render(rows, constants))


# Suffix -> writer. One entry for each format.
FORMATS: dict[str, Callable[[Rows, Constants, Path], None]] = {
    ".json": _text(as_json),
    ".csv": _text(as_csv),
    ".parquet": _write_parquet,
    ".md": _text(as_markdown),
}


def check_suffix(path: Path) -> None:
    """Refuse an unknown suffix or an impossible place before anything is measured."""
    if path.suffix not in FORMATS:
        raise UsageError(f"--output {path}: unknown suffix `{path.suffix}`; known: {', '.join(FORMATS)}")
    check_place(path, f"--output {path}")


def write(rows: Rows, path: Path, machines: Sequence[Machine] = ()) -> None:
    """Write `rows` to `path`, whole; with the constants of modelled machines where the format has room."""
    check_suffix(path)
    FORMATS[path.suffix](rows, {machine.name: machine.numbers() for machine in machines}, path)
