"""A machine file for one host whose ranks are threads: coherent caches, each rank moves its data itself.

The model is the fabric `coherent` with a path that has a `memory` (docs/fabrics/coherent.md). What is known about the
processors is taken as given: sizes of caches, what ranks share, and that messages of at most 48 bytes travel in the
line of their flag. `search` fits the rest together to all points that are seen, because no experiment shows one of
these numbers alone:

    start, latency, receive   short ping-pongs and broadcasts; how long until a flag is seen, and who handles it
    gap                       short messages in a row
    crossing                  ranks that send to each other at once (alltoall/bruck, barrier/dissemination)
    cache[k].rate             copies in a row by size: where source and destination lie in the rank's own caches
    other.*                   ping-pongs and reductions by size: lines that the other rank has just written or read
    copy, combine             local operations of the plain algorithms

Ranks that share different levels of the machine (a cache, a package) have their own `latency`, `crossing` and
`other`. Other programs use a shared cache too, so its size overstates how far it reaches; the model uses the share
of it that explains the times best.

What it leaves out: docs/fit.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linkwright.machines import writer

from .hierarchy import CacheLevel, Hierarchy
from .machine_file import OWN_MOVES, MachineFile, number
from .points import Point
from .protocol import Protocol
from .regimes import Fit
from .search import check_enough, constants, cost, protocol_times_ns, search, sweeps

# A put of this many bytes or fewer travels in the cache line of its flag: `MAIL_BYTES` of `threads/flags.rs`.
EAGER_BYTES = 48
# What of a shared cache one program has for itself.
SHARES = (1.0, 0.5, 0.25)
# Where the search begins, as shares of half a short ping-pong; rates begin at what sweeps by size show at once.
_BEGIN = {"start": 0.1, "receive": 0.1, "gap": 0.3, "copy_start": 0.1, "combine_start": 0.1}
_BEGIN_AT = {"latency": 0.7, "crossing": 0.3, "other_start": 0.3}
_UNITS = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "B": 1}
_FARTHER = 1.5  # one cache beyond those that the sweeps reach, against the one before


@dataclass(frozen=True)
class Shared(MachineFile):
    """The numbers of a host, each with its interval; times in ns, rates as ns per byte."""

    name: str
    of: str
    run: str
    ranks: int
    hierarchy: Hierarchy
    share: float  # of a shared cache
    numbers: Mapping[str, Fit]
    kind: str = "coherent"

    def document(self, open_size: bool) -> dict[str, Any]:
        """The tables of the file, for any number of ranks or for those that have a processor."""
        *nearer, any_two = self.hierarchy.distances

        def apart(level: str) -> dict[str, Any]:
            return {key: self._number(f"{key}@{level}") for key in ("latency", "crossing")}

        levels = [{"name": level, **apart(level)} for level in nearer]
        fabric = {"kind": "coherent", **apart(any_two), "gap": self._number("gap")}
        fabric |= {"level": levels} if levels else {}
        starts = {"start": "start", "notice_start": "start"}
        starts |= {key: key for key in ("receive", "copy_start", "combine_start", "combine_rate")}
        return {
            "machine": self.about(
                f"{self.of}, fitted to what was measured of it",
                "Coherent caches of one host; ranks are threads and move their data themselves.",
            ),
            "level": self.hierarchy.tables(self.run, open_size),
            "endpoints": {
                "count": "any" if open_size else self.hierarchy.ranks,
                "source": f"the processors of run {self.run}, in topology order",
                "memory": [{"name": "memory", "count": 1, "source": "all ranks are threads of one process"}],
            },
            "fabric": fabric,
            "path": {
                "message": {
                    "summary": "loads and stores of the processor of the rank that initiates", **OWN_MOVES,
                    **{key: self._number(of) for key, of in starts.items()},
                    "memory": self._memory(),
                }
            },
        }  # fmt: skip

    def parameters(self) -> list[tuple[str, Fit, str]]:
        """(key, fit, unit) of every fitted number."""
        return [(key, fit, "ns/B" if _is_rate(key) else "ns") for key, fit in self.numbers.items()]

    @property
    def release_ns(self) -> float:
        """How much later than the last rank to arrive the others leave a barrier."""
        return self.numbers[f"latency@{self.hierarchy.distances[-1]}"].value

    def _memory(self) -> dict[str, Any]:
        """The caches, nearest first, and lines that the other rank has touched."""
        caches: list[dict[str, Any]] = []
        for k, cache in enumerate(self.hierarchy.caches):
            shared = {"shared": True} if cache.shared else {}
            caches.append({"size": self._size(cache), "rate": self._number(f"cache{k}"), **shared})
        caches.append({"rate": self._number(f"cache{len(caches)}")})
        others: list[dict[str, Any]] = []
        for level in self.hierarchy.distances:
            found = {} if level == self.hierarchy.distances[-1] else {"level": level}
            rates = {f"{way}_rate": self._number(f"other_{way}@{level}") for way in ("read", "write", "lost")}
            others.append({**found, "start": self._number(f"other_start@{level}"), **rates})
        return {
            "prefetch": writer.number(192, "B", "assumed", "three lines make a stream"),
            "eager": writer.number(EAGER_BYTES, "B", "documented", "such messages travel in their flag's line"),
            "cache": caches,
            "other": others,
        }  # fmt: skip

    def _size(self, cache: CacheLevel) -> dict[str, Any]:
        share = self.share if cache.shared else 1.0
        status, source = "documented", f"{cache.name}, as the kernel says it"
        if share < 1:
            status, source = "fitted", f"{share:.0%} of {cache.name}, which other programs use too; run {self.run}"
        size = int(cache.size_bytes * share)
        unit, factor = next((unit, factor) for unit, factor in _UNITS.items() if size % factor == 0)
        return writer.number(size // factor, unit, status, source)

    def _number(self, of: str) -> dict[str, Any]:
        return number(self.numbers[of], _EVIDENCE[of.split("@")[0].rstrip("0123456789")], self.run, rate=_is_rate(of))


def fit(points: Sequence[Point], name: str, of: str, run: str, hierarchy: Hierarchy, protocol: Protocol) -> Shared:
    """The model of the host with these points, fitted to those that are `seen`."""
    ranks = max(point.question.ranks for point in points)
    spinning = hierarchy.ranks
    # Ranks that share a processor take turns by the clock of the kernel, which is no property of the caches.
    seen = [point for point in points if point.seen and point.question.ranks <= spinning]
    check_enough(seen, run)
    begin = _begin(seen, run, hierarchy)

    def made(fits: Mapping[str, Fit], share: float) -> Shared:
        return Shared(name, of, run, ranks, hierarchy, share, _both_ways(fits))

    def times_ns(values: Mapping[str, float], share: float) -> list[float]:
        return protocol_times_ns(made(constants(values), share), seen, protocol)

    numbers = search(begin, seen, lambda values: times_ns(values, 1.0))
    if not any(cache.shared for cache in hierarchy.caches):
        return made(numbers, 1.0)
    found = {key: fit.value for key, fit in numbers.items()}
    share = min(SHARES, key=lambda share: cost(seen, times_ns(found, share)))
    if share < 1:
        numbers = search(begin, seen, lambda values: times_ns(values, share))
    return made(numbers, share)


def _both_ways(fits: Mapping[str, Fit]) -> dict[str, Fit]:
    """`other_byte` as what a byte costs to read and to write: of two ranks each of the other's bytes meets both."""
    found = {}
    for key, fit in fits.items():
        name, _, distance = key.partition("@")
        keys = [f"other_read@{distance}", f"other_write@{distance}"] if name == "other_byte" else [key]
        found |= dict.fromkeys(keys, fit)
    return found


