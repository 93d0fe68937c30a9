"""Power that a GPU draws while it works: from one step of NVML's energy counter to another.

    joules    __|~~|__|~~|__|~~      the counter goes in steps, tens of milliseconds apart
    looks     ' ' ' ' ' ' ' ' '      between batches of work
              t0   first change  ...  last change:     watts = energy between the two / time between them

A change is seen at the next look only, so nothing is said before the span is many times as long as the longest pause
between two looks.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from .clocks import Throttling

# The span in pauses between looks: each of its ends is off by one pause at most.
_LEAST_PAUSES = 20


class Meter:
    """Looks at the counter of one GPU."""

    def __init__(self, throttling: Throttling, clock: Callable[[], float] = time.monotonic):
        self._throttling, self._clock = throttling, clock
        self._seen = throttling.joules()
        self._looked = clock()
        self._longest_pause = 0.0
        self._first: tuple[float, float] | None = None
        self._last: tuple[float, float] | None = None

    @property
    def counts(self) -> bool:
        """Whether there is a counter."""
        return self._seen is not None

    def look(self) -> None:
        """Take notice of a step."""
        if not self.counts:
            return
        joules, now = self._throttling.joules(), self._clock()
        self._longest_pause = max(self._longest_pause, now - self._looked)
        self._looked = now
        if joules is not None and joules != self._seen:
            self._seen = joules
            self._last = now, joules
            self._first = self._first or self._last

    def watts(self) -> float | None:
        """Mean power between the first and the last step seen; None while they are too near."""
        if not self._first or self._last[0] - self._first[0] <= _LEAST_PAUSES * self._longest_pause:
            return None
        return (self._last[1] - self._first[1]) / (self._last[0] - self._first[0])
