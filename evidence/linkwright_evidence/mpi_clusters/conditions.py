"""`--conditions FILE.csv`: predictions for rows of the columns of `cpu_clusters.csv`, values absent."""

from __future__ import annotations

from pathlib import Path

from linkwright.base.errors import FileError
from linkwright_evidence import Options, asked, parallel

from . import cells
from .condition import Condition
from .predict import Model
from .tags import Refusal

COLUMNS = ("machine", "nodes", "tasks_per_node", "collective", "algorithm_file_tag", "size_bytes")
MOST_SIZE = 1 << 40


def read(file: Path) -> list[Condition]:
    """Return the conditions in a file; refuse a file that is not a table of them."""
    return [_condition(row, where) for where, row in asked.rows(file, COLUMNS)]


def _condition(row: dict[str, str], where: str) -> Condition:
    for name in ("tasks_per_node", "size_bytes"):
        if not (row[name].isascii() and row[name].isdigit() and 1 <= int(row[name]) <= MOST_SIZE):
            raise FileError(f"{where}: {name} = `{row[name]}`; a whole number above 0, at most 2^40")
    sides = row["nodes"].split("x")
    if not all(side.isascii() and side.isdigit() and len(side) < 8 for side in sides) or len(sides) not in (1, 3):
        raise FileError(f"{where}: nodes = `{row['nodes']}`; a number, or three sides such as 4x4x4")
    return cells.condition(row)


def tables(file: Path, model: Model, options: Options) -> dict[str, list[dict]]:
    """`predictions`, a row for each condition that has one, and `refused`, the others with the reason."""
    found = read(file)
    times = parallel(model.time_us, ((at,) for at in found), options, "collectives")
    rows: dict[str, list[dict]] = {"predictions": [], "refused": []}
    for line, (at, time) in enumerate(zip(found, times, strict=True), 1):
        keys = {
            "row": line,
            "machine": at.machine,
            "nodes": at.nodes,
            "tasks_per_node": at.tasks_per_node,
            "collective": at.collective,
            "algorithm_file_tag": at.tag,
            "size_bytes": at.size_bytes,
        }
        if isinstance(time, Refusal):
            rows["refused"].append(keys | {"reason": time.reason})
        else:
            rows["predictions"].append(keys | {"median_us": float(f"{time:.6g}")})
    return rows
