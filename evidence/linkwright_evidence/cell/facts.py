"""Stated numbers of the article beside what the model gives: table 1, the facts, and the known points of the figures.

Facts that state a number of the machine file (clocks, widths, queue depths), or follow from such numbers alone, are
inputs: they show that the file was copied correctly and are not scored. `_benchmark` has what runs of the model make of
them; `FITTED` names the facts and points by which a number or a rule of the machine file was chosen. Facts about parts
outside the model are listed without a prediction.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from linkwright_evidence import Options
from linkwright_evidence.cell import curves, experiments, known, latency, load
from linkwright_evidence.cell.chip import LINE, SPES
from linkwright_evidence.cell.curves import Points
from linkwright_evidence.cell.load import Loads
from linkwright_evidence.cell.streams import Rates
from linkwright_evidence.numbers import values
from linkwright_evidence.outcome import Cell, Role
from linkwright_evidence.published import facts, reference_cell, reference_rows

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
# Number or word of the machine file -> the facts and known points by which it was chosen.
FITTED = {
    "path.put.barrier": ["C100", "K01", "K03", "K05"],
    "fabric.memory_read": ["C109", "C112", "K07"],
    "fabric.mmio": ["C097"],
    "fabric.data_lines": ["C101", "C102"],
    "fabric.lines_in_flight": ["C116", *(f"K{number:02}" for number in range(8, 16))],
    "fabric.arbiter_sees": ["C152", "C153", "C154", "K37", "K38"],
}
_CHOSE = {fact for its in FITTED.values() for fact in its}


@dataclass(frozen=True)
class Grounds:
    """What the predictions are computed from."""

    machine: object
    values: dict[str, float]
    points: Points
    loads: Loads
    components: dict[str, float]
    mailboxes: dict[str, float]
    # Operation -> nanoseconds of DMAs under the memory hot spot, from their selection, shape (SPEs, DMAs).
    latencies: Mapping[str, np.ndarray]
    # Loss case -> rates.
    losses: Mapping[str, Rates]


def cells(g: Grounds) -> list[Cell]:
    """Table 1, the known points, the facts."""
    stated = facts("cell", _rules(g), ("quantity", "element", "statement", "basis"), ERRATA)
    return [*_components(g), *_known_points(g), *(replace(cell, role=_role(g, cell.keys["id"])) for cell in stated)]


def published(name: str) -> float:
    """The value of a fact."""
    return next(float(row["value"]) for row in reference_rows("cell", "facts.csv") if row["id"] == name)


def _role(g: Grounds, name: object) -> Role:
    if name in _CHOSE:
        return "fitted"
    return "predicted" if name in _benchmark(g) else "input"


def _components(g: Grounds) -> list[Cell]:
    made = []
    clock = g.values["machine.clock"]
    for row in reference_rows("cell", "dma_latency_components.csv"):
        nanoseconds = g.components[row["component"]]
        for unit, column, predicted in (("cycles", "cycles", nanoseconds * clock), ("ns", "nanoseconds", nanoseconds)):
            reference = float(row[column])
            keys = {"table": TABLE_1, "component": row["component"], "quantity": column, "note": row["note"]}
            erratum = ERRATA["C137"] if row["component"] == "total" and unit == "ns" else None
            made.append(Cell(TABLE_1, keys, predicted, reference, unit, row["split"], erratum, role="input"))
    return made


def _known_points(g: Grounds) -> list[Cell]:
    """The points of figures 4 to 6 that the text states, one for each curve that it speaks of."""
    made = []
    for row in known.stated():
        operation, size, spes = row["operation"], int(row["size_bytes"]), row["spes"]
        if spes:
            direction, spot = operation.split(" ", 1)
            predicted = load.total(g.loads, spot.removeprefix("at "), direction == "get", int(spes))
            at = f"{spes} SPEs"
        else:
            rates = g.points[operation, row["issue"], size]
            predicted = rates.dma_ns if row["unit"] == "ns" else rates.total
            at = f"{size} B" if size < 1024 else f"{size // 1024} KB"
        keys = {"table": "known points", "figure": row["figure"], "operation": operation, "at": at}
        cell = reference_cell(row, "known points", keys, predicted, value=float)
        made.append(replace(cell, role="fitted") if row["id"] in _CHOSE else cell)
    return made


def _rules(g: Grounds) -> dict[str, Callable[[], object]]:
    return _stated(g) | _implied(g) | _traced(g) | _benchmark(g)


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
        "C162": lambda: ranks * v["fabric.dma_largest"] / v["fabric.memory_bandwidth"] / 1e3,
        "C114": lambda: int(v["fabric.spu_queue"]) * ranks,
    }


def _benchmark(g: Grounds) -> dict[str, Callable[[], object]]:
    """Facts that a run of the model yields and that no number of the machine file states."""

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

    def total(pattern: str, get: bool) -> float:
        return load.total(g.loads, pattern, get, SPES)

    def both(of: Callable[[np.ndarray], float]) -> float:
        """Microseconds of a figure under the memory hot spot, mean of puts and gets."""
        return statistics.mean(float(of(taken)) for taken in g.latencies.values()) / 1e3

    def alone() -> float:
        """Microseconds of a 16-KB DMA to or from memory alone, mean of put and get."""
        return statistics.mean(point(op, "blocking", 16384).dma_ns for op in g.latencies) / 1e3

    def uniform() -> float:
        return (total("uniform", True) + total("uniform", False)) / 2

    def slower(case: str) -> str:
        best = max(rates.total for rates in g.losses.values())
        return "yes" if g.losses[case].total < 0.98 * best else "no"

    def idle_rings() -> int:
        return sum(share == 0 for share in load.ring_shares(g.losses[load.ONE_WAY]).values())

    snoop = g.values["fabric.line"] * g.values["fabric.bus_clock"]

    def saturating(spot: str, first: int) -> int:
        most = max(r.total for (s, get, *_), r in g.loads.items() if s == spot and get)
        return next(n for n in range(first, 9) if g.loads[spot, True, n].total >= 0.98 * most)

    return {
        "C062": lambda: slower(load.SHARED),
        "C063": idle_rings,
        "C064": lambda: slower(load.HALF),
        "C065": lambda: slower(load.PARTIAL),
        "C079": lambda: g.mailboxes["round trip"],
        "C097": lambda: g.mailboxes["one way"],
        "C100": lambda: point("put to memory", "blocking", 128).dma_ns,
        "C101": flat_to,
        "C102": lambda: flat_to() // LINE,
        "C107": lambda: point("get from memory", "blocking", 128).dma_ns,
        "C108": lambda: point("put to memory", "blocking", 16384).total,
        "C109": lambda: point("get from memory", "blocking", 16384).total,
        "C110": lambda: point("put to memory", "blocking", 16384).dma_ns,
        "C112": lambda: point("get from memory", "blocking", 16384).dma_ns,
        "C116": reached,
        "C120": lambda: statistics.median(gains()),
        "C121": lambda: max(gains()),
        "C142": lambda: saturating("local store", 2),
        "C144": lambda: saturating("main memory", 1),
        "C145": lambda: total("local store", True) - total("local store", False),
        "C146": lambda: total("local store", False),
        "C148": lambda: total("complement", True),
        "C149": lambda: 100 * total("complement", True) / snoop,
        "C150": lambda: total("complement", True),
        "C151": lambda: total("pairwise", True) - total("pairwise", False),
        "C152": uniform,
        "C153": lambda: 100 * uniform() / snoop,
        "C154": lambda: uniform() / SPES,
        "C156": lambda: both(latency.mode) / alone(),
        "C157": lambda: both(latency.mode),
        "C158": lambda: both(np.max),
        "C159": lambda: both(np.max) / both(np.mean),
        "C160": alone,
        "C161": lambda: both(np.mean),
        "C163": lambda: "yes" if latency.alike(g.latencies) else "no",
    }


def _traced(g: Grounds) -> dict[str, Callable[[], object]]:
    """Table 1, which is made of numbers of the machine file; and that distance is free, which the model is told."""
    part, clock = g.components, g.values["machine.clock"]
    cycles = {fact: lambda name=name: part[name] * clock for name, (its, _) in COMPONENTS.items() for fact in its}
    times = {fact: lambda name=name: part[name] for name, (_, its) in COMPONENTS.items() for fact in its}
    pairs = [(own, other) for own in range(SPES) for other in range(SPES) if own != other]
    return {
        **cycles,
        **times,
        "C091": lambda: part["coherence_protocol"] * clock / 2,
        "C099": lambda: "no" if len({ps for _, ps in experiments.quiet(g.machine, pairs)}) == 1 else "yes",
        "C140": lambda: part["total"] - part["list_element_fetch"],
    }


# The issue policies that facts and known points speak of.
ISSUES = ("blocking", "batch(4)", "unlimited")


def grounds(machine, options: Options, issues: Iterable[str] = ISSUES, seeds: tuple[int, ...] = load.SEEDS) -> Grounds:
    """Every run that the predictions need."""
    return Grounds(
        machine,
        values(machine),
        curves.measure(machine, options, issues),
        load.measure(machine, options, seeds),
        experiments.components(machine),
        experiments.mailboxes(machine),
        {operation: times["selection"] for operation, times in latency.hot_spots(machine).items()},
        load.losses(machine, options),
    )
