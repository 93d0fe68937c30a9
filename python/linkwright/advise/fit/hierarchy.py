"""The levels of a host or a cluster, from the processors that a run recorded: which ranks are near each other.

    package > cache > processor          a host: ranks are its cores in topology order
    host > processor                     ranks of an MPI job on several hosts

A level is left out if it has only one group or if its groups differ; all ranks of the enclosing group are then equally
near. In topology order, the second hardware threads of all cores follow the first ones. They form no level, so the file
of a host describes one rank per core.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linkwright.store.topology import Topology, cpu_list

ANY_TWO = "machine"


@dataclass(frozen=True)
class CacheLevel:
    """One level of data caches."""

    name: str
    size_bytes: int
    shared: bool  # by ranks


@dataclass(frozen=True)
class Hierarchy:
    """Levels from outermost to innermost, each with its count per group of the level outside."""

    levels: tuple[tuple[str, int], ...] = ()
    ranks: int = 0  # with a dedicated processor
    caches: tuple[CacheLevel, ...] = ()  # nearest first

    @property
    def distances(self) -> list[str]:
        """The innermost levels that two ranks can share, nearest first; the last is the machine itself."""
        return [name for name, _ in reversed(self.levels)] + [ANY_TWO]

    def tables(self, run: str, open_size: bool) -> list[dict[str, Any]]:
        """The `[[level]]` tables of a machine file; with an open size, the outermost level may have any count."""
        inside = math.prod(count for _, count in self.levels)
        (name, count), *inner = [*self.levels, ("processor", max(1, self.ranks // inside))]
        more = "; more are like them" if open_size else ""
        outer = {"name": name, "count": "any" if open_size else count, "source": f"run {run} had {count}{more}"}
        return [outer, *({"name": name, "count": n, "source": f"run {run} had {n}"} for name, n in inner)]

    def shared(self, a: int, b: int) -> str:
        """The innermost level that ranks `a` and `b` share."""
        size, found = self.ranks, ANY_TWO
        for name, count in self.levels:
            size = max(1, size // count)
            if a // size != b // size:
                return found
            found = name
        return found


# For a machine whose structure is unknown.
FLAT = Hierarchy()


def of_host(environment: Mapping[str, Any]) -> Hierarchy:
    """The host that `environment.json` describes; flat if it describes none."""
    topology = Topology(environment)
    affinity = set(environment.get("affinity") or topology.rows)
    rows = [topology.rows[cpu] for cpu in sorted(affinity & set(topology.rows))]
    first = [
        row for row in rows if int(row["cpu"]) == min(cpu_list(row.get("siblings")) & affinity, default=row["cpu"])
    ]
    shared_by = {cache.name: cache.shared_by for cache in topology.caches}
    threads = max((len(cpu_list(row.get("siblings"))) for row in rows), default=1)
    caches = tuple(
        CacheLevel(cache.name, cache.size_bytes, shared_by[cache.name] > threads) for cache in topology.caches
    )
    levels = _regular(
        [("package", [row.get("package") for row in first]), ("cache", [_last_cache(row) for row in first])]
    )
    return Hierarchy(levels, len(first), caches)


def of_hosts(hosts: Sequence[str]) -> Hierarchy:
    """The cluster whose rank r ran on `hosts[r]`; flat unless the ranks of each host are consecutive."""
    return Hierarchy(_regular([("host", list(hosts))]), len(hosts))


def _last_cache(row: Mapping[str, Any]) -> str | None:
    caches = [cache for cache in row.get("caches") or () if cache.get("type") in ("Data", "Unified")]
    last = max(caches, key=lambda cache: int(cache.get("level") or 0), default={})
    return last.get("shared_cpu_list")


def _regular(groups: Sequence[tuple[str, list]]) -> tuple[tuple[str, int], ...]:
    """The levels whose groups are equal and contiguous, from the group of each rank."""
    levels, inside = [], 1
    for name, of_rank in groups:
        found = list(dict.fromkeys(of_rank))
        size, rest = divmod(len(of_rank), max(1, len(found)))
        alike = rest == 0 and all(of_rank[i] == found[i // size] for i in range(len(of_rank))) and size > 1
        if None in found or not alike or len(found) % inside or len(found) // inside < 2:
            continue
        levels.append((name, len(found) // inside))
        inside = len(found)
    return tuple(levels)
