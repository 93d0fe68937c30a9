"""Recovers the nine fitted numbers of `vollo-ia420f.toml` from about one cell in four.

    python -m linkwright_evidence.vollo.fit

Least squares on relative errors, table by table, each through the simulated round trips: raw and mmio fix the link and
the card (mean), user the copies on top of them (mean), all p99 tables together the rule of the 99th percentile. Round
trips are nearly linear in the numbers, so a few steps of Gauss-Newton suffice. The cells are `grid.fitted_to`; they are
not scored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwright.machines import load
from linkwright_evidence.numbers import changed, fitted
from linkwright_evidence.published import reference_rows

from . import grid


@dataclass(frozen=True)
class Stage:
    """Numbers that are fitted together (key -> decimal places) to the cells of some tables."""

    digits: dict[str, int]
    modes: tuple[str, ...]
    statistic: str = "mean"


STAGES = (
    Stage(
        {
            "fabric.read_latency": 0,
            "fabric.dma_rate": 1,
            "probe.round_trip.pipeline": 0,
            "fabric.store_interval": 1,
        },
        ("raw", "mmio"),
    ),
    Stage({"fabric.copy_start": 0, "fabric.copy_read_rate": 2, "fabric.copy_write_rate": 2}, ("user",)),
    Stage({"probe.round_trip.p99_offset": 0, "probe.round_trip.p99_factor": 3}, grid.MODES, "p99"),
)
_STEPS = 4
_NUDGE = 0.01  # of a number, for its slope


def with_values(machine, values: dict[str, float]):
    """The machine with other numbers, formatted as in a machine file."""
    return changed(machine, {key: f"{value:.6f}" for key, value in values.items()})


def refit(machine, cells: grid.Grid) -> dict[str, float]:
    """Key -> fitted value, starting from the numbers of `machine`."""
    now = {row["key"]: float(row["value"]) for row in fitted(machine)}
    for stage in STAGES:
        own = {key: value for key, value in cells.items() if key[0] in stage.modes and key[1] == stage.statistic}
        for _ in range(_STEPS):
            now |= _step(machine, now, stage, own)
        now |= {key: round(now[key], digits) for key, digits in stage.digits.items()}
    return now


def _step(machine, now: dict[str, float], stage: Stage, cells: grid.Grid) -> dict[str, float]:
    """One step of Gauss-Newton over the numbers of a stage."""
    pairs = list(dict.fromkeys((mode, i, o) for mode, _, i, o in cells))
    target = np.array(list(cells.values()))

    def predict(values: dict[str, float]) -> np.ndarray:
        found = grid.modelled(with_values(machine, values), pairs)
        return np.array([found[key] for key in cells])

    here = predict(now)
    slopes = []
    for key in stage.digits:
        nudge = _NUDGE * max(now[key], 1e-3)
        slopes.append((predict(now | {key: now[key] + nudge}) - here) / nudge / target)
    step, *_ = np.linalg.lstsq(np.array(slopes).T, (target - here) / target, rcond=None)
    return {key: max(now[key] + change, 1e-3) for key, change in zip(stage.digits, step, strict=True)}


def main() -> None:
    """Print the value of each number in the file and in the fit."""
    from linkwright_evidence.vollo import MACHINE, REFERENCE

    machine = load(MACHINE)
    found = refit(machine, grid.fitted_to(reference_rows("vollo", REFERENCE)))
    for row in machine.numbers():
        if row["key"] in found:
            print(f"{row['key']:32} {row['value']:>8} {row['unit']:6} fitted {found[row['key']]:g}")


if __name__ == "__main__":
    main()
