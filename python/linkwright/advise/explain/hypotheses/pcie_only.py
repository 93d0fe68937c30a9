"""GPUs communicate over PCIe instead of their own links."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System

from .kind import Case, Hypothesis


def _cases(system: System) -> Iterator[Case]:
    for links in ("nvlink", "xgmi"):
        if system.has(links):
            yield Case(
                "GPUs communicate over PCIe instead of their links", system.lacking(links), "no links",
                "peer access or the fabric manager is off, or NCCL_P2P_DISABLE=1 is set",
                f"{system.command('links')}; env | grep NCCL_P2P; grep ' via ' in the log",
                "unset NCCL_P2P_DISABLE; systemctl restart nvidia-fabricmanager; check ACS with lspci -vvv",
            )  # fmt: skip


HYPOTHESIS = Hypothesis("pcie_only", "GPUs communicate over PCIe instead of their own links", _cases)
