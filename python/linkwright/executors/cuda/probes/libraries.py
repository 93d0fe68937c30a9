"""Common to probes of the vendor's libraries: which library answers, and its calls timed by GPU events.

    products        PyTorch if it is installed and sees a GPU, else CuPy; f8 by PyTorch only
    convolutions    PyTorch, which calls cuDNN
    random numbers  CuPy, which calls cuRAND

All of them use the default stream of this process's context. A sample is a millisecond's worth of calls, enqueued back
to back; small calls show what a call costs the host. An untimed call precedes each batch, so the GPU does not wait for
the host if calls are long. Samples under a power cap count, because the library can do no better there; a note says so.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

import numpy as np

from linkwright.base.errors import CudaError, WaivedError, WrongResultError
from linkwright.base.extras import install
from linkwright.base.units import NS_PER_S
from linkwright.executors.probes import Setting, work
from linkwright.store.record import Record, remarks

from .. import compiler, peaks
from ..measure import Gpu, Sampling
from ..power import Meter
from .sampling import collected

SAMPLE_NS = 1e6
# Samples of a batch are enqueued back to back for about this long: the clock of a GPU follows power and heat, so it
# should hardly rest between batches.
BATCH_NS = 10e6
LEAST_SAMPLES, MOST_SAMPLES = 4, 16
POWER_CAP = "power cap"
# The architecture that introduced each type.
_SINCE = {"tf32": 80, "bf16": 80, "f8": 89}
# How long to go on working only to see the energy counter step.
_POWER_S = 2.0
CURES = {
    "torch": "PyTorch (`.venv/bin/pip install torch`)",
    "cupy": f"CuPy with the library ({install('cuda-libraries', 'cuda13-libraries')})",
}


def torch() -> ModuleType | None:
    """PyTorch, if it is installed and sees a GPU."""
    found = _imported("torch")
    return found if found is not None and found.cuda.is_available() else None


def release() -> None:
    """Return the memory that PyTorch caches to the driver, for the next experiment."""
    if (found := sys.modules.get("torch")) is not None:
        found.cuda.empty_cache()


@contextmanager
def refusals(what: str) -> Iterator[None]:
    """Turn errors of PyTorch, CuPy and NCCL into ours, so that each costs one experiment and gives its reason."""
    try:
        yield
    except RuntimeError as error:
        said = next(iter(str(error).splitlines()), type(error).__name__)
        raise CudaError(f"{what}: the library refuses: {said}") from error


def cupy(library: str) -> ModuleType | None:
    """CuPy's binding of one library, if both are installed."""
    return _imported("cupy.cuda", library)


def _imported(name: str, member: str | None = None) -> ModuleType | None:
    try:
        # Like `from name import member`, because CuPy creates some members on first use.
        found = __import__(name, fromlist=[member] if member else [])
        return getattr(found, member) if member else found
    except (ImportError, OSError, AttributeError):
        return None


def missing(key: str, *names: str) -> WaivedError:
    """The error for a missing library, with the cure."""
    said = f"{key}: waived: it needs {' or '.join(CURES[name] for name in names)}"
    if "torch" in names and (blind := _imported("torch")) is not None:
        said += (
            f"; PyTorch {blind.__version__} is installed and sees no GPU: it is a build for CPUs, or for a CUDA newer "
            "than the driver"
        )
    return WaivedError(said)


def whole_gpu(key: str, axes: dict) -> None:
    """Waive a request for some of the SMs, which a library cannot be confined to."""
    if int(axes["threads"]) != 1:
        raise WaivedError(f"{key}: waived: a library takes all SMs of the GPU, which threads=1 stands for")


def has_type(key: str, gpu: Gpu, dtype: str) -> None:
    """Waive types that the GPU has no units for."""
    since = _SINCE.get(dtype, 0)
    if compiler.number(gpu.device.architecture) < since:
        raise WaivedError(
            f"{key}: waived: {gpu.device.name} ({gpu.device.architecture}) has no {dtype}; sm_{since} and newer have"
        )


def fits_host(key: str, nbytes: int, how: Sampling) -> None:
    """Waive what the host lacks the memory to check."""
    work.fits_memory(key, nbytes, Setting(cpus=(), budget_s=how.budget_s))


def sampled(
    key: str,
    gpu: Gpu,
    call: Callable[[], object],
    how: Sampling,
    *,
    library: str,
    done: float,
    dtype: str | None = None,
    may_exceed: bool = False,
) -> Record:
    """One launch of a call that does `done` work, limited by the GPU's peak if it has a floating-point `dtype`.

    Only a method that needs fewer operations than are counted `may_exceed` that peak.
    """
    first_ns = float(gpu.device.elapsed_ns(call)[0])

    def several(repeats: int, samples: int, meanwhile: Callable[[], object] = lambda: None) -> np.ndarray:
        def calls() -> None:
            for _ in range(repeats):
                call()

        call()  # during this one, the host enqueues those that are timed
        return gpu.device.elapsed_ns(calls, samples, meanwhile=meanwhile) / repeats

    repeats, samples = _sizes(key, several, how)
    # From here on, only the work itself happens between two readings of the energy.
    meter = Meter(gpu.throttling)
    end = time.monotonic() + how.budget_s

    def look() -> None:
        gpu.throttling.notice()
        meter.look()

    found = collected(gpu.throttling, lambda: several(repeats, samples, look), how, bears=(POWER_CAP,))
    until = min(end, time.monotonic() + _POWER_S)
    while meter.counts and meter.watts() is None and time.monotonic() < until:
        several(repeats, samples, meter.look)
    limit_ns = _limit_ns(key, gpu, found.values_ns, done, dtype, may_exceed)
    return dataclasses.replace(
        found.noted(*remarks(f"library: {library}")), first_ns=round(first_ns, 4), batch=repeats, work=done,
        watts=meter.watts(), limit_ns=limit_ns, limit_name=None if limit_ns is None else peaks.NAME,
    )  # fmt: skip


def _sizes(key: str, several: Callable[[int, int], np.ndarray], how: Sampling) -> tuple[int, int]:
    """Calls of a sample, and samples of a batch."""
    repeats = 1
    while (taken_ns := float(several(repeats, LEAST_SAMPLES).min()) * repeats) < SAMPLE_NS:
        repeats *= 2
    work.fits_time(key, taken_ns / NS_PER_S, Setting(cpus=(), budget_s=how.budget_s))
    return repeats, int(min(MOST_SAMPLES, max(LEAST_SAMPLES, BATCH_NS / taken_ns)))


def _limit_ns(
    key: str, gpu: Gpu, values_ns: Sequence[float], done: float, dtype: str | None, may_exceed: bool
) -> float | None:
    peak = peaks.flops_per_ns(gpu.device, dtype, gpu.clocks.rate) if dtype else None
    if not peak:
        return None
    if values_ns and min(values_ns) < done / peak and not may_exceed:
        raise WrongResultError(
            f"{key}: {min(values_ns):.4g} ns are less than the {done / peak:.4g} ns that {gpu.device.sm_count} SMs "
            f"take for {dtype} at their peak; no value is reported",
            code="exec.implausible",
        )
    return done / peak
