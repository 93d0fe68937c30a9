"""Limits of a measured machine, from the best values of the same run.

A measured machine comes without a data sheet, but two numbers of its own run bound the others:

    cache line   L     half of the shortest round trip between any two endpoints
    copy rate    B(s)  the highest rate of one pair, one way, whose messages together fill at least s bytes

Every result depends on another core, so at least one cache line must cross; and p cores copy the bytes that cross, each
at B at most. No core touches less than its share s = S/p of the data:

    t >= max(L, bytes / (p B(S/p)))

    bytes   allreduce 2 (p-1) S    gather, scatter (p-1) S / p    barrier 0    all others (p-1) S

A traffic pattern is bound by its own messages: `ping_pong` by a round trip of 2 L or of its bytes, `pairs`
by what one pair carries. These bounds are observed, not physical, as their names say: a value may exceed one by what
noise hid. A run without ping-pong or pairs has no such limit.

Source of the byte counts: the table of `linkwright-sim/src/limits.rs`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from linkwright.experiment import Experiment

from .measured import Measured

CACHE_LINE = "measured_cache_line"
COPY_RATE = "measured_copy_rate"

# Bytes that cross between ranks, in units of (p-1) S; a barrier carries none.
_CROSSING = {
    "allreduce": lambda p: 2.0,
    "gather": lambda p: 1 / p,
    "scatter": lambda p: 1 / p,
    "barrier": lambda p: 0.0,
}


@dataclass(frozen=True)
class Bounds:
    """The two numbers; `rates` holds (bytes of all messages, bytes per ns), most bytes first."""

    line_ns: float
    rates: tuple[tuple[int, float], ...]

    @classmethod
    def of(cls, found: Iterable[tuple[Experiment, Measured | None]]) -> Bounds | None:
        """From everything that was measured; None without a ping-pong and a stream of one pair."""
        lines, rates = [], []
        for experiment, measured in found:
            if (
                measured is None
                or experiment.probe
                or experiment.collective
                or experiment.ranks != 2
                or experiment.both_ways
            ):
                continue
            best_ns = measured.summary().min
            if experiment.algorithm == "ping_pong":
                lines.append(best_ns / experiment.messages / 2)
            elif experiment.algorithm == "pairs":
                carried = experiment.messages * experiment.size_bytes
                rates.append((carried, carried / best_ns))
        return cls(min(lines), tuple(sorted(rates, reverse=True))) if lines and rates else None

    def limit(self, experiment: Experiment) -> tuple[float, str] | None:
        """The least time of an experiment in ns and the name of what bounds it; None where nothing is known."""
        ranks, size = experiment.ranks, experiment.size_bytes
        if ranks < 2 or experiment.probe:
            return None
        if experiment.collective:
            crossing = _CROSSING.get(experiment.collective, lambda p: 1.0)(ranks) * (ranks - 1) * size
            lines_ns, copies_ns = self.line_ns, crossing / ranks / self._rate(size / ranks)
        elif experiment.algorithm in ("ping_pong", "pairs"):
            trips = 2 if experiment.algorithm == "ping_pong" else 1
            carried = trips * experiment.messages * size
            lines_ns, copies_ns = trips * self.line_ns, carried / self._rate(carried)
        else:
            return None
        return (lines_ns, CACHE_LINE) if lines_ns >= copies_ns else (copies_ns, COPY_RATE)

    def _rate(self, carried: float) -> float:
        """The best rate among streams of at least `carried` bytes; beyond the longest one, its rate."""
        return max(rate for its_bytes, rate in self.rates if its_bytes >= min(carried, self.rates[0][0]))
