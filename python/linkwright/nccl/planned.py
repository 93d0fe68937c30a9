"""A whole collective as NCCL does it: rings from links, slices, and the low-latency mode where it has one."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING

from linkwright import _native, schedules
from linkwright.nccl.protocol import low_latency, plan
from linkwright.nccl.search import Ring, hop_matrix, rings

if TYPE_CHECKING:
    from linkwright.experiment import Experiment

# Those whose ring algorithm exists in the registry.
COLLECTIVES = ("allreduce", "broadcast", "reduce", "allgather", "reduce_scatter")
NORMAL, LOW_LATENCY = MODES = ("normal", "low_latency")
MACHINES = 16  # whose rings are remembered


def planned(
    machine: _native.Machine, links: int, version: str, experiment: Experiment
) -> tuple[_native.Schedule, str, str, int]:
    """(schedule, mode, issue policy, number of rings) of a collective; rings take one link of network `links` a hop."""
    collective, ranks, size_bytes = str(experiment.collective), experiment.ranks, int(experiment.size_bytes or 0)
    found = _rings(machine, links, version, experiment.placement or tuple(range(ranks)))
    fast = version == "2.3.5" and collective == "allreduce"
    few = low_latency(size_bytes, ranks, len(found)) if fast else None
    found = found[:few] if few else found
    cut = plan(version, collective, size_bytes, ranks, len(found))
    schedule = schedules.of(replace(experiment, algorithm="ring"), found).pipeline(cut.slices)
    return schedule, LOW_LATENCY if few else NORMAL, cut.issue, len(found)


@functools.lru_cache(MACHINES)
def _rings(machine: _native.Machine, links: int, version: str, places: tuple[int, ...]) -> list[Ring]:
    hops = hop_matrix(machine, links)
    return rings(version, [[int(hops[a][b] == 1) for b in places] for a in places])
