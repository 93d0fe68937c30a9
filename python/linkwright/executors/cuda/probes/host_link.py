"""Between the host and its GPU: `gpu_copy`, and `round_trip` of the catalogue.

`round_trip` in place talks with a kernel that stays on the GPU and polls pinned, mapped host memory; by user buffers
it is two copies of the driver, with nothing between them. The clock is the host's, and so are the rules.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from linkwright import _native
from linkwright.errors import CudaError, WaivedError, WrongResultError
from linkwright.probes import plain

from ..job import Job
from ..measure import PATIENCE_NS, Gpu, How
from .sampling import fits

_PAGE = 4096
_LEAVE = (1 << 64) - 1
_THREADS = 256
# Looks at the number of the reply before it is given up: seconds.
_MOST_LOOKS = 10_000_000


def gpu_copy(gpu: Gpu, axes: dict, sms: list[int], how: How) -> dict[str, object]:
    """One copy at a time."""
    key, nbytes = "gpu_copy", int(axes["bytes"])
    if not nbytes:
        raise WaivedError(f"{key}: waived: a copy moves one byte at least")
    fits(key, gpu, nbytes)
    device, sent = gpu.device, np.random.default_rng(how.seed).integers(0, 256, nbytes, np.uint8)
    to_device = axes["direction"] == "to_device"
    with _host_memory(gpu, nbytes, pinned=axes["memory"] == "pinned") as host, _device_memory(gpu, nbytes) as address:
        if to_device:
            host[:] = sent
        else:
            device.write(address, sent)
        copy = device.copy_in if to_device else device.copy_out

        def work(times: int) -> None:
            for _ in range(times):
                copy(address, host.ctypes.data, nbytes)

        found = _sampled(work, how)
        if not np.array_equal(device.read(address, sent) if to_device else host, sent):
            raise WrongResultError(f"{key}: other bytes arrived than were sent; no value is reported")
    return plain({**found, "work": 0, "notes": _notes(gpu), "counted_bytes": nbytes, "moved_bytes": nbytes})


def round_trip(gpu: Gpu, axes: dict, sms: list[int], how: How) -> dict[str, object]:
    """Requests and replies, one at a time."""
    sizes = int(axes["in_bytes"]), int(axes["out_bytes"])
    if axes["transport"] not in _TRANSPORTS:
        raise WaivedError(
            f"round_trip: waived: a GPU has no transport {axes['transport']}; ask for {' or '.join(_TRANSPORTS)}"
        )
    if not all(sizes):
        raise WaivedError("round_trip: waived: on a GPU a request and a reply have one byte at least")
    with _TRANSPORTS[str(axes["transport"])](gpu, *sizes, how.seed) as (work, notes):
        found = _sampled(work, how)
    trips = found["values_ns"]
    columns = {}
    if len(trips):  # on a busy host every sample may have been disturbed
        columns = {"round_trip_mean": np.array([trips.mean()]), "round_trip_p99": np.array([np.percentile(trips, 99)])}
    return plain({**found, "work": 0, "notes": [*_notes(gpu), *notes], "columns": columns})


Trips = tuple[Callable[[int], None], list[str]]


@contextmanager
def _in_place(gpu: Gpu, in_bytes: int, out_bytes: int, seed: int) -> Iterator[Trips]:
    """A kernel that stays, and memory that both see."""
    if platform.machine() != "x86_64":
        raise WaivedError("round_trip: waived: in place needs stores that stay in order, as those of x86-64 do")
    # Numbers in pages of their own, then the request, then the reply.
    request_at, whole = 2 * _PAGE, 2 * _PAGE + in_bytes // _PAGE * _PAGE + _PAGE
    with _host_memory(gpu, whole + out_bytes, pinned=True) as host:
        host[: 2 * _PAGE] = 0
        seen = gpu.device.mapped(host.ctypes.data)
        own = np.random.default_rng(seed).integers(0, 256, max(in_bytes, out_bytes), np.uint8)
        words = {
            "asked": seen, "answered": seen + _PAGE, "request": seen + request_at, "reply": seen + whole, "own": own,
            "in_bytes": in_bytes, "out_bytes": out_bytes, "patience_ns": PATIENCE_NS, "served": np.zeros(1, np.uint64),
        }  # fmt: skip
        request, reply = host[request_at : request_at + in_bytes], host[whole : whole + out_bytes]
        asked, answered = (memoryview(host[at : at + 8]).cast("B").cast("Q") for at in (0, _PAGE))
        job = Job("host_echo", "host_echo", words, blocks=1, threads=_THREADS, shared_bytes=128, cooperative=False)
        with gpu.device.loaded(job) as loaded:
            loaded.start()
            count = 0

            def work(times: int) -> None:
                nonlocal count
                for _ in range(times):
                    count += 1
                    request[0] = count & 0xFF
                    asked[0] = count
                    looks = 0
                    while answered[0] != count:
                        looks += 1
                        if looks > _MOST_LOOKS:
                            raise CudaError(f"{gpu.device.name}: request {count} was not answered within seconds")

            try:
                yield work, ["the host polls from Python, which takes some tenths of a microsecond of each trip"]
            finally:
                asked[0] = _LEAVE
                gpu.device.wait()
            expected = own.copy()
            expected[:in_bytes] = request
            served = int(loaded.read("served")[0])
            if served != count or not np.array_equal(reply, expected[:out_bytes]):
                raise WrongResultError(
                    f"round_trip: {served} of {count} requests, or a wrong reply; no value is reported"
                )


@contextmanager
def _user_buffers(gpu: Gpu, in_bytes: int, out_bytes: int, seed: int) -> Iterator[Trips]:
    """A copy there and a copy back, from memory that the driver has not pinned."""
    most = max(in_bytes, out_bytes)
    held, sent = (np.random.default_rng([seed, i]).integers(0, 256, most, np.uint8) for i in range(2))
    with _device_memory(gpu, most) as address:
        gpu.device.write(address, held)
        reply = np.zeros(out_bytes, np.uint8)

        def work(times: int) -> None:
            for _ in range(times):
                gpu.device.copy_in(address, sent.ctypes.data, in_bytes)
                gpu.device.copy_out(address, reply.ctypes.data, out_bytes)

        yield work, ["two copies of the driver, with nothing between them"]
        held[:in_bytes] = sent[:in_bytes]
        if not np.array_equal(reply, held[:out_bytes]):
            raise WrongResultError("round_trip: another reply came back; no value is reported")


_TRANSPORTS = {"in_place": _in_place, "user_buffers": _user_buffers}


@contextmanager
def _host_memory(gpu: Gpu, nbytes: int, *, pinned: bool) -> Iterator[np.ndarray]:
    if not pinned:
        yield np.zeros(nbytes, np.uint8)
        return
    address = gpu.device.allocate_host(nbytes)
    try:
        yield np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))
    finally:
        gpu.device.free_host(address)


@contextmanager
def _device_memory(gpu: Gpu, nbytes: int) -> Iterator[int]:
    address = gpu.device.allocate(nbytes)
    try:
        yield address
    finally:
        gpu.device.free(address)


def _sampled(work: Callable[[int], None], how: How) -> dict:
    options = {
        "samples": how.samples,
        "warmup_at_most": how.warmup_at_most,
        "budget_s": how.budget_s,
        "settle_within": how.settle_within,
    }
    return _native.sample_work(work, {name: value for name, value in options.items() if value is not None})


def _notes(gpu: Gpu) -> list[str]:
    return [*filter(None, [gpu.throttling.note])]


PROBES = {"gpu_copy": gpu_copy, "round_trip": round_trip}
