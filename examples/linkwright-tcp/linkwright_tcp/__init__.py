"""Ranks as processes of this host that talk over TCP on loopback: an executor for linkwright.

__init__.py   what linkwright sees
launch.py     one launch: starts the ranks, checks the data, takes the samples
rank.py       one rank: its operations, and what others want of it meanwhile
"""

import os
import platform

from linkwright.executor_api import Executor, Extent, ShapeError, Target, fresh

MOST_RANKS = 64  # each pair has a connection of its own


class Tcp(Executor):
    """The processors of this host, one process for each rank."""

    key = "tcp"
    summary = "ranks are processes of this host that talk over TCP on loopback"
    description = (
        "Every rank is a process on a processor of its own, and every pair of ranks has a TCP connection. Data are "
        "sent as soon as an operation may begin, and put into place when they arrive. With more ranks than processors, "
        "ranks share, and the results are marked oversubscribed."
    )
    is_host = True  # its numbers are about the processors of this host
    starts_together = False  # ranks leave a barrier one by one
    obeys = frozenset({"placement"})

    def resolve(self, ranks, grid):
        """All processors that this process may use; ranks beyond them share."""
        cpus = processors()
        used = ranks or len(cpus)
        if used > MOST_RANKS:
            raise ShapeError(f"--ranks {used}: tcp has at most {MOST_RANKS}, because each pair has its own connection")
        names = tuple(f"process {number} on cpu {cpus[number % len(cpus)]}" for number in range(used))
        return Target(self.key, self, f"TCP on {platform.node()}", Extent("measured", used, grid), names)

    def launch(self, target, launch, *, isolated=True):
        """Always in a fresh process, which starts those of the ranks."""
        return fresh("linkwright_tcp.launch", launch)


def processors():
    """The processors that this process may use."""
    return sorted(os.sched_getaffinity(0))
