"""The machine as its kernel describes it (`topology` of environment.json): caches, and what two processors share.

    same core > same cache (the nearest that both have) > same package > other package

What the kernel omits stays unknown: two processors without a package have no relation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from linkwright.base import units

SAME_CORE, SAME_PACKAGE, OTHER_PACKAGE = "same core", "same package", "other package"
_HOLDS_DATA = ("Data", "Unified")


@dataclass(frozen=True)
class Cache:
    """One level of data caches, as claimed."""

    name: str  # L1d, L2, L3
    size_bytes: int
    count: int
    shared_by: int  # processors of one cache, at most


class Topology:
    """The processors according to environment.json."""

    def __init__(self, environment: Mapping[str, Any]):
        self.rows = {int(row["cpu"]): row for row in environment.get("topology") or ()}

    @cached_property
    def packages(self) -> int:
        """How many packages are known."""
        return len({row["package"] for row in self.rows.values() if row.get("package") is not None})

    @cached_property
    def cores(self) -> int:
        """How many cores are known: processors that are siblings are one."""
        named = {(row.get("package"), row.get("core")) for row in self.rows.values() if row.get("core") is not None}
        return len(named)

    @cached_property
    def caches(self) -> list[Cache]:
        """The levels of data caches, nearest first; if processors differ, the largest cache of a level."""
        found: dict[str, dict[frozenset[int], int]] = {}
        for row in self.rows.values():
            for name, size_bytes, shared in _data_caches(row):
                found.setdefault(name, {})[shared] = size_bytes
        return [
            Cache(name, max(sizes.values()), len(sizes), max(map(len, sizes))) for name, sizes in sorted(found.items())
        ]

    def instances(self, name: str) -> list[frozenset[int]]:
        """The processors of every cache of a level (`L2`)."""
        shared = {cpus for row in self.rows.values() for level, _, cpus in _data_caches(row) if level == name}
        return sorted(shared, key=min)

    def sharers(self, cpu: int) -> frozenset[int]:
        """The processors that share the last cache of a processor; empty if it has none."""
        caches = sorted(_data_caches(self.rows[cpu]), key=lambda cache: cache[0])
        return caches[-1][2] if caches else frozenset()

    def relation(self, a: str, b: str) -> str | None:
        """What the processors behind two endpoint names (`cpu 3`) share; None if that is unknown."""
        first, second = (self.rows.get(number) if number is not None else None for number in map(_cpu, (a, b)))
        if first is None or second is None:
            return None
        if int(second["cpu"]) in cpu_list(first.get("siblings")):
            return SAME_CORE
        for name, _, shared in sorted(_data_caches(first), key=lambda cache: cache[0]):
            if int(second["cpu"]) in shared:
                return f"same cache ({name})"
        packages = {first.get("package"), second.get("package")}
        if None in packages:
            return None
        return SAME_PACKAGE if len(packages) == 1 else OTHER_PACKAGE


def cpu_list(text: str | None) -> frozenset[int]:
    """`0-2,8` as the kernel writes lists of processors."""
    ends = [part.split("-") for part in (text or "").split(",") if part.strip()]
    return frozenset(cpu for part in ends for cpu in range(int(part[0]), int(part[-1]) + 1))


def _data_caches(row: Mapping[str, Any]) -> list[tuple[str, int, frozenset[int]]]:
    """(name, bytes, processors) of the caches of a processor that hold data and have a known size."""
    return [
        (
            f"L{cache['level']}" + ("d" if cache["type"] == "Data" else ""),
            units.parse_size(cache["size"]),
            cpu_list(cache.get("shared_cpu_list")) or frozenset([int(row["cpu"])]),
        )
        for cache in row.get("caches") or ()
        if cache.get("type") in _HOLDS_DATA and cache.get("size") and cache.get("level")
    ]


def _cpu(endpoint: str) -> int | None:
    found = re.fullmatch(r"cpu (\d+)", endpoint)
    return int(found[1]) if found else None
