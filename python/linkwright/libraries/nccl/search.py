"""The ring search.

capacity[i][j] = links from i to j; every ring takes one unit of each of its edges

2.3.5   depth first from rank 0, candidates in index order; when a ring closes, the next one is sought in what is
        left; the first solution with most rings stays. For at most 4 ranks once more with doubled capacity, taken if it
        gives more than twice as many. All rings are then used twice.
        No ring closes though everyone has a link: one ring in index order.
        Somebody has no link at all: one ring over PCIe, nearest unused rank first.
1.3.4   one ring in index order.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwright import _native
from linkwright.base.errors import UsageError, check_known

VERSIONS = ("1.3.4", "2.3.5")
MOST_RINGS = 16
FEW_RANKS = 4
COPIES = 2

Matrix = Sequence[Sequence[int]]
Ring = list[int]


def rings(version: str, links: Matrix, distance: Matrix | None = None) -> list[Ring]:
    """The rings that NCCL `version` would use over ranks with these `links`; `distance` orders ranks without links."""
    check_known("version of NCCL", version, VERSIONS)
    ranks = len(links)
    if any(len(row) != ranks for row in links):
        raise UsageError(f"links of {ranks} ranks: every row needs {ranks} entries, one for each rank")
    plain = [list(range(ranks))]
    if version == "1.3.4" or ranks < 2:
        return plain
    if not all(any(row) for row in links):
        return [nearest_first(distance)] if distance else plain
    found = search(links)
    if ranks <= FEW_RANKS:
        doubled = search([[2 * n for n in row] for row in links])
        found = doubled if len(doubled) > 2 * len(found) else found
    return [ring for _ in range(COPIES) for ring in found] or plain


def closes(version: str, links: Matrix) -> bool:
    """False where `version` looks for rings of links, everyone has a link, and no ring closes."""
    wants = version != "1.3.4" and len(links) > 1 and all(any(row) for row in links)
    return not wants or bool(search(links))


def search(links: Matrix) -> list[Ring]:
    """The first solution with most rings."""
    left = [list(row) for row in links]
    ranks = len(left)
    # No more rings can start at rank 0, or enter any rank, than there are links to do so.
    most = min(MOST_RINGS, *(sum(row) for row in left), *(sum(column) for column in zip(*left, strict=True)))
    best: list[Ring] = []
    done: list[Ring] = []

    def extend(ring: Ring) -> bool:
        """Whether the search is over, because no solution can have more rings."""
        nonlocal best
        last = ring[-1]
        if len(ring) == ranks:
            if not left[last][0]:
                return False
            left[last][0] -= 1
            done.append(list(ring))
            if len(done) > len(best):
                best = list(done)
            over = len(best) == most or extend([0])
            done.pop()
            left[last][0] += 1
            return over
        for rank in range(ranks):
            if rank not in ring and left[last][rank]:
                left[last][rank] -= 1
                over = extend([*ring, rank])
                left[last][rank] += 1
                if over:
                    return True
        return False

    extend([0])
    return best


def nearest_first(distance: Matrix) -> Ring:
    """From rank 0 on always to the nearest rank not yet there, the smaller index among equals."""
    ring = [0]
    while len(ring) < len(distance):
        here = distance[ring[-1]]
        ring.append(min((r for r in range(len(distance)) if r not in ring), key=lambda r: (here[r], r)))
    return ring


def nvlinks(machine: _native.Machine) -> list[list[int]]:
    """1 where one link of the network that the machine's library uses joins two ranks, 0 elsewhere."""
    library = machine.library()
    if library is None or library["links"] is None:
        raise UsageError(f"{machine.name}: no library states which links rings use; add [library] with `links`")
    return [[int(hops == 1) for hops in row] for row in hop_matrix(machine, library["links"])]


def hop_matrix(machine: _native.Machine, network: int) -> list[list[int | None]]:
    """Links between every two ranks on a network; None where it does not lead there, 0 on the diagonal."""
    ranks = machine.ranks
    pairs = [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
    found = dict(zip(pairs, _native.quiet(machine, pairs, 0, network), strict=True))
    at = {pair: None if route is None else route[0] for pair, route in found.items()}
    return [[0 if a == b else at[a, b] for b in range(ranks)] for a in range(ranks)]
