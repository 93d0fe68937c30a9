"""The conditions of published tables, and what was published.

A condition is one line of `tables.csv`: which machine in its author's words, how many GPUs and nodes, which collective,
library and algorithm. Rows of `measured.csv` belong to it. `--conditions FILE` reads the same columns from one file, in
either of two shapes, values absent:

    one line per cell      table_id, machine, gpus, nodes, collective, ..., size_bytes
    one line per table     the same without `size_bytes`, and `sizes`: `8;1K;64M`, or `min_size` and `max_size`,
                           between which sizes double

Only `table_id`, `machine`, `gpus`, `nodes` and `collective` have to be there. Other columns are not read.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from linkwright.base.errors import FileError
from linkwright.base.units import parse_size
from linkwright.libraries.settings import COLLECTIVES, Condition
from linkwright_evidence import asked
from linkwright_evidence.published import reference_rows

NEEDED = ("table_id", "machine", "gpus", "nodes", "collective")
TEXTS = ("library_version", "algo", "proto", "quality", "notes", "split", "source_url")
MOST_GPUS = 1 << 20
MOST_BYTES = 1 << 50


@dataclass(frozen=True)
class Point:
    """A published cell: the median over out-of-place and in-place; a time where there is one, else a bus rate."""

    size_bytes: int
    time_us: float | None
    bus_rate: float | None  # 10^9 B/s
    spread: float = 1.0  # largest over smallest of the two times


def published() -> dict[str, Condition]:
    """All open tables by id, each with its sizes."""
    cells = points()
    rows = reference_rows("modern", "tables.csv")
    found = (_condition(row, f"tables.csv: {row['table_id']}") for row in rows)
    return {one.table_id: replace(one, sizes=tuple(cells[one.table_id])) for one in found if cells.get(one.table_id)}


def points() -> dict[str, dict[int, Point]]:
    """Table -> size -> published cell."""
    found: dict[str, dict[int, list[dict[str, str]]]] = {}
    for row in reference_rows("modern", "measured.csv"):
        found.setdefault(row["table_id"], {}).setdefault(int(row["size_bytes"]), []).append(row)
    return {table: {size: _point(size, rows) for size, rows in sorted(its.items())} for table, its in found.items()}


def _point(size_bytes: int, rows: Iterable[Mapping[str, str]]) -> Point:
    rows = list(rows)
    times = [float(row["time_us"]) for row in rows if row["time_us"]]
    rates = [float(row["busbw_GBps"]) for row in rows if row["busbw_GBps"]]
    return Point(
        size_bytes,
        statistics.median(times) if times else None,
        statistics.median(rates) if rates else None,
        max(times) / min(times) if times else 1.0,
    )


def read(file: Path) -> list[Condition]:
    """The conditions in a CSV file, each with its sizes; refuses a file that is not one."""
    tables: dict[str, Condition] = {}
    for where, row in asked.rows(file, NEEDED):
        one = _condition(row, where)
        before = tables.get(one.table_id)
        if before and replace(one, sizes=()) != replace(before, sizes=()):
            raise FileError(f"{where}: {one.table_id} has other conditions above; a table has one machine")
        sizes = _sizes(row, where)
        tables[one.table_id] = replace(one, sizes=tuple(dict.fromkeys((before.sizes if before else ()) + sizes)))
    return list(tables.values())


def _condition(row: Mapping[str, str], where: str) -> Condition:
    collective = row["collective"].strip().lower()
    if not row["table_id"].strip() or not row["machine"].strip():
        raise FileError(f"{where}: table_id and machine may not be empty")
    gpus, nodes = (_count(row, name, where) for name in ("gpus", "nodes"))
    texts = {name: row.get(name, "") for name in TEXTS}
    texts["quality"] = texts["quality"] or "ok"
    return Condition(
        row["table_id"].strip(), row["machine"], gpus, nodes, COLLECTIVES.get(collective, collective), **texts
    )


def _count(row: Mapping[str, str], name: str, where: str) -> int:
    try:
        value = int(row[name])
    except ValueError:
        value = 0
    if not 1 <= value <= MOST_GPUS:
        raise FileError(f"{where}: {name} = `{row[name]}`; a whole number from 1 to {MOST_GPUS:,}")
    return value


def _sizes(row: Mapping[str, str], where: str) -> tuple[int, ...]:
    if row.get("size_bytes"):
        return (_size(row["size_bytes"], where),)
    if row.get("sizes"):
        return tuple(_size(text, where) for text in row["sizes"].replace(",", ";").split(";") if text.strip())
    if row.get("min_size") and row.get("max_size"):
        size, last = _size(row["min_size"], where), _size(row["max_size"], where)
        found = []
        while size <= last:
            found.append(size)
            size *= 2
        if not found:
            raise FileError(f"{where}: min_size {row['min_size']} is above max_size {row['max_size']}; swap them")
        return tuple(found)
    raise FileError(f"{where}: no sizes; give `size_bytes`, `sizes`, or `min_size` and `max_size`")


def _size(text: str, where: str) -> int:
    try:
        size = parse_size(text.strip())
    except ValueError as error:
        raise FileError(f"{where}: size `{text}`: {error}") from error
    if not 1 <= size <= MOST_BYTES:
        raise FileError(f"{where}: size `{text}`; 1 B to 1 PiB are possible")
    return size
