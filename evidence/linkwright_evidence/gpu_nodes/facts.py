"""Exact quantities: the topology, the rings of NCCL, and the arithmetic of the workloads.

Only the rings are predicted, by the search. Links and workloads are inputs: their cells check that they were copied
well.
"""

from __future__ import annotations

from dataclasses import replace

from linkwright.advise.predict.training.workload import Workload
from linkwright.libraries import nccl
from linkwright_evidence.outcome import Cell
from linkwright_evidence.published import reference_cell, reference_rows

from .machine_pair import DGX1, Machines, paper_cell
from .networks import networks


def cells(machines: Machines) -> list[Cell]:
    """Counts, orders, and every workload figure to its printed digits."""
    found = []
    for row in reference_rows("gpu-nodes", "interconnect.csv"):
        made = _STRUCTURE.get(row["quantity"])
        if made and row["machine"] == DGX1:
            cell = paper_cell(row, "structure", made(nccl.nvlinks(machines.dgx1)))
            found.append(replace(cell, role="predicted" if row["quantity"].startswith("rings") else "input"))
    shipped = networks()
    for row in reference_rows("gpu-nodes", "workloads.csv"):
        keys = {key: row[key] for key in ("id", "network", "quantity", "batch")}
        predicted = _workload(shipped[row["network"]], row["quantity"], row["batch"], row["value"])
        found.append(replace(reference_cell(row, "workloads", keys, predicted), role="input"))
    return found


def hamiltonian_cycles(links: list[list[int]]) -> int:
    """Directed cycles through all ranks along links."""

    def extend(ring: tuple[int, ...]) -> int:
        if len(ring) == len(links):
            return int(bool(links[ring[-1]][0]))
        return sum(extend((*ring, rank)) for rank, n in enumerate(links[ring[-1]]) if n and rank not in ring)

    return extend((0,))


def _orders(links: list[list[int]]) -> str:
    rings = nccl.rings("2.3.5", links)
    return "; ".join(" ".join(map(str, ring)) for ring in rings[: len(rings) // 2])


_STRUCTURE = {
    "directed rings": hamiltonian_cycles,
    "neighbours": lambda links: sum(map(sum, links)),
    "rings": _orders,
    "rings used": lambda links: len(nccl.rings("2.3.5", links)),
}


def _workload(workload: Workload, quantity: str, batch: str, printed: str) -> object:
    """A figure, rounded to as many digits as the paper prints."""
    if quantity == "intensity":
        return round(workload.intensity(int(batch)), len(printed.partition(".")[2]))
    if quantity == "payload":
        return workload.gradient_bytes
    if quantity.endswith("printed"):
        value, unit = printed.split()
        exact = getattr(workload, quantity.split()[0]) / {"M": 1e6, "K": 1e3}[unit]
        return f"{exact:,.{len(value.partition('.')[2])}f} {unit}"
    return getattr(workload, quantity)
