"""The curves of the figure: goodput and runtime by algorithm and size, modelled and published."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from linkwright import _native
from linkwright.ask.answer import ask
from linkwright.ask.question import DTYPES
from linkwright.machines import load
from linkwright_evidence import Options, parallel_by_case
from linkwright_evidence.outcome import Cell, Role
from linkwright_evidence.published import reference_rows

MACHINE = "torus-400g"
GRID = (8, 8)
RANKS = 64
SIZES = tuple(32 * 4**i for i in range(14))
# Name in the figure -> its variants here; the figure shows the faster one.
ALGORITHMS = {
    "bucket": ("bucket_multiport",),
    "recdoub": ("recursive_doubling_latency", "recursive_doubling_bandwidth"),
    "hamring": ("hamiltonian_rings_bidirectional",),
    "swing": ("swing_multiport_latency", "swing_multiport_bandwidth"),
}
# By how much goodput and runtime of one point of the figure differ at most.
READING_GBPS = 0.3
# From here on, that is 5 % at most.
LEAST_GBPS = 6.0
READING = f"below {LEAST_GBPS} Gb/s, where the curve cannot be read to 5 %"
# The cell that the machine's start-up was set on.
FITTED = ("runtime", "bucket", 32)
TABLES = [f"{figure}, {name}" for figure in ("goodput", "runtime") for name in ALGORITHMS]

Times = Mapping[tuple[str, int], float]  # (algorithm here, size in bytes) -> us
Page = Mapping[tuple[str, str, int], float]  # (goodput or runtime, algorithm there, size in bytes) -> Gb/s or us


def machine() -> _native.Machine:
    """The torus of the figure."""
    return load(MACHINE).with_grid(*GRID)


def times(torus: _native.Machine, options: Options, sizes: tuple[int, ...] = SIZES) -> Times:
    """One allreduce by each algorithm at each size, in us."""
    names = [name for variants in ALGORITHMS.values() for name in variants]
    cases = [(name, size) for name in names for size in sizes]
    return parallel_by_case(functools.partial(_time_us, torus), cases, options, "allreduce")


def _time_us(torus: _native.Machine, algorithm: str, size_bytes: int) -> float:
    width = DTYPES["f32"]
    schedule = _native.Schedule.build(
        f"allreduce/{algorithm}", RANKS, size_bytes // width, element_bytes=width, grid=GRID
    )
    return ask(torus, schedule).time.us


def fastest(all_times: Times, name: str, size_bytes: int) -> float:
    """Time of the faster variant of an algorithm of the figure, in us."""
    return min(all_times[variant, size_bytes] for variant in ALGORITHMS[name])


def goodput(all_times: Times, name: str, size_bytes: int) -> float:
    """Bytes of the vector over the time, in Gb/s."""
    return 8e-3 * size_bytes / fastest(all_times, name, size_bytes)


def published() -> Page:
    """The values of the figure."""
    rows = reference_rows("torus", "allreduce_8x8.csv")
    return {(row["figure"], row["algorithm"], int(row["size_bytes"])): float(row["value"]) for row in rows}


def cells(all_times: Times) -> list[Cell]:
    """All points of the figure whose size was simulated."""
    found = []
    for row in reference_rows("torus", "allreduce_8x8.csv"):
        figure, name, size = row["figure"], row["algorithm"], int(row["size_bytes"])
        if (ALGORITHMS[name][0], size) not in all_times:
            continue
        value = {"goodput": goodput, "runtime": fastest}[figure](all_times, name, size)
        reference = float(row["value"])
        unclear = READING if figure == "goodput" and reference < LEAST_GBPS else None
        role: Role = "fitted" if (figure, name, size) == FITTED else "predicted"
        keys = {"figure": figure, "algorithm": name, "size_bytes": size}
        table = f"{figure}, {name}"
        found.append(Cell(table, keys, value, reference, row["unit"], row["split"], unclear, role=role))
    return found


def variants(all_times: Times) -> list[dict]:
    """Which variant is the faster one, by size."""
    several = {name: own for name, own in ALGORITHMS.items() if len(own) > 1}
    return [
        {"size_bytes": size}
        | {name: min(own, key=lambda variant: all_times[variant, size]) for name, own in several.items()}
        for size in SIZES
    ]
