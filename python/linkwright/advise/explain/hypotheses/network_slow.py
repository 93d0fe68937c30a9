"""The network carries a part of what it should."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System

from .kind import Case, Hypothesis


def _cases(system: System) -> Iterator[Case]:
    if system.nodes < 2:
        return
    for part in (0.5, 0.25):
        for links in ("port", "nic"):
            if system.has(links):
                yield Case(
                    f"ports carry {part:.0%} of their rate", system.slowed(links, part), "slow network",
                    "cables at a lower rate, congestion, tapered switches, or a NIC at half its PCIe width",
                    "ib_write_bw between the nodes; ibstat | grep Rate; lspci -vv | grep LnkSta",
                    "replace the cable, check adaptive routing and congestion counters",
                )  # fmt: skip


HYPOTHESIS = Hypothesis("network_slow", "the network runs below its rate", _cases)
