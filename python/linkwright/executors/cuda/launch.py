"""One launch on a GPU: a fresh process with its own context.

The clocks are measured before and after each experiment; the time of a million cycles serves as the canary, so a row
says if the machine moved in between.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwright.ask.question import Probe, Question
from linkwright.base.units import NS_PER_S
from linkwright.store.record import Record

from ..process import Sampling, serve
from . import clocks, measure
from .device import Device, device

_CANARY_CYCLES = 1e6


class Measurer:
    """The GPU of this process."""

    def __init__(self, sms: Sequence[int] = (), gpu: Device | None = None):
        self._device = gpu or device()
        self._sms = tuple(sms)
        self._throttling = clocks.Throttling(self._device.bus_id)
        self._clocks: clocks.Clocks | None = None

    def canary_ns(self, budget_s: float) -> float:
        """Time of a million cycles of the clocks that the next experiment is measured with."""
        if self._clocks is None:
            self._clocks = clocks.settled(self._device)
        return round(_CANARY_CYCLES / self._clocks.rate, 2)

    def disturbances(self) -> dict[str, float | None]:
        """A clock that moved; other work of the host does not disturb a kernel."""
        before, self._clocks = self._clocks, clocks.measure(self._device)
        change = self._clocks.rate / before.rate - 1
        moved = abs(change) > clocks.MOVED
        return {
            "clock_change": round(change, 4) if moved else None,
            "clock_hz": round(self._clocks.rate * NS_PER_S, -6),
        }

    def measure(self, experiment: Question, sampling: Sampling) -> Record:
        """One experiment."""
        assert self._clocks is not None, "the canary comes first"
        gpu = measure.Gpu(self._device, self._sms, self._clocks.sms, self._clocks, self._throttling)
        if isinstance(experiment, Probe):
            from . import probes

            return probes.measure(gpu, experiment, sampling)
        return measure.run(gpu, experiment, sampling)


if __name__ == "__main__":
    serve(lambda about: Measurer(about["sms"]))
