"""The one fitted number of each chip: the share of its peak that large products reach, from one published row.

The row is the configuration with role `calibration` in release 26.04. The larger the share, the faster the step, so
bisection finds it.
"""

from __future__ import annotations

from linkwright.advise.predict.llm.compute import chips
from linkwright_evidence.training.cells import VALUE, published
from linkwright_evidence.training.predict import COLUMNS, SYSTEMS, ThroughputModel

RELEASE = "26.04"
ROUNDS, LEAST, MOST = 30, 0.05, 1.0


def shipped() -> dict[str, tuple[float, str]]:
    """ChipRates -> its share and where it comes from, as shipped."""
    return {name: (row["reached"]["value"], row["reached"]["source"]) for name, row in chips().items()}


def fitted() -> dict[str, float]:
    """ChipRates -> the share with which the model says what its row says."""
    found = {}
    for row in published():
        if row["role"] == "calibration" and row["release"] == RELEASE:
            found[SYSTEMS[row["system"]].chip] = _share(row)
    return found


def _share(row: dict[str, str]) -> float:
    chip, low, high = SYSTEMS[row["system"]].chip, LEAST, MOST
    model = ThroughputModel()
    asked = {name: row[name] for name in COLUMNS}
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        speed = model.with_reached({chip: middle}).of(asked).tokens_per_s or 0.0
        low, high = (middle, high) if speed < float(row[VALUE]) else (low, middle)
    return (low + high) / 2
