"""The allreduce experiments: five variants and the proposed rings, by size, with and without arithmetic.

Five runs back to back; the fifth is evaluated. Per rank, start is when its fourth run ended and finish when its
fifth has; two run times are reported:

    own-start    t(r) = finish(r) - start(r)
    first-start  t(r) = finish(r) - min over ranks of start

The kernels combine through a receive buffer (`unfuse`) and signal progress window by window (`windows`). Two
readings of the listing exist: 32 windows per step, or a barrier after every two tiles; at 128 kB they are the same.
Windows of 2 blocks beyond that are faster than the roofline of the thesis, so the second is the default.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from linkwright import _native
from linkwright.studies.numbers import values
from linkwright.studies.wormhole.theory import KIB, RANKS, clock_hz

TILE_BYTES = 2048
ELEMENT_BYTES = 2
WINDOW_TILES = 2
SIGNALS_AT_LEAST = 32
RUNS = 5
GRID = (8, 8)

LO_SIZES_KIB = (2, 4, 8, 16, 32, 64, 128, 256, 384, 512, 640)
BO_SIZES_KIB = (128, 256, 384, 512, 640)

# Variant -> algorithm of the registry.
VARIANTS = {
    "swing_LO": "allreduce/swing_latency",
    "rd_LO": "allreduce/recursive_doubling_latency",
    "swing_BO": "allreduce/swing_bandwidth",
    "rd_BO": "allreduce/recursive_doubling_bandwidth",
    "SM": "allreduce/shared_memory",
}
RINGS = {
    "ring_1": "allreduce/hamiltonian_ring",
    "ring_2": "allreduce/hamiltonian_rings",
    "ring_4": "allreduce/hamiltonian_rings_bidirectional",
}


def sizes_kib(variant: str) -> tuple[int, ...]:
    """Vector sizes of the study for `variant`."""
    return BO_SIZES_KIB if variant == "SM" or variant.endswith("BO") else LO_SIZES_KIB


@functools.cache
def schedule(variant: str, size_kib: int, signals: int | None = None, runs: int = RUNS):
    """The schedule of one experiment, all runs of it.

    `signals` is the number of windows per step; by default one for every two tiles, but at least 32 while there
    are as many tiles.
    """
    elements = size_kib * KIB // ELEMENT_BYTES
    key = (VARIANTS | RINGS)[variant]
    made = _native.Schedule.build(key, RANKS, elements, element_bytes=ELEMENT_BYTES, grid=GRID).unfuse()
    if variant == "SM":
        return made
    tiles = max(1, size_kib * KIB // TILE_BYTES)
    made = made.repeat(runs)
    if variant in RINGS:
        return made
    blocks = 1 if variant.endswith("LO") else RANKS
    windows = min(tiles, signals or max(SIGNALS_AT_LEAST, tiles // WINDOW_TILES))
    return made.refine(tiles // blocks).windows(windows)


@dataclass(frozen=True)
class Conditions:
    """What besides variant and size defines an experiment."""

    arithmetic: bool = True
    signals: int | None = None
    skew_us: float = 0.0
    seed: int = 1


@dataclass
class Timing:
    """Microseconds of every rank in every run, shape (runs, ranks)."""

    start_us: np.ndarray
    finish_us: np.ndarray

    def own_start(self, run: int = -1) -> np.ndarray:
        """finish(r) - start(r)."""
        return self.finish_us[run] - self.start_us[run]

    def first_start(self, run: int = -1) -> np.ndarray:
        """finish(r) - the earliest start."""
        return self.finish_us[run] - self.start_us[run].min()

    def slowest(self, rule: str = "own", run: int = -1) -> float:
        """Time of the slowest rank."""
        times = self.own_start(run) if rule == "own" else self.first_start(run)
        return float(times.max())


def measure(machine, variant: str, size_kib: int, conditions: Conditions) -> Timing:
    """Simulate one experiment."""
    runs = 1 if variant == "SM" else RUNS
    made = schedule(variant, size_kib, conditions.signals)
    if variant == "SM":
        made = _native.lower(made, machine)
    options = {
        "operations_per_s": skipped_elements_per_s(machine),
        "no_arithmetic": not conditions.arithmetic,
        "seed": conditions.seed,
        "operations": True,
    }
    if conditions.skew_us:
        options["skew"] = f"uniform:{conditions.skew_us}us"
    result = _native.simulate(made, machine, options)
    return timing_of(made, result, runs)


def skipped_elements_per_s(machine) -> float:
    """Rate of popping tiles that are not combined: handling without addition."""
    numbers = values(machine)
    tile_elements, cycles = numbers["path.write.combine_tile"] / ELEMENT_BYTES, numbers["path.write.tile_handling"]
    # Handling may be swept down to nothing; a rate must stay finite.
    return tile_elements * clock_hz(machine) / max(cycles, 1e-3)


def timing_of(made, result: dict, runs: int) -> Timing:
    """Starts and finishes of each run, from the finish of every operation at its ranks."""
    table = made.operations()
    steps = table["step"].astype(np.int64)
    run_of = steps // ((steps.max() + runs) // runs)
    finish = np.zeros((runs, made.ranks))
    done = np.asarray(result["op_done_ps"], dtype=np.float64) / 1e6
    for column in ("from", "to"):
        ranks = table[column].astype(np.int64)
        known = ranks < made.ranks
        np.maximum.at(finish, (run_of[known], ranks[known]), done[known])
    start = np.vstack([np.asarray(result["start_ps"], dtype=np.float64) / 1e6, finish[:-1]])
    return Timing(start, finish)


def deviation_percent(values: np.ndarray) -> np.ndarray:
    """How far each rank's time lies from the median of its run."""
    return 100 * (values / np.median(values) - 1)
