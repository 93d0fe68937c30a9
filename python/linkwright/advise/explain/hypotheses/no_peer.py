"""GPUs cannot access each other's memory: all data go through the memory of the host.

Of several nodes this is no hypothesis: the network hides it, and a run on one node shows it.
"""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System

from .kind import Case, Hypothesis


def _cases(system: System) -> Iterator[Case]:
    peers = system.transports("peer", "pcie_")
    own = [name for name in ("nvlink", "xgmi") if system.has(name)]
    if system.nodes == 1 and peers and system.transports("host_"):
        yield Case(
            "GPUs cannot reach each other: data is staged through host memory", system.lacking(*own, *peers),
            "no links" if own else "no peer access",
            "NCCL_P2P_DISABLE=1 is set, or PCIe access control services (ACS) or an IOMMU forbid it",
            "env | grep NCCL_P2P; lspci -vvv | grep ACSCtl; grep 'via SHM' in the log with NCCL_DEBUG=INFO",
            "unset NCCL_P2P_DISABLE, turn ACS off on the PCIe switches, boot with iommu=pt",
        )  # fmt: skip


HYPOTHESIS = Hypothesis("no_peer", "GPUs cannot access each other's memory", _cases)
