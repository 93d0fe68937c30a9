"""Latency of dependent loads: `memory_latency` of the catalogue, and `sm_load_latency` by what a load passes through.

The reference of `pointer_chase.cu`: the chain followed here must end where the kernel ended.
"""

from __future__ import annotations

import numpy as np

from linkwright.base.errors import WaivedError, WrongResultError
from linkwright.executors.process import Sampling
from linkwright.store.record import Record

from ..device import Loaded
from ..measure import Gpu
from .handover import in_cluster
from .sampling import SAMPLES, enough_sms, fits, job, run, sampled

LINE_BYTES = 128
STEPS = 1024
_THROUGH = {"shared": 0, "l1": 1, "l2": 2}
# A working set that an L1 could hold is walked once before each sample.
_WARMED_BYTES = 1 << 19


def chain(lines: int, order: str, seed: int) -> np.ndarray:
    """All lines once, in the order of the chase, beginning with line 0."""
    if order == "random":
        around = np.random.default_rng(seed).permutation(lines)
    else:
        step = max(1, int(order.removeprefix("stride_")) // LINE_BYTES)
        around = np.concatenate([np.arange(first, lines, step) for first in range(min(step, lines))])
    return np.roll(around, -int(np.flatnonzero(around == 0)[0]))


def after(around: np.ndarray, steps: int) -> int:
    """The line where a chase from line 0 ends."""
    return int(around[steps % len(around)])


def memory_latency(gpu: Gpu, axes: dict, sms: list[int], how: Sampling) -> Record:
    """Plain loads, through all caches."""
    if axes["pages"] != "2M":
        raise WaivedError(
            "memory_latency: waived: the driver maps the memory of a GPU by pages of 2 MiB; ask for them with pages=2M"
        )
    if axes["neighbours"] and axes["neighbours_do"] != "chase":
        raise WaivedError("memory_latency: waived: on a GPU neighbours chase; omit neighbours_do")
    return _chase("memory_latency", gpu, axes, sms, how, "l1", 1 + int(axes["neighbours"]))


def sm_load_latency(gpu: Gpu, axes: dict, sms: list[int], how: Sampling) -> Record:
    """By what the load passes through."""
    return _chase("sm_load_latency", gpu, axes, sms, how, str(axes["through"]), int(axes["threads"]))


def _chase(key: str, gpu: Gpu, axes: dict, sms: list[int], how: Sampling, through: str, parts: int) -> Record:
    cluster = through == "cluster"
    chosen = _in_cluster(key, gpu, parts) if cluster else enough_sms(key, sms, parts)
    lines = int(axes["working_set"]) // LINE_BYTES
    if lines < 2:
        raise WaivedError(f"{key}: waived: a chase needs two lines of {LINE_BYTES} bytes; ask for {2 * LINE_BYTES}")
    nbytes, shared = lines * LINE_BYTES, through in ("shared", "cluster")
    if shared and nbytes > gpu.device.most_shared_bytes - 1024:
        raise WaivedError(f"{key}: waived: shared memory of a block has {gpu.device.most_shared_bytes} bytes")
    chains = 1 if shared else parts
    fits(key, gpu, nbytes * chains)
    around = chain(lines, str(axes["order"]), how.seed)
    warm = lines if nbytes <= _WARMED_BYTES and not shared else 0
    words = {
        "steps": STEPS,
        "warm": warm,
        "through": parts if cluster else _THROUGH[through],
        "shared_words": nbytes // 8 if shared else 0,
        "chain": np.zeros(chains * nbytes // 8, np.uint64),
        "at": np.zeros(len(chosen), np.uint64),
    }
    made = job(
        gpu, "pointer_chase", chosen, words, threads=32, shared_bytes=nbytes if shared else 0, cluster=cluster
    )  # fmt: skip
    with gpu.device.loaded(made) as loaded:
        # Block memory begins with what the parts exchange; the kernel knows its address.
        base = np.arange(parts) * (0 if shared else nbytes) + (128 if shared else loaded.address("chain"))
        laid = np.zeros((chains, lines, LINE_BYTES // 8), np.uint64)
        laid[:, around, 0] = base[:chains, None] + LINE_BYTES * np.roll(around, -1)
        loaded.write("chain", laid)
        loaded.write("at", np.resize(base, len(chosen)).astype(np.uint64))
        walked = 0 if shared else _fill_caches(gpu, loaded, lines, warm)

        def check() -> None:
            nonlocal walked
            walked += SAMPLES * (STEPS + warm)
            ends = (base + LINE_BYTES * after(around, walked)).astype(np.uint64)
            wrong = np.flatnonzero(loaded.read("at")[:parts] != ends)
            if len(wrong):
                raise WrongResultError(f"{key}: part {wrong[0]} left its chain; no value is reported")

        return sampled(gpu, loaded, how, operations=STEPS, check=check, least_cycles=1)


def _in_cluster(key: str, gpu: Gpu, parts: int) -> list[int]:
    """The SMs of a cluster in which `parts` blocks chase, each through the memory of the next block."""
    blocks = max(2, parts)
    in_cluster(key, gpu, blocks)
    return list(gpu.all_sms[:blocks])


def _fill_caches(gpu: Gpu, loaded: Loaded, lines: int, warm: int) -> int:
    """Go once around the whole working set; returns the steps that it took."""
    steps = -(-lines // SAMPLES)
    loaded.set("steps", steps)
    run(gpu, loaded)
    loaded.set("steps", STEPS)
    return SAMPLES * (steps + warm)
