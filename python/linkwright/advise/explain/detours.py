"""PCIe access control services: what GPUs of one switch send each other goes up to the next switch and back.

GPU 0 -> riser A -> GPU 1      becomes      GPU 0 -> riser A -> root complex -> riser A -> GPU 1
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkwright.base.native_types import NetworkColumns


def routes(network: NetworkColumns) -> list[tuple[str, str, list[str]]]:
    """(from, to, the nodes between) of every such pair of a machine with this network."""
    names = network["nodes"]["name"]
    return [
        (names[a], names[b], [names[on], names[above], names[on]])
        for on, above, below in _switches(network)
        for a in below
        for b in below
        if a != b
    ]


def _switches(network: NetworkColumns) -> Iterator[tuple[int, int, list[int]]]:
    """(switch, the one above it, its GPUs) of PCIe switches with at least two GPUs and a way up.

    What leads nowhere else in its group is a NIC and no way up.
    """
    kinds, groups, edges = network["nodes"]["kind"], network["nodes"]["group"], network["edges"]
    pcie, near = defaultdict[int, list[int]](list), defaultdict[int, set[int]](set)
    for kind, a, b in zip(edges["class"], edges["a"], edges["b"], strict=True):
        for here, there in ((a, b), (b, a)):
            if kind == "pcie":
                pcie[here].append(there)
            if groups[here] == groups[there]:
                near[here].add(there)
    for switch, ends in pcie.items():
        below = [end for end in ends if kinds[end] == "rank"]
        above = next((end for end in ends if kinds[end] == "switch" and len(near[end]) > 1), None)
        if kinds[switch] == "switch" and above is not None and len(below) > 1:
            yield switch, above, below
