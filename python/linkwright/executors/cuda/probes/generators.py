"""Random numbers by cuRAND: `random` of the catalogue on all SMs, by generator and block; and `store`, its limit.

One call fills a block of GPU memory with 64-bit floats. A generator continues where its last call ended, so no two
blocks are alike. The host checks range, mean and variance, the shares of sixteen bins, and that the next block differs;
it does not recompute cuRAND's own sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from linkwright.base.errors import WaivedError, WrongResultError
from linkwright.executors.process import Sampling
from linkwright.store.record import Record

from ..measure import Gpu
from . import libraries
from .sampling import fits

KEY = "random"
_GENERATORS = {
    "curand_xorwow": "CURAND_RNG_PSEUDO_XORWOW",
    "curand_mrg32k3a": "CURAND_RNG_PSEUDO_MRG32K3A",
    "curand_mtgp32": "CURAND_RNG_PSEUDO_MTGP32",
    "curand_mt19937": "CURAND_RNG_PSEUDO_MT19937",
    "curand_philox4": "CURAND_RNG_PSEUDO_PHILOX4_32_10",
}
_SAMPLE_BYTES = 8
_WORD = 0x3FE00000  # its pairs are a number a little above one half
_BINS = 16
# A sound generator stays within this many standard deviations over years of checks.
_SIGMA = 7.0

Filler = tuple[str, Callable[[], object], Callable[[np.ndarray, np.ndarray], str | None]]


def measure(gpu: Gpu, axes: dict, sms: list[int], how: Sampling) -> Record:
    """One launch."""
    generator, samples = str(axes["generator"]), int(axes["block"]) // _SAMPLE_BYTES
    libraries.whole_gpu(KEY, axes)
    if not samples:
        raise WaivedError(f"{KEY}: waived: a block holds at least one sample of {_SAMPLE_BYTES} bytes")
    fits(KEY, gpu, _SAMPLE_BYTES * samples)
    address = gpu.device.allocate(_SAMPLE_BYTES * samples)
    try:
        with _filler(gpu, generator, address, samples, how.seed) as (library, fill, wrong):
            found = libraries.sampled(KEY, gpu, fill, how, library=library, done=float(samples))
            blocks = []
            for _ in range(2):
                fill()
                gpu.device.wait()
                blocks.append(gpu.device.read(address, np.empty(samples)))
            if said := wrong(*blocks):
                raise WrongResultError(f"{KEY}: {generator} {said}; no time is reported")
    finally:
        gpu.device.free(address)
    return found


@contextmanager
def _filler(gpu: Gpu, generator: str, address: int, samples: int, seed: int) -> Iterator[Filler]:
    if generator == "store":
        words = _SAMPLE_BYTES // 4 * samples
        yield "the driver's memset", lambda: gpu.device.fill(address, _WORD, words), _not_stored
        return
    if generator not in _GENERATORS:
        raise WaivedError(f"{KEY}: waived: a GPU has no generator {generator}; ask for {', '.join(_GENERATORS)}")
    curand = libraries.cupy("curand")
    if curand is None:
        raise libraries.missing(KEY, "cupy")
    made = curand.createGenerator(getattr(curand, _GENERATORS[generator]))
    try:
        curand.setPseudoRandomGeneratorSeed(made, seed)

        def fill() -> None:
            curand.generateUniformDouble(made, address, samples)

        yield f"CuPy, cuRAND {curand.getVersion()}", fill, not_random
    finally:
        curand.destroyGenerator(made)


def _not_stored(first: np.ndarray, second: np.ndarray) -> str | None:
    stored = np.full(2, _WORD, np.uint32).view(float)[0]
    return None if (first == stored).all() and (second == stored).all() else "left values other than those to be stored"


def not_random(first: np.ndarray, second: np.ndarray) -> str | None:
    """What is wrong with two successive blocks of uniform numbers; None if these quick checks find nothing."""
    n = len(first)
    if not ((first > 0) & (first <= 1)).all():
        return "left numbers outside ]0, 1]"
    if np.array_equal(first, second):
        return "generated the same block twice"
    share = 1 / _BINS
    counts = np.histogram(first, _BINS, (0.0, 1.0))[0]
    looks = {
        "mean": (first.mean() - 1 / 2) / np.sqrt(1 / 12 / n),
        "variance": (((first - 1 / 2) ** 2).mean() - 1 / 12) / np.sqrt(1 / 180 / n),
        "share of a sixteenth": np.abs(counts - n * share).max() / np.sqrt(n * share * (1 - share)),
    }
    for what, sigma in looks.items():
        if n >= _BINS**2 and abs(sigma) > _SIGMA:
            return f"has a {what} {abs(sigma):.1f} standard deviations away from that of uniform numbers"
    return None
