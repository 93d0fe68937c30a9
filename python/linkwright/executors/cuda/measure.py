"""One launch of a schedule on a GPU: fill, check, warm up, sample, check.

    check     fresh data, one repetition, all memory compared with `reference`
    warm up   kernels of many repetitions until the medians of five agree
    sample    kernels of many repetitions; the time of the slowest rank since it started is one sample
    check     once more

A kernel during which the clock moved, or was lowered by power or temperature, is dropped and counted. Samples need no
batches, because the cycle counter resolves single cycles. All ranks start at one time of the GPU's timer.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from linkwright import _native
from linkwright.ask import schedules
from linkwright.ask.question import Scheduled
from linkwright.base.errors import CudaError, ExecError, WaivedError, WrongResultError
from linkwright.store.record import UNCHECKED, UNWARMED, Record, remarks

from ..process import Sampling
from ..sampling import settled, warm_up
from . import job as jobs
from . import native
from . import stream as streams
from .clocks import MOVED, Clocks, Throttling, watched
from .device import Device, Loaded
from .names import NATIVE

# Paths of an experiment on this executor.
GLOBAL_MEMORY, CLUSTER = "global_memory", "cluster"
THREADS = 256
# From announcing the start time to the start, so that all ranks see it in time.
MARGIN_NS = 4_000
PATIENCE_NS = 2_000_000_000
# Repetitions of a kernel, and the longest that it may take.
REPETITIONS = 32
KERNEL_NS = 20e6
_PORTABLE_CLUSTER, _LARGEST_CLUSTER = 8, 16


@dataclass(frozen=True)
class Gpu:
    """What an experiment runs on."""

    device: Device
    sms: tuple[int, ...]  # endpoints, in the order of ranks
    all_sms: tuple[int, ...]  # of the GPU
    clocks: Clocks
    throttling: Throttling


def run(gpu: Gpu, experiment: Scheduled, how: Sampling) -> Record:
    """One launch."""
    walk = Walk(gpu, experiment, how)
    with gpu.device.loaded(walk.job) as loaded:
        return _Launch(gpu, walk, loaded, how).measure()


class Walk:
    """A schedule ready to be walked, or the native algorithm instead: stream, data, placement."""

    def __init__(self, gpu: Gpu, experiment: Scheduled, how: Sampling):
        own = experiment.algorithm == NATIVE
        schedule = _native.without_aggregations(schedules.of(native.same_data(experiment) if own else experiment))
        self.ranks = schedule.ranks
        self.cluster = _in_cluster(gpu.device, experiment)
        self.placed = _sms(gpu, experiment)
        self.stream = streams.encode(schedule, experiment.dtype, experiment.op)
        self.memory = streams.memory(schedule, experiment.dtype, experiment.op, how.seed)
        self._skew = {"skew": experiment.skew}
        self._seed = how.seed
        device = gpu.device
        others = [sm for sm in gpu.all_sms if sm not in self.placed]
        placement = jobs.Placement.on(
            [*self.placed, *others], self.ranks, device.whole_sm_bytes, device.most_shared_bytes
        )
        self.job = (native.job if own else jobs.walk)(
            self.stream, self.memory.initial, placement, np.zeros((REPETITIONS, self.ranks)), dtype=experiment.dtype,
            op=experiment.op, threads=THREADS, margin_ns=MARGIN_NS, patience_ns=PATIENCE_NS, cluster=self.cluster,
        )  # fmt: skip

    def delays_ns(self, kernel: int) -> np.ndarray:
        """How late each rank comes to each repetition of kernel number `kernel`."""
        seed = (self._seed + kernel) % (1 << 64)
        drawn = _native.arrival_delays(self.ranks, REPETITIONS, {**self._skew, "seed": seed})
        return np.round(drawn).astype(np.uint64).reshape(REPETITIONS, self.ranks)


def _in_cluster(device: Device, experiment: Scheduled) -> bool:
    if experiment.path in (None, GLOBAL_MEMORY):
        return False
    if experiment.path != CLUSTER:
        raise WaivedError(f"cuda: waived: there is no path `{experiment.path}`; use `{GLOBAL_MEMORY}` or `{CLUSTER}`")
    if not device.has_clusters:
        raise WaivedError(f"cuda: waived: {device.name} ({device.architecture}) has no clusters; sm_90 and newer have")
    if experiment.ranks > _LARGEST_CLUSTER:
        raise WaivedError(
            f"cuda: waived: {experiment.ranks} ranks; a cluster has at most {_LARGEST_CLUSTER} blocks, and "
            f"{_PORTABLE_CLUSTER} on every GPU that has them"
        )
    if experiment.placement:
        raise WaivedError("cuda: waived: the blocks of a cluster are placed by the hardware, so no pair can be chosen")
    return True


def _sms(gpu: Gpu, experiment: Scheduled) -> list[int]:
    chosen = experiment.placement or range(experiment.ranks)
    if len(chosen) > len(gpu.sms):
        raise WaivedError(f"cuda: waived: {len(chosen)} ranks need as many SMs; {len(gpu.sms)} take part")
    return [gpu.sms[endpoint] for endpoint in chosen]


class _Launch:
    def __init__(self, gpu: Gpu, walk: Walk, loaded: Loaded, how: Sampling):
        self._gpu, self._walk, self._loaded, self._how = gpu, walk, loaded, how
        self._kernels = 0
        self._repetitions = REPETITIONS
        self._starts_ns = 0.0

    def measure(self) -> Record:
        """Fill, check, warm up, sample, check."""
        end = time.monotonic() + self._how.budget_s
        first_ns = self._first()
        self._size_kernels()
        warmed_up = warm_up(lambda: self._kernel(self._repetitions)[1].max(axis=1), self._how, end)
        kept, dropped = self._sample(end)
        self._first()
        notes = remarks(self._gpu.throttling.note)
        notes += [] if warmed_up else [UNWARMED]
        notes += [] if self._how.check else [UNCHECKED]
        starts, durations = kept
        return Record(
            values_ns=schedules.rounded(durations.max(axis=1)),
            ranks_ns=[[schedules.rounded(s), schedules.rounded(d)] for s, d in zip(starts.T, durations.T, strict=True)],
            first_ns=round(first_ns, 2),
            dropped=dropped,
            notes=tuple(notes),
            start="timer",
            residual_ns=round(self._starts_ns, 2),
        )

    def _first(self) -> float:
        """One repetition on fresh data, compared with `reference`; its time in ns."""
        self._loaded.restore("memory")
        durations = self._kernel(1)[1]
        if self._how.check:
            self._walk.memory.check(self._walk.stream, self._loaded.read("memory"), "cuda")
        return float(durations.max())

    def _size_kernels(self) -> None:
        """Choose as many repetitions as a kernel has time for."""
        one_ns = float(self._kernel(2)[1].max())
        self._repetitions = int(min(REPETITIONS, max(1, KERNEL_NS / max(one_ns, 1))))

    def _sample(self, end: float) -> tuple[tuple[np.ndarray, np.ndarray], dict[str, int]]:
        """Starts and durations by (sample, rank), and how many samples were dropped, by reason."""
        starts, durations = (np.empty((0, self._walk.ranks)) for _ in range(2))
        dropped: dict[str, int] = {}
        looked_at = 0
        while len(durations) < self._how.samples:
            with watched(self._gpu.throttling) as lowered:
                began, took, clock_moved = self._kernel(self._repetitions)
            reasons = [*lowered, *(["clock"] if clock_moved else [])]
            for reason in reasons[:1]:
                dropped[reason] = dropped.get(reason, 0) + len(took)
            if not reasons:
                starts, durations = np.vstack([starts, began]), np.vstack([durations, took])
            if len(durations) >= 2 * max(1, looked_at):
                looked_at = len(durations)
                if settled(durations.max(axis=1), self._how.settle_within):
                    break
            if time.monotonic() >= end:
                break
        return (starts[: self._how.samples], durations[: self._how.samples]), dropped

    def _kernel(self, repetitions: int) -> tuple[np.ndarray, np.ndarray, bool]:
        """Run a kernel: starts since the first one, durations, both in ns by (repetition, rank); did the clock move?"""
        loaded, walk = self._loaded, self._walk
        loaded.restore("counters", "arrivals", "sm_of_rank", "trouble")
        delays = walk.delays_ns(self._kernels)
        loaded.write("delays", delays)
        loaded.set("repetitions", repetitions)
        self._kernels += 1
        loaded.run()
        self._judge()
        times = loaded.read("times")[:repetitions].astype(np.int64)
        cycles, ns = times[..., 1] - times[..., 0], times[..., 3] - times[..., 2]
        if (cycles <= 0).any() or (ns < 0).any():
            raise WrongResultError(
                "cuda: a rank finished before it started; no value is reported", code="exec.implausible"
            )
        starts = times[..., 2] - times[..., 2].min(axis=1, keepdims=True)
        expected = delays[:repetitions].astype(np.int64)
        self._starts_ns = max(self._starts_ns, float(np.ptp(times[..., 2] - expected, axis=1).max()))
        return starts.astype(float), self._gpu.clocks.ns(cycles), self._clock_moved(times)

    def _clock_moved(self, times: np.ndarray) -> bool:
        """Whether cycles and the timer disagree over the whole kernel, by more than the timer's steps explain."""
        span_ns = (times[-1, :, 3] - times[0, :, 2]).astype(float)
        rate = (times[-1, :, 1] - times[0, :, 0]) / np.maximum(span_ns, 1)
        slack = MOVED + 2 * self._gpu.clocks.resolution_ns / np.maximum(span_ns, 1)
        return bool((np.abs(rate / self._gpu.clocks.rate - 1) > slack).any())

    def _judge(self) -> None:
        """Raise if the kernel gave up, or if a rank ran on another SM than its own."""
        said = jobs.trouble_of(self._loaded.read("trouble"))
        taken = self._loaded.read("sm_of_rank").astype(np.int64) - 1
        missing = np.flatnonzero(taken < 0)
        if len(missing):
            rank = int(missing[0])
            raise CudaError(
                f"{self._gpu.device.name}: no block ran on SM {self._walk.placed[rank]}, which was to play rank "
                f"{rank}; another process may be using the GPU: use it alone"
            )
        if said:
            raise ExecError(f"{self._gpu.device.name}: {said}; verify the schedule", code="exec.stuck")
        if not self._walk.cluster and taken.tolist() != self._walk.placed:
            raise CudaError(f"{self._gpu.device.name}: ranks ran on SMs {taken.tolist()}, not on {self._walk.placed}")
