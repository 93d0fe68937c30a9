"""Did the clock of a core move meanwhile?

A core changes its frequency with heat, load and power, and times change with it. A virtual machine does not report the
frequency, so it is measured before and after each experiment, on up to `MOST_PROCESSORS` evenly spread processors: by a
chain of operations of one cycle each, about 10 us long, the fastest of 20.

    change = frequency after / frequency before - 1        beyond +-3 %: the samples of that launch are set aside

They count only if no launch was undisturbed; then the row is flagged `disturbed`. Later launches measure the
experiment again. A disturbed reading is longer than a cycle, so the shorter of two counts.

What it does not see: a clock that moved and came back between the readings, uncore and memory clocks, and processors
that it skips. A hypervisor that withholds part of a core looks like foreign load or steal, not like a slower clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwright import _native
from linkwright.base.units import NS_PER_S

# A launch counts as disturbed from this relative change of frequency on. Quiet readings agree within 1 %.
MOVED = _native.measurement.CLOCK_MOVED
MOST_PROCESSORS = 8

Cycles = Sequence[float | None]


class Clocks:
    """Compares the clocks of processors with the previous reading."""

    def __init__(
        self, processors: Sequence[int] | None = None, read: Callable[..., Cycles] = _native.cycles_ns
    ) -> None:
        """`processors`: None reads the one that the calling thread runs on."""
        self._processors = None if processors is None else spread(processors)
        self._read = read
        self._cycles = _shorter(self._now(), self._now())

    def change(self) -> float | None:
        """Largest relative change of a frequency since the last reading, if more than a measurement tolerates."""
        before, now = self._cycles, self._now()
        if abs(_largest(before, now)) > MOVED:
            now = _shorter(now, self._now())
        self._cycles = now
        change = _largest(before, now)
        return round(change, 4) if abs(change) > MOVED else None

    @property
    def slowest_hz(self) -> float | None:
        """Frequency of the slowest processor at the last reading."""
        known = [cycle for cycle in self._cycles if cycle]
        return round(NS_PER_S / max(known), -6) if known else None

    def _now(self) -> Cycles:
        return self._read(self._processors)


def spread(processors: Sequence[int]) -> list[int]:
    """At most `MOST_PROCESSORS` of them, evenly spread."""
    count = min(len(processors), MOST_PROCESSORS)
    return [processors[i * len(processors) // count] for i in range(count)]


def _shorter(first: Cycles, second: Cycles) -> Cycles:
    return [min(a, b) if a and b else None for a, b in zip(first, second, strict=True)]


def _largest(before: Cycles, now: Cycles) -> float:
    """Frequency is one over the cycle; 0 where none is known."""
    changes = [a / b - 1 for a, b in zip(before, now, strict=True) if a and b]
    return max(changes, key=abs, default=0.0)
