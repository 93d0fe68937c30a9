"""Recovers the fitted numbers of the machine: `python -m linkwright_evidence.ipu.fit`.

Least squares over the relative errors of the cells that `given` sets aside for it, which are not scored. Each table
has the same weight however many cells it has, so that a large table cannot outvote a small one. Large errors count
less than their square (soft l1), because the report has outliers that no machine explains. Derived numbers follow the
fitted ones.

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

from linkwright_evidence.ipu.bench import Bench
from linkwright_evidence.ipu.tables import Table

STEP = 0.01
ROUNDS = 5


# Fitted number -> its value before any fit.
NOMINAL: dict[str, float] = {
    "fabric.ladder.message_cost": 0.0,  # least time of a stream on a link
    "fabric.ladder.packet_fill": 0.0,  # packets are stored at every rail
    "path.scatter_words.phase_start": 0.0,  # start-up of a scatter of words
    "path.reduce_chip.compute_start": 0.0,  # start-up of a vertex of the library
    "path.reduce_single.receive": 0.0,  # software per chip of a sum over single tiles
}


def derived(bench: Bench, values: dict[str, float]) -> dict[str, float]:
    """The numbers of the machine file that follow from fitted ones."""
    vertex_us = values["path.reduce_chip.compute_start"]
    return {
        "path.gather_blocks.phase_start": 1e3 * vertex_us,
        # A copy takes at least what it takes without a start-up.
        "path.gather_blocks.copy_start": max(1e3 * vertex_us, bench.nanoseconds("path.words.copy_start")),
        "path.reduce_links.compute_start": vertex_us,
    }


def with_values(bench: Bench, values: dict[str, float]) -> Bench:
    """The bench with these fitted numbers and those that follow from them."""
    every = values | derived(bench, values)
    same = {key for key, value in every.items() if math.isclose(value, bench.number(key), rel_tol=1e-8)}
    return bench.changed({key: f"{value:.9g}" for key, value in every.items() if key not in same})


def shipped(bench: Bench) -> dict[str, float]:
    """The values of the machine file."""
    return {key: bench.number(key) for key in NOMINAL}


def fit(
    bench: Bench, tables: Iterable[Table], keep: Callable[[dict], bool], progress=lambda *_: None
) -> dict[str, float]:
    """The fitted numbers by key, from the cells of `tables` whose row `keep` accepts."""
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
    """The weighted logarithmic errors of the chosen cells, and their slopes, at numbers in units of `scale`."""

    def __init__(self, bench: Bench, tables: Iterable[Table], keep: Callable, scale: np.ndarray, progress) -> None:
        rows = [(table, row) for table in tables for row in table.rows() if row["value"] and keep(row)]
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


def main() -> None:
    """Fits and prints the numbers."""
    from linkwright_evidence.ipu import catalogue, given

    bench = Bench.shipped()
    found = fit(bench, catalogue.interconnect(catalogue.tables()), given.is_fitted)
    for key, value in (found | derived(bench, found)).items():
        print(f"{key} = {value:.4g} {bench.numbers[key]['unit']} (the machine file has {bench.number(key):.4g})")


if __name__ == "__main__":
    main()
