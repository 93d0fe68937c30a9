"""What NICs read of GPUs goes through the processor: access control services, or a NIC in the wrong place."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts
from linkwright.formats.logs.topology import OVER_PROCESSOR

from .kind import ROUGH, THROUGH_HOST, Case, Hypothesis, through_host


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    if system.nodes < 2 or not system.has("nic"):
        return
    for part in THROUGH_HOST if system.has("host") else (1.0,):
        yield Case(
            "NICs reach GPUs through the processor instead of their switch",
            through_host(system.lacking("nic"), part), "ACS",
            "PCIe access control services (ACS) and an IOMMU are on, or GPU and NIC are on different switches",
            "lspci -vvv | grep ACSCtl; cat /proc/cmdline (iommu=); nvidia-smi topo -m",
            "turn ACS off on the PCIe switches, boot with iommu=pt", _said(system, facts), strength=ROUGH,
        )  # fmt: skip


def _said(system: System, facts: Facts) -> str:
    """What the log says that proves it: a search that found no nearer way; empty where it does not."""
    search = facts.topology.searches.get("ring")
    if search is None or search.network_way not in OVER_PROCESSOR or system.seen.far in OVER_PROCESSOR:
        return ""
    return f"rings reach NICs by {search.network_way}, where {system.seen.far} is usual"


HYPOTHESIS = Hypothesis("host_path", "NICs reach GPUs through the processor", _cases)
