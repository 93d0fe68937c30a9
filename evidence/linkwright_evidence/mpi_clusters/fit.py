"""The fitted numbers, found again: each in turn takes the value with the smallest error, until none moves.

The error is the mean over cells of |ln(predicted / measured)|, at most ln 4, so that no cell decides alone and misses
in either direction count alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from linkwright_evidence.numbers import values

from .condition import Condition
from .predict import Model

KEYS: dict[str, tuple[str, ...]] = {
    "fugaku": (
        "fabric.transport.mpi.start",
        "fabric.transport.mpi.long_start",
        "path.whole.receive",
        "facts.threads",
    ),
    "leonardo": (
        "fabric.transport.net_mpi.start",
        "fabric.links.global.latency",
        "path.memory.combine_rate",
        "facts.fresh_rate",
    ),
    "lumi": (
        "fabric.transport.net_mpi.start",
        "fabric.transport.net_mpi.long_start",
        "fabric.transport.net_mpi.rate",
        "path.mpi.combine_rate",
    ),
}
MOST = math.log(4)
# Factors that are tried, coarse ones first; a number moves while that helps.
FACTORS = (1.3, 1.1, 1.03)
ROUNDS = 12


def error(cells: Iterable[tuple[Condition, float]], other: Mapping[str, Mapping[str, str]]) -> float:
    """Of the model with other values, over conditions and their measured times in us."""
    model = Model({machine: dict(numbers) for machine, numbers in other.items()})
    errors = []
    for at, measured in cells:
        time = model.time_us(at)
        if isinstance(time, float):
            errors.append(min(abs(math.log(time / measured)), MOST))
    return sum(errors) / len(errors)


def found(machine: str, cells: Sequence[tuple[Condition, float]]) -> dict[str, float]:
    """Key -> the value that fits the cells best, from the shipped values on."""
    numbers = shipped(cells[-1][0])
    least = error(cells, {machine: _texts(numbers)})
    for factor in FACTORS:
        for _ in range(ROUNDS):
            moved = False
            for key in KEYS[machine]:
                for times in (factor, 1 / factor):
                    other = numbers | {key: float(f"{numbers[key] * times:.4g}")}
                    if (now := error(cells, {machine: _texts(other)})) < least - 1e-6:
                        numbers, least, moved = other, now, True
                        break
            if not moved:
                break
    return numbers


def shipped(at: Condition) -> dict[str, float]:
    """Key -> the value of the machine file."""
    there = values(Model().machine(at))
    return {key: there[key] for key in KEYS[at.machine] if key in there}


def _texts(numbers: Mapping[str, float]) -> dict[str, str]:
    return {key: f"{value:.6g}" for key, value in numbers.items()}
