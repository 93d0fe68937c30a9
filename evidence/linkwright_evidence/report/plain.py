"""Converts report data to plain JSON values and back, so that a study keeps its charts in its run folder.

Each object becomes a dict with its `type`; a matrix becomes nested lists with null for a missing cell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from linkwright.show.report import model

_TYPES = {
    kind.__name__: kind
    for kind in (
        *(model.Axis, model.Box, model.BoxPlot, model.Cell, model.Choice, model.Column, model.Curve),
        *(model.HeatMap, model.Plot, model.Section, model.Table, model.Text),
    )
}
_MATRICES = ("values", "low", "high")


def dump(value: Any) -> Any:
    """Model objects, lists and plain values in a form that ``json.dumps`` accepts."""
    if is_dataclass(value):
        return {"type": type(value).__name__} | {f.name: dump(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, np.ndarray):
        return _matrix(value)
    if isinstance(value, (list, tuple)):
        return [dump(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _matrix(values: np.ndarray) -> list:
    """Nested lists; converted cell by cell only if some are missing, since a map may have more than a million cells."""
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return values.tolist()
    return np.where(np.isfinite(values), values.astype(object), None).tolist()


def load(value: Any) -> Any:
    """The inverse of `dump`; an unknown type or field is an error that names it."""
    if isinstance(value, Mapping):
        given = dict(value)
        name = given.pop("type", None)
        if name not in _TYPES:
            raise ValueError(f"report: unknown type {name!r}; known: {', '.join(sorted(_TYPES))}")
        kind = _TYPES[name]
        unknown = given.keys() - {f.name for f in fields(kind)}
        if unknown:
            raise ValueError(f"report: {name} has no field {', '.join(sorted(unknown))}")
        return kind(**{key: _field(kind, key, item) for key, item in given.items()})
    return [load(item) for item in value] if isinstance(value, (list, tuple)) else value


def _field(kind: type, key: str, item: Any) -> Any:
    if kind is model.HeatMap and key in _MATRICES and item is not None:
        return np.array(item, dtype=np.float32)  # null becomes NaN
    return load(item)
