"""Every published kernel with its prediction, by kind, system and scale, and the errors by band of sizes too."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from linkwright.libraries.settings import COLLECTIVES
from linkwright_evidence import Options, scoring
from linkwright_evidence.modern import conditions as modern
from linkwright_evidence.modern.fit import fitted_to
from linkwright_evidence.outcome import Cell

from . import fit
from .condition import Condition, Measured, published
from .predict import Kernels

CASE = "a case: the host was not healthy, or the publisher doubts the row"
FEW = 8  # of the normal mode's rows, every eighth is shown unless `--full` asks for all
SHOWN = (
    "kind", "system", "gpus", "nodes", "backend", "mode", "op", "dtype", "size_bytes", "tokens", "hidden", "topk",
    "experts", "sms",
)  # fmt: skip


def chosen(options: Options) -> list[Measured]:
    """The published rows that the options ask for; without `--full`, fewer of DeepEP's normal mode."""
    found = [
        one
        for one in published()
        if (not options.kernels or one.condition.kind in options.kernels)
        and (not options.machines or {one.condition.system, one.condition.on.machine} & set(options.machines))
    ]
    if options.full:
        return found
    return [one for at, one in enumerate(found) if at % FEW == 0 or not one.condition.kind.startswith("deepep_ht")]


def predictions(measured: Iterable[Measured], kernels: Kernels) -> list[Cell]:
    """The rows as cells, each with its prediction."""
    return [_cell(one, kernels.time_us(one.condition)) for one in measured]


def group(one: Condition) -> str:
    """What cells are scored together."""
    kind = one.kind + (f" {one.mode}" if one.kind == "framework_allreduce" else "")
    where = f"{one.gpus} GPUs" + (f" on {one.nodes} nodes" if one.nodes > 1 else "")
    return f"{kind}, {one.system}, {where}"


def _cell(one: Measured, predicted: float) -> Cell:
    condition = one.condition
    keys = {name: value for name in SHOWN if (value := getattr(condition, name))} | {"version": condition.table}
    return Cell(
        group(condition),
        keys | {"band": fit.band(condition)},
        float(f"{predicted:.6g}"),
        one.time_us,
        "us",
        erratum=CASE if one.suspect or fit.case(condition) else None,
        role="fitted" if condition in fit.sample() or _given(one) else "predicted",
    )


@functools.cache
def _known() -> frozenset[tuple[str, int, int, str]]:
    """What study `modern` fitted to: collective, GPUs, size, time to three digits."""
    tables, points = modern.published(), modern.points()
    return frozenset(
        (tables[table].collective, tables[table].gpus, size, f"{point.time_us:.3g}")
        for table in fitted_to()
        for size, point in points[table].items()
        if point.time_us
    )


def _given(one: Measured) -> bool:
    """Return whether study `modern` fitted NCCL's numbers to this very value."""
    condition = one.condition
    if condition.kind != "collective":
        return False
    key = (COLLECTIVES[condition.op], condition.gpus, condition.size_bytes, f"{one.time_us:.3g}")
    return key in _known()


def scores(cells: Sequence[Cell]) -> list[dict]:
    """One row per group, band and role: median, 90th percentile and bias in percent."""
    groups: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        if not cell.erratum:
            groups.setdefault((cell.table, str(cell.keys["band"]), cell.role), []).append(cell)
    rows = []
    for (table, at, role), its in groups.items():
        score = pooled(its)
        assert score is not None
        signed = sorted(scoring.relative_error(cell.predicted, cell.reference) or 0.0 for cell in its)
        rows.append({
            "table": table, "band": at, "cells": len(its), "median_percent": round(100 * score.median, 1),
            "p90_percent": round(100 * score.p90, 1), "bias_percent": round(100 * signed[len(signed) // 2], 1),
            "cells_are": role,
        })  # fmt: skip
    return rows


def pooled(cells: Collection[Cell]) -> scoring.Score | None:
    """The score of some healthy cells, those that were fitted to as well."""
    return scoring.score("pooled", (replace(cell, role="predicted") for cell in cells if not cell.erratum))
