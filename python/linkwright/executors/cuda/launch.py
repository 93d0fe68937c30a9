"""One launch on a GPU: a fresh process with a context of its own, as `linkwright.suite.launch` is for the host.

The clocks are looked at before and after each experiment; their rate stands where the host has its ping-pong, as
the time of a million cycles, so that a row says when the machine moved meanwhile.
"""

from __future__ import annotations

import contextlib

from linkwright._native import measurement
from linkwright.suite.experiment import Experiment
from linkwright.suite.launch import MAX_SAMPLES, serve

from . import clocks, measure
from .device import Device, device

_PROBED_CYCLES = 1e6


class Measurer:
    """The GPU of this process."""

    def __init__(self, plan: dict, gpu: Device | None = None):
        self._device = gpu or device()
        self._sms = tuple(plan["sms"])
        self._throttling = clocks.Throttling(self._device.bus_id)
        self._clocks: clocks.Clocks | None = None

    def probe_ns(self, budget_s: float) -> float:
        """Time of a million cycles, by the clocks that the next experiment is measured by."""
        if self._clocks is None:
            self._clocks = clocks.settled(self._device)
        return round(_PROBED_CYCLES / self._clocks.rate, 2)

    def disturbances(self) -> dict[str, object]:
        """A clock that moved; what the host does besides does not disturb a kernel."""
        before, self._clocks = self._clocks, clocks.measure(self._device)
        change = self._clocks.rate / before.rate - 1
        moved = abs(change) > clocks.MOVED
        return {"clock_change": round(change, 4) if moved else None, "clock_hz": round(self._clocks.rate * 1e9, -6)}

    def measure(self, experiment: Experiment, plan: dict, budget_s: float) -> dict[str, object]:
        """One experiment, as plain values for the journal."""
        assert self._clocks is not None, "the probe comes first"
        gpu = measure.Gpu(self._device, self._sms, self._clocks.sms, self._clocks, self._throttling)
        if experiment.probe:
            from . import probes

            return probes.measure(gpu, experiment, how(plan, budget_s))
        return measure.run(gpu, experiment, how(plan, budget_s))


def how(plan: dict, budget_s: float) -> measure.How:
    """How an experiment is measured, from the plan of its launch."""
    return measure.How(
        samples=plan["samples"] or MAX_SAMPLES,
        warmup_at_most=plan["warmup"],
        budget_s=budget_s,
        settle_within=None if plan["samples"] else measurement.SETTLED_WITHIN,
        seed=plan["seed"] + plan["launch"],
        check=plan["check"],
    )


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        serve(Measurer)
