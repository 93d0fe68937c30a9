"""Requests from the host to a kernel that stays on its GPU, and replies: `round_trip` of the catalogue.

    transport      request                                             reply
    in_place       stored into the host's own memory, which the GPU    stored there by the GPU
                   polls and reads
    user_buffers   copied by the copy engine into the GPU's memory,    copied out of it by the copy engine, once a
                   then its number, which the GPU polls                 number stored into the host's memory says so
    word_store     stored by the host into the GPU's memory in         stored so into the host's memory by the GPU
                   words that carry their own validity

The first two use `host_echo.cu`, the last one `word_echo.cu`. In both, the reply is the request, followed by what the
host put there. `word_store` needs a coherent link, over which the host stores into a few pages of managed memory that
stay on the GPU.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from linkwright.base.errors import CudaError, WaivedError, WrongResultError
from linkwright.executors.probes import recorded
from linkwright.executors.process import Sampling
from linkwright.store.record import Record, remarks

from ..job import Job
from ..measure import PATIENCE_NS, Gpu
from .host_link import device_memory, host_memory, timed_by_host
from .sampling import fits

_PAGE = 4096
_LEAVE = (1 << 64) - 1
_THREADS = 256
# Polls before a reply is given up, which take seconds.
_MOST_LOOKS = 10_000_000
_POLLS = "the host polls from Python, whose own time is part of each trip"
_BY_NUMPY = "; it stores and polls words through NumPy, which adds time"


def round_trip(gpu: Gpu, axes: dict, sms: list[int], how: Sampling) -> Record:
    """Requests and replies, one at a time."""
    sizes = int(axes["in_bytes"]), int(axes["out_bytes"])
    if axes["transport"] not in _TRANSPORTS:
        raise WaivedError(
            f"round_trip: waived: a GPU has no transport {axes['transport']}; ask for one of {', '.join(_TRANSPORTS)}"
        )
    if not all(sizes):
        raise WaivedError("round_trip: waived: on a GPU a request and a reply have at least one byte each")
    fits("round_trip", gpu, 2 * sum(sizes))
    with _TRANSPORTS[str(axes["transport"])](gpu, *sizes, how.seed) as work:
        found = timed_by_host(work, how)
    trips = found["values_ns"]
    columns = {}
    if len(trips):  # on a busy host every sample may have been disturbed
        columns = {"round_trip_mean": np.array([trips.mean()]), "round_trip_p99": np.array([np.percentile(trips, 99)])}
    polls = _POLLS + (_BY_NUMPY if axes["transport"] == "word_store" else "")
    return recorded({**found, "work": 0, "columns": columns}, remarks(gpu.throttling.note, polls))


Work = Callable[[int], None]


@dataclass(frozen=True)
class Line:
    """How the host communicates with a kernel."""

    request: np.ndarray  # bytes of the request, of which the first changes with every trip
    ask: Callable[[int], None]  # send the request of this number
    answered: memoryview  # its last element is the number of the last reply
    fetch: Callable[[int], None]  # after the reply: wait until all of it has arrived
    sent: Callable[[], np.ndarray]  # bytes that the request had
    got: Callable[[], np.ndarray]  # bytes of the reply


@contextmanager
def _serving(gpu: Gpu, job: Job, line: Line) -> Iterator[Work]:
    """Trips to a resident kernel; checks the last one, and that all were served."""
    with gpu.device.loaded(job) as loaded:
        loaded.start()
        count = 0

        def work(times: int) -> None:
            nonlocal count
            request, ask, answered = line.request, line.ask, line.answered
            for _ in range(times):
                count += 1
                request[0] = count & 0xFF
                ask(count)
                looks = 0
                while answered[-1] != count:
                    looks += 1
                    if looks > _MOST_LOOKS:
                        raise _unanswered(gpu, count)
                line.fetch(count)

        try:
            yield work
        finally:
            sent = line.sent()
            line.ask(_LEAVE)
            gpu.device.wait()
        expected = np.frombuffer(job.words["own"].tobytes(), np.uint8).copy()
        expected[: len(sent)] = sent
        served, got = int(loaded.read("served")[0]), line.got()
        if served != count or not np.array_equal(got, expected[: len(got)]):
            raise WrongResultError(f"round_trip: {served} of {count} requests, or a wrong reply; no value is reported")


def _unanswered(gpu: Gpu, number: int) -> CudaError:
    return CudaError(
        f"{gpu.device.name}: request {number} was not answered in full within seconds; the kernel may have given up on "
        "a delayed host: try again on a quiet one"
    )


def _echo(sizes: tuple[int, int], seed: int, **where: int) -> Job:
    """A launch of `host_echo` that polls, reads and writes at these addresses."""
    words = {
        **where, "own": _noise(max(sizes), seed), "in_bytes": sizes[0], "out_bytes": sizes[1],
        "patience_ns": PATIENCE_NS, "served": np.zeros(1, np.uint64),
    }  # fmt: skip
    return Job("host_echo", "host_echo", words, blocks=1, threads=_THREADS, shared_bytes=128, cooperative=False)


@contextmanager
def _in_place(gpu: Gpu, in_bytes: int, out_bytes: int, seed: int) -> Iterator[Work]:
    """Host memory that both sides see."""
    if platform.machine() != "x86_64":
        raise WaivedError("round_trip: waived: in place needs stores that stay in order, as on x86-64")
    # Two pages for the numbers, then the request, then the reply.
    request_at, reply_at = 2 * _PAGE, 2 * _PAGE + in_bytes // _PAGE * _PAGE + _PAGE
    with host_memory(gpu, reply_at + out_bytes, pinned=True) as host:
        host[: 2 * _PAGE] = 0
        seen = gpu.device.mapped(host.ctypes.data)
        request, reply = host[request_at : request_at + in_bytes], host[reply_at : reply_at + out_bytes]
        asked, answered = (_numbers(host[at : at + 8]) for at in (0, _PAGE))

        def ask(number: int) -> None:
            asked[0] = number

        job = _echo(
            (in_bytes, out_bytes), seed, asked=seen, answered=seen + _PAGE, request=seen + request_at,
            reply=seen + reply_at,
        )  # fmt: skip
        line = Line(request, ask, answered, lambda number: None, request.copy, lambda: reply)
        with _serving(gpu, job, line) as work:
            yield work


@contextmanager
def _user_buffers(gpu: Gpu, in_bytes: int, out_bytes: int, seed: int) -> Iterator[Work]:
    """Memory that the driver has not pinned, and a queue of copies in parallel with the kernel."""
    request_at, reply_at = _PAGE, _PAGE + in_bytes // _PAGE * _PAGE + _PAGE
    request, reply = _noise(in_bytes, seed + 1), np.zeros(out_bytes, np.uint8)
    with (
        gpu.device.stream() as copies,
        device_memory(gpu, reply_at + out_bytes) as held,
        host_memory(gpu, 2 * _PAGE, pinned=True) as host,
    ):
        gpu.device.write(held, np.zeros(_PAGE, np.uint8))
        host[:] = 0
        asked, answered = (_numbers(host[at : at + 8]) for at in (0, _PAGE))

        def ask(number: int) -> None:
            asked[0] = number
            copies.copy_in(held + request_at, request.ctypes.data, in_bytes)
            copies.copy_in(held, host.ctypes.data, 8)

        def fetch(number: int) -> None:
            copies.copy_out(held + reply_at, reply.ctypes.data, out_bytes)
            copies.wait()

        job = _echo(
            (in_bytes, out_bytes), seed, asked=held, answered=gpu.device.mapped(host.ctypes.data) + _PAGE,
            request=held + request_at, reply=held + reply_at,
        )  # fmt: skip
        line = Line(request, ask, answered, fetch, request.copy, lambda: reply)
        with _serving(gpu, job, line) as work:
            yield work


@contextmanager
def _word_store(gpu: Gpu, in_bytes: int, out_bytes: int, seed: int) -> Iterator[Work]:
    """Words that hold the number of their request above 4 bytes of data."""
    if not gpu.device.host_stores:
        raise WaivedError(
            f"round_trip: waived: the host cannot store into the memory of {gpu.device.name} (the driver says no "
            "DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, which coherent links have); ask for transport=in_place"
        )
    in_words, out_words = -(-in_bytes // 4), -(-out_bytes // 4)
    with _window(gpu, in_words) as (address, window), host_memory(gpu, 8 * out_words, pinned=True) as host:
        host[:] = 0
        replied, numbers = host.view(np.uint32)[::2], host.view(np.uint32)[1::2]
        data = np.zeros(in_words, np.uint64)
        data[:] = _noise(4 * in_words, seed + 1).view(np.uint32)

        def ask(number: int) -> None:
            np.bitwise_or(data, np.uint64((number & 0xFFFFFFFF) << 32), out=window)

        def fetch(number: int) -> None:
            for _ in range(_MOST_LOOKS):
                if (numbers == number).all():
                    return
            raise _unanswered(gpu, number)

        words = {
            "request": address, "reply": gpu.device.mapped(host.ctypes.data),
            "own": _noise(4 * max(in_words, out_words), seed).view(np.uint32), "in_words": in_words,
            "out_words": out_words, "patience_ns": PATIENCE_NS, "served": np.zeros(1, np.uint64),
        }  # fmt: skip
        job = Job("word_echo", "word_echo", words, blocks=1, threads=_THREADS, shared_bytes=128, cooperative=False)
        line = Line(
            data.view(np.uint8), ask, memoryview(host).cast("I"), fetch, lambda: data.astype(np.uint32).view(np.uint8),
            lambda: replied.copy().view(np.uint8)[:out_bytes],
        )  # fmt: skip
        with _serving(gpu, job, line) as work:
            yield work


_TRANSPORTS = {"in_place": _in_place, "user_buffers": _user_buffers, "word_store": _word_store}


@contextmanager
def _window(gpu: Gpu, words: int) -> Iterator[tuple[int, np.ndarray]]:
    """GPU memory that the host stores into: its address, and a host array over it."""
    address = gpu.device.allocate_window(8 * words)
    try:
        gpu.device.write(address, np.zeros(words, np.uint64))
        yield address, np.ctypeslib.as_array((ctypes.c_uint64 * words).from_address(address))
    finally:
        gpu.device.free(address)


def _numbers(host: np.ndarray) -> memoryview:
    return memoryview(host).cast("B").cast("Q")


def _noise(nbytes: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, nbytes, np.uint8)
