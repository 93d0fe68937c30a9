"""Curves: the model's line and the published points, a chart for each kind, system, scale and operation."""

from __future__ import annotations

from collections.abc import Sequence

from linkwright.show.report.model import Axis, Choice, Curve, Plot, Section
from linkwright_evidence.outcome import Cell
from linkwright_evidence.report import plain

BYTES, TOKENS, TIME = Axis("size", "B", "log2"), Axis("tokens of a rank", "", "log2"), Axis("time", "s", "log10")
HOW = (
    "Lines are the model, points are published. DeepEP and mixtures of experts: 7,168 elements, eight experts a token."
)
SERIES = ("version", "backend", "dtype", "experts", "sms")
SMS = (None, 4, 24)
US = 1e-6


def sections(cells: Sequence[Cell]) -> list[dict]:
    """One section with a part per kind, in the plain form that a run folder keeps."""
    able = [cell for cell in cells if not cell.erratum and _typical(cell)]
    parts = []
    for kind in dict.fromkeys(str(cell.keys["kind"]) for cell in able):
        own = [cell for cell in able if cell.keys["kind"] == kind]
        parts.append(Section(kind, [Choice("Show", _plots(own))]))
    return [plain.dump(Section("The published tables", parts=parts, intro=HOW))] if parts else []


def _typical(cell: Cell) -> bool:
    keys = cell.keys
    if "tokens" not in keys:
        return keys.get("dtype") != "int8" and keys.get("mode") != "eager"
    return keys["hidden"] == 7168 and keys["topk"] == 8 and keys["experts"] == 256 and keys.get("sms") in SMS


def _plots(cells: Sequence[Cell]) -> list[Plot]:
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(f"{cell.table.partition(', ')[2]}, {cell.keys['op']}", []).append(cell)
    return [
        Plot(name, TOKENS if "tokens" in its[0].keys else BYTES, TIME, _curves(its)) for name, its in groups.items()
    ]


def _curves(cells: Sequence[Cell]) -> list[Curve]:
    series: dict[str, list[Cell]] = {}
    for cell in cells:
        name = ", ".join(str(cell.keys[key]) for key in SERIES if cell.keys.get(key))
        series.setdefault(name, []).append(cell)
    curves = []
    for name, its in series.items():
        its.sort(key=_at)
        at = [_at(cell) for cell in its]
        curves.append(Curve(f"{name}, model", at, _times(its, "predicted"), kind="model", series=name))
        curves.append(Curve(name, at, _times(its, "reference"), series=name))
    return curves


def _at(cell: Cell) -> float:
    return float(str(cell.keys.get("tokens") or cell.keys["size_bytes"]))


def _times(cells: Sequence[Cell], name: str) -> list[float]:
    return [US * float(getattr(cell, name)) for cell in cells]
