"""GPUs of one PCIe switch communicate through the processor: access control services."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts

from .kind import ROUGH, Case, Hypothesis, is_full


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    if system.nodes == 1 and system.can_detour and not is_full(facts, "pcie"):
        yield Case(
            "GPUs communicate through the processor instead of their switch", system.having(detours=True),
            "ACS", "PCIe access control services (ACS) route all traffic of a device through the root complex",
            "lspci -vvv | grep ACSCtl: SrcValid+ on a switch; cat /proc/cmdline (iommu=); nvidia-smi topo -m",
            "turn ACS off on the PCIe switches (setpci ECAP_ACS+0x6.w=0000), boot with iommu=pt", strength=ROUGH,
        )  # fmt: skip


HYPOTHESIS = Hypothesis("access_control", "GPUs of one PCIe switch communicate through the processor", _cases)
