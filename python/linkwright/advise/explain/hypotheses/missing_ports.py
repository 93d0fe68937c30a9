"""Some network ports take no part."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System

from .kind import Case, Hypothesis


def _cases(system: System) -> Iterator[Case]:
    if system.nodes < 2:
        return
    nics = [end.partition(" - ")[0].removeprefix("node 0 ") for end in system.ports_of_a_node]
    for missing in (number for number in (1, 2, 4) if number < len(nics)):
        names = nics[-missing:]
        yield Case(
            f"{missing} of the network ports of a node are unused", system.lacking(*names), "missing ports",
            "a port is down, has no address, or NCCL_IB_HCA omits it",
            "ibstat; ibdev2netdev; env | grep NCCL_IB_HCA; grep 'NET/IB : Using' in the log",
            "bring the port up, or list all ports in NCCL_IB_HCA",
        )  # fmt: skip


HYPOTHESIS = Hypothesis("missing_ports", "some network ports are unused", _cases)
