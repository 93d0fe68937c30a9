"""Measured cells beside their predictions."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterable, Sequence

from linkwright_evidence import Options, parallel, scoring
from linkwright_evidence.outcome import Cell, Role
from linkwright_evidence.published import reference_rows

from . import tags
from .condition import Condition
from .predict import Model
from .tags import Refusal

Measured = tuple[Condition, float]  # with its median in us
# Jobs that the fitted numbers were set by: the small ones of each machine. The others are scored.
FITTED_TO = {"fugaku": ("2x2x2",), "leonardo": ("4", "8", "16", "32", "64", "128"), "lumi": ("4", "8")}
BANDS = ((16 << 10, "up to 16 KiB"), (1 << 20, "up to 1 MiB"), (1 << 62, "above 1 MiB"))
# Ranks from which on a run keeps three sizes only, and what `--full` runs at most.
LARGE, MOST_RANKS = 512, 1024
KEPT = (16 << 10, 1 << 20, 64 << 20)
# Runs with several ranks on a node, whose column says one: their notes say so, their smallest vectors have an element
# for each of so many ranks, and `default` is what Open MPI chooses for so many.
RANKS_ON_A_NODE = {"2025_04_06___23_05_13": 4}
# How much slower than the fastest an algorithm may be to count as near to it.
NEAR = 1.05


@functools.cache
def measured() -> tuple[Measured, ...]:
    """All rows of the file."""
    return tuple(
        (condition(row), float(row["median_us"])) for row in reference_rows("mpi-clusters", "cpu_clusters.csv")
    )


def condition(row: dict[str, str]) -> Condition:
    """The condition in a row of the file's columns."""
    return Condition(
        row["machine"],
        row["nodes"],
        RANKS_ON_A_NODE.get(row.get("run", "").partition("/")[0], int(row["tasks_per_node"])),
        tags.COLLECTIVES.get(row["collective"], row["collective"].lower()),
        row["algorithm_file_tag"],
        int(row["size_bytes"]),
    )


def small(at: Condition) -> bool:
    """Whether the fitted numbers were set by this job, of one rank on each node."""
    return at.nodes in FITTED_TO.get(at.machine, ()) and at.tasks_per_node == 1


def slow(at: Condition, full: bool) -> bool:
    """Whether a run leaves it out: many ranks take long. `full` is for `--full`."""
    if at.ranks > MOST_RANKS or (at.ranks > LARGE and not full):
        return True
    return at.size_bytes not in KEPT and (at.ranks > LARGE or (at.ranks == LARGE and not full))


def predictions(model: Model, rows: Sequence[Measured], options: Options) -> list[float | Refusal]:
    """The time of each row in us; conditions that several rows share are simulated once."""
    conditions = list(dict.fromkeys(at for at, _ in rows))
    times = parallel(model.time_us, ((at,) for at in conditions), options, "collectives")
    by_condition = dict(zip(conditions, times, strict=True))
    return [by_condition[at] for at, _ in rows]


def cells(rows: Sequence[Measured], times: Iterable[float | Refusal]) -> list[Cell]:
    """One cell for each row; without a prediction where there is none."""
    return [_cell(at, value, time) for (at, value), time in zip(rows, times, strict=True)]


def _cell(at: Condition, value: float, time: float | Refusal) -> Cell:
    keys = {
        "machine": at.machine,
        "nodes": at.nodes,
        "tasks_per_node": at.tasks_per_node,
        "collective": at.collective,
        "tag": at.tag,
        "size_bytes": at.size_bytes,
    }
    predicted = None if isinstance(time, Refusal) else time
    role: Role = "fitted" if small(at) and predicted else "predicted"
    return Cell(f"{at.machine}, {at.collective}", keys, predicted, value, "us", role=role)


def band(size_bytes: int) -> str:
    """The band of sizes of a vector."""
    return next(name for most, name in BANDS if size_bytes <= most)


def scores(found: Sequence[Cell]) -> list[dict]:
    """Errors by machine, then by jobs, sizes and collectives, of cells that numbers were fitted to and others."""
    rows = []
    for machine in FITTED_TO:
        its = [cell for cell in found if cell.keys["machine"] == machine and cell.error is not None]
        groups: dict[str, list[Cell]] = {"all": its}
        for cell in its:
            ranks = "" if cell.keys["tasks_per_node"] == 1 else f" of {cell.keys['tasks_per_node']} ranks"
            groups.setdefault(f"{cell.keys['nodes']} nodes{ranks}", []).append(cell)
            groups.setdefault(band(int(str(cell.keys["size_bytes"]))), []).append(cell)
            groups.setdefault(str(cell.keys["collective"]), []).append(cell)
        for name, group in groups.items():
            rows += [_score(machine, name, role, [cell for cell in group if cell.role == role]) for role in ROLES]
    return [row for row in rows if row["cells"]]


ROLES = ("fitted", "predicted")


def _score(machine: str, group: str, role: str, its: list[Cell]) -> dict:
    errors = sorted(cell.error for cell in its if cell.error is not None)
    signed = [scoring.relative_error(cell.predicted, cell.reference) for cell in its]
    if not errors:
        return {"cells": 0}
    return {
        "machine": machine,
        "cells_of": group,
        "cells_are": role,
        "cells": len(errors),
        "median": round(100 * statistics.median(errors), 1),
        "p90": round(100 * errors[int(0.9 * (len(errors) - 1))], 1),
        "bias": round(100 * statistics.median(one for one in signed if one is not None), 1),
    }


def by_algorithm(found: Sequence[Cell]) -> list[dict]:
    """Errors by machine, collective and tag."""
    groups: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in found:
        if cell.error is not None:
            groups.setdefault(tuple(str(cell.keys[key]) for key in ("machine", "collective", "tag")), []).append(cell)  # type: ignore[arg-type]
    return [
        {"machine": machine, "collective": collective, "tag": tag.removesuffix("_int32")}
        | {key: _score(machine, tag, "", its)[key] for key in ("cells", "median", "p90", "bias")}
        for (machine, collective, tag), its in groups.items()
    ]


def refused(rows: Sequence[Measured], times: Iterable[float | Refusal]) -> list[dict]:
    """How many rows have no prediction, by reason."""
    counts: dict[tuple[str, str], int] = {}
    for (at, _), time in zip(rows, times, strict=True):
        if isinstance(time, Refusal):
            counts[at.machine, time.reason] = counts.get((at.machine, time.reason), 0) + 1
    return [
        {"machine": machine, "rows": count, "reason": reason}
        for (machine, reason), count in sorted(counts.items(), key=lambda one: -one[1])
    ]
