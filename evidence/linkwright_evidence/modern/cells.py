"""Every published cell with its prediction, and the errors by machine, collective, nodes and size.

    error = |predicted - published| / published

of times; of rates where only a bus rate is published. Cases are predicted as the healthy machine and never scored.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from linkwright import _native
from linkwright.base.errors import LinkwrightError
from linkwright.libraries.settings import Condition, Refusal, Setting, Setup, settle
from linkwright.libraries.times import Model, Predicted
from linkwright_evidence import Options, parallel, scoring
from linkwright_evidence.outcome import Cell, Role

from . import conditions
from .conditions import Point

MIB = 1 << 20
SMALL, LARGE = "< 1 MiB", ">= 1 MiB"
CASE = "a case: the machine was not healthy, or changed on purpose"
# More GPUs are simulated at fewer sizes unless `--full` asks for all.
MANY_GPUS = 64
FEW_SIZES = 4  # every fourth power of two


@dataclass(frozen=True)
class Table:
    """A published table, settled."""

    condition: Condition
    setting: Setting | Refusal
    points: Mapping[int, Point]

    @property
    def id(self) -> str:
        """Its id."""
        return self.condition.table_id

    @property
    def shape(self) -> Setup | None:
        """What its predictions depend on besides the size; None if it is refused."""
        return None if isinstance(self.setting, Refusal) else self.setting.setup


def tables(chosen: Collection[str] = (), machines: Collection[str] = (), *, faulty: bool = True) -> list[Table]:
    """All open tables, or those named and of the machines named; without `faulty`, only healthy ones."""
    points = conditions.points()
    found = [Table(one, settle(one), points[one.table_id]) for one in conditions.published().values()]
    return [
        table
        for table in found
        if (not chosen or table.id in chosen)
        and (faulty or table.condition.healthy)
        and (not machines or (table.shape is not None and table.shape.machine in machines))
    ]


def sizes(table: Table, full: bool) -> list[int]:
    """The sizes at which a table is predicted."""
    every = list(table.points)
    if full or table.condition.gpus <= MANY_GPUS:
        return every
    return [size for at, size in enumerate(reversed(every)) if at % FEW_SIZES == 0][::-1]


def predictions(
    model: Model, all_tables: Iterable[Table], options: Options
) -> dict[tuple[Setup, int], Predicted | str]:
    """(shape, size) -> the prediction, or why there is none; shapes that tables share are simulated once."""
    asked = list(dict.fromkeys((t.shape, size) for t in all_tables if t.shape for size in sizes(t, options.full)))
    # Large ones first, so that two cores end together.
    asked.sort(key=lambda one: (-one[0].ranks, one[0].fabric or "", one[1]))
    found = parallel(functools.partial(_predicted, model), asked, options, "collectives")
    return dict(zip(asked, found, strict=True))


def _predicted(model: Model, shape: Setup, size_bytes: int) -> Predicted | str:
    try:
        return model.time(shape, size_bytes)
    except LinkwrightError as error:
        return str(error)


def cells(
    all_tables: Iterable[Table], times: Mapping[tuple[Setup, int], Predicted | str], fitted_to: Collection[str] = ()
) -> list[Cell]:
    """The published cells with their predictions."""
    found = []
    for table in all_tables:
        for size, point in table.points.items():
            one = times.get((table.shape, size)) if table.shape else None
            if isinstance(one, Predicted):
                found.append(_cell(table, point, one, fitted_to))
    return found


def _cell(table: Table, point: Point, predicted: Predicted, fitted_to: Collection[str]) -> Cell:
    condition, shape = table.condition, table.shape
    assert shape is not None
    role: Role = "fitted" if table.id in fitted_to else "predicted"
    keys = {
        "table_id": table.id, "machine": shape.machine, "collective": condition.collective, "gpus": condition.gpus,
        "nodes": condition.nodes, "size_bytes": point.size_bytes, "choice": predicted.choice,
    }  # fmt: skip
    value: float = predicted.time_us
    reference, unit = point.time_us, "us"
    if reference is None:
        value, reference, unit = bus_rate(shape, point.size_bytes, predicted.time_us), point.bus_rate, "GB/s"
    erratum = None if condition.healthy else CASE
    return Cell(group(shape, point.size_bytes), keys, value, reference, unit, "open", erratum, role=role)


def bus_rate(shape: Setup, size_bytes: int, time_us: float) -> float:
    """10^9 B/s as nccl-tests reports them."""
    factor = 1.0 if shape.collective == "sendrecv" else _native.bus_factor(shape.collective, shape.ranks)
    return size_bytes / time_us / 1e3 * factor


def group(shape: Setup, size_bytes: int) -> str:
    """What cells are scored together: machine, collective, one node or several, size band."""
    nodes = "1 node" if shape.nodes == 1 else "several"
    return f"{shape.machine}, {shape.collective}, {nodes}, {SMALL if size_bytes < MIB else LARGE}"


def parts(group: str) -> dict[str, str]:
    """The columns of a group."""
    return dict(zip(("machine", "collective", "nodes", "size"), group.split(", "), strict=True))


def scores(all_cells: Iterable[Cell]) -> list[dict]:
    """One row per group and role: median and 90th percentile in percent, and how many tables and cells."""
    groups: dict[tuple[str, Role], list[Cell]] = {}
    for cell in all_cells:
        if not cell.erratum and cell.error is not None:
            groups.setdefault((cell.table, cell.role), []).append(cell)
    return [_score_row(table, role, its) for (table, role), its in sorted(groups.items())]


def _score_row(table: str, role: Role, its: list[Cell]) -> dict:
    found = scoring.score(table, (replace(cell, role="predicted") for cell in its))
    assert found is not None
    return {
        **parts(table),
        "tables": len({cell.keys["table_id"] for cell in its}),
        "cells": len(its),
        "median_percent": round(100 * found.median, 1),
        "p90_percent": round(100 * found.p90, 1),
        "bias_percent": round(100 * _bias(its), 1),
        "cells_are": role,
    }


def _bias(its: list[Cell]) -> float:
    """The median signed error: which way predictions are off."""
    signed = sorted(scoring.relative_error(cell.predicted, cell.reference) or 0.0 for cell in its)
    return signed[len(signed) // 2]


def refused(all_tables: Iterable[Table], times: Mapping[tuple[Setup, int], Predicted | str]) -> list[dict]:
    """The tables without a prediction, or without some, and why."""
    rows = []
    for table in all_tables:
        if isinstance(table.setting, Refusal):
            rows.append({"table_id": table.id, "machine": table.condition.machine, "reason": table.setting.reason})
            continue
        reasons = {one for size in table.points if isinstance(one := times.get((table.shape, size)), str)}
        rows += [
            {"table_id": table.id, "machine": table.condition.machine, "reason": reason} for reason in sorted(reasons)
        ]
    return rows


def pooled(all_cells: Iterable[Cell], keep: Callable[[Cell], bool]) -> scoring.Score | None:
    """The score of some healthy cells, those that were fitted to as well."""
    return scoring.score("pooled", (replace(cell, role="predicted") for cell in all_cells if keep(cell)))
