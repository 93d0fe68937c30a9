"""What probes that work in Python share: processors, threads, memory, time, and the native sampler.

    with on_cpus(setting, threads) as notes:
        return sampled(lambda n: ..., setting, threads, work=flops, notes=notes)

Timing, warm-up and guards are those of the native probes; the work is a Python function that does its work n
times, so what a Python call costs is part of what is measured, and small sizes show it.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from linkwright import _native
from linkwright.errors import WaivedError
from linkwright.store.record import Note, Record

from . import Axes, Setting, recorded

# Calls that a launch needs at least: two to size a batch, some of warm-up, one sample.
CALLS = 10
# A call of so many seconds is not estimated again.
LONG_S = 0.2


@contextmanager
def on_cpus(key: str, setting: Setting, threads: int) -> Iterator[list[Note]]:
    """Runs on the first `threads` processors only; gives a list of notes, and restores what was allowed."""
    if threads > len(setting.cpus):
        raise WaivedError(f"{key}: waived: {threads} threads need as many processors; there are {len(setting.cpus)}")
    allowed = os.sched_getaffinity(0)
    notes: list[Note] = []
    try:
        os.sched_setaffinity(0, setting.cpus[:threads])
    except OSError as error:
        notes.append(Note("unpinned", f"not pinned ({error}), so times scatter more"))
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

    A call does so many operations that it lasts `least_s`, because a call itself takes a part of a microsecond.
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
        raise WaivedError(f"{key}: waived: no library here computes in {axes['dtype']}; measure it with --on cuda")
    return types[axes["dtype"]]


def fits_memory(key: str, needed: int, setting: Setting) -> None:
    """Waives what needs more than a quarter of the free memory, or than the launch may use."""
    most = setting.most_bytes or _free_bytes() // 4
    if needed > most:
        raise WaivedError(f"{key}: waived: it needs {needed} bytes and may use {most}, a quarter of what is free")


def _free_bytes() -> int:
    """What this process may still take; all there is where the system does not say."""
    free = _native.available_memory()
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if free is None else free


def fits_time(key: str, one_s: float, setting: Setting) -> None:
    """Waives what cannot be repeated often enough within the launch's share of the time budget."""
    if CALLS * one_s > setting.budget_s:
        raise WaivedError(
            f"{key}: waived: one operation takes about {one_s:.3g} s and this experiment has "
            f"{setting.budget_s:.3g} s in a launch, less than {CALLS} of them; give more with --time-budget"
        )


def timed(call: Callable[[], object]) -> float:
    """Seconds of one call, for an estimate: the least of three, since whatever disturbs makes it longer."""
    took = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        took.append(time.perf_counter() - start)
        if took[-1] > LONG_S:
            break
    return min(took)
