"""Stated numbers of the article beside what the model gives: table 1, the facts, and the known points of the figures.

Numbers of the machine file itself (clocks, widths, queue depths) come out exactly, which only shows that they were
copied correctly; `_benchmark` has what the model makes of them. Two cells are calibrated: the put deficits of hot spot
and pairwise. Facts that are words, or that concern parts outside the model, are listed without a prediction.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from linkwright.studies.cell import experiments, known
from linkwright.studies.cell.chip import LINE
from linkwright.studies.cell.curves import Points
from linkwright.studies.cell.load import Loads
from linkwright.studies.outcome import Cell
from linkwright.studies.references import facts, reference_cell, reference_rows

ERRATA = {
    "C137": "the components add up to 90.625 ns",
    "C130": "the running text says about 20 cycles; table 1 is used",
    "C090": "table 1 prints 10 cycles, which is used",
    "C012": "35 for the controller, 30 for the coherent interface",
    "C105": "8 ns are 25.6 cycles",
}
TABLE_1 = "dma_latency_components"
# Numbers of the machine file that facts state as they are, and those that are counts.
STATED = {
    "machine.clock": ["C006", "C093"],
    "endpoints.capacity": ["C017"],
    "fabric.bus_clock": ["C053"],
    "fabric.memory_bandwidth": ["C010"],
    "facts.io_in": ["C011", "C061"],
    "facts.io_out": ["C012"],
    "facts.io_coherent_out": ["C060"],
    "facts.ppe_l1": ["C013"],
    "facts.ppe_l2": ["C014"],
    "facts.ppe_issue": ["C015"],
    "facts.ppe_threads": ["C016"],
    "facts.spu_registers": ["C021"],
    "facts.spu_width": ["C023"],
    "facts.spu_pipelines": ["C027"],
    "facts.double_interval": ["C032"],
    "facts.signal_registers": ["C074"],
    "facts.mailboxes_out": ["C077"],
    "facts.timer_tick": ["C094"],
    "facts.local_store": ["C105"],
}
COUNTED = {
    "fabric.width": ["C018", "C039", "C049"],
    "fabric.rings_clockwise": ["C040", "C043"],
    "fabric.rings_counterclockwise": ["C041"],
    "fabric.transfers_per_ring": ["C042"],
    "fabric.line": ["C051", "C052", "C086", "C103"],
    "fabric.list_longest": ["C070"],
    "fabric.mailbox_in": ["C076"],
    "fabric.spu_queue": ["C081", "C113"],
    "fabric.proxy_queue": ["C082"],
}
# Component of table 1 -> facts that state its cycles, and its nanoseconds.
COMPONENTS = {
    "dma_issue": (["C087", "C126"], ["C127"]),
    "dma_to_eib": (["C089", "C128"], ["C129"]),
    "list_element_fetch": (["C090", "C130"], ["C131"]),
    "coherence_protocol": (["C092", "C132"], ["C133"]),
    "data_transfer_inter_spe_put": (["C134"], ["C135"]),
    "total": (["C136", "C138"], ["C137", "C139"]),
}


@dataclass(frozen=True)
class Grounds:
    """What the predictions are computed from."""

    machine: object
    values: dict[str, float]
    points: Points
    loads: Loads
    components: dict[str, float]
    mailboxes: dict[str, float]


def cells(g: Grounds) -> list[Cell]:
    """Table 1, the known points, the facts."""
    stated = facts("cell", _rules(g), ("quantity", "element", "statement", "basis"), ERRATA)
    return [*_components(g), *_known_points(g), *stated]


def _components(g: Grounds) -> list[Cell]:
    made = []
    clock = g.values["machine.clock"]
    for row in reference_rows("cell", "dma_latency_components.csv"):
        nanoseconds = g.components[row["component"]]
        for unit, column, predicted in (("cycles", "cycles", nanoseconds * clock), ("ns", "nanoseconds", nanoseconds)):
            reference = float(row[column])
            keys = {"table": TABLE_1, "component": row["component"], "quantity": column, "note": row["note"]}
            erratum = ERRATA["C137"] if row["component"] == "total" and unit == "ns" else None
            made.append(Cell(TABLE_1, keys, predicted, reference, unit, row["split"], erratum))
    return made


def _known_points(g: Grounds) -> list[Cell]:
    """The points of figures 4 to 6 that the text states, one for each curve that it speaks of."""
    made = []
    for row in known.stated():
        operation, size, spes = row["operation"], int(row["size_bytes"]), row["spes"]
        if spes:
            direction, spot = operation.split(" ", 1)
            rates = g.loads[spot.removeprefix("at "), direction == "get", int(spes)]
            at = f"{spes} SPEs"
        else:
            rates = g.points[operation, row["issue"], size]
            at = f"{size} B" if size < 1024 else f"{size // 1024} KB"
        predicted = rates.dma_ns if row["unit"] == "ns" else rates.total
        keys = {"table": "known points", "figure": row["figure"], "operation": operation, "at": at}
        made.append(reference_cell(row, "known points", keys, predicted, value=float))
    return made


def _rules(g: Grounds) -> dict[str, Callable[[], object]]:
    return _stated(g) | _implied(g) | _benchmark(g)


def _stated(g: Grounds) -> dict[str, Callable[[], object]]:
    """Facts that stand in the machine file."""
    stated = {fact: lambda key=key: g.values[key] for key, its in STATED.items() for fact in its}
    counted = {fact: lambda key=key: int(g.values[key]) for key, its in COUNTED.items() for fact in its}
    return stated | counted


def _implied(g: Grounds) -> dict[str, Callable[[], object]]:
    """Facts that follow from numbers of the machine file."""
    v, ranks, clock = g.values, g.machine.ranks, g.values["machine.clock"]
    rings = v["fabric.rings_clockwise"] + v["fabric.rings_counterclockwise"]
    bus, width, line = (v[f"fabric.{key}"] for key in ("bus_clock", "width", "line"))
    return {
        "C001": lambda: int(rings),
        "C004": lambda: ranks,
        "C009": lambda: line * bus,
        "C019": lambda: width * bus,
        "C020": lambda: width * bus,
        "C022": lambda: v["facts.spu_width"] * 8,
        "C024": lambda: v["facts.spu_width"] / 2,
        "C025": lambda: v["facts.spu_width"] / 4,
        "C026": lambda: v["facts.spu_width"] / 8,
        "C035": lambda: ranks * v["facts.spu_width"] / 4 * 2,
        "C036": lambda: ranks * v["facts.spu_width"] / 4 * 2 * clock,
        "C037": lambda: ranks * 4 / v["facts.double_interval"] * clock,
        "C038": lambda: int(rings),
        "C048": lambda: bus / clock,
        "C054": lambda: line * bus,
        "C055": lambda: rings * v["fabric.transfers_per_ring"] * width * bus,
        "C056": lambda: ranks * width * bus,
        "C066": lambda: bus / clock,
        "C069": lambda: v["fabric.dma_largest"] / 1024,
        "C071": lambda: v["fabric.dma_largest"] * v["fabric.list_longest"] / 1024**2,
        "C096": lambda: v["facts.timer_tick"] * clock,
        "C114": lambda: int(v["fabric.spu_queue"]) * ranks,
    }


def _benchmark(g: Grounds) -> dict[str, Callable[[], object]]:
    """Facts that a run of the model yields."""
    clock = g.values["machine.clock"]
    part = g.components

    def point(op: str, issue: str, size: int):
        return g.points[op, issue, size]

    def gains() -> list[float]:
        """Of batches of 4 over blocking, 256 B to 4 KB, gets from a local store."""
        op, sizes = "get from local store", (256, 512, 1024, 2048, 4096)
        return [point(op, "batch(4)", size).total / point(op, "blocking", size).total for size in sizes]

    def flat_to() -> int:
        op = "put to memory"
        sizes = [s for (o, i, s) in g.points if (o, i) == (op, "blocking")]
        return max(s for s in sizes if point(op, "blocking", s).dma_ns <= 1.01 * point(op, "blocking", 16).dma_ns)

    def reached() -> float:
        op = "put to memory"
        sizes = sorted(s for (o, i, s) in g.points if (o, i) == (op, "unlimited"))
        return max(point(op, "unlimited", s).total for s in sizes)

    def load(pattern: str, get: bool) -> float:
        return g.loads[pattern, get, 8].total

    def saturating(spot: str, first: int) -> int:
        most = max(r.total for (s, get, *_), r in g.loads.items() if s == spot and get)
        return next(n for n in range(first, 9) if g.loads[spot, True, n].total >= 0.98 * most)

    cycles = {fact: lambda name=name: part[name] * clock for name, (its, _) in COMPONENTS.items() for fact in its}
    times = {fact: lambda name=name: part[name] for name, (_, its) in COMPONENTS.items() for fact in its}
    return (
        cycles
        | times
        | {
            "C079": lambda: g.mailboxes["round trip"],
            "C091": lambda: part["coherence_protocol"] * clock / 2,
            "C097": lambda: g.mailboxes["one way"],
            "C100": lambda: point("put to memory", "blocking", 128).dma_ns,
            "C101": flat_to,
            "C102": lambda: flat_to() // LINE,
            "C108": lambda: point("put to memory", "blocking", 16384).total,
            "C109": lambda: point("get from memory", "blocking", 16384).total,
            "C110": lambda: point("put to memory", "blocking", 16384).dma_ns,
            "C112": lambda: point("get from memory", "blocking", 16384).dma_ns,
            "C116": reached,
            "C120": lambda: statistics.median(gains()),
            "C121": lambda: max(gains()),
            "C140": lambda: part["total"] - part["list_element_fetch"],
            "C142": lambda: saturating("local store", 2),
            "C144": lambda: saturating("main memory", 1),
            "C145": lambda: load("local store", True) - load("local store", False),
            "C146": lambda: load("local store", False),
            "C149": lambda: 100 * load("complement", True) / g.values["fabric.line"] / g.values["fabric.bus_clock"],
            "C150": lambda: load("complement", True),
            "C151": lambda: load("pairwise", True) - load("pairwise", False),
        }
    )


def grounds(machine, values: dict[str, float], points: Points, loads: Loads) -> Grounds:
    """With the traces of single DMAs and mailboxes."""
    return Grounds(machine, values, points, loads, experiments.components(machine), experiments.mailboxes(machine))
