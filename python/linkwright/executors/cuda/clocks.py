"""The clocks of a GPU: results of `clocks.cu`, and throttling as NVML reports it.

Times come from the cycle counter of each SM, because the timer of the GPU advances in steps of up to a microsecond; a
rate measured over 5 ms converts cycles to nanoseconds. The same kernel runs before and after an experiment and tells
whether the clock moved in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from linkwright._native import measurement
from linkwright.base.errors import CudaError
from linkwright.base.units import KILO, NS_PER_S

from .device import Device
from .job import LINE_WORDS, Job

SPAN_NS = 5_000_000
# The clock counts as moved from this relative change of its rate on.
MOVED = measurement.GPU_CLOCK_MOVED
# Most measurements until two rates in a row agree; they take a second.
_LOOKS = 50
_COLUMNS = 8
# Bits of nvmlDeviceGetCurrentClocksThrottleReasons that mean a clock lower than requested.
_THROTTLED = {0x4: "power cap", 0x8: "hardware slowdown", 0x20: "temperature", 0x40: "temperature", 0x80: "power brake"}


@dataclass(frozen=True)
class Clocks:
    """The results of one run of the kernel."""

    sms: tuple[int, ...]  # SM of each block
    rate: float  # cycles per ns, of the median SM
    rate_spread: float  # largest less smallest rate, relative
    resolution_ns: float  # of the timer
    overhead_cycles: float  # of reading the cycle counter
    offset_cycles: tuple[int, ...]  # of each SM's counter, against the first one's
    drift_cycles: float  # largest change of an offset

    @classmethod
    def of(cls, found: np.ndarray) -> Clocks:
        """From the words that the kernel wrote."""
        sm, first, first_ns, last, last_ns, resolution, overhead, looks = found.astype(np.int64).T
        if (looks == 0).any() or (last_ns <= first_ns).any() or (last <= first).any():
            raise CudaError("the GPU's clocks do not advance, so no time can be measured")
        rates = (last - first) / (last_ns - first_ns)
        rate = float(np.median(rates))
        return cls(
            sms=tuple(sm.tolist()),
            rate=rate,
            rate_spread=float((rates.max() - rates.min()) / rate),
            resolution_ns=float(resolution.min()),
            overhead_cycles=float(overhead.min()),
            offset_cycles=tuple((first - first[0]).tolist()),
            drift_cycles=float(np.abs((last - last[0]) - (first - first[0])).max()),
        )

    def ns(self, cycles: np.ndarray, spans: int = 1) -> np.ndarray:
        """Nanoseconds of `cycles`, which add up `spans` intervals between two readings of the counter."""
        return np.maximum(cycles - spans * self.overhead_cycles, 0) / self.rate

    def calibration(self) -> list[dict[str, object]]:
        """What the executor knows of its clocks: `key, value, unit` each."""
        offsets = np.array(self.offset_cycles)
        return [
            {"key": "sm_clock", "value": self.rate * NS_PER_S, "unit": "Hz"},
            {"key": "sm_clock_spread", "value": self.rate_spread, "unit": "1"},
            {"key": "timer_resolution", "value": self.resolution_ns, "unit": "ns"},
            {"key": "counter_overhead", "value": self.overhead_cycles, "unit": "cycle"},
            {"key": "counter_offset", "value": float(offsets.max() - offsets.min()), "unit": "cycle"},
            {"key": "counter_drift", "value": self.drift_cycles, "unit": "cycle"},
        ]


def job(sms: int, shared_bytes: int, span_ns: int = SPAN_NS) -> Job:
    """A launch of one block on each SM."""
    words = {
        "span_ns": span_ns,
        "arrived": np.zeros(2 * LINE_WORDS, np.uint64),
        "found": np.zeros((sms, _COLUMNS), np.uint64),
    }
    return Job("clocks", "clocks", words, blocks=sms, threads=1, shared_bytes=shared_bytes)


def measure(device: Device, span_ns: int = SPAN_NS) -> Clocks:
    """The clocks of all SMs, now."""
    with device.loaded(job(device.sm_count, device.whole_sm_bytes, span_ns)) as loaded:
        loaded.run()
        found = Clocks.of(loaded.read("found"))
    if len(set(found.sms)) < len(found.sms):
        raise CudaError(
            f"{device.name}: two blocks share an SM although each takes most of its shared memory; "
            "another process may be using the GPU (MPS), or it is partitioned (MIG): use a whole GPU"
        )
    return found


def settled(device: Device) -> Clocks:
    """The clocks once they are steady: an idle GPU starts with slow ones and takes a while to raise them."""
    found = measure(device)
    for _ in range(_LOOKS):
        before, found = found, measure(device)
        if abs(found.rate / before.rate - 1) <= MOVED:
            break
    return found


class Throttling:
    """What NVML reports about one GPU; nothing without NVML."""

    def __init__(self, bus_id: str):
        self._handle = None
        self._watched = True
        self._noticed: list[str] = []
        try:
            import pynvml

            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByPciBusId(bus_id.encode())
            self._nvml = pynvml
            self.note = None
        except ImportError:
            self.note = "throttling not watched: nvidia-ml-py is not installed"
        except pynvml.NVMLError as error:
            self.note = f"throttling not watched: {error}"

    def notice(self) -> None:
        """Look while the GPU works, because the reason for a lower clock may be gone when it rests."""
        self._noticed += self._now()

    def reasons(self) -> list[str]:
        """Why the clock is lower than requested, now or whenever that was noticed since the last call."""
        noticed, self._noticed = self._noticed, []
        return list(dict.fromkeys([*noticed, *self._now()]))

    def _now(self) -> list[str]:
        if self._handle is None or not self._watched:
            return []
        try:
            bits = self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle)
        except self._nvml.NVMLError as error:
            self._watched, self.note = False, f"throttling not watched: {error}"
            return []
        return [reason for bit, reason in _THROTTLED.items() if bits & bit]

    def joules(self) -> float | None:
        """Energy drawn by the whole GPU since its driver was loaded; None if nothing counts it (before Volta)."""
        if self._handle is None:
            return None
        try:
            return self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle) / KILO
        except self._nvml.NVMLError:
            return None


@contextmanager
def watched(throttling: Throttling) -> Iterator[list[str]]:
    """A list that holds, after the block, why the clock was lowered during it."""
    found = throttling.reasons()
    yield found
    found += [reason for reason in throttling.reasons() if reason not in found]
