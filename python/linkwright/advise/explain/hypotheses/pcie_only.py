"""GPUs communicate over PCIe instead of their own links."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts

from .kind import COMMON, RARE, WITHIN, Case, Hypothesis, checks, unless
from .no_peer import host_memory

NEAR = 1.1  # a smooth curve at a fifth of the rate fits whatever has a PCIe link in it


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    stated = host_memory(facts)
    # NVLS goes over the links; `no_peer` simulates what the log of one node says; of several nodes, whose network hides
    # it, only the log can tell.
    if facts.multicast or (system.nodes == 1) is bool(stated):
        return
    for links in ("nvlink", "xgmi"):
        if system.has(links):
            yield Case(
                "GPUs communicate over PCIe instead of their links", system.lacking(links), "no links",
                "peer access or the fabric manager is off, or NCCL_P2P_DISABLE=1 is set",
                checks(
                    system.command("links"), unless(facts.setting("NCCL_P2P_DISABLE"), "env | grep NCCL_P2P"),
                    unless(facts.transports, "grep ' via ' in the log with NCCL_DEBUG=INFO"),
                ),
                "unset NCCL_P2P_DISABLE; systemctl restart nvidia-fabricmanager; check ACS with lspci -vvv", stated,
                within=WITHIN if stated else NEAR, odds=COMMON if stated else RARE, shape=not stated,
            )  # fmt: skip


HYPOTHESIS = Hypothesis("pcie_only", "GPUs communicate over PCIe instead of their own links", _cases)
