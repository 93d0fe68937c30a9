"""From one SPE to eight: the fitted numbers from cells with one SPE, then the cells with several.

One SPE alone says nothing about the arbiter's window, which was chosen by the uniform traffic of eight. The large cells
are therefore given twice: with every line in sight, which is what one would assume, and with the window.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import replace

from linkwright_evidence import Options, holdout
from linkwright_evidence.cell import curves, experiments, facts, known
from linkwright_evidence.numbers import changed, values
from linkwright_evidence.outcome import Cell

BARRIER, MEMORY_READ, MMIO = "path.put.barrier", "fabric.memory_read", "fabric.mmio"
ARBITERS = {"every line in sight": '"all"', "the window": '"limited"'}
# Facts about several SPEs: loss cases, and everything from the hot spots on.
LARGE = frozenset(f"C{number:03}" for number in (*range(62, 66), *range(142, 164)))
MOST_CYCLES = 1024


def results(machine, options: Options) -> dict[str, list[dict]]:
    """Errors of the cells with several SPEs, and the numbers that were found."""
    found = find(machine)
    large = [
        replace(cell, table=f"{cell.table}, {name}")
        for name, word in ARBITERS.items()
        for cell in facts.cells(facts.grounds(changed(_with(machine, found), {"fabric.arbiter_sees": word}), options))
        if is_large(cell)
    ]
    return holdout.tables(large, found, values(machine))


def is_large(cell: Cell) -> bool:
    """Whether more than one SPE takes part."""
    return cell.keys.get("id") in LARGE or str(cell.keys.get("at", "")).endswith("SPEs")


def find(machine) -> dict[str, float]:
    """The fitted numbers in SPU cycles, as the published cells with one SPE give them."""
    clock = values(machine)["machine.clock"]

    def taken(key: str, cycles: int, op: str, size: int) -> float:
        return curves.point(_with(machine, {key: cycles}), op, "blocking", size).dma_ns

    def without_registers() -> float:
        return experiments.mailboxes(_with(machine, {MMIO: 0}))["one way"]

    put, get = "put to local store", "get from memory"
    latency, rate = known.point("ns", put, "blocking", 128), known.point("GB/s", get, "blocking", 16384)
    mail = facts.published("C097")
    # The fabric takes whole bus cycles, which are two of the SPU; a read takes longer with each.
    choices = range(0, MOST_CYCLES, 2)
    above = bisect.bisect(choices, 16384 / rate, key=lambda cycles: taken(MEMORY_READ, cycles, get, 16384))
    near = choices[above - 1 : above + 1]
    memory = min(near, key=lambda cycles: abs(16384 / taken(MEMORY_READ, cycles, get, 16384) - rate))
    return {
        BARRIER: (latency - taken(BARRIER, 0, put, 128)) * clock,
        MEMORY_READ: memory,
        MMIO: (mail - without_registers()) * clock,
    }


def _with(machine, cycles: Mapping[str, float]):
    return changed(machine, {key: f"{value:.10g}" for key, value in cycles.items()})
