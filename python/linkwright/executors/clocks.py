"""Did the clock of a core move meanwhile?

A core changes its frequency with heat, load and power, and times change with it. On a virtual machine the system
does not tell the frequency, so it is measured: a chain of operations that take a cycle each, some 10 us, the fastest
of 20, on up to `MOST_PROCESSORS` processors evenly spread, before and after each experiment.

    change = frequency after / frequency before - 1        beyond +-3 %: the samples of that launch are set aside

They count only where no launch was left in peace; then the row is `unconverged` and says so. Later launches measure
the experiment again. A reading during which somebody else ran is longer than a cycle, so of two the shorter counts.

What it does not see: a clock that moved and came back between the readings, uncore and memory clocks, and processors
in between where there are more than it looks at. A hypervisor that gives less of a core looks like foreign load or
steal, not like a slower clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwright import _native

# Relative change of frequency from which a launch counts as disturbed. Readings in peace agree within 1 %.
MOVED = 0.03
MOST_PROCESSORS = 8

Cycles = Sequence[float | None]


class Clocks:
    """Compares the clocks of processors with what they were when it last looked."""

    def __init__(
        self, processors: Sequence[int] | None = None, read: Callable[..., Cycles] = _native.cycles_ns
    ) -> None:
        """`processors`: None looks at the one that the calling thread runs on."""
        self._processors = None if processors is None else spread(processors)
        self._read = read
        self._cycles = _shorter(self._now(), self._now())

    def change(self) -> float | None:
        """Largest relative change of a frequency since the last look, if that was more than a measurement bears."""
        before, now = self._cycles, self._now()
        if abs(_largest(before, now)) > MOVED:
            now = _shorter(now, self._now())
        self._cycles = now
        change = _largest(before, now)
        return round(change, 4) if abs(change) > MOVED else None

    @property
    def slowest_hz(self) -> float | None:
        """Frequency of the slowest processor at the last look."""
        known = [cycle for cycle in self._cycles if cycle]
        return round(1e9 / max(known), -6) if known else None

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
