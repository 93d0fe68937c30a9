"""Some of the links between GPUs are down, so that all run at a part of their rate."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts

from .kind import COMMON, FREE, RARE, Case, Hypothesis, is_full, measured_slow

PARTS = (0.75, 0.5, 0.25)


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    for links in ("nvlink", "xgmi", "pcie"):
        slow = measured_slow(facts, links)
        for part in (slow,) if slow else PARTS:
            if system.has(links) and not is_full(facts, links):
                yield Case(
                    f"links of class {links} run at {part:.0%} of their rate", system.slowed(links, part), "links down",
                    "links are down, trained at a lower rate or width, or shared with another job",
                    system.command("links"),
                    "reset the GPUs, reseat the card; compare with a healthy node",
                    f"pairs of GPUs were measured at {slow:.0%} of the links' rate" if slow else "",
                    common=COMMON if system.nodes == 1 else RARE, strength=FREE,  # on all nodes at once
                )  # fmt: skip


HYPOTHESIS = Hypothesis("link_down", "links between GPUs run below their rate", _cases)
