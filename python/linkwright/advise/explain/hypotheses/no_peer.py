"""GPUs cannot access each other's memory: data is staged through host memory.

It is not tried on several nodes: the network hides it, and a run on one node shows it.
"""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts
from linkwright.formats.logs.topology import OWN_LINKS

from .kind import COMMON, ROUGH, UNUSUAL, Case, Hypothesis, checks, unless


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    peers = system.transports("peer", "pcie_")
    own = [name for name in ("nvlink", "xgmi") if system.has(name)]
    stated = host_memory(facts)
    search = facts.topology.searches.get("ring")
    excluded = (facts.connections("P2P") and not facts.connections("SHM")) or (
        search is not None and search.way in OWN_LINKS
    )
    if system.nodes == 1 and peers and system.transports("host_") and not excluded:
        yield Case(
            "GPUs cannot reach each other: data is staged through host memory", system.lacking(*own, *peers),
            "no links" if own else "no peer access",
            "NCCL_P2P_DISABLE=1 is set, access control services (ACS) or an IOMMU forbid it, or the GPUs have none",
            checks(
                unless(facts.setting("NCCL_P2P_DISABLE"), "env | grep NCCL_P2P"), "lspci -vvv | grep ACSCtl",
                "nvidia-smi topo -p2p r",
                unless(facts.transports, "grep 'via SHM' in the log with NCCL_DEBUG=INFO"),
            ),
            "unset NCCL_P2P_DISABLE, turn ACS off on the PCIe switches, boot with iommu=pt; where GPUs have no peer "
            "access at all (GeForce), NCCL_SHM_USE_CUDA_MEMCPY=1 lets copy engines move the data", stated,
            common=UNUSUAL if own and not stated else COMMON, strength=ROUGH,
        )  # fmt: skip


def host_memory(facts: Facts) -> str:
    """What the log says that proves it."""
    for name, values in (("NCCL_P2P_DISABLE", ("1",)), ("NCCL_P2P_LEVEL", ("0", "LOC"))):
        if (value := facts.setting(name)) in values:
            return f"{name}={value}"
    shared = facts.connections("SHM")
    return f"{shared} connections via SHM, none via P2P" if shared and not facts.connections("P2P") else ""


HYPOTHESIS = Hypothesis("no_peer", "GPUs cannot access each other's memory", _cases)
