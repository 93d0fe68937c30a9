"""Copies between the host and its GPU: `gpu_copy`; and the memory and host clock that such probes share."""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from linkwright import _native
from linkwright.base.errors import WaivedError, WrongResultError
from linkwright.executors.probes import recorded
from linkwright.executors.process import Sampling
from linkwright.store.record import Record, remarks

from ..measure import Gpu
from .sampling import collected, fits

# Batches of queued copies that are enqueued at once.
_BATCHES = 5
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
    ):
        if to_device:
            host[:] = sent
        else:
            device.write(address, sent)
        place = host.ctypes.data
        if queued > 1:
            found = _queued(gpu, to_device, (address, place, nbytes), queued, how)
        else:
            copy = device.copy_in if to_device else device.copy_out
            timed = timed_by_host(lambda times: [copy(address, place, nbytes) for _ in range(times)], how)
            known = {"work": 0, "counted_bytes": nbytes, "moved_bytes": nbytes}
            found = recorded({**timed, **known}, remarks(gpu.throttling.note, _CALLS))
        if not np.array_equal(device.read(address, sent) if to_device else host, sent):
            raise WrongResultError(f"{key}: the bytes received differ from those sent; no value is reported")
    return found


def _queued(gpu: Gpu, to_device: bool, copy: tuple[int, int, int], queued: int, how: Sampling) -> Record:
    """Copies back to back, timed by the GPU's events: the host only has to keep the queue from running empty."""
    device, (address, host, nbytes) = gpu.device, copy
    call, places = ("cuMemcpyHtoDAsync", (address, host)) if to_device else ("cuMemcpyDtoHAsync", (host, address))

    def batch() -> None:
        for _ in range(queued):
            device.call(call, *places, nbytes, 0)

    first_ns = float(device.elapsed_ns(batch)[0]) / queued
    # Of the batches that are enqueued at once only the first waits for the host.
    found = collected(gpu.throttling, lambda: device.elapsed_ns(batch, _BATCHES)[1:] / queued, how)
    known = {"batch": queued, "counted_bytes": nbytes, "moved_bytes": nbytes, "first_ns": round(first_ns, 4)}
    return dataclasses.replace(found, **known).noted(*remarks(_CALLS))


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
