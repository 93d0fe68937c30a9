"""Common parts of probes that run in Python: processors, threads, memory, time, and the native sampler.

    with on_cpus(setting, threads) as notes:
        return sampled(lambda n: ..., setting, threads, work=flops, notes=notes)

Timing, warm-up and guards are those of the native probes. The work is a Python function that does it n times, so the
cost of a Python call is part of the time, and small sizes show it.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from linkwright import _native
from linkwright.base.errors import OutOfTimeError, WaivedError
from linkwright.store.record import Note, Record

from . import Axes, Setting, recorded

# Calls that a launch needs at least: two to size a batch, some of warm-up, one sample.
CALLS = 10
# A call that takes this many seconds is not estimated again.
LONG_S = 0.2


@contextmanager
def on_cpus(key: str, setting: Setting, threads: int) -> Iterator[list[Note]]:
    """Runs on the first `threads` processors only; yields a list of notes and restores the affinity."""
    if threads > len(setting.cpus):
        raise WaivedError(
            f"{key}: waived: {threads} threads need as many processors; this process has {len(setting.cpus)}"
        )
    allowed = os.sched_getaffinity(0)
    notes: list[Note] = []
    try:
        os.sched_setaffinity(0, setting.cpus[:threads])
    except OSError as error:
        notes.append(Note("unpinned", f"not pinned ({error}), so times vary more"))
    try:
        yield notes
    finally:
        os.sched_setaffinity(0, allowed)


def sampled(
    call: Callable[[int], object],
    setting: Setting,
    threads: int,
    *,
    work: float,
    notes: Iterable[Note],
    least_s: float = 1e-4,
) -> Record:
    """One launch of `call(n)`, which does n operations of so much `work` each, as `probes.native` gives it.

    A call does enough operations to last `least_s`, because the call itself takes a part of a microsecond.
    """
    repeats = 1
    while timed(functools.partial(call, repeats)) < least_s:
        repeats *= 2
    options = {
        "samples": setting.samples,
        "warmup_at_most": setting.warmup_at_most,
        "budget_s": setting.budget_s,
        "settle_within": setting.settle_within,
        "whole_process": threads > 1,
    }
    found = _native.sample_work(
        lambda n: call(n * repeats), {name: value for name, value in options.items() if value is not None}
    )
    found["values_ns"] = found["values_ns"] / repeats
    found["first_ns"] /= repeats
    return recorded({**found, "batch": found["batch"] * repeats, "work": work}, notes)


def kind_on_host(key: str, axes: Axes, types: Mapping[str, type]) -> type:
    """The type of the elements, or a waiver where only GPUs compute in it."""
    if axes["dtype"] not in types:
        raise WaivedError(
            f"{key}: waived: no library installed here computes in {axes['dtype']}; measure it with --on cuda"
        )
    return types[axes["dtype"]]


def fits_memory(key: str, needed: int, setting: Setting) -> None:
    """Waives probes that need more than a quarter of the free memory, or than the launch may use."""
    most = setting.most_bytes or _free_bytes() // 4
    if needed > most:
        raise WaivedError(f"{key}: waived: it needs {needed} bytes and may use {most}, a quarter of what is free")


def _free_bytes() -> int:
    """Memory that this process may still take; all of it if the system does not say."""
    free = _native.available_memory()
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if free is None else free


def fits_time(key: str, one_s: float, setting: Setting) -> None:
    """Refuses operations that are too long to be repeated within the launch's share of the time budget."""
    if CALLS * one_s > setting.budget_s:
        raise OutOfTimeError(
            f"{key}: one operation takes about {one_s:.3g} s and this experiment has "
            f"{setting.budget_s:.3g} s in a launch, less than {CALLS} of them; give more with --time-budget",
            need_s=CALLS * one_s,
        )


def timed(call: Callable[[], object]) -> float:
    """Seconds of one call, for an estimate: the least of three, since disturbances only lengthen it."""
    took = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        took.append(time.perf_counter() - start)
        if took[-1] > LONG_S:
            break
    return min(took)
