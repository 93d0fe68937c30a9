"""The one fitted number of each GPU: the share of its peak that large products reach, from one published row.

The row is the configuration with role `calibration` in release 26.04. The larger the share, the faster the step, so
bisection finds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from linkwright.machines import gpus
from linkwright_evidence.training.cells import VALUE, published
from linkwright_evidence.training.predict import COLUMNS, SYSTEMS, ThroughputModel

RELEASE = "26.04"
ROUNDS, LEAST, MOST = 30, 0.05, 1.0


def shipped() -> dict[str, Mapping[str, Any]]:
    """Return the share of each GPU that has one, with its status and source, as shipped."""
    return {gpu.name: gpu.reached for gpu in gpus.known() if gpu.reached}


def fitted() -> dict[str, float]:
    """Return the share of each GPU with which the model predicts the published value of its row."""
    found = {}
    for row in published():
        if row["role"] == "calibration" and row["release"] == RELEASE:
            found[SYSTEMS[row["system"]].gpu] = _share(row)
    return found


def _share(row: dict[str, str]) -> float:
    gpu, low, high = SYSTEMS[row["system"]].gpu, LEAST, MOST
    model = ThroughputModel()
    asked = {name: row[name] for name in COLUMNS}
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        speed = model.with_reached({gpu: middle}).of(asked).tokens_per_s or 0.0
        low, high = (middle, high) if speed < float(row[VALUE]) else (low, middle)
    return (low + high) / 2
