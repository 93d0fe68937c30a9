"""Some network ports take no part."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.base.units import counted
from linkwright.formats.logs import Facts

from .kind import ROUGH, Case, Hypothesis, checks, unless

_LISTED = "NET/IB : Using"


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    if system.nodes < 2:
        return
    nics = [end.partition(" - ")[0].removeprefix("node 0 ") for end in system.ports_of_a_node]
    used, stated = _used(facts, min(len(nics), system.gpus_per_node))
    known = bool(stated) or (used or 0) >= len(nics)
    missing = {len(nics) - (used or 0)} if known else {1, 2, 4, len(nics) - 1}
    for count in sorted(count for count in missing if 0 < count < len(nics)):
        what = f"the node uses {len(nics) - count} of its {len(nics)} network ports"
        spread = [nics[at * len(nics) // count] for at in range(count)]
        for names in (nics[-count:], spread) if 1 < count < len(nics) - 1 else (nics[-count:],):
            yield Case(
                what, system.lacking(*names), "missing ports",
                "a port is down, has no address, NCCL_IB_HCA omits it, or the library sees no near path to it "
                "(NCCL_TOPO_FILE of a VM, PXN)",
                checks(
                    "ibstat; ibdev2netdev", unless(facts.setting("NCCL_IB_HCA"), "env | grep NCCL_IB_HCA"),
                    unless(facts.nics, "grep 'NET/IB : Using' in the log with NCCL_DEBUG=INFO"),
                ),
                "bring the port up, or list all ports in NCCL_IB_HCA; on a VM give NCCL_TOPO_FILE; try "
                "NCCL_PXN_DISABLE=1",
                stated, strength=ROUGH,
            )  # fmt: skip


def as_listed(system: System, facts: Facts) -> tuple[int, System] | None:
    """Return how many ports the log lists for every node, and the system with these; None where they are as usual.

    A node may have only these ports, so a short list alone is not a fault.
    """
    counts = {len(names) for names in facts.nics.values()}
    if len(counts) != 1:
        return None
    found = [case for case in _cases(system, facts) if case.stated.startswith(_LISTED)]
    return (counts.pop(), found[-1].system) if found else None


def _used(facts: Facts, expected: int) -> tuple[int | None, str]:
    """How many ports a node uses, None if nothing says; and what says so, if they are too few."""
    carrying = min(map(len, facts.ports_known), default=None)
    listed = min(map(len, facts.nics.values()), default=None)
    names = facts.setting("NCCL_IB_HCA")
    if listed is None and names and names[0] != "^" and all(name[-1:].isdigit() for name in _names(names)):
        listed = len(_names(names))
        said = f"NCCL_IB_HCA={names}"
    else:
        said = f"{_LISTED} {counted(listed or 0, 'port')}" + (f", NCCL_IB_HCA={names}" if names else "")
    if carrying is not None and carrying < min(expected, listed or expected):
        return carrying, f"connections go through {carrying} of {max(expected, listed or 0)} ports"
    return listed, said if listed is not None and listed < expected else ""


def _names(value: str) -> list[str]:
    return [name.split(":")[0] for name in value.lstrip("=").split(",")]


HYPOTHESIS = Hypothesis("missing_ports", "some network ports are unused", _cases)
