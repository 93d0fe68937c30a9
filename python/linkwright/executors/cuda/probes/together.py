"""Joint work of SMs: `sm_barrier` in a grid or in a cluster, `sm_atomic` at one word or at many.

The references of `block_barrier.cu` and `atomic_add.cu`: their counters.
"""

from __future__ import annotations

import numpy as np

from linkwright.base.errors import WaivedError, WrongResultError
from linkwright.executors.process import Sampling
from linkwright.store.record import Record

from ..job import LINE_WORDS
from ..measure import Gpu
from .handover import in_cluster
from .sampling import SAMPLES, enough_sms, job, sampled

ROUNDS = 64
THREADS = 256
_WARP = 32
_MOST_WARPS = 32


def sm_barrier(gpu: Gpu, axes: dict, sms: list[int], how: Sampling) -> Record:
    """One barrier of `threads` SMs."""
    key, cluster, blocks = "sm_barrier", axes["how"] == "cluster", int(axes["threads"])
    if cluster:
        in_cluster(key, gpu, blocks)
    chosen = list(gpu.all_sms[:blocks]) if cluster else enough_sms(key, sms, blocks)
    words = {
        "rounds": ROUNDS,
        "counter": np.zeros(LINE_WORDS, np.uint64),
        "seen": np.zeros(blocks * LINE_WORDS, np.uint64),
        "late": np.zeros(1, np.uint64),
    }
    made = job(gpu, "block_barrier", chosen, words, threads=THREADS, cluster=cluster)
    with gpu.device.loaded(made) as loaded:

        def check() -> None:
            arrived, late = int(loaded.read("counter")[0]), int(loaded.read("late")[0])
            if late or arrived != SAMPLES * ROUNDS * blocks:
                raise WrongResultError(
                    f"{key}: {late} neighbours absent after a barrier, {arrived} arrivals; no value is reported"
                )

        return sampled(gpu, loaded, how, operations=ROUNDS, check=check, reset=("counter", "seen", "late"))


def sm_atomic(gpu: Gpu, axes: dict, sms: list[int], how: Sampling) -> Record:
    """One addition of every thread that takes part."""
    key, same, parts, warps = "sm_atomic", axes["at"] == "same", int(axes["threads"]), int(axes["warps"])
    if not 1 <= warps <= _MOST_WARPS:
        raise WaivedError(f"{key}: waived: a block has 1 to {_MOST_WARPS} warps, not {warps}")
    threads = _WARP * warps
    words = {"rounds": ROUNDS, "same": int(same), "words": np.zeros(parts * warps * LINE_WORDS, np.uint64)}
    made = job(gpu, "atomic_add", enough_sms(key, sms, parts), words, threads=threads, shared_bytes=8 * threads)
    with gpu.device.loaded(made) as loaded:

        def check() -> None:
            found, wanted = int(loaded.read("words").sum()), parts * threads * ROUNDS * SAMPLES
            if found != wanted:
                raise WrongResultError(f"{key}: the words add up to {found}, not {wanted}; no value is reported")

        return sampled(gpu, loaded, how, operations=ROUNDS, check=check, reset=("words",), work=parts * threads)
