"""A machine file for one GPU whose ranks are SMs: one L2 holds the data of all, each rank moves its own.

The model is the fabric `coherent` with a path whose memory is the L2 and what lies behind it
(docs/fabrics/coherent.md). Unlike on a host, a line costs the same whoever wrote it, because waiting for others empties
the L1. The size of the L2 is known; `search` fits the rest together to all points that are seen:

    start                   barriers, which are nothing but flags, and plain algorithms with messages to many
    run                     short messages in a row, of which only the last one raises a flag; scattered chunks
    latency, look           short ping-pongs; collectives in which one waits for many
    l2                      messages in a row by size: ns per byte of one SM
    total                   plain algorithms on many SMs by size: ns per byte of all together
    beyond                  the same where they exceed the L2
    combine                 reductions by size

Any two SMs are as far apart as any others: pairs that are measured in several places are one number. What it leaves
out: docs/fit.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linkwright.machines import writer

from .machine_file import OWN_MOVES, MachineFile, number
from .points import Point
from .protocol import Protocol
from .regimes import Fit
from .search import check_enough, constants, protocol_times_ns, search, sweeps

# Where the search begins: times as shares of half a short ping-pong, rates as factors of what messages in a row show.
_BEGIN = {"start": 0.1, "latency": 0.5, "look": 0.2, "run": 0.2, "combine_start": 0.1}
_BEGIN_RATES = {"l2": 1.0, "beyond": 1.5, "combine_rate": 1.0}
# Initial time per byte of all SMs together, as a factor of one SM's share: a rate that does not bind cannot be fitted.
_BINDING = 2.0
_RATES = (*_BEGIN_RATES, "total")


@dataclass(frozen=True)
class Chip(MachineFile):
    """The numbers of a GPU, each with its interval; times in ns, rates as ns per byte."""

    name: str
    of: str
    run: str
    ranks: int
    l2_bytes: int
    numbers: Mapping[str, Fit]
    kind: str = "chip"  # all SMs start at one time of the GPU's timer, so `release_ns` is 0

    def document(self, open_size: bool) -> dict[str, Any]:
        """The tables of the file, for any number of ranks or for those of the run."""
        n = {key: number(self.numbers[key], of, self.run, rate=key in _RATES) for key, of in _EVIDENCE.items()}
        count = "any" if open_size else self.ranks
        # At a barrier a flag is raised, seen and looked at.
        barrier_ns = float(f"{sum(self.numbers[key].value for key in ('start', 'latency', 'look')):.6g}")
        barrier = writer.number(barrier_ns, "ns", "derived", "start, latency and look of one flag")
        l2 = writer.number(self.l2_bytes, "B", "documented", "L2, as the driver says it")
        inside = {"size": l2, "rate": n["l2"], "total": n["total"], "shared": True}
        return {
            "machine": self.about(
                f"{self.of}, fitted to what was measured of its SMs",
                "The SMs of one GPU around its L2; ranks are SMs and move their data themselves.",
            ),
            "level": [{"name": "SM", "count": count, "source": f"run {self.run} had {self.ranks}"}],
            "endpoints": {
                "count": count, "source": f"the SMs of run {self.run}",
                "memory": [{"name": "memory", "count": 1, "source": "all SMs share the memory of the GPU"}],
            },
            "fabric": {"kind": "coherent", "latency": n["latency"], "barrier": barrier},
            "path": {
                "message": {
                    "summary": "loads and stores of the SM that initiates, past its L1", **OWN_MOVES,
                    "start": n["start"], "notice_start": n["start"],
                    "combine_start": n["combine_start"], "combine_rate": n["combine_rate"],
                    "memory": {
                        "together": True, "run": n["run"], "look": n["look"],
                        "cache": [inside, {"rate": n["beyond"]}],
                    },
                }
            },
        }  # fmt: skip

    def parameters(self) -> list[tuple[str, Fit, str]]:
        """(key, fit, unit) of every fitted number."""
        return [(key, fit, "ns/B" if key in _RATES else "ns") for key, fit in self.numbers.items()]


def fit(points: Sequence[Point], name: str, of: str, run: str, l2_bytes: int, protocol: Protocol) -> Chip:
    """The model of the GPU with these points, fitted to some of those that are `seen`."""
    ranks = max(point.question.ranks for point in points)
    seen = _looked_at(points)
    check_enough(seen, run)

    def made(fits: Mapping[str, Fit]) -> Chip:
        return Chip(name, of, run, ranks, l2_bytes, fits)

    def times_ns(values: Mapping[str, float]) -> list[float]:
        return protocol_times_ns(made(constants(values)), seen, protocol)

    return made(search(_begin(seen, run), seen, times_ns))


def _looked_at(points: Sequence[Point]) -> list[Point]:
    """Points seen on the fewest, the median and the most SMs; the numbers in between add nothing."""
    counts = sorted({p.question.ranks for p in points if p.seen})
    kept = {counts[0], counts[len(counts) // 2], counts[-1]} if counts else set()
    return [p for p in points if p.seen and p.question.ranks in kept]


def _begin(seen: Sequence[Point], run: str) -> dict[str, float]:
    """First guesses: what single sweeps show on their own."""
    trips, rows = sweeps(seen, run, "SMs")
    shortest = min(trips, key=lambda p: p.question.size_bytes)
    half_ns = shortest.time_ns / (2 * shortest.question.messages)
    # A byte is read and written.
    byte_ns = min(p.time_ns / (2 * p.question.messages * p.question.size_bytes) for p in rows)
    begin = {key: share * half_ns for key, share in _BEGIN.items()}
    begin |= {key: factor * byte_ns for key, factor in _BEGIN_RATES.items()}
    return begin | {"total": _BINDING * byte_ns / max(p.question.ranks for p in seen)}


_EVIDENCE = {
    "start": "barriers and plain algorithms",
    "run": "short messages in a row and scattered chunks",
    "latency": "short ping-pongs",
    "look": "plain algorithms in which one waits for many",
    "l2": "messages in a row by size",
    "total": "plain algorithms on many SMs by size",
    "beyond": "plain algorithms larger than the L2",
    "combine_start": "plain algorithms by size",
    "combine_rate": "plain algorithms by size",
}
