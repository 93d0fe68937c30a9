"""The network carries a part of what it should."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts

from .kind import FREE, Case, Hypothesis


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    if system.nodes < 2:
        return
    for part in (0.5, 0.25):
        for links in ("port", "nic"):
            if system.has(links):
                what = "ports carry" if links == "port" else "NICs get, by a shared or narrow PCIe uplink,"
                yield Case(
                    f"{what} {part:.0%} of their rate", system.slowed(links, part), "slow network",
                    "cables at a lower rate, congestion or its control (ECE), tapered switches, a NIC at half its PCIe "
                    "width, or two NICs below one uplink",
                    "ib_write_bw between the nodes; ibstat | grep Rate; lspci -vv | grep LnkSta",
                    "replace the cable, check adaptive routing and congestion counters; on RoCE "
                    "try NCCL_IB_ECE_ENABLE=0",
                    strength=FREE,
                )  # fmt: skip


HYPOTHESIS = Hypothesis("network_slow", "the network runs below its rate", _cases)
