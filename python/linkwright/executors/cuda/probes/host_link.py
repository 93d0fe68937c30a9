"""Copies between the host and its GPU: `gpu_copy`; and the memory and host clock that such probes share."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from linkwright import _native
from linkwright.base.errors import WaivedError, WrongResultError
from linkwright.executors.probes import recorded
from linkwright.executors.process import Sampling
from linkwright.store.record import Record, remarks

from ..measure import Gpu
from .sampling import fits

_CALLS = "the driver is called from Python, whose own time is part of each call"


def gpu_copy(gpu: Gpu, axes: dict, sms: list[int], how: Sampling) -> Record:
    """One copy, or `queued` copies back to back."""
    key, nbytes, queued = "gpu_copy", int(axes["bytes"]), int(axes["queued"])
    if not nbytes or not queued:
        raise WaivedError(f"{key}: waived: a copy moves at least one byte, and the caller waits for at least one")
    fits(key, gpu, nbytes)
    device, sent = gpu.device, np.random.default_rng(how.seed).integers(0, 256, nbytes, np.uint8)
    to_device = axes["direction"] == "to_device"
    with (
        host_memory(gpu, nbytes, pinned=axes["memory"] == "pinned") as host,
        device_memory(gpu, nbytes) as address,
        device.stream() as queue,
    ):
        if to_device:
            host[:] = sent
        else:
            device.write(address, sent)
        device.wait()  # the queue would not wait for what was written
        place, by = host.ctypes.data, queue if queued > 1 else device
        copy = by.copy_in if to_device else by.copy_out

        def work(times: int) -> None:
            for _ in range(times):
                for _ in range(queued):
                    copy(address, place, nbytes)
                if queued > 1:
                    queue.wait()

        found = timed_by_host(work, how)
        found |= {"values_ns": found["values_ns"] / queued, "first_ns": found["first_ns"] / queued}
        if not np.array_equal(device.read(address, sent) if to_device else host, sent):
            raise WrongResultError(f"{key}: other bytes arrived than were sent; no value is reported")
    known = {"batch": found["batch"] * queued, "work": 0, "counted_bytes": nbytes, "moved_bytes": nbytes}
    return recorded({**found, **known}, remarks(gpu.throttling.note, _CALLS))


@contextmanager
def host_memory(gpu: Gpu, nbytes: int, *, pinned: bool) -> Iterator[np.ndarray]:
    """Bytes of the host."""
    if not pinned:
        yield np.zeros(nbytes, np.uint8)
        return
    address = gpu.device.allocate_host(nbytes)
    try:
        yield np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))
    finally:
        gpu.device.free_host(address)


@contextmanager
def device_memory(gpu: Gpu, nbytes: int) -> Iterator[int]:
    """Memory of the GPU; its address."""
    address = gpu.device.allocate(nbytes)
    try:
        yield address
    finally:
        gpu.device.free(address)


def timed_by_host(work: Callable[[int], None], how: Sampling) -> dict:
    """Samples by the host's clock of `work`, which takes a number of repetitions."""
    options = {
        "samples": how.samples,
        "warmup_at_most": how.warmup_at_most,
        "budget_s": how.budget_s,
        "settle_within": how.settle_within,
    }
    return _native.sample_work(work, {name: value for name, value in options.items() if value is not None})
