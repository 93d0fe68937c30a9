"""Ranks as SMs of a GPU: the same schedules, walked by one persistent kernel.

    linkwright run allreduce --on cuda

The session runs on the host and plans as for any other executor; each launch is a fresh process with its own context.
Without a GPU everything still imports, lists and compiles; whatever needs one says so.

    stream.py    the instruction stream of a schedule, and where its memory lies
    bf16.py      numbers in bf16
    native.py    an allreduce as written without schedules
    job.py       the input of a launch
    compiler.py  kernels to machine code, by NVRTC
    device.py    the GPU through its driver
    clocks.py    rate, resolution and skew of its clocks; throttling
    measure.py   one launch of a schedule
    launch.py    the process of a launch
"""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.base.errors import ShapeError
from linkwright.base.extras import install
from linkwright.store.record import Outcome

from ..protocol import LAST_CACHE, Executor, Extent, Launch, OwnAlgorithm, Target, partial, sampled
from .names import NATIVE


class Cuda(Executor):
    """The SMs of the first GPU that the driver shows."""

    key = "cuda"
    summary = "ranks are SMs of a GPU (ran on an H200): one persistent kernel walks the schedule"
    description = (
        "One block per SM takes the rank that the host gave to its SM, waits for counters, copies and combines, and "
        "raises counters; all memory is compared with `reference`, outside the timed region. Path `global_memory` "
        "(the default) keeps data and flags in global memory, path `cluster` in distributed shared memory of up to 16 "
        "SMs (sm_90 and newer). The algorithm `cuda-native` is an allreduce by barriers of the whole grid. Times are "
        f"cycles of the SM. Needs an NVIDIA GPU with its driver, and {install('cuda', 'cuda13')}; the "
        "first GPU that CUDA_VISIBLE_DEVICES shows is used."
    )
    shares_memory = True
    fit_model = "chip"
    obeys = frozenset({"path", "skew", "placement"})
    library_takes = "all SMs"
    own = (
        OwnAlgorithm(
            NATIVE,
            "an allreduce by barriers of the whole grid, as one would write it without schedules",
            ("allreduce",),
        ),
    )

    def resolve(self, ranks: int | None, grid: tuple[int, ...] | None) -> Target:
        """The first `ranks` SMs, or an even spread of all."""
        from .clocks import settled
        from .device import asked

        with asked(self.key, 1) as (gpu,):
            clocks = settled(gpu)
            name, about = gpu.name, gpu.environment()
        sms = sorted(clocks.sms)
        if ranks is not None and ranks > len(sms):
            raise ShapeError(
                f"--ranks {ranks}: {name} has {len(sms)} SMs, one for each rank; ask for at most that many"
            )
        chosen = sms[:ranks] if ranks else [sms[i] for i in sampled(len(sms)) or range(len(sms))]
        return Target(
            name=self.key,
            executor=self,
            machine_name=name,
            extent=Extent("measured", len(chosen), grid, self.own_algorithms, about["l2_bytes"] or LAST_CACHE),
            endpoint_names=tuple(f"SM {sm}" for sm in chosen),
            about={**about, "calibration": clocks.calibration(), "endpoints": chosen},
            handle=tuple(chosen),
            partial=partial(len(chosen), len(sms), "SMs", "the first ones" if ranks else "evenly spread"),
        )

    def launch(self, target: Target, launch: Launch, *, isolated: bool = True) -> Iterator[Outcome]:
        """In a fresh process with its own context, or in this one."""
        from .. import process

        if isolated:
            return process.fresh("linkwright.executors.cuda.launch", launch, {"sms": target.handle})
        from .launch import Measurer

        return process.here(lambda: Measurer(target.handle), launch)
