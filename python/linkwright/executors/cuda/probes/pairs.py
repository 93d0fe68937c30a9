"""Pairs of SMs that send at once: `sm_pair_bandwidth`, and `sm_loaded_latency` of one pair while the others send.

The reference of `pair_stream.cu`: the sum of all words that the readers saw.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from linkwright.base.errors import WaivedError, WrongResultError
from linkwright.base.units import S_PER_NS
from linkwright.executors.process import Sampling
from linkwright.store.record import Record

from ..device import Loaded
from ..job import LINE_WORDS, Job
from ..measure import Gpu
from .handover import in_cluster
from .sampling import SAMPLES, enough_sms, fits, job, sampled

THREADS = 512
MESSAGES = 16
ROUNDS = 64
_SLOTS = 2
_FLAG_BYTES = 2 * 8 * LINE_WORDS
_STEP = 3  # added to each word from one message to the next


def sum_of(messages: int, nbytes: int) -> int:
    """The sum of all words of `messages` messages, modulo 2^32."""
    words = nbytes // 4
    each = words * (words - 1) // 2
    return (messages * each + _STEP * words * (messages * (messages - 1) // 2)) % (1 << 32)


def sm_pair_bandwidth(gpu: Gpu, axes: dict, sms: list[int], how: Sampling) -> Record:
    """One message of every pair."""
    key = "sm_pair_bandwidth"
    made = _job(key, gpu, axes, sms, probing=False)
    pairs, nbytes = made.words["parts"] // 2, made.words["bytes"]
    with gpu.device.loaded(made) as loaded:
        check = _sums(key, loaded, nbytes)
        counted = pairs * nbytes
        return sampled(
            gpu, loaded, how, operations=MESSAGES, check=check, reset=("flags", "ended"),
            counted_bytes=counted, moved_bytes=counted,
        )  # fmt: skip


def sm_loaded_latency(gpu: Gpu, axes: dict, sms: list[int], how: Sampling) -> Record:
    """Half a round trip of the first pair while all others send."""
    key = "sm_loaded_latency"
    made = _job(key, gpu, axes, sms, probing=True)
    nbytes = made.words["bytes"]
    with gpu.device.loaded(made) as loaded:
        check = _sums(key, loaded, nbytes)
        found = sampled(
            gpu, loaded, how, operations=2 * ROUNDS, check=check, reset=("flags", "ended"), part=0, least_cycles=1
        )
        took = gpu.clocks.ns(loaded.read("cycles").astype(np.int64)) * S_PER_NS
        rates = (loaded.read("received") * nbytes / np.maximum(took, 1e-9)).sum(axis=1)
    return dataclasses.replace(found, columns={"load_bandwidth": [float(np.median(rates))]})


def _job(key: str, gpu: Gpu, axes: dict, sms: list[int], *, probing: bool) -> Job:
    parts, nbytes, cluster = int(axes["threads"]), int(axes["bytes"]), axes["through"] == "cluster"
    if parts < 2 or parts % 2:
        raise WaivedError(f"{key}: waived: pairs are an even number of SMs, not {parts}")
    if nbytes < 16 or nbytes % 16:
        raise WaivedError(f"{key}: waived: a message is a multiple of 16 bytes, not {nbytes}")
    fits(key, gpu, parts * nbytes)
    shared = 0
    if cluster:
        shared = _in_clusters(key, gpu, int(axes["cluster"]), parts, nbytes)
    chosen = list(gpu.all_sms[:parts]) if cluster else enough_sms(key, sms, parts)
    words = {
        "bytes": nbytes,
        "messages": ROUNDS if probing else MESSAGES,
        "probing": int(probing),
        "flags": np.zeros(0 if cluster else parts // 2 * 2 * LINE_WORDS, np.uint64),
        "slots": np.zeros(0 if cluster else parts // 2 * _SLOTS * nbytes, np.uint8),
        "ended": np.zeros(LINE_WORDS, np.uint64),
        "received": np.zeros((SAMPLES, parts), np.uint64),
        "sums": np.zeros((parts, THREADS), np.uint32),
        "sum_threads": THREADS,
    }
    made = job(gpu, "pair_stream", chosen, words, threads=THREADS, shared_bytes=shared, cluster=cluster)
    return dataclasses.replace(made, cluster=int(axes["cluster"])) if cluster else made


def _in_clusters(key: str, gpu: Gpu, blocks: int, parts: int, nbytes: int) -> int:
    """Shared memory of a block: its slots."""
    in_cluster(key, gpu, blocks)
    if parts % blocks or parts > len(gpu.all_sms):
        raise WaivedError(f"{key}: waived: {parts} of {len(gpu.all_sms)} SMs do not form whole clusters of {blocks}")
    wanted = _FLAG_BYTES + _SLOTS * nbytes
    head = 1024
    if wanted > gpu.device.most_shared_bytes - head:
        raise WaivedError(
            f"{key}: waived: two messages of {nbytes} bytes do not fit into the {gpu.device.most_shared_bytes} bytes "
            "of shared memory of a block; use smaller ones"
        )
    return wanted


def _sums(key: str, loaded: Loaded, nbytes: int) -> Callable[[], None]:
    def check() -> None:
        found = loaded.read("sums").sum(axis=1, dtype=np.uint32)
        wanted = [sum_of(int(messages), nbytes) for messages in loaded.read("received").sum(axis=0)]
        wrong = np.flatnonzero(found != np.array(wanted, np.uint32))
        if len(wrong):
            raise WrongResultError(f"{key}: SM {wrong[0]} of the pairs read wrong words; no value is reported")

    return check
