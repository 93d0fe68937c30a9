"""Recovers the fitted numbers of the machine from the open cells.

Least squares over the relative errors of all scored open cells. Each table has the same weight however many cells it
has, so that a large table cannot outvote a small one. Large errors count less than their square (soft l1), because
the report has outliers that no machine explains. Derived numbers follow the fitted ones.

    minimise  sum over tables of  1/cells * sum over cells of  rho(log(predicted / printed) / target)

where `target` is the median error that the table should reach.

Every number belongs to one mechanism. The result is reproducible: the same cells, seed and start give the same
numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np

from linkwright.studies.ipu.bench import Bench
from linkwright.studies.ipu.tables import Table

# Tables that print measurements of others again.
REPEATS = ("4.2", "4.5")
STEP = 0.01
ROUNDS = 5


# Fitted number -> its value before any fit, from documents or prose if they state one; None: the shortest transfer.
NOMINAL: dict[str, float | None] = {
    "fabric.collect_lead": None,  # a collecting tile starts before the slowest message could
    "fabric.floorplan.column_step": 5.6,  # place on the chip
    "fabric.multicast.wide_start": 0.0,  # wide multicasts start later
    "fabric.ladder.efficiency": 0.84,  # link rate below nominal
    "fabric.ladder.rail_hop": 0.16,  # latency of a rail
    "fabric.ladder.rung_hop": 0.16,  # latency of a rung
    "fabric.ladder.message_cost": 0.0,  # least time of a stream on a link
    "fabric.ladder.packet_fill": 0.0,  # packets are stored at every rail
    "fabric.host.chip_rate": 7.88,  # host lanes of a chip
    "fabric.host.group_rate": 15.75,  # host lanes of a group
    "path.pairs.phase_start": 0.0,  # start-up of point to point on a chip
    "path.scatter_words.phase_start": 0.0,  # start-up of a scatter of words
    "path.gather_blocks.phase_start": 0.0,  # start-up of a gather of blocks
    "path.reduce_tile.compute_start": 0.0,  # start-up of a sum on one tile
    "path.reduce_chip.compute_start": 0.0,  # start-up of a vertex of a sum
    "path.reduce_single.compute_start": 0.0,  # start-up of a sum over single tiles
    "path.reduce_single.receive": 0.0,  # software per chip of a sum over single tiles
}


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
    return {key: bench.number(key) for key in NOMINAL}


def nominal(bench: Bench) -> dict[str, float]:
    """The values without any fit."""
    shortest = shortest_ns(bench)
    return {key: shortest if value is None else value for key, value in NOMINAL.items()}


def fit(
    bench: Bench, tables: Iterable[Table], keep: Callable[[dict], bool], progress=lambda *_: None
) -> dict[str, float]:
    """The fitted numbers by key, from the open cells of `tables` whose row `keep` accepts."""
    from scipy.optimize import least_squares

    start = shipped(bench)
    scale = np.array([max(abs(value), 1e-3) for value in start.values()])
    misses = Misses(bench, tables, keep, scale, progress)
    begin = np.array(list(start.values())) / scale
    found = least_squares(misses.at, begin, jac=misses.slopes, bounds=(1e-6, 20), loss="soft_l1", max_nfev=ROUNDS)
    # What no cell depends on stays as it is.
    matters = np.abs(found.jac).max(axis=0) > 0
    ends = zip(start.items(), found.x * scale, matters, strict=True)
    return {key: float(value) if moved else first for (key, first), value, moved in ends}


class Misses:
    """The weighted logarithmic errors of the open cells, and their slopes, at numbers in units of `scale`."""

    def __init__(self, bench: Bench, tables: Iterable[Table], keep: Callable, scale: np.ndarray, progress) -> None:
        once = [table for table in tables if table.key not in REPEATS]
        rows = [(table, row) for table in once for row in table.rows() if row["value"] and keep(row)]
        self.rows = [(table, row) for table, row in rows if table.is_scored(row)]
        counts = Counter(table.key for table, _ in self.rows)
        self.weights = np.array([1 / math.sqrt(counts[table.key]) / table.target.median for table, _ in self.rows])
        self.printed = np.log([float(row["value"]) for _, row in self.rows])
        self.bench, self.scale, self.progress = bench, scale, progress
        self.steps = 0
        self.last: tuple[bytes, Bench] = (b"", bench)

    def at(self, x: np.ndarray) -> np.ndarray:
        """The errors at `x`."""
        self.last = x.tobytes(), self._moved(self.bench, x)
        return self._measured(self.last[1])

    def slopes(self, x: np.ndarray) -> np.ndarray:
        """The slopes at `x`, from the bench there, which has run everything that a changed number does not concern."""
        here = self.last[1] if self.last[0] == x.tobytes() else self._moved(self.bench, x)
        base = self._measured(here)
        steps = STEP * np.eye(len(x))
        return np.array([(self._measured(self._moved(here, x + step)) - base) / STEP for step in steps]).T

    def _moved(self, base: Bench, x: np.ndarray) -> Bench:
        return with_values(base, dict(zip(NOMINAL, map(float, x * self.scale), strict=True)))

    def _measured(self, here: Bench) -> np.ndarray:
        self.steps += 1
        self.progress("fit", self.steps, ROUNDS * (len(NOMINAL) + 1))
        predicted = [table.predict(here, table.conditions(row)) for table, row in self.rows]
        return self.weights * (np.log(predicted) - self.printed)
