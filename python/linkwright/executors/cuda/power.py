"""The power that a GPU draws while it works, between two steps of NVML's energy counter.

    joules    __|~~|__|~~|__|~~      the counter advances in steps, tens of milliseconds apart
    looks     ' ' ' ' ' ' ' ' '      between batches of work
              t0   first change  ...  last change:     watts = energy between the two / time between them

A step is seen only at the next look, so each end is off by at most the pause before it, and no power is reported until
the span is many times as long.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from .clocks import Throttling

# Shortest span, in pauses before its ends.
_LEAST_PAUSES = 20


class Meter:
    """Watches the counter of one GPU."""

    def __init__(self, throttling: Throttling, clock: Callable[[], float] = time.monotonic):
        self._throttling, self._clock = throttling, clock
        self._seen = throttling.joules()
        self._looked = clock()
        self._steps: list[tuple[float, float, float]] = []  # time, joules, pause before: the first and the last

    @property
    def counts(self) -> bool:
        """Whether there is a counter."""
        return self._seen is not None

    def look(self) -> None:
        """Note a step."""
        if not self.counts:
            return
        joules, now = self._throttling.joules(), self._clock()
        if joules is not None and joules != self._seen:
            self._steps = [*self._steps[:1], (now, joules, now - self._looked)]
            self._seen = joules
        self._looked = now

    def watts(self) -> float | None:
        """Mean power between the first and the last step seen; None while they are too close."""
        if len(self._steps) < 2:
            return None
        (began, first, before), (ended, last, pause) = self._steps
        if ended - began <= _LEAST_PAUSES * max(before, pause):
            return None
        return (last - first) / (ended - began)
