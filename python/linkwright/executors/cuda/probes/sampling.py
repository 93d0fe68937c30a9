"""One launch of a probe whose kernel times itself: warm up, sample, check the results.

Every kernel takes several samples and writes cycles by (sample, part). A value is the time of the slowest part,
divided by the operations of a sample.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence

import numpy as np

from linkwright.base.errors import CudaError, ExecError, WaivedError, WrongResultError
from linkwright.executors.process import Sampling
from linkwright.executors.sampling import settled, warm_up
from linkwright.store.record import UNWARMED, Record, remarks

from ..clocks import Throttling, watched
from ..device import Loaded
from ..job import LINE_WORDS, NO_RANK, STUCK, Job, Word, trouble_of
from ..measure import Gpu

SAMPLES = 16  # of one kernel
_HEAD_BYTES = 128


def job(
    gpu: Gpu,
    source: str,
    parts: Sequence[int],
    words: Mapping[str, Word],
    *,
    threads: int,
    shared_bytes: int = 0,
    cluster: bool = False,
) -> Job:
    """A launch in which the i-th of these SMs plays part i; in a cluster the hardware places the blocks.

    Either way a block takes enough shared memory to be alone on its SM.
    """
    part_of_sm = np.full(max(gpu.all_sms) + 1, NO_RANK, np.uint32)
    part_of_sm[list(parts)] = np.arange(len(parts), dtype=np.uint32)
    common: dict[str, Word] = {
        "parts": len(parts),
        "part_of_sm": part_of_sm,
        "sms": len(part_of_sm),
        "sm_of_part": np.zeros(len(parts), np.uint64),
        "arrived": np.zeros(LINE_WORDS, np.uint64),
        "trouble": np.zeros(5, np.uint64),
        "samples": SAMPLES,
        "cycles": np.zeros((SAMPLES, len(parts)), np.uint64),
    }
    shared = _HEAD_BYTES + shared_bytes
    return Job(
        source=source,
        kernel=f"{source}_in_cluster" if cluster else source,
        words={**common, **words},
        blocks=len(parts) if cluster else len(gpu.all_sms),
        threads=threads,
        shared_bytes=max(shared, gpu.device.whole_sm_bytes),
        cluster=len(parts) if cluster else 1,
        cooperative=not cluster,
    )


def enough_sms(key: str, sms: Sequence[int], wanted: int) -> list[int]:
    """The first `wanted` SMs, or a waiver."""
    if wanted > len(sms):
        raise WaivedError(f"{key}: waived: {wanted} parts need as many SMs; {len(sms)} take part")
    if wanted < 1:
        raise WaivedError(f"{key}: waived: no SM takes part; ask for at least one")
    return list(sms[:wanted])


def fits(key: str, gpu: Gpu, nbytes: int) -> None:
    """Waive what needs more than a quarter of the GPU's memory."""
    most = gpu.device.memory_bytes // 4
    if nbytes > most:
        raise WaivedError(
            f"{key}: waived: it needs {nbytes} bytes and may use {most}, a quarter of the GPU's memory; ask for less"
        )


def sampled(
    gpu: Gpu,
    loaded: Loaded,
    how: Sampling,
    *,
    operations: float,
    check: Callable[[], None],
    reset: Iterable[str] = (),
    part: int | None = None,
    least_cycles: float = 0,
    spans: int = 1,
    counted_bytes: float = 0,
    moved_bytes: float = 0,
    work: float = 0,
) -> Record:
    """One launch; `check` inspects what a kernel left after `SAMPLES` samples and raises if it is wrong.

    The time is that of `part`, by default of the slowest; it adds up `spans` intervals between readings of the counter.
    An operation of at most `least_cycles` is impossible.
    """

    def kernel() -> np.ndarray:
        run(gpu, loaded, *reset)
        check()
        cycles = loaded.read("cycles").astype(np.int64)
        taken = cycles.max(axis=1) if part is None else cycles[:, part]
        if (taken <= least_cycles * operations).any():
            raise WrongResultError(
                f"{loaded.source}: an operation took {taken.min() / operations:.3g} cycles; it takes more than "
                f"{least_cycles:g}, so no value is reported",
                code="exec.implausible",
            )
        return gpu.clocks.ns(taken, spans) / operations

    found = collected(gpu.throttling, kernel, how)
    return dataclasses.replace(
        found, batch=max(1, round(operations)), counted_bytes=counted_bytes, moved_bytes=moved_bytes, work=work
    )


def run(gpu: Gpu, loaded: Loaded, *reset: str) -> None:
    """Run one kernel, and raise unless every part had its own SM."""
    loaded.restore("sm_of_part", "arrived", "trouble", *reset)
    loaded.run()
    said = loaded.read("trouble")
    if said[0] == STUCK and said[2] != loaded.address("arrived"):
        raise ExecError(
            f"{gpu.device.name}: {loaded.source}: {trouble_of(said, 'part')}; "
            "if another process uses the GPU, stop it; otherwise the kernel is wrong",
            code="exec.stuck",
        )
    if said.any():
        raise CudaError(
            f"{gpu.device.name}: a chosen SM ran zero or two blocks; another process may be using the GPU: use it alone"
        )


def collected(
    throttling: Throttling, several: Callable[[], np.ndarray], how: Sampling, bears: Container[str] = ()
) -> Record:
    """Times in ns: the first one, a warm-up, then samples until they agree; `several` takes a batch of them.

    Samples during which the clock was lowered are dropped, unless the probe `bears` that reason; then a note says so.
    """
    end = time.monotonic() + how.budget_s
    first = several()
    warmed_up = warm_up(several, how, end)
    values, dropped, borne = np.empty(0), {}, {}
    while len(values) < how.samples:
        with watched(throttling) as lowered:
            found = several()
        for reason in lowered:
            count = borne if reason in bears else dropped
            count[reason] = count.get(reason, 0) + len(found)
        disturbed = any(reason not in bears for reason in lowered)
        values = values if disturbed else np.append(values, found)
        if time.monotonic() >= end or settled(values, how.settle_within):
            break
    lowered = (f"clock lowered by {reason} during {count} samples, which count" for reason, count in borne.items())
    return Record(
        values_ns=[round(value, 4) for value in values[: how.samples].tolist()],
        first_ns=round(float(first[0]), 4),
        dropped=dropped,
        notes=(*remarks(throttling.note), *([] if warmed_up else [UNWARMED]), *remarks(*lowered)),
    )
