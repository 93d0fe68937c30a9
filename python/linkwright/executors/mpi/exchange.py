"""Messages between pairs of ranks at the same time, and the rate that each one gets.

    clocks of each pair -> receive -> barrier of these ranks -> send -> receivers note when messages are complete

    time of a message = arrival, by the receiver's clock - start, by the sender's + offset of the two clocks
    offset            = receiver's clock half-way through a round trip - sender's clock; of the shortest of eight

The start is the sender's own: ranks leave a barrier at different times, on a busy host rank 0 by a tenth of a message
later than the others, which looked like a slow port of its host. A receiver that leaves it late still looks slow, as
nobody takes in what arrives. The error of an offset is at most half of that round trip, and a message that seems
faster than that is given that time. The median over repeats counts.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .world import World

REPEATS, REPEATS_SMALL = 3, 15
_SMALL = 64 << 10  # bytes: smaller messages take less time than whatever else the host does
ROUND_TRIPS = 8  # of which the shortest compares two clocks
NAP_S = 0.2  # how soon a pause ends
_TAG = 77
Flow = tuple[int, int]  # source, target


@dataclass
class FlowArrivals:
    """Messages of one flow at its receiver: seconds by its clock, and what to add for the sender's."""

    offset_s: float
    error_s: float
    ends: list[float] = field(default_factory=list)


def rates(world: World, flows: Sequence[Flow], size_bytes: int, apart_s: float = 0.0) -> list[float]:
    """Measure messages that all go at the same time; rank 0 calls this while the others serve.

    Args:
        world: the job.
        flows: (source, target) ranks, each pair once.
        size_bytes: of every message.
        apart_s: seconds from the start of each flow to that of the next one.

    Returns:
        Bytes per second of each message.
    """
    started, arrived = _exchanged(world, flows, size_bytes, apart_s)
    return [size_bytes / message_time(started[flow], arrived[flow]) for flow in flows]


def gaps(world: World, flows: Sequence[Flow]) -> list[float]:
    """Measure a burst of messages of one byte; rank 0 calls this while the others serve.

    Args:
        world: the job.
        flows: (source, target) ranks: all from one rank, or all to one.

    Returns:
        Seconds from each arrival to the next one, in the order of arrival, of all repeats.
    """
    _, arrived = _exchanged(world, flows, 1)
    out = len({source for source, _ in flows}) == 1
    return arrival_gaps([arrived[flow] for flow in flows], out)


def arrival_gaps(burst: Sequence[FlowArrivals], out: bool) -> list[float]:
    """Seconds between arrivals by the clock of the rank that all messages have in common: their source if `out`."""
    ends = [[end + (its.offset_s if out else 0.0) for end in its.ends] for its in burst]
    return [gap for repeat in zip(*ends, strict=True) for gap in np.diff(sorted(repeat)).tolist()]


def _exchanged(
    world: World, flows: Sequence[Flow], size_bytes: int, apart_s: float = 0.0
) -> tuple[dict[Flow, list[float]], dict[Flow, FlowArrivals]]:
    """Starts and arrivals of all flows."""
    order = {"exchange": (list(flows), size_bytes, apart_s)}
    world.order(order)
    started: dict[Flow, list[float]] = {}
    arrived: dict[Flow, FlowArrivals] = {}
    for starts, arrivals in world.comm.gather(take_part(world, *order["exchange"])) or ():
        started |= starts
        arrived |= arrivals
    return started, arrived


def message_time(starts: Sequence[float], its: FlowArrivals) -> float:
    """Seconds of a message: the median over its repeats, each from its start to its arrival."""
    return max(
        statistics.median(end + its.offset_s - begin for begin, end in zip(starts, its.ends, strict=True)),
        its.error_s,
    )


def pause(world: World, seconds: float, ended: Callable[[], bool]) -> None:
    """Let all ranks sleep; MPI would make those that wait spin. Rank 0 calls this while the others serve."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not ended():
        nap = min(left, NAP_S)
        world.order({"sleep": nap})
        time.sleep(nap)


def take_part(
    world: World, flows: Sequence[Flow], size_bytes: int, apart_s: float
) -> tuple[dict[Flow, list[float]], dict[Flow, FlowArrivals]]:
    """Send and receive what is this rank's; returns when it sent, and when it had received, in seconds of its clock."""
    own = [flow for flow in flows if world.rank in flow]
    if not own:
        return {}, {}
    comm: Any = world.comm
    # Ranks without a message go back to sleep: in a barrier they would spin, which others on their host would feel.
    members = sorted({rank for flow in flows for rank in flow})
    together: Any = comm.Create_group(comm.Get_group().Incl(members))
    sent = [(at * apart_s, flow) for at, flow in enumerate(flows) if flow[0] == world.rank]
    data = np.zeros(size_bytes, np.uint8)
    # All ranks go through the list in one order, so none waits for one that waits for it.
    known = {flow: found for flow in own if (found := _compared(comm, flow, world.rank))}
    room = {flow: np.empty(size_bytes, np.uint8) for flow in known}
    starts: dict[Flow, list[float]] = {flow: [] for _, flow in sent}
    for _ in range(REPEATS_SMALL if size_bytes < _SMALL else REPEATS):
        # Posted first, so that a rank that is still in the barrier takes in what arrives.
        waiting = {flow: comm.Irecv(room[flow], flow[0], _TAG) for flow in known}
        together.Barrier()
        begin, later, requests = time.monotonic(), list(sent), []
        while waiting or later:
            while later and time.monotonic() >= begin + later[0][0]:
                _, flow = later.pop(0)
                starts[flow].append(time.monotonic())
                requests.append(comm.Isend(data, flow[1], _TAG))
            for flow in [flow for flow, request in waiting.items() if request.Test()]:
                known[flow].ends.append(time.monotonic())
                del waiting[flow]
        for request in requests:
            request.Wait()
    together.Free()
    return starts, known


def _compared(comm: Any, flow: Flow, rank: int) -> FlowArrivals | None:
    """Compare the clocks of both ends of a message; returns, to its receiver, the arrivals to fill."""
    source, target = flow
    if rank == source:
        for _ in range(ROUND_TRIPS):
            comm.recv(source=target, tag=_TAG)
            comm.send(time.monotonic(), target, _TAG)
        return None
    trips = []
    for _ in range(ROUND_TRIPS):
        begin = time.monotonic()
        comm.send(None, source, _TAG)
        other = comm.recv(source=source, tag=_TAG)
        end = time.monotonic()
        trips.append((end - begin, other - (begin + end) / 2))
    trip, offset = min(trips)
    return FlowArrivals(offset, trip / 2)
