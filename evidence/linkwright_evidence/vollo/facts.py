"""Stated and derived numbers of the page (`facts.csv`) beside the same arithmetic on the model's tables.

Counts of what noise makes (steps that get faster) and texts have no prediction. Facts that are cells of the tables
take the role of that cell.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Mapping

import numpy as np

from linkwright_evidence.outcome import Cell, Role
from linkwright_evidence.published import number, reference_rows
from linkwright_evidence.vollo import grid
from linkwright_evidence.vollo.grid import BYTES_PER_VALUE, PRINT_STEP_US, STATISTICS, VALUES, Grid, Key

FILE = "facts.csv"
FIRST, LAST = VALUES[0], VALUES[-1]
# Two printed values are as far apart as this or less.
NEAR_US = 2 * PRINT_STEP_US + 1e-9
# Quantity -> the number of the machine file or of the grid that it restates.
RESTATED = {"value_bytes": BYTES_PER_VALUE, "smallest_distinct_values": FIRST, "smallest_distinct_bytes": 2 * FIRST}
# Quantity -> input and output in values of the cell that it repeats.
CORNERS = {
    "rt_32_32": (FIRST, FIRST),
    "rt_8192_8192": (LAST, LAST),
    "rt_in8192_out32": (LAST, FIRST),
    "rt_in32_out8192": (FIRST, LAST),
    "mmio_out64_in8192": (LAST, 64),
}


def cells(model: Grid, role: Callable[[Key], Role]) -> list[Cell]:
    """Every fact, with the model's value where it has one; `role` is that of a cell of the tables."""
    made = []
    for row in reference_rows("vollo", FILE):
        predicted, of = _predict(row["quantity"], row["mode"], model, role)
        keys = {"table": "facts", "id": row["id"], "quantity": row["quantity"], "mode": row["mode"]}
        made.append(Cell("facts", keys, predicted, number(row["value"]), row["unit"], "holdout", role=of))
    return made


def _predict(quantity: str, mode: str, model: Grid, role: Callable[[Key], Role]) -> tuple[object, Role]:
    if quantity in RESTATED:
        return RESTATED[quantity], "input"
    name, _, statistic = quantity.rpartition("_")
    if statistic not in STATISTICS:
        return _gap(quantity, mode, model), "predicted"
    if name in CORNERS:
        key = (mode, statistic, *CORNERS[name])
        return model[key], role(key)
    rule = RULES.get(name.removeprefix(f"{mode}_"), RULES.get(name))
    return (rule(_table(model, mode, statistic)) if rule else _between(name, statistic, model)), "predicted"


Table = Mapping[tuple[int, int], float]


def _table(model: Grid, mode: str, statistic: str) -> Table:
    return {(i, o): model[mode, statistic, i, o] for i in VALUES for o in VALUES}


def _plane(t: Table) -> tuple[np.ndarray, np.ndarray]:
    """Constant, ns per byte of input and of output by least squares, and the residuals, in us."""
    sides = np.array([[1.0, BYTES_PER_VALUE * i / 1e3, BYTES_PER_VALUE * o / 1e3] for i, o in t])
    times = np.array(list(t.values()))
    found, *_ = np.linalg.lstsq(sides, times, rcond=None)
    return found, times - sides @ found


def _worst(t: Table) -> float:
    _, rest = _plane(t)
    return float(rest[np.argmax(np.abs(rest))])


def _slope(t: Table, far: tuple[int, int]) -> float:
    return 1e3 * (t[far] - t[FIRST, FIRST]) / (BYTES_PER_VALUE * (LAST - FIRST))


def _flat(times: Mapping[int, float]) -> int:
    """The size up to which printed times are within 0.2 us of that of the smallest."""
    first = round(times[FIRST], 1)
    near = itertools.takewhile(lambda size: abs(round(times[size], 1) - first) <= NEAR_US, times)
    return max(near)


RULES: dict[str, Callable[[Table], object]] = {
    "fit_const": lambda t: float(_plane(t)[0][0]),
    "fit_in": lambda t: float(_plane(t)[0][1]),
    "fit_out": lambda t: float(_plane(t)[0][2]),
    "fit_rms": lambda t: float(np.sqrt(np.mean(_plane(t)[1] ** 2))),
    "fit_worst": _worst,
    "end_slope_in": lambda t: _slope(t, (LAST, FIRST)),
    "end_slope_out": lambda t: _slope(t, (FIRST, LAST)),
    "flat_in": lambda t: _flat({i: t[i, FIRST] for i in VALUES}),
    "flat_out": lambda t: _flat({o: t[FIRST, o] for o in VALUES}),
    "8192_8192_minus_sum": lambda t: t[LAST, LAST] - t[LAST, FIRST] - t[FIRST, LAST] + t[FIRST, FIRST],
}


def _between(name: str, statistic: str, model: Grid) -> object:
    """What compares two modes, on printed times; None for what noise makes."""
    tables = {mode: _table(model, mode, statistic) for mode in grid.MODES}
    one, faster, other = name.partition("_faster_than_")
    if faster:
        return sum(round(tables[one][key], 1) < round(tables[other][key], 1) for key in tables[one])
    if name == "mmio_raw_crossover":
        return max(i for i in VALUES if all(tables["mmio"][i, o] < tables["raw"][i, o] for o in VALUES))
    corners = {"user_minus_raw_in8192": (LAST, FIRST), "user_minus_raw_out8192": (FIRST, LAST)}
    return tables["user"][corners[name]] - tables["raw"][corners[name]] if name in corners else None


def _gap(quantity: str, mode: str, model: Grid) -> float | None:
    """Least, median and largest distance of the 99th percentile from the mean, as printed."""
    of = {"p99_minus_mean_min": min, "p99_minus_mean_median": statistics.median, "p99_minus_mean_max": max}
    if quantity not in of:
        return None
    pairs = [(model[mode, "mean", i, o], model[mode, "p99", i, o]) for i in VALUES for o in VALUES]
    return float(of[quantity](round(p99, 1) - round(mean, 1) for mean, p99 in pairs))
