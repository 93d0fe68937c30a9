"""The fitted numbers of the machine, found again from the open cells.

Least squares over the relative errors of all open cells that are scored, each table with the same weight however
many cells it has, so that no table is bought with another's. Large errors count less than their square (soft l1),
because the report has outliers that no machine explains. Derived numbers follow the fitted ones.

    minimise  sum over tables of  1/cells * sum over cells of  rho(log(predicted / printed) / target)

where `target` is the median error that the table should reach.

Every number belongs to one mechanism; `PARAMETERS` says which key of the machine file it is. The result is
reproducible: same cells, same seed, same start, same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from linkwright.studies.ipu.bench import Bench
from linkwright.studies.ipu.tables import Table

# Tables that print measurements of others again.
REPEATS = ("4.2", "4.5")
STEP = 0.01
ROUNDS = 5


@dataclass(frozen=True)
class Parameter:
    """One fitted number: its key, and a value before any fit, of documents or prose where these have one."""

    key: str
    # None: as long as the shortest transfer.
    nominal: float | None
    mechanism: str


PARAMETERS = (
    Parameter("fabric.collect_lead", None, "a collecting tile starts before the slowest message could"),
    Parameter("fabric.floorplan.column_step", 5.6, "place on the chip"),
    Parameter("fabric.multicast.wide_start", 0.0, "wide multicasts start later"),
    Parameter("fabric.ladder.efficiency", 0.84, "link rate below nominal"),
    Parameter("fabric.ladder.rail_hop", 0.16, "latency of a rail"),
    Parameter("fabric.ladder.rung_hop", 0.16, "latency of a rung"),
    Parameter("fabric.ladder.message_cost", 0.0, "least time of a stream on a link"),
    Parameter("fabric.ladder.packet_fill", 0.0, "packets are stored at every rail"),
    Parameter("fabric.host.chip_rate", 7.88, "host lanes of a chip"),
    Parameter("fabric.host.group_rate", 15.75, "host lanes of a group"),
    Parameter("path.pairs.phase_start", 0.0, "start-up of point to point on a chip"),
    Parameter("path.scatter_words.phase_start", 0.0, "start-up of a scatter of words"),
    Parameter("path.gather_blocks.phase_start", 0.0, "start-up of a gather of blocks"),
    Parameter("path.reduce_tile.compute_start", 0.0, "start-up of a sum on one tile"),
    Parameter("path.reduce_chip.compute_start", 0.0, "start-up of a vertex of a sum"),
    Parameter("path.reduce_single.compute_start", 0.0, "start-up of a sum over single tiles"),
    Parameter("path.reduce_single.receive", 0.0, "software per chip of a sum over single tiles"),
)


def shortest_ns(bench: Bench) -> float:
    """The shortest transfer on a chip without its word: sync and transit."""
    return bench.nanoseconds("fabric.sync") + bench.nanoseconds("fabric.transit")


def derived(bench: Bench, values: dict[str, float]) -> dict[str, float]:
    """The numbers of the machine file that follow from fitted ones."""
    shortest_us = shortest_ns(bench) / 1e3
    return {
        "fabric.ladder.base": bench.number("facts.neighbour_latency") - values["fabric.ladder.rail_hop"],
        "path.scatter_blocks.phase_start": values["fabric.multicast.wide_start"],
        # A copy takes at least what it takes without a start-up.
        "path.gather_blocks.copy_start": max(
            values["path.gather_blocks.phase_start"], bench.nanoseconds("path.words.copy_start")
        ),
        "path.reduce_chip.phase_start": max(values["path.reduce_tile.compute_start"] - shortest_us, 0.0),
        "path.reduce_links.compute_start": values["path.reduce_chip.compute_start"],
    }


def with_values(bench: Bench, values: dict[str, float]) -> Bench:
    """The bench with these fitted numbers and those that follow from them."""
    every = values | derived(bench, values)
    same = {key for key, value in every.items() if math.isclose(value, bench.number(key), rel_tol=1e-8)}
    return bench.changed({key: f"{value:.9g}" for key, value in every.items() if key not in same})


def shipped(bench: Bench) -> dict[str, float]:
    """The values of the machine file."""
    return {parameter.key: bench.number(parameter.key) for parameter in PARAMETERS}


def nominal(bench: Bench) -> dict[str, float]:
    """The values without any fit."""
    shortest = shortest_ns(bench)
    return {each.key: shortest if each.nominal is None else each.nominal for each in PARAMETERS}


@dataclass
class Fit:
    """What a fit found."""

    values: dict[str, float]
    cells: int
    cost: float


def fit(bench: Bench, tables: Iterable[Table], keep: Callable[[dict], bool], progress=lambda *_: None) -> Fit:
    """Fit all parameters on the open cells of `tables` whose row `keep` accepts."""
    from scipy.optimize import least_squares

    once = [table for table in tables if table.key not in REPEATS]
    rows = [(table, row) for table in once for row in table.rows() if row["value"] and keep(row)]
    rows = [(table, row) for table, row in rows if table.is_scored(row)]
    counts = {table.key: sum(other is table for other, _ in rows) for table, _ in rows}
    weights = np.array([1 / math.sqrt(counts[table.key]) / table.target.median for table, _ in rows])
    printed = np.log([float(row["value"]) for _, row in rows])
    start = shipped(bench)
    keys = list(start)
    scale = np.array([max(abs(start[key]), 1e-3) for key in keys])
    last: dict[bytes, Bench] = {}
    steps = 0

    def measured(here: Bench) -> np.ndarray:
        nonlocal steps
        steps += 1
        progress("fit", steps, ROUNDS * (len(keys) + 1))
        predicted = [table.predict(here, table.conditions(row)) for table, row in rows]
        return weights * (np.log(predicted) - printed)

    def at(base: Bench, x: np.ndarray) -> Bench:
        return with_values(base, dict(zip(keys, (float(v) for v in x * scale), strict=True)))

    def residuals(x: np.ndarray) -> np.ndarray:
        last.clear()
        last[x.tobytes()] = here = at(bench, x)
        return measured(here)

    def slopes(x: np.ndarray) -> np.ndarray:
        # From the bench at x, which has run everything that a changed number does not concern.
        here = last.get(x.tobytes()) or at(bench, x)
        base = measured(here)
        columns = []
        for index in range(len(keys)):
            moved = x.copy()
            moved[index] += STEP
            columns.append((measured(at(here, moved)) - base) / STEP)
        return np.array(columns).T

    found = least_squares(
        residuals,
        np.array([start[key] for key in keys]) / scale,
        jac=slopes,
        bounds=(1e-6, 20),
        loss="soft_l1",
        max_nfev=ROUNDS,
    )
    # What no cell depends on stays as it is.
    pinned = np.abs(found.jac).max(axis=0) > 0
    values = {
        key: float(x) if fixed else start[key] for key, x, fixed in zip(keys, found.x * scale, pinned, strict=True)
    }
    return Fit(values, len(rows), float(found.cost))
