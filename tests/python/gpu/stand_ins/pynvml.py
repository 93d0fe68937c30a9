# ruff: noqa: N802
"""An energy counter of 100 W that steps every 2 ms, and a clock that is never lowered."""

import time


class NVMLError(Exception):
    pass


def nvmlInit():
    pass


def nvmlDeviceGetHandleByPciBusId(name):
    return name


def nvmlDeviceGetCurrentClocksThrottleReasons(handle):
    return 0


def nvmlDeviceGetTotalEnergyConsumption(handle):
    return int(time.monotonic() / 0.002) * 200
