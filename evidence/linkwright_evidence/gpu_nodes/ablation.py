"""The mechanisms of the two nodes, for `--ablate`."""

from __future__ import annotations

from collections.abc import Callable

from linkwright_evidence import ablation
from linkwright_evidence.gpu_nodes import collectives, copies, facts, stated
from linkwright_evidence.gpu_nodes.machine_pair import DGX1, GX8, Machines
from linkwright_evidence.outcome import Cell

FAST = "1000000"
# Mechanism -> machine -> what is changed in its file.
MECHANISMS: dict[str, dict[str, dict[str, str]]] = {
    "the sockets share one rate": {DGX1: {"fabric.switch.QPI.throughput": FAST}},
    "turns at the root complex": {GX8: {"fabric.switch.root complex.turnaround": FAST}},
    "flat start of small staged copies": {DGX1: {"fabric.transport.staged.inline": "0"}},
    "the library does not stage as the driver does": {DGX1: {"fabric.transport.shared.chunk": "1024"}},
    "kernels store 128 bytes": {DGX1: {"fabric.links.stores.share": "0.832"}},
    "no ring closes: host memory at every hop": {DGX1: {"library.modes.no_ring": '"flags"'}},
    "a reducing ring keeps a share of the rate": {
        DGX1: {f"fabric.network.{network}.efficiency": "1" for network in ("ring", "flags", "host_flags")},
        GX8: {f"fabric.network.{network}.efficiency": "1" for network in ("ring", "flags")},
    },
    "launch": {name: {"library.launch": "0"} for name in (DGX1, GX8)},
    "training by the container's library": {name: {"library.training": '"1.3.4"'} for name in (DGX1, GX8)},
}


def cells(machines: Machines) -> list[Cell]:
    """Everything that the study predicts."""
    return [cell for part in (copies, collectives, facts, stated) for cell in part.cells(machines)]


def table(machines: Machines, whole: list[Cell], progress: Callable[[str, int, int], None]) -> list[dict]:
    """One row per mechanism: what the scored cells look like without it."""
    return ablation.table(MECHANISMS, lambda changes: cells(machines.changed(changes)), whole, progress)
