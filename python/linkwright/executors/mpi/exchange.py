"""Messages between pairs of ranks at the same time, and the rate that each one gets.

    barrier -> all receive and send -> each receiver notes when its message is complete -> median over repeats

The time of a message is that from the barrier until it has arrived, so messages should take much longer than a barrier.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .world import World

REPEATS = 3
NAP_S = 0.2  # how soon a pause ends
_TAG = 77


def rates(world: World, flows: Sequence[tuple[int, int]], size_bytes: int) -> list[float]:
    """Measure messages that all go at the same time; rank 0 calls this while the others serve.

    Args:
        world: the job.
        flows: (source, target) ranks, each pair once.
        size_bytes: of every message.
    Returns:
        Bytes per second of each message.
    """
    order = {"exchange": (list(flows), size_bytes)}
    world.comm.bcast(order)
    times: dict[tuple[int, int], float] = {}
    for part in world.comm.gather(take_part(world, *order["exchange"])):
        times |= part
    return [size_bytes / times[flow] if times.get(flow) else math.nan for flow in flows]


def pause(world: World, seconds: float, ended: Callable[[], bool]) -> None:
    """Let all ranks sleep; MPI would make those that wait spin. Rank 0 calls this while the others serve."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not ended():
        nap = min(left, NAP_S)
        world.comm.bcast({"sleep": nap})
        time.sleep(nap)


def take_part(world: World, flows: Sequence[tuple[int, int]], size_bytes: int) -> dict[tuple[int, int], float]:
    """Send and receive what is this rank's; returns seconds of what it received."""
    comm: Any = world.comm
    sources = [a for a, b in flows if b == world.rank]
    targets = [b for a, b in flows if a == world.rank]
    data = np.zeros(size_bytes, np.uint8)
    room = [np.empty(size_bytes, np.uint8) for _ in sources]
    times: dict[tuple[int, int], list[float]] = {(a, world.rank): [] for a in sources}
    from mpi4py import MPI

    for _ in range(REPEATS):
        comm.Barrier()
        begin = MPI.Wtime()
        waiting = {a: comm.Irecv(into, a, _TAG) for a, into in zip(sources, room, strict=True)}
        sends = [comm.Isend(data, b, _TAG) for b in targets]
        while waiting:
            for a in [a for a, request in waiting.items() if request.Test()]:
                times[a, world.rank].append(MPI.Wtime() - begin)
                del waiting[a]
        MPI.Request.Waitall(sends)
    return {flow: statistics.median(its) for flow, its in times.items()}
