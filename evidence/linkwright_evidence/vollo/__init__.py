"""The host round trip of Vollo on an IA-420F card: six tables of 81 cells, for three ways to transfer the data.

Parts: `grid` (modelled and published cells), `facts`, `claims`, `curves` (further predictions), `shown` (heat maps),
`fit` (recovers the nine fitted numbers), `ablation` and `holdout`.

Source: "IO Round Trip" of the Vollo accelerator documentation.
"""

from __future__ import annotations

import math
import statistics

from linkwright.machines import load
from linkwright_evidence import Options, scoring
from linkwright_evidence import ablation as common_ablation
from linkwright_evidence.numbers import tuned
from linkwright_evidence.outcome import Cell, Outcome, Role
from linkwright_evidence.published import reference_rows
from linkwright_evidence.vollo import ablation, claims, curves, facts, grid, holdout, shown
from linkwright_evidence.vollo.grid import PRINT_STEP_US, Grid, Key

MACHINE = "vollo-ia420f"
REFERENCE = "io_round_trip.csv"
# The share of a table's cells within the interval of the prediction, if held-out cells are like the fitted ones.
CONFIDENCE = 0.9

NOTES = {
    "scores": "Errors on the cells that no number was fitted to. A print step is 0.1 us, so half of one is 5 % at 1 "
    "us: a largest error much below that would mean nothing.",
    "crossovers": "From this input size on, in lines of 64 B, raw buffers are faster than stores into the window; "
    "beside it the largest published input at which mmio still wins, and the smallest at which raw does.",
    "copies": "User less raw, in the mean: what the two copies in the host cost.",
    "byte_costs": "From the smallest to the largest size of one direction, the other at its smallest.",
    "limit_lines": "As many bytes there as back: raw buffers, and dashed these bytes on the link alone.",
    "configurations": "Generation and width are not stated on the page. Only links that carry the fitted rate of the "
    "DMA engine can have been there.",
    "ablation": common_ablation.NOTE,
    "from_small_to_large": holdout.NOTE,
    "anomalies": "Cells of the page that stand out. They are scored as they are, and no model is bent to them.",
}

# Split of the reference file -> what it means.
SPLITS = {"open": "open from the start", "holdout": "withheld while the model was built"}
ANOMALIES = [
    {"where": "mmio, output 64, input 8192", "what": "34.8 us (mean) and 35.9 us (p99), 1.1 us below its neighbours"},
    {"where": "user, input 8192", "what": "output 256 (5.0 us) is slower than output 512 (4.8 us); p99 5.3 and 5.1"},
    {"where": "mmio, p99", "what": "isolated steps of -0.2 us along the output, at inputs 32, 512, 1024 and 2048"},
    {"where": "all tables", "what": "neighbours that fall by 0.1 us: print rounding and noise"},
]


def reproduce(options: Options) -> Outcome:
    """The whole study: cells, claims, and the tables behind the figures."""
    machine = load(MACHINE)
    options.progress("round trips", 0, 1)
    model = grid.modelled(machine)
    rows = reference_rows("vollo", REFERENCE)
    page = grid.published(rows)
    cells = _cells(rows, model) + facts.cells(model, lambda key: _role(key, grid.fitted_to(rows)))
    outcome = Outcome(
        paper="vollo",
        title="Host round trips of Vollo on an IA-420F card, on a model",
        machine=MACHINE,
        tuned=[_with_tables(row) for row in tuned(machine)],
        cells=cells,
        claims=claims.check(model, page),
        notes=NOTES,
    )
    outcome.tables = {
        "scores": _scores(outcome),
        "crossovers": curves.crossovers(machine, page),
        "copies": curves.copy_costs(model, page),
        "byte_costs": curves.byte_costs(model),
        "limit_lines": curves.limit_lines(machine, model),
        "configurations": curves.configurations(machine),
        "anomalies": ANOMALIES,
    }
    outcome.sections = shown.sections([cell for cell in cells if cell.table != "facts"])
    outcome.remarks = [_pooled(cells, split, what) for split, what in SPLITS.items()]

    def on(machine) -> list[Cell]:
        return _cells(rows, grid.modelled(machine))

    if options.ablate:
        tables = [cell for cell in cells if cell.table != "facts"]
        outcome.tables["ablation"] = ablation.table(machine, tables, on, options.progress)
    if options.holdout_scale:
        outcome.tables |= holdout.results(machine, grid.published(rows, "open"), on)
    return outcome


def _pooled(cells: list[Cell], split: str, what: str) -> str:
    of = scoring.score(what, (cell for cell in cells if cell.split == split and cell.table != "facts"))
    if of is None:
        return f"tables, {what}: none scored"
    return f"tables, {what}: {len(of.errors)} cells, {of.within():.1%} within 10 %, median {of.median:.1%}"


def _role(key: Key, fitted: Grid) -> Role:
    return "fitted" if key in fitted else "predicted"


def _cells(rows: list[dict[str, str]], model: Grid) -> list[Cell]:
    page, fitted = grid.published(rows), grid.fitted_to(rows)
    widths = {(m, s): _half_width(model, fitted, m, s) for m in grid.MODES for s in grid.STATISTICS}
    cells = []
    for row in rows:
        mode, statistic = row["mode"], row["stat"]
        key = (mode, statistic, int(row["in_values"]), int(row["out_values"]))
        predicted = model[key]
        half = max(widths[mode, statistic] * predicted, PRINT_STEP_US / 2)
        keys = {"mode": mode, "stat": statistic, "out_values": key[3], "in_values": key[2]}
        interval = (predicted - half, predicted + half)
        table = f"{mode}, {statistic}"
        role = _role(key, fitted)
        cells.append(Cell(table, keys, predicted, page[key], "us", row["split"], interval=interval, role=role))
    return cells


def _half_width(model: Grid, page: Grid, mode: str, statistic: str) -> float:
    """Relative half width of an interval, by conformal prediction.

    Of the n errors of the cells of `page`, it is the ceil((n + 1) x confidence)-th smallest. The error of a further
    cell like these is below it with that probability, whatever the distribution.
    """
    own = [key for key in page if key[:2] == (mode, statistic)]
    errors = sorted(abs(model[key] / page[key] - 1) for key in own)
    return errors[min(len(errors), math.ceil((len(errors) + 1) * CONFIDENCE)) - 1]


def _with_tables(row: dict) -> dict:
    """A tuned number; a fitted one with the tables that it affects."""
    return row | {"tables": grid.tables_of(row["key"])} if row["status"] == "fitted" else row


def _scores(outcome: Outcome) -> list[dict]:
    rows = []
    for row in outcome.summary():
        own = [c for c in outcome.cells if c.table == row["table"]]
        if row["table"] == "facts":
            continue
        near = [abs(c.predicted - c.reference) <= PRINT_STEP_US for c in own if c.scored]
        fitted = sum(row["table"] in number.get("tables", ()) for number in outcome.tuned)
        rows.append(
            {
                "table": row["table"],
                "cells": str(row["cells"]),
                "scored": str(row["scored"]),
                "fitted_numbers": str(fitted),
                "median_error": f"{row['median']:.1%}",
                "p90_error": f"{row['p90']:.1%}",
                "largest_error": f"{row['max']:.1%}",
                "within_10_percent": f"{row['within_10_percent']:.0%}",
                "within_a_print_step": f"{statistics.fmean(near):.0%}",
            }
        )
    return rows
