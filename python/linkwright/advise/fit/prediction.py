"""How good a fit is: predicted against measured times, and which algorithm to choose.

`runs/<id>/fit.json` holds both for the report and for exporters. The machine file is written to the run's `machines`
folder and to `--out`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from linkwright.ask.question import Collective
from linkwright.base.errors import LinkwrightError
from linkwright.base.files import make_folder, write_text
from linkwright.store import documents
from linkwright.store.run import Run

from .fitting import Model
from .points import Point, State
from .protocol import Protocol

FILE = "fit.json"
FORMAT = 1


@dataclass(frozen=True)
class Predicted:
    """One measured experiment and the model's prediction of it."""

    experiment: str
    collective: str | None
    algorithm: str
    ranks: int
    size_bytes: int
    seen: bool
    measured_ns: float
    error_ns: float
    predicted_ns: float | None
    reason: str | None

    @property
    def ratio(self) -> float | None:
        """Predicted over measured."""
        return None if self.predicted_ns is None else self.predicted_ns / self.measured_ns


@dataclass(frozen=True)
class Choice:
    """The fastest algorithm of a collective at one size on some ranks, measured and predicted."""

    collective: str
    ranks: int
    size_bytes: int
    measured: str
    predicted: str
    loss: float  # measured time of the predicted one over that of the fastest


def predict(model: Model, points: Sequence[Point], protocol: Protocol) -> list[Predicted]:
    """Every point with its prediction, taken as the executor took the measured time."""
    machine = model.machine()
    found = []
    for point in points:
        e = point.question
        try:
            predicted_ns, reason = protocol.time_ns(e, machine, model.release_ns, model.kind), None
        except LinkwrightError as error:
            predicted_ns, reason = None, str(error)
        found.append(
            Predicted(
                e.key, e.what if isinstance(e, Collective) else None, e.algorithm, e.ranks, e.size_bytes, point.seen,
                point.time_ns, point.error_ns, predicted_ns, reason,
            )
        )  # fmt: skip
    return found


def errors(predictions: Sequence[Predicted], seen: bool) -> np.ndarray:
    """|predicted / measured - 1| of what the fit saw, or of what it did not."""
    ratios = [p.ratio for p in predictions if p.seen is seen and p.ratio is not None]
    return np.abs(np.array(ratios) - 1)


def choices(predictions: Sequence[Predicted]) -> list[Choice]:
    """The algorithm to choose at each size and number of ranks, where there is a choice."""
    cells: dict[tuple, list[Predicted]] = {}
    for p in predictions:
        if p.collective and p.predicted_ns is not None:
            cells.setdefault((p.collective, p.ranks, p.size_bytes), []).append(p)
    found = []
    for (collective, ranks, size), rows in sorted(cells.items()):
        if len(rows) > 1:
            fastest = min(rows, key=lambda p: p.measured_ns)
            taken = min(rows, key=lambda p: p.predicted_ns)
            loss = taken.measured_ns / fastest.measured_ns
            found.append(Choice(collective, ranks, size, fastest.algorithm, taken.algorithm, loss))
    return found


def write(run: Run, model: Model, text: str, predictions: Sequence[Predicted], state: State | None) -> Path:
    """Store the fit with its run, and the `text` of the machine file; returns the path of that."""
    folder = run.folder / "machines"
    make_folder(folder)
    path = folder / f"{model.name}.toml"
    write_text(path, text)
    parameters = [{"key": key, "unit": unit, **asdict(fit)} for key, fit, unit in model.parameters()]
    document = {
        "format": FORMAT, "machine": model.name, "of": model.of, "parameters": parameters,
        "state": None if state is None else str(state),
        "predictions": [asdict(p) for p in predictions], "choices": [asdict(c) for c in choices(predictions)],
    }  # fmt: skip
    write_text(run.folder / FILE, json.dumps(document, indent=1, allow_nan=False) + "\n")
    return path


def read(run: Run) -> dict | None:
    """What `write` stored, or None."""
    path = run.folder / FILE
    return documents.read(path, documents.FIT) if path.is_file() else None
