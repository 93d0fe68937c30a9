"""Curves: the model's lines and the measured points, one chart for each machine, collective and job."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from linkwright.show.report.model import Axis, Choice, Curve, Plot, Section
from linkwright_evidence.outcome import Cell
from linkwright_evidence.report import plain

BYTES = Axis("size", "B", "log2")
TIME = Axis("time", "s", "log10")
HOW = "Lines are the model, points the median of what was measured."


def sections(cells: Sequence[Cell]) -> list[dict]:
    """One section with a part per machine, in the plain form that a run folder keeps."""
    able = [cell for cell in cells if cell.predicted is not None]
    parts = []
    for machine in dict.fromkeys(str(cell.keys["machine"]) for cell in able):
        own = [cell for cell in able if cell.keys["machine"] == machine]
        parts.append(Section(machine, [Choice("Show", _plots(own))]))
    return [plain.dump(Section("The measurements", parts=parts, intro=HOW))] if parts else []


def _plots(cells: Sequence[Cell]) -> list[Plot]:
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((str(cell.keys["collective"]), str(cell.keys["nodes"])), []).append(cell)
    return [
        Plot(f"{collective}, {nodes} nodes", BYTES, TIME, _curves(its)) for (collective, nodes), its in groups.items()
    ]


def _curves(cells: Sequence[Cell]) -> list[Curve]:
    curves = []
    for tag in dict.fromkeys(str(cell.keys["tag"]) for cell in cells):
        sizes: dict[int, list[Cell]] = {}
        for cell in (cell for cell in cells if cell.keys["tag"] == tag):
            sizes.setdefault(int(str(cell.keys["size_bytes"])), []).append(cell)
        at = [float(size) for size in sorted(sizes)]
        for name, kind in (("predicted", "model"), ("reference", "measured")):
            values = [
                statistics.median(float(str(getattr(one, name))) for one in sizes[size]) for size in sorted(sizes)
            ]
            curves.append(_curve(tag.removesuffix("_int32"), at, [1e-6 * value for value in values], kind))
    return curves


def _curve(tag: str, at: list[float], values: list[float], kind: str) -> Curve:
    if kind == "model":
        return Curve(f"{tag}, model", at, values, kind="model", series=tag)
    return Curve(tag, at, values, series=tag)
