"""What probes of the vendor's libraries share: which library answers, and its calls timed by events of the GPU.

    products        PyTorch where it is installed and sees a GPU, else CuPy; f8 by PyTorch only
    convolutions    PyTorch, which calls cuDNN
    random numbers  CuPy, which calls cuRAND

All work on the default stream of the context that the driver gave this process. A sample is so many calls, one
enqueued behind the other, that they take a millisecond; small ones show what a call costs the host. One call that is
not timed goes before each batch, so that the GPU need not wait for the host where calls are long. Under a power cap a
library reaches what it reaches there, so those samples count and a note says so.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

import numpy as np

from linkwright.errors import CudaError, ImplausibleError, WaivedError
from linkwright.probes import Setting, work
from linkwright.store.record import Record, remarks

from .. import compiler, peaks
from ..measure import Gpu, Sampling
from ..power import Meter
from .sampling import collected

SAMPLE_NS = 1e6
# Samples of a batch, one enqueued behind the other: as many as take so long, so that a GPU, whose clock follows its
# power and its heat, hardly rests between batches.
BATCH_NS = 10e6
LEAST_SAMPLES, MOST_SAMPLES = 4, 16
POWER_CAP = "power cap"
# Types that came with an architecture.
_SINCE = {"tf32": 80, "bf16": 80, "f8": 89}
# Longest that work goes on only to see the energy counter step.
_POWER_S = 2.0
CURES = {
    "torch": "PyTorch (`pip install torch`)",
    "cupy": "CuPy with the library (`pip install linkwright[cuda-libraries]`, or [cuda13-libraries])",
}


def torch() -> ModuleType | None:
    """PyTorch, where it is installed and sees a GPU."""
    found = _imported("torch")
    return found if found is not None and found.cuda.is_available() else None


def release() -> None:
    """Give back what PyTorch keeps for its next tensors: the next experiment takes its memory from the driver."""
    if (found := sys.modules.get("torch")) is not None:
        found.cuda.empty_cache()


@contextmanager
def refusals(what: str) -> Iterator[None]:
    """Errors of PyTorch, CuPy and NCCL as ours: what they refuse costs one experiment and says why."""
    try:
        yield
    except RuntimeError as error:
        said = next(iter(str(error).splitlines()), type(error).__name__)
        raise CudaError(f"{what}: the library refuses: {said}") from error


def cupy(library: str) -> ModuleType | None:
    """CuPy's binding of one library, where both are installed."""
    return _imported("cupy.cuda", library)


def _imported(name: str, member: str | None = None) -> ModuleType | None:
    try:
        # As `from name import member`: CuPy makes some members when they are asked for.
        found = __import__(name, fromlist=[member] if member else [])
        return getattr(found, member) if member else found
    except (ImportError, OSError, AttributeError):
        return None


def missing(key: str, *names: str) -> WaivedError:
    """Why nothing answers, and what would do."""
    said = f"{key}: waived: it needs {' or '.join(CURES[name] for name in names)}"
    if "torch" in names and (blind := _imported("torch")) is not None:
        said += (
            f"; PyTorch {blind.__version__} is installed and sees no GPU: it is one for processors, or one of a CUDA "
            "newer than the driver"
        )
    return WaivedError(said)


def whole_gpu(key: str, axes: dict) -> None:
    """Waives what a library cannot be asked for: a part of the SMs."""
    if int(axes["threads"]) != 1:
        raise WaivedError(f"{key}: waived: a library takes all SMs of the GPU, which threads=1 stands for")


def has_type(key: str, gpu: Gpu, dtype: str) -> None:
    """Waives types that the GPU has no units for."""
    since = _SINCE.get(dtype, 0)
    if compiler.number(gpu.device.architecture) < since:
        raise WaivedError(
            f"{key}: waived: {gpu.device.name} ({gpu.device.architecture}) has no {dtype}; sm_{since} and newer have"
        )


def fits_host(key: str, nbytes: int, how: Sampling) -> None:
    """Waives what the host has no room to check."""
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
    """One launch of a call that does so much work; of floating-point `dtype`, beside the peak of the GPU.

    A method that needs fewer operations than are counted `may_exceed` that peak; nothing else can.
    """
    first_ns = float(gpu.device.elapsed_ns(call)[0])

    def several(repeats: int, samples: int, meanwhile: Callable[[], object] = lambda: None) -> np.ndarray:
        def calls() -> None:
            for _ in range(repeats):
                call()

        call()  # while this one lasts, the host enqueues those that are timed
        return gpu.device.elapsed_ns(calls, samples, meanwhile=meanwhile) / repeats

    repeats, samples = _sizes(key, several, how)
    # From here on nothing but the work itself lies between two looks at the energy.
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
    work.fits_time(key, taken_ns / 1e9, Setting(cpus=(), budget_s=how.budget_s))
    return repeats, int(min(MOST_SAMPLES, max(LEAST_SAMPLES, BATCH_NS / taken_ns)))


def _limit_ns(
    key: str, gpu: Gpu, values_ns: Sequence[float], done: float, dtype: str | None, may_exceed: bool
) -> float | None:
    peak = peaks.flops_per_ns(gpu.device, dtype, gpu.clocks.rate) if dtype else None
    if not peak:
        return None
    if values_ns and min(values_ns) < done / peak and not may_exceed:
        raise ImplausibleError(
            f"{key}: {min(values_ns):.4g} ns are less than the {done / peak:.4g} ns that {gpu.device.sm_count} SMs "
            f"take for {dtype} at their peak; no value is reported"
        )
    return done / peak
