"""Measured and modelled: predictions, by a machine fitted to this run, of data that the fit did not see.

The section has a plot per collective of the held-out algorithms, with measured points and modelled lines; a table of
errors; and the algorithm that the model would have chosen, with the cost of that choice.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from linkwright.base.units import S_PER_NS

from .. import cells, quantity
from ..model import Axis, Cell, Column, Curve, Item, Plot, Section, Table
from ..runs import Run
from .values import missing

INTRO = (
    "A machine file was fitted to this run (`linkwright fit`). The fit used messages in a row, short ping-pongs and a "
    "few plain algorithms, and two thirds of the sizes of each. Nothing shown here was part of it. Points are "
    "measured, lines are the model."
)
GOOD = 0.15


def section(run: Run) -> Section | None:
    """The predictions; None if the run was not fitted."""
    if run.fit is None:
        return None
    predictions = [p for p in run.fit["predictions"] if not p["seen"] and p["predicted_ns"] is not None]
    items: list[Item] = [_errors(predictions), _ratios(predictions), _parameters(run.fit)]
    by_collective = defaultdict(list)
    for prediction in predictions:
        if prediction["collective"]:
            by_collective[prediction["collective"]].append(prediction)
    items += [_plot(collective, its) for collective, its in sorted(by_collective.items()) if collective != "barrier"]
    state = run.fit.get("state")
    intro = f"{INTRO} The machine had two states: {state}." if state else INTRO
    return Section("Measured and modelled", [*items, _choices(run.fit["choices"])], intro)


def _errors(predictions: list[dict]) -> Table:
    groups = defaultdict(list)
    for p in predictions:
        groups[p["collective"] or p["algorithm"].replace("_", " ")].append(
            abs(p["predicted_ns"] / p["measured_ns"] - 1)
        )
    groups["all"] = [error for errors in groups.values() for error in errors]
    rows = []
    for name, errors in groups.items():
        median, p90 = np.percentile(errors, (50, 90)) if errors else (0.0, 0.0)
        within = float(np.mean(np.array(errors) <= GOOD)) if errors else 0.0
        tone = "good" if median <= GOOD else "bad"
        cells = [Cell(f"{median:.0%}", float(median), tone=tone), Cell(f"{p90:.0%}", float(p90))]
        rows.append([Cell(name), Cell(str(len(errors)), len(errors)), *cells, Cell(f"{within:.0%}", within)])
    columns = [Column("Experiments"), Column("Count", numeric=True), Column("Median error", numeric=True)]
    columns += [Column("p90", numeric=True), Column("Within 15 %", numeric=True)]
    return Table("How well it predicts", columns, rows, "Error: |predicted / measured - 1| of the time.")


def _ratios(predictions: list[dict]) -> Table:
    """Algorithm by size: the model is too fast below 1, too slow above."""
    found: dict[tuple[str, int], dict[int, float]] = defaultdict(dict)
    for p in predictions:
        if p["collective"]:
            key = (f"{p['collective']}/{p['algorithm']}", p["ranks"])
            found[key][p["size_bytes"]] = p["predicted_ns"] / p["measured_ns"]
    sizes = sorted({size for ratios in found.values() for size in ratios})
    rows = []
    for (algorithm, ranks), ratios in found.items():
        row = [Cell(algorithm), Cell(str(ranks), ranks)]
        for size in sizes:
            ratio = ratios.get(size)
            tone = "good" if ratio and abs(ratio - 1) <= GOOD else "warn"
            row.append(Cell(f"{ratio:.2f}", ratio, tone=tone) if ratio else missing(""))
        rows.append(row)
    columns = [Column("Algorithm"), Column("Ranks", numeric=True)]
    columns += [Column(quantity.size(size), numeric=True) for size in sizes]
    how = "Below 1 the model is too fast. Empty: not measured, or used by the fit."
    return Table("Predicted over measured, by algorithm and size", columns, rows, how)


def _parameters(fit: dict) -> Table:
    rows = [
        [Cell(p["key"]), Cell(f"{p['value']:.4g}", p["value"], detail=f"{p['low']:.3g} to {p['high']:.3g}"), p["unit"]]
        for p in fit["parameters"]
    ]
    columns = [Column("Number"), Column("Value", numeric=True), Column("Unit")]
    how = "The 95 % interval is below each value. If it is wide, the run does not determine the number."
    return Table(f"The machine file `{fit['machine']}`", columns, rows, how)


def _plot(collective: str, predictions: list[dict]) -> Plot:
    series = defaultdict(list)
    for p in sorted(predictions, key=lambda p: p["size_bytes"]):
        series[f"{p['algorithm']}, {p['ranks']} ranks"].append(p)
    curves = []
    for name, its in series.items():
        x = [float(p["size_bytes"]) for p in its]
        measured = [p["measured_ns"] * S_PER_NS for p in its]
        low = [max(0.0, (p["measured_ns"] - p["error_ns"]) * S_PER_NS) or None for p in its]
        high = [(p["measured_ns"] + p["error_ns"]) * S_PER_NS for p in its]
        curves.append(Curve(name, x, measured, low, high))
        predicted = [p["predicted_ns"] * S_PER_NS for p in its]
        curves.append(Curve(f"{name}, model", x, predicted, kind="model", series=name))
    x, y = Axis("message size", "B", "log2"), Axis("time", "s", "log10")
    return Plot(f"{collective}: held out from the fit", x, y, curves, dodge=True, scatter=True)


def _choices(choices: list[dict]) -> Table:
    rows = []
    for c in choices:
        tone = "good" if c["loss"] <= 1 + GOOD else "warn"
        loss = Cell(f"{c['loss']:.2f}", c["loss"], tone=tone)
        size = cells.size(c["size_bytes"])
        rows.append([c["collective"], Cell(str(c["ranks"]), c["ranks"]), size, c["measured"], c["predicted"], loss])
    columns = [Column("Collective"), Column("Ranks", numeric=True), Column("Size", "B", numeric=True)]
    columns += [Column("Measured fastest"), Column("Predicted fastest"), Column("Loss", numeric=True)]
    how = "Loss: measured time of the predicted algorithm / that of the fastest; 1 is the right choice."
    return Table("Choice of algorithm", columns, rows, how)