def _begin(seen: Sequence[Point], run: str, hierarchy: Hierarchy) -> dict[str, float]:
    """First guesses: what single sweeps show on their own."""
    trips, rows = (
        sorted((p.question.size_bytes, p.time_ns, p.question.messages) for p in sweep)
        for sweep in sweeps(seen, run, "ranks")
    )
    half_ns = trips[0][1] / 2
    begin = {key: share * half_ns for key, share in _BEGIN.items()}
    for distance in hierarchy.distances:
        begin |= {f"{key}@{distance}": share * half_ns for key, share in _BEGIN_AT.items()}
        # A byte of a long ping-pong is read once and written once on each way.
        size, trip_ns, _ = trips[len(trips) // 2]
        ways = ("byte",) if hierarchy.ranks <= 2 else ("read", "write")
        begin |= {f"other_{way}@{distance}": trip_ns / (4 * size) for way in ways}
    nearer, rate = 0, None
    for k, reach in enumerate([*(cache.size_bytes for cache in hierarchy.caches), float("inf")]):
        inside = [ns / (2 * n * size) for size, ns, n in rows if nearer < 2 * n * size <= reach]
        found = sorted(inside)[len(inside) // 4] if inside else None
        rate = found or (rate or 0.01 * half_ns / 64) * (_FARTHER if rate else 1)
        begin[f"cache{k}"], nearer = rate, reach
    beyond = begin[f"cache{len(hierarchy.caches) - 1}"]
    begin |= {f"other_lost@{distance}": _FARTHER * beyond for distance in hierarchy.distances}
    return begin | {"combine_rate": 2 * begin["cache0"]}


def _is_rate(key: str) -> bool:
    return key.startswith(("cache", "other_read", "other_write", "other_lost", "combine_rate"))


_EVIDENCE = {
    "start": "short messages and copies in a row",
    "receive": "short ping-pongs against messages in a row",
    "latency": "short ping-pongs and broadcasts",
    "crossing": "messages that cross each other, of plain algorithms",
    "gap": "short messages in a row",
    "cache": "messages in a row and plain algorithms by size",
    "other_start": "ping-pongs and plain algorithms by size",
    "other_read": "ping-pongs and plain algorithms by size",
    "other_write": "ping-pongs and plain algorithms by size",
    "other_lost": "long ping-pongs and plain algorithms",
    "copy_start": "plain algorithms by size",
    "combine_start": "plain algorithms by size",
    "combine_rate": "plain algorithms by size",
}
