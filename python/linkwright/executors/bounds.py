"""What messages take at best on a measured machine, from the best values that it gave.

A measured machine comes without a data sheet, but two numbers of its own tell what to expect of the others:

    cache line   L     half of the shortest round trip between any two endpoints
    copy rate    B(s)  the highest rate of one pair, one way, whose messages together fill at least s bytes

Every result depends on another core, so at least one cache line must cross; and p cores copy the bytes that cross, each
at B at most. No core touches less than its share s = S/p of the data:

    t >= max(L, bytes / (p B(S/p)))

    bytes   allreduce 2 (p-1) S    gather, scatter (p-1) S / p    barrier 0    all others (p-1) S

A traffic pattern is bound by its own messages: `ping_pong` by a round trip of 2 L or of its bytes, `pairs`
by what one pair carries. Nothing of this is physical: it is what was seen at best, over all runs of the host
(`best.py`). Where neither ping-pong nor pairs were ever measured, nothing is known.

Source of the byte counts: the table of `linkwright-sim/src/limits/demand.rs`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from linkwright.ask.question import Collective, Pattern, Question

from .measured import Measured

CACHE_LINE = "cache_line"
COPY_RATE = "copy_rate"

# Bytes that cross between ranks, in units of (p-1) S; a barrier carries none.
_CROSSING = {
    "allreduce": lambda p: 2.0,
    "gather": lambda p: 1 / p,
    "scatter": lambda p: 1 / p,
    "barrier": lambda p: 0.0,
}


@dataclass(frozen=True)
class Bounds:
    """The two numbers; `rates` holds the bytes of all messages -> bytes per ns."""

    line_ns: float | None = None
    rates: dict[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, found: Iterable[tuple[Question, Measured | None]]) -> Bounds:
        """From everything that was measured."""
        seen = cls()
        for question, measured in found:
            if measured is None:
                continue
            best_ns = measured.summary().min
            match question:
                case Pattern(algorithm="ping_pong", ranks=2, both_ways=False):
                    seen = seen.merged(cls(best_ns / question.messages / 2))
                case Pattern(algorithm="pairs", ranks=2, both_ways=False):
                    carried = question.messages * question.size_bytes
                    seen = seen.merged(cls(None, {carried: carried / best_ns}))
        return seen

    def merged(self, other: Bounds) -> Bounds:
        """The better of both, number by number."""
        lines = [line for line in (self.line_ns, other.line_ns) if line is not None]
        both = self.rates.keys() | other.rates.keys()
        rates = {carried: max(self.rates.get(carried, 0.0), other.rates.get(carried, 0.0)) for carried in both}
        return Bounds(min(lines, default=None), rates)

    def best(self, question: Question) -> tuple[float, str] | None:
        """The time of a question in ns at best, and the name of what it follows from; None where unknown."""
        ranks, size = question.ranks, question.size_bytes
        if ranks < 2 or self.line_ns is None or not self.rates:
            return None
        match question:
            case Collective(collective=collective):
                crossing = _CROSSING.get(collective, lambda p: 1.0)(ranks) * (ranks - 1) * size
                lines_ns, copies_ns = self.line_ns, crossing / ranks / self._rate(size / ranks)
            case Pattern(algorithm="ping_pong" | "pairs"):
                trips = 2 if question.algorithm == "ping_pong" else 1
                carried = trips * question.messages * size
                lines_ns, copies_ns = trips * self.line_ns, carried / self._rate(carried)
            case _:
                return None
        return (lines_ns, CACHE_LINE) if lines_ns >= copies_ns else (copies_ns, COPY_RATE)

    def _rate(self, carried: float) -> float:
        """The best rate among streams of at least `carried` bytes; beyond the longest one, its rate."""
        enough = min(carried, max(self.rates))
        return max(rate for its_bytes, rate in self.rates.items() if its_bytes >= enough)
