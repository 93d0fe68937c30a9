"""Ranks as SMs of a GPU: the same schedules, walked by one persistent kernel.

    linkwright run allreduce --on cuda

The session runs on the host and plans as for any other executor; each launch is a fresh process with a context
of its own. Without a GPU everything imports, lists and compiles; only what would need one says so.

    stream.py    the instruction stream of a schedule, and where its memory lies
    walk.py      the CPU reference of the kernel that walks it
    native.py    the allreduce that one would write without schedules
    job.py       what a launch is given
    compiler.py  kernels to machine code, by NVRTC
    device.py    the GPU through its driver
    clocks.py    rate, resolution and skew of its clocks; throttling
    measure.py   one launch of a schedule
    launch.py    the process of a launch
"""

from __future__ import annotations

LAUNCH_MODULE = "linkwright.executors.cuda.launch"
# How experiments name the allreduce of native.py.
NATIVE = "cuda-native"

ENTRY: dict[str, object] = {
    "key": "cuda",
    "summary": "ranks are SMs of a GPU: one persistent kernel walks the schedule, with flags in L2 or in a cluster",
    "description": (
        "One block per SM takes the rank that the host gave to its SM, waits for counters, copies and combines, and "
        "raises counters; all memory is compared with `reference`, outside the timed region. Path `global_memory` "
        "(the default) keeps data and flags in global memory, path `cluster` in distributed shared memory of up to 16 "
        "SMs (sm_90 and newer). The algorithm `cuda-native` is an allreduce by barriers of the whole grid. Times are "
        "cycles of the SM. Needs an NVIDIA GPU with its driver and `pip install linkwright[cuda]`, or [cuda13]; the "
        "first GPU that CUDA_VISIBLE_DEVICES shows is used."
    ),
}
