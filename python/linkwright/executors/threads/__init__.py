"""Ranks as threads of this process, one core each: the processors of this host, measured.

launch.py    the process of a launch
canary.py    a ping-pong that tells whether the machine moved
foreign.py   processor time that other processes used meanwhile
"""

from __future__ import annotations

from collections.abc import Iterator

from linkwright import _native
from linkwright.store.record import Outcome

from ..protocol import LAST_CACHE, Executor, Extent, Launch, Target


class Threads(Executor):
    """The schedules on threads with shared memory, and the native probes."""

    key = "threads"
    summary = "ranks are threads of this process, one core each, with shared memory"
    description = (
        "One-sided copies into the memory of the peer, announced by counters in cache lines of their own; messages of "
        "at most 48 bytes travel in the counter's line. Ranks are pinned to cores in topology order and spin; with "
        "more ranks than cores they park and the results are marked oversubscribed."
    )
    is_host = True
    shares_memory = True
    starts_together = False
    fit_model = "caches"
    obeys = frozenset({"issue", "skew", "placement"})

    def resolve(self, ranks: int | None, grid: tuple[int, ...] | None) -> Target:
        """All processors that this process may use; ranks beyond them share, and the rows say so."""
        from linkwright.store.environment import processor_name

        cpus = _native.cpus()
        used = ranks or len(cpus)
        names = [f"cpu {cpu}" for cpu in cpus] + [f"shared {i}" for i in range(len(cpus), used)]
        last_cache = max((cache["bytes"] for cache in _native.caches()), default=LAST_CACHE)
        extent = Extent("measured", used, grid, last_cache=last_cache)
        return Target(self.key, self, processor_name(), extent, tuple(names), about={"endpoints": names[:used]})

    def launch(self, target: Target, launch: Launch, *, isolated: bool = True) -> Iterator[Outcome]:
        """In a fresh process, or on fresh threads of this one."""
        from .. import process

        if isolated:
            return process.fresh("linkwright.executors.threads.launch", launch)
        from .launch import Host

        return process.here(Host, launch)
