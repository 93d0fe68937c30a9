"""Another job has a share of the links of the network that all jobs use, or of those of one node."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts

from .kind import FREE, UNSTEADY, UNUSUAL, Case, Hypothesis

PARTS = (0.5, 0.25)
_SHARED = {"common": UNUSUAL, "strength": FREE, "noise": UNSTEADY}  # what another job leaves changes all the time
_CHECK = "run again at another time, or on nodes of one leaf switch; ibqueryerrors; perfquery -x (PortXmitWait)"
_CURE = "request nodes of one leaf (--switches=1), adaptive routing, or exclusive nodes"


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    if system.nodes < 2:
        return
    for part in PARTS:
        if system.has("trunk"):
            yield Case(
                f"another job leaves {part:.0%} of the bandwidth between switches", system.slowed("trunk", part),
                "neighbour", "other jobs cross the same spine switches", _CHECK, _CURE, **_SHARED,
            )  # fmt: skip
        if ports := system.ports_of_a_node:
            yield Case(
                f"another job leaves {part:.0%} of the bandwidth of one node", system.slowed_all(ports, part),
                "neighbour", "another job or storage traffic shares the NICs of a node", _CHECK, _CURE, **_SHARED,
            )  # fmt: skip


HYPOTHESIS = Hypothesis("neighbour", "another job uses part of the network", _cases)
