"""The network is used through sockets."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts

from .kind import ROUGH, Case, Hypothesis, checks, unless

# The port of the network `sockets`, and a slower one, as management networks have it (assumed).
PORTS = (("sockets", ""), ("sockets,rate=25", ", over a port of 25 Gb/s"))
_GREP = "grep 'NET/' in the log with NCCL_DEBUG=INFO: Socket instead of IB or OFI"


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    stated = _said(facts)
    if system.nodes < 2 or stated is None:
        return
    for fabric, over in PORTS:
        yield Case(
            f"sockets are used instead of RDMA{over}", system.having(fabric=fabric), "sockets",
            "no plugin for the network was found, or NCCL_IB_DISABLE=1 is set",
            checks("ls /dev/infiniband; fi_info -p efa", unless(stated, _GREP)),
            "unset NCCL_IB_DISABLE; install the plugin (aws-ofi-nccl, rdma-core) in the container", stated,
            strength=ROUGH,
        )  # fmt: skip


def _said(facts: Facts) -> str | None:
    """What proves it, `""` if nothing does, None if the log excludes it."""
    sockets, all_ = facts.connections("NET/Socket"), facts.connections("NET")
    if sockets:
        return f"{sockets} connections via NET/Socket"
    if facts.network == "Socket":
        return "the library takes the network Socket"
    for name, value in (("NCCL_IB_DISABLE", "1"), ("NCCL_NET", "Socket")):
        if facts.setting(name) == value:
            return f"{name}={value}"
    return None if facts.network or all_ or any(facts.nics.values()) else ""


HYPOTHESIS = Hypothesis("sockets", "the network is used through sockets", _cases)
