"""Result rows as they are, for spreadsheets and scripts."""

from __future__ import annotations

import csv
import io
import json

from linkwright.store import schema, tables

from .formats import Content, Exporter

_DESCRIPTION = (
    "All columns of `results.parquet`, one row for each metric of each experiment; docs/formats.md explains them. "
)
_KEPT = "Constants of modelled machines are next to the rows; a finished run keeps them as machine files in its folder."


def _json(content: Content) -> str:
    document = {"format": schema.FORMAT, "machines": content.constants, "rows": list(content.rows)}
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _csv(content: Content) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(schema.RESULTS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(content.rows)
    return text.getvalue()


def _markdown(content: Content) -> str:
    columns = [name for name in schema.RESULTS if any(row[name] is not None for row in content.rows)]
    lines = [columns, ["---"] * len(columns)]
    for row in content.rows:
        lines.append(["" if row[name] is None else str(row[name]).replace("|", "\\|") for name in columns])
    text = "".join("| " + " | ".join(line) + " |\n" for line in lines)
    for machine, numbers in content.constants.items():
        text += f"\nConstants of {machine}:\n\n"
        text += "".join(f"- `{n['key']}` = {n['value']} {n['unit']} ({n['status']}: {n['source']})\n" for n in numbers)
    return text


def _parquet(content: Content) -> bytes:
    columns = tables.by_column(content.rows, schema.RESULTS)
    return tables.encoded(columns, schema.RESULTS, "snappy", machines=json.dumps(content.constants))


EXPORTERS = (
    Exporter("json", "every result row in one document (.json)", _DESCRIPTION + _KEPT, "RFC 8259", _json, ".json"),
    Exporter(
        "csv", "every result row, comma separated (.csv)", _DESCRIPTION + "Empty fields are null.", "RFC 4180",
        _csv, ".csv",
    ),
    Exporter(
        "parquet", "every result row, with column types (.parquet)", _DESCRIPTION + _KEPT, "Apache Parquet",
        _parquet, ".parquet",
    ),
    Exporter(
        "md", "every result row in a Markdown table (.md)", _DESCRIPTION + "Empty columns are left out. " + _KEPT,
        "GitHub Flavored Markdown", _markdown, ".md",
    ),
)  # fmt: skip
