"""Trees of broadcasts whose ranks send to all children at once, as Open MPI does: the sends share the port.

    one by one, largest subtree first    8 sends of the root, and all 256 ranks have the vector
    all at once                          8 sends of the root end together, then 7 of one of its children, ...: 36

Here they are sent one by one, and the largest subtree comes last, which takes as long for it; what a send takes to
start is less by `overlap`, because starts overlap.

Source: Open MPI 4.1, `ompi/mca/coll/base/coll_base_bcast.c` (a send without waiting to each child, then a wait for all)
and `coll_base_topo.c` (trees of any radix).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from linkwright import _native
from linkwright.ask import writing

Children = dict[int, list[int]]
RADIX = 4  # of the tree that Open MPI calls knomial, unless asked for another


def knomial(ranks: int) -> Children:
    """Whom each rank sends to: at every power of the radix, to as many ranks as the radix less one."""
    found: Children = {}
    for rank in range(ranks):
        stride = 1
        while rank % (stride * RADIX) == 0 and stride < ranks:
            targets = range(rank + stride, min(ranks, rank + stride * RADIX), stride)
            found.setdefault(rank, []).extend(targets)
            stride *= RADIX
    return found


def of(name: str) -> Callable[[int], Children]:
    """The tree of a broadcast in the registry."""

    def children(ranks: int) -> Children:
        sent = _native.Schedule.build(f"broadcast/{name}", ranks, 1, element_bytes=4).operations()
        found: Children = {}
        for source, target in zip(sent["from"], sent["to"], strict=True):
            found.setdefault(int(source), []).append(int(target))
        return found

    return children


TREES: dict[str, Callable[[int], Children]] = {"knomial": knomial, "binomial": of("binomial"), "bine": of("bine")}


def _size(rank: int, children: Children) -> int:
    return 1 + sum(_size(child, children) for child in children.get(rank, ()))


@functools.cache
def _ordered(name: str, ranks: int) -> Children:
    children = TREES[name](ranks)
    return {rank: sorted(its, key=lambda one: _size(one, children)) for rank, its in children.items()}


@functools.cache
def overlap(name: str, ranks: int) -> float:
    """Generations of the tree over the sends that its last rank waits for."""
    children, rank, generations, sends = _ordered(name, ranks), 0, 0, 0
    while rank in children:
        generations, sends, rank = generations + 1, sends + len(children[rank]), children[rank][-1]
    return generations / sends


def at_once(name: str, ranks: int, elements: int) -> _native.Schedule:
    """The broadcast of 4-byte elements down the tree called so, a generation in each step."""
    children = _ordered(name, ranks)
    builder = writing.Builder("broadcast", ranks, 4 * elements)
    builder.buffer("output")
    parents = [0]
    while parents := [rank for rank in parents if rank in children]:
        builder.step()
        for rank in parents:
            for child in children[rank]:
                builder.put(rank, child, "output", 0)
        parents = [child for rank in parents for child in children[rank]]
    return builder.finish()
