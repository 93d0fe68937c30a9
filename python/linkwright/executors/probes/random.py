"""Random numbers by generator and block size: NumPy's here, those of Rust natively.

Each thread has a generator and a block. NumPy releases the interpreter lock while it fills a block, so large blocks
scale with the threads and small ones do not, as users of NumPy experience it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from linkwright.base.errors import WaivedError
from linkwright.store.record import Record

from . import Axes, Setting, described, native
from .work import fits_memory, on_cpus, sampled

KEY = "random"
_NUMPY = {"pcg64": "PCG64", "pcg64dxsm": "PCG64DXSM", "mt19937": "MT19937", "philox": "Philox", "sfc64": "SFC64"}
# Several threads work at least so long in a round: waking them costs some tens of microseconds.
_ROUND_S = 5e-3


def measure(axes: Axes, setting: Setting) -> Record:
    """One launch."""
    library, _, name = str(axes["generator"]).partition("_")
    if library == "curand":
        raise WaivedError(f"{KEY}: waived: cuRAND generates on a GPU; measure it with --on cuda")
    if library != "numpy":
        return native(KEY, axes, setting)
    samples, threads = int(axes["block"]) // 8, int(axes["threads"])
    if samples == 0:
        raise WaivedError(f"{KEY}: waived: a block holds at least one sample of 8 bytes")
    fits_memory(KEY, 8 * samples * threads, setting)
    fills = [_filler(_NUMPY[name], setting.seed + number, samples) for number in range(threads)]
    with on_cpus(KEY, setting, threads) as notes:
        if threads == 1:
            return sampled(fills[0], setting, 1, work=samples, notes=notes)
        with _Team(fills) as team:
            return sampled(team.round, setting, threads, work=samples * threads, notes=notes, least_s=_ROUND_S)


def _filler(name: str, seed: int, samples: int) -> Callable[[int], None]:
    random = np.random.Generator(getattr(np.random, name)(seed)).random
    block = np.empty(samples)

    def fill(times: int) -> None:
        for _ in range(times):
            random(out=block)

    return fill


class _Team:
    """Threads that each do their work when a round begins; a round ends when all have."""

    def __init__(self, works: list[Callable[[int], None]]):
        self._times = 0
        self._begin, self._end = (threading.Barrier(len(works) + 1) for _ in range(2))
        self._threads = [threading.Thread(target=self._follow, args=(work,), daemon=True) for work in works]

    def round(self, times: int) -> None:
        """All threads work this many times."""
        self._times = times
        self._begin.wait()
        self._end.wait()

    def _follow(self, work: Callable[[int], None]) -> None:
        while True:
            self._begin.wait()
            if not self._times:
                return
            work(self._times)
            self._end.wait()

    def __enter__(self) -> _Team:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._times = 0
        self._begin.wait()
        for thread in self._threads:
            thread.join()


PROBE = described(KEY, measure=measure)
