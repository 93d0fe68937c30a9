"""A whole collective as NCCL does it: rings from links, slices, and its mode.

normal        rings of links, or the one ring of 1.3.4
low_latency   small allreduces of 2.3.5
no_ring       2.3.5, where every rank has a link but no ring closes: one ring in index order
"""

from __future__ import annotations

import functools
from dataclasses import replace

from linkwright import _native
from linkwright.ask import schedules
from linkwright.ask.question import Collective
from linkwright.libraries.nccl.protocol import low_latency, plan
from linkwright.libraries.nccl.search import Ring, closes, hop_matrix, rings

# Those whose ring algorithm exists in the registry.
COLLECTIVES = ("allreduce", "broadcast", "reduce", "allgather", "reduce_scatter")
NORMAL, LOW_LATENCY, NO_RING = MODES = ("normal", "low_latency", "no_ring")
MACHINES = 16  # whose rings are remembered


def planned(
    machine: _native.Machine, links: int, version: str, question: Collective
) -> tuple[_native.Schedule, str, str, int]:
    """(schedule, mode, issue policy, number of rings) of a collective; rings take one link of network `links` a hop."""
    collective, ranks, size_bytes = question.collective, question.ranks, int(question.size_bytes or 0)
    found, closes = _rings(machine, links, version, question.placement or tuple(range(ranks)))
    fast = version == "2.3.5" and collective == "allreduce" and closes
    few = low_latency(size_bytes, ranks, len(found)) if fast else None
    found = found[:few] if few else found
    cut = plan(version, collective, size_bytes, ranks, len(found))
    schedule = schedules.of(replace(question, algorithm="ring"), found).pipeline(cut.slices)
    mode = LOW_LATENCY if few else NORMAL if closes else NO_RING
    return schedule, mode, cut.issue, len(found)


@functools.lru_cache(MACHINES)
def _rings(machine: _native.Machine, links: int, version: str, places: tuple[int, ...]) -> tuple[list[Ring], bool]:
    """The rings, and whether they are what was looked for: False where every rank has a link and no ring closes."""
    hops = hop_matrix(machine, links)
    joined = [[int(hops[a][b] == 1) for b in places] for a in places]
    return rings(version, joined), closes(version, joined)
