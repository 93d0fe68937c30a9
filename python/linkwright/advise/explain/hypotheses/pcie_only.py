"""GPUs communicate over PCIe instead of their own links."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts
from linkwright.formats.logs.topology import OWN_LINKS

from .kind import COMMON, ROUGH, UNUSUAL, Case, Hypothesis, checks, is_full, unless
from .no_peer import host_memory


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    search = facts.topology.searches.get("ring")
    if search and search.way in OWN_LINKS:
        return
    said = f"rings go over {search.way} inside a node" if search and search.way != "C2C" else ""
    stated = host_memory(facts)
    over_pcie = said if system.nodes > 1 or not stated else ""
    file = facts.setting("NCCL_TOPO_FILE")
    # NVLS goes over the links; `no_peer` simulates what the log of one node says; of several nodes, whose network hides
    # it, only the log can tell.
    if facts.multicast or (not over_pcie and (system.nodes == 1) is bool(stated)):
        return
    for links in ("nvlink", "xgmi"):
        if system.has(links) and not is_full(facts, links):
            yield Case(
                "GPUs communicate over PCIe instead of their links", system.lacking(links),
                "topology file" if file else "no links",
                f"NCCL_TOPO_FILE={file} hides the links" if file
                else "peer access or the fabric manager is off, or NCCL_P2P_DISABLE=1 is set",
                checks(
                    system.command("links"), unless(facts.setting("NCCL_P2P_DISABLE"), "env | grep NCCL_P2P"),
                    unless(facts.transports, "grep ' via ' in the log with NCCL_DEBUG=INFO"),
                    "run once without NCCL_TOPO_FILE" if file else "",
                ),
                "unset NCCL_P2P_DISABLE; systemctl restart nvidia-fabricmanager; check ACS with lspci -vvv"
                + ("; write the file for this version of the library" if file else ""),
                stated or over_pcie, common=COMMON if stated or over_pcie or file else UNUSUAL, strength=ROUGH,
            )  # fmt: skip


HYPOTHESIS = Hypothesis("pcie_only", "GPUs communicate over PCIe instead of their own links", _cases)
