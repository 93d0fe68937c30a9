"""PCIe access control services: what GPUs of one switch send each other goes up to the next switch and back.

GPU 0 -> riser A -> GPU 1      becomes      GPU 0 -> riser A -> root complex -> riser A -> GPU 1
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Link = tuple[str, str, str]  # class, end, end


def routes(links: Sequence[Link]) -> list[tuple[str, str, list[str]]]:
    """(from, to, the nodes between) of every such pair of a machine with these links."""
    return [
        (a, b, [switch, above, switch])
        for switch, above, below in _switches(links)
        for a in below
        for b in below
        if a != b
    ]


def _switches(links: Sequence[Link]) -> Iterator[tuple[str, str, list[str]]]:
    """(switch, the one above it, its GPUs) of PCIe switches with at least two GPUs and a way up."""
    near: dict[str, list[str]] = {}
    for kind, a, b in links:
        if kind == "pcie":
            near.setdefault(a, []).append(b)
            near.setdefault(b, []).append(a)
    for switch, ends in near.items():
        below = [end for end in ends if "GPU" in end]
        above = next((end for end in ends if "GPU" not in end and "NIC" not in end), None)
        if "GPU" not in switch and above and len(below) > 1:
            yield switch, above, below
