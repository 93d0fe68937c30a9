"""The network carries a part of what it should."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.links import rates
from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts

from .kind import FREE, Case, Hypothesis, is_full, measured_slow

PARTS = (0.5, 0.25)
_LESS = 0.9  # of the rate of a port, from which on it is another kind of port


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    # A test of a port goes through the PCIe link of its NIC, too.
    if system.nodes < 2 or is_full(facts, "port"):
        return
    known, stated = _stated(system, facts)
    for part in (known,) if known else PARTS:
        for links in ("port",) if known else ("port", "nic"):
            if system.has(links):
                what = "ports carry" if links == "port" else "NICs get, by a shared or narrow PCIe uplink,"
                yield Case(
                    f"{what} {part:.0%} of their rate", system.slowed(links, part), "slow network",
                    "cables at a lower rate, congestion or its control (ECE), tapered switches, a NIC at half its PCIe "
                    "width, or two NICs below one uplink",
                    "ib_write_bw between the nodes; ibstat | grep Rate; lspci -vv | grep LnkSta",
                    "replace the cable, check adaptive routing and congestion counters; on RoCE "
                    "try NCCL_IB_ECE_ENABLE=0",
                    stated, strength=FREE,
                )  # fmt: skip


def _stated(system: System, facts: Facts) -> tuple[float | None, str]:
    """The share of their rate that the log says ports have, and what says so."""
    if slow := measured_slow(facts, "port"):
        return slow, f"ports were measured at {slow:.0%} of their rate"
    found, line = facts.topology.port, rates(system.described).get("fabric.links.port.bandwidth")
    if found and line and found < _LESS * line:
        return found / line, f"the library sees ports of {found:g} GB/s, where this network has {line:g}"
    passages, what = facts.topology.crossings(facts.hosts_of)
    usual = system.nodes - (what == "tree")
    if passages > usual:
        return usual / passages, f"a {what} passes from node to node {passages} times, and {usual} suffice"
    return None, ""


HYPOTHESIS = Hypothesis("network_slow", "the network runs below its rate", _cases)
