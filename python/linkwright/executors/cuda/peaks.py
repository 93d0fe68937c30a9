"""The peak rate of floating-point operations of a GPU: SMs x clock x operations of an SM per cycle.

The driver states the first two (a higher measured clock replaces its clock); `peaks.toml` has the third by compute
capability, each rate with its source.
"""

from __future__ import annotations

from collections.abc import Mapping

from linkwright.base import toml
from linkwright.base.units import MEGA

from .device import Device

NAME = "gpu_peak"


def rates() -> Mapping[str, Mapping[str, Mapping[str, object]]]:
    """By architecture and data type: value, unit, status and source."""
    return toml.data_file(__file__, "peaks.toml")


def flops_per_ns(device: Device, dtype: str, measured_clock: float) -> float | None:
    """Operations per ns, if the table has the GPU and the type; `measured_clock` in cycles per ns."""
    rate = rates().get(device.architecture, {}).get(dtype)
    if rate is None:
        return None
    clock = max(device.attribute("CLOCK_RATE") / MEGA, measured_clock)
    return float(rate["value"]) * device.sm_count * clock
