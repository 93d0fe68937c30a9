"""One of the networks of a chip carries everything."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts

from .kind import Case, Hypothesis


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    names = system.described.networks
    for name in names if len(names) > 1 and not system.transports("") else ():
        yield Case(
            f"{name} carries nothing", system.lacking(name), "one network",
            "the kernels use one network for both directions, or the other one is reserved",
            "grep -rn noc_index in the kernels: which processors use NOC_0, which NOC_1",
            "let the processor that writes backwards use the other network",
        )  # fmt: skip


HYPOTHESIS = Hypothesis("one_network", "one of a chip's networks carries all traffic", _cases)
