"""From small to large: numbers found again from at most 4 GPUs and 4 MiB, and what they say of 8 GPUs and 256 MiB.

    ring efficiency   from the allreduces on 4 GPUs      -> on 8 GPUs, and NCCL 2 on 5 to 8
    staging rate      from routed copies up to 4 MiB     -> of 16 MiB and more

No scale can move the others: start-ups are read at 4 B, and each of the rates of switches and links rests on large
copies alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwright_evidence import holdout
from linkwright_evidence.gpu_nodes import collectives, copies
from linkwright_evidence.gpu_nodes.machine_pair import DGX1, GX8, Machines
from linkwright_evidence.numbers import values
from linkwright_evidence.outcome import Cell

FEW_GPUS = 4
SMALL_BYTES = 4 << 20
EFFICIENCY, RATE = "fabric.network.ring.efficiency", "fabric.transport.staged.rate"
RINGS = {DGX1: ("ring", "flags", "host_flags"), GX8: ("ring", "flags")}
RATES = tuple(9 + step / 20 for step in range(61))  # GB/s


def results(machines: Machines, progress: Callable[[str, int, int], None]) -> dict[str, list[dict]]:
    """Errors of the large cells, table by table, and the numbers that were found."""
    shipped = {key: values(machines.dgx1)[key] for key in (EFFICIENCY, RATE)}
    worst = {}
    for done, rate in enumerate(RATES, 1):
        small = [
            cell for cell in _routed(_with_rate(machines, rate)) if int(str(cell.keys["size_bytes"])) <= SMALL_BYTES
        ]
        worst[_worst(small)] = rate
        progress("staging rate", done, len(RATES))
    rate = worst[min(worst)]
    few = [cell for cell in collectives.cells(machines) if cell.table == "allreduce" and _gpus(cell) <= FEW_GPUS]
    # Rates are in proportion to the efficiency; this one makes the largest error of two cells least.
    efficiency = shipped[EFFICIENCY] * len(few) / sum(_ratio(cell) for cell in few)
    there = _with_efficiency(_with_rate(machines, rate), efficiency)
    large = [cell for cell in collectives.cells(there) if _gpus(cell) > FEW_GPUS]
    large += [cell for cell in _routed(there) if int(str(cell.keys["size_bytes"])) > SMALL_BYTES]
    return holdout.tables(large, {EFFICIENCY: efficiency, RATE: rate}, shipped)


def _routed(machines: Machines) -> list[Cell]:
    return [cell for cell in copies.cells(machines) if cell.table == "Tartan, time, routed"]


def _with_rate(machines: Machines, rate: float) -> Machines:
    return machines.changed({DGX1: {key: str(rate) for key in (RATE, "fabric.transport.shared.rate")}})


def _with_efficiency(machines: Machines, efficiency: float) -> Machines:
    return machines.changed(
        {
            name: {f"fabric.network.{network}.efficiency": f"{efficiency:.6f}" for network in networks}
            for name, networks in RINGS.items()
        }
    )


def _gpus(cell: Cell) -> int:
    return int(str(cell.keys.get("gpus") or str(cell.keys["quantity"]).split()[1]))


def _ratio(cell: Cell) -> float:
    return float(str(cell.predicted)) / float(str(cell.reference))


def _worst(cells: Sequence[Cell]) -> float:
    return max(cell.error or 0.0 for cell in cells)
