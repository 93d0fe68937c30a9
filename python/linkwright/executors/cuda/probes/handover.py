"""Pass a word from SM to SM: `cache_line` of the catalogue through the L2, `sm_cluster_latency` in a cluster.

The reference of `flag_handover.cu`: the values that the words reach.
"""

from __future__ import annotations

import numpy as np

from linkwright.base.errors import WaivedError, WrongResultError
from linkwright.executors.process import Sampling
from linkwright.store.record import Record

from ..job import LINE_WORDS
from ..measure import Gpu
from .sampling import SAMPLES, enough_sms, job, sampled

ROUNDS = 64
_WARP = 32


def cache_line(gpu: Gpu, axes: dict, sms: list[int], how: Sampling) -> Record:
    """Half a round trip between the first two SMs."""
    key = "cache_line"
    if axes["how"] == "one_way":
        raise WaivedError(f"{key}: waived: the clocks of two SMs do not agree to a cycle; ask for another `how`")
    if axes["touched_by"] != "first":
        raise WaivedError(f"{key}: waived: the address of a line decides its place in the L2, whoever touches it first")
    swap = axes["how"] == "compare_and_swap"
    words = {"rounds": ROUNDS, "swap": int(swap), "first": 0, "words": np.zeros(2 * LINE_WORDS, np.uint64)}
    made = job(gpu, "flag_handover", enough_sms(key, sms, 2), words, threads=_WARP)
    with gpu.device.loaded(made) as loaded:

        def check() -> None:
            rounds = SAMPLES * ROUNDS
            found = loaded.read("words")[[0, LINE_WORDS]].tolist()
            if found != ([2 * rounds, 0] if swap else [rounds, rounds]):
                raise WrongResultError(f"{key}: the words count {found} after {rounds} rounds; no value is reported")

        return sampled(gpu, loaded, how, operations=2 * ROUNDS, check=check, reset=("words",), part=0, least_cycles=1)


def sm_cluster_latency(gpu: Gpu, axes: dict, sms: list[int], how: Sampling) -> Record:
    """Half a round trip between two blocks of a cluster."""
    key = "sm_cluster_latency"
    blocks, first, second = int(axes["threads"]), int(axes["first"]), int(axes["peer"])
    in_cluster(key, gpu, blocks)
    if first == second or max(first, second) >= blocks:
        raise WaivedError(f"{key}: waived: a cluster of {blocks} has no pair of blocks {first} and {second}")
    peer = (second - first) % blocks  # counted from `first` on
    words = {"rounds": ROUNDS, "swap": 0, "first": first, "words": np.zeros(blocks, np.uint64)}
    made = job(gpu, "flag_handover", gpu.all_sms[:blocks], words, threads=1, shared_bytes=128, cluster=True)
    with gpu.device.loaded(made) as loaded:

        def check() -> None:
            found = loaded.read("words").tolist()
            last = (SAMPLES - 1) * (blocks - 1) * ROUNDS
            wanted = [last + (blocks - 1) * ROUNDS, *(last + each * ROUNDS for each in range(1, blocks))]
            if found != wanted:
                raise WrongResultError(f"{key}: the blocks counted {found}, not {wanted}; no value is reported")

        return sampled(gpu, loaded, how, operations=2 * ROUNDS, check=check, part=peer, least_cycles=1)


def in_cluster(key: str, gpu: Gpu, blocks: int) -> None:
    """Waive clusters that this GPU cannot form."""
    if not gpu.device.has_clusters:
        raise WaivedError(f"{key}: waived: {gpu.device.name} has no clusters; sm_90 and newer have")
    if blocks not in (2, 4, 8, 16):
        raise WaivedError(f"{key}: waived: a cluster has 2, 4, 8 or 16 blocks, not {blocks}")
    if blocks > len(gpu.all_sms):
        raise WaivedError(f"{key}: waived: {blocks} blocks need as many SMs; there are {len(gpu.all_sms)}")
