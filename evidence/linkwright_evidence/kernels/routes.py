"""Copies of a token: how many ranks and nodes its experts are on.

    E[ranks] = p (1 - C(E - E/p, k) / C(E, k))        k of E experts at random, E/p on each of p ranks

With a limit of g node groups, a token draws its experts from g of the n nodes:

    E[nodes] = g (1 - C(E g/n - E/n, k) / C(E g/n, k)),    E[ranks] likewise among g p/n ranks
"""

from __future__ import annotations

import math


def expected(owners: float, experts: int, topk: int) -> float:
    """Expected number of owners (ranks or nodes) that hold at least one of `topk` of `experts` experts."""
    if owners <= 1:
        return 1.0
    each, missed = experts / owners, 1.0
    for taken in range(topk):
        missed *= max(0.0, experts - each - taken) / max(1.0, experts - taken)
    return owners * (1 - missed)


def copies(gpus: int, nodes: int, experts: int, topk: int, most_nodes: int) -> tuple[float, float]:
    """(ranks, nodes) that get a token, with at most `most_nodes` node groups for each token."""
    groups = min(nodes, most_nodes)
    pool = max(topk, math.ceil(experts * groups / nodes))
    return expected(gpus * groups / nodes, pool, topk), expected(groups, pool, topk)
