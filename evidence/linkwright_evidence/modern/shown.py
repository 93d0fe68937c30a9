"""Every table as a curve: the model's line and the published points, a chart for each machine and collective."""

from __future__ import annotations

from collections.abc import Sequence

from linkwright.show.report.model import Axis, Choice, Curve, Plot, Section
from linkwright_evidence.outcome import Cell
from linkwright_evidence.report import plain

BYTES = Axis("size", "B", "log2")
TIME = Axis("time", "s", "log10")
RATE = Axis("bus rate", "B/s", "log10")
HOW = (
    "Lines are the model of the healthy machine, points are published; a table of a faulty machine is marked as a case."
)
_BASE = {"us": (TIME, 1e-6), "GB/s": (RATE, 1e9)}


def sections(cells: Sequence[Cell]) -> list[dict]:
    """One section with a part per machine, in the plain form that a run folder keeps."""
    parts = []
    for machine in dict.fromkeys(str(cell.keys["machine"]) for cell in cells):
        own = [cell for cell in cells if cell.keys["machine"] == machine]
        parts.append(Section(machine, [Choice("Show", _plots(own))]))
    return [plain.dump(Section("The published tables", parts=parts, intro=HOW))] if parts else []


def _plots(cells: Sequence[Cell]) -> list[Plot]:
    groups: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        key = tuple(cell.keys[name] for name in ("collective", "gpus", "nodes"))
        groups.setdefault((*key, cell.unit), []).append(cell)
    return [_plot(*key, its) for key, its in groups.items()]


def _plot(collective: object, gpus: object, nodes: object, unit: object, cells: Sequence[Cell]) -> Plot:
    axis, factor = _BASE[str(unit)]
    curves = []
    for table in dict.fromkeys(str(cell.keys["table_id"]) for cell in cells):
        own = [cell for cell in cells if cell.keys["table_id"] == table]
        at = [float(cell.keys["size_bytes"]) for cell in own]  # type: ignore[arg-type]
        name = f"{table}, a case" if own[0].erratum else table
        curves.append(Curve(f"{name}, model", at, _values(own, "predicted", factor), kind="model", series=table))
        curves.append(Curve(name, at, _values(own, "reference", factor), series=table))
    where = f"{gpus} GPUs" if nodes == 1 else f"{gpus} GPUs on {nodes} nodes"
    return Plot(f"{collective}, {where}" + (", rate" if unit == "GB/s" else ""), BYTES, axis, curves)


def _values(cells: Sequence[Cell], name: str, factor: float) -> list[float]:
    return [getattr(cell, name) * factor for cell in cells]
