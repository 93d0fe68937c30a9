"""Stability of the measured machine: the launch medians of its least steady experiments.

A fresh launch is a new process with new memory, so launch medians differ by more than the samples of one launch. Where
a box is wide, or the dots form two clusters, one number does not describe the experiment.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from linkwright.base.rows import Row, among
from linkwright.base.stats.launches import launch_medians

from .. import quantity
from ..model import Axis, Box, BoxPlot, Section
from ..runs import Run, ok
from . import values

_SHOWN = 8
_LAUNCHES = 4  # the fewest medians that make a box

INTRO = (
    "Each box is one experiment, and each value the median of one launch, as a distance from the median over all "
    "launches. These are the least steady experiments; the others vary less."
)


def section(run: Run) -> Section | None:
    """A box per experiment, the widest first."""
    medians = off_median(run)
    spread = {name: np.subtract(*np.percentile(found, (75, 25))) for name, found in medians.items()}
    widest = sorted(spread, key=lambda name: (-spread[name], name))[:_SHOWN]
    if not widest:
        return None
    named = ok(run.rows[~run.rows["modelled"]]).distinct("experiment")
    by_name = {row["experiment"]: row for row in named[among(named["experiment"], widest)]}
    boxes = [box(_label(name, by_name), medians[name]) for name in widest]
    plot = BoxPlot("Launches of the least steady experiments", Axis("off the median", "%"), boxes, wide=True)
    return Section("How steady", [plot], INTRO)


def off_median(run: Run) -> dict[str, np.ndarray]:
    """Experiment -> its launch medians, in percent off their median."""
    return {
        name: 100 * (part / np.median(part) - 1)
        for name, part in launch_medians(run.samples).items()
        if len(part) >= _LAUNCHES and np.median(part) > 0
    }


def box(name: str, data: np.ndarray) -> Box:
    """Quartiles, whiskers to the last value within 1.5 times the box, and dots for values beyond."""
    q1, median, q3 = (float(value) for value in np.percentile(data, (25, 50, 75)))
    reach = 1.5 * (q3 - q1)
    inside = data[(data >= q1 - reach) & (data <= q3 + reach)]
    beyond = sorted(float(value) for value in data[(data < q1 - reach) | (data > q3 + reach)])
    return Box(name, float(inside.min()), q1, median, q3, float(inside.max()), len(data), beyond)


def _label(experiment: str, named: Mapping[str, Row]) -> str:
    if experiment not in named:
        return experiment
    row = named[experiment]
    about = dict.fromkeys([values.words(row["label"]), values.words(row["algorithm"])])
    size = quantity.size(row["size_bytes"]).replace(" ", "\u00a0") if row["size_bytes"] > 0 else ""  # on one line
    return " ".join([*about, size]).strip()
