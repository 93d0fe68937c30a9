"""What one would write without schedules: an allreduce by two barriers of the whole grid (`grid_reduce.cu`).

It stands beside our algorithms as `cuda-native` and is measured as they are: the same ranks on the same SMs, the same
start, the same data. Those are the data of a schedule that has no scratch, so that a rank's memory is its vector, and
what `reference` leaves of it is what must come out.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from linkwright.errors import WaivedError
from linkwright.experiment import Experiment

from . import NATIVE
from .job import DTYPES, HEAD_BYTES, LINE_WORDS, OPS, PACK_BYTES, Job, Placement, known_kind, ranks_words
from .stream import Stream

_SAME_DATA = "ring"


def same_data(experiment: Experiment) -> Experiment:
    """An experiment with a schedule on the data of a native one."""
    return dataclasses.replace(experiment, algorithm=_SAME_DATA)


def job(
    stream: Stream,
    memory: np.ndarray,
    placement: Placement,
    delays_ns: np.ndarray,
    *,
    dtype: str,
    op: str | None,
    threads: int,
    margin_ns: int,
    patience_ns: int,
    cluster: bool = False,
) -> Job:
    """A launch that reduces as often as there are rows of delays; as `job.walk`."""
    if cluster:
        raise WaivedError(f"cuda: waived: {NATIVE} is a barrier of the whole grid; leave the path away")
    nbytes = int(stream.buffer_bytes[0, 0])
    words = {
        **ranks_words(stream.ranks, placement, delays_ns, margin_ns=margin_ns, patience_ns=patience_ns),
        "bytes": nbytes,
        "stride": int(stream.participant_first[1]),
        "memory": memory,
        "result": np.zeros(-(-nbytes // PACK_BYTES) * PACK_BYTES, np.uint8),
        "counters": np.zeros(LINE_WORDS, np.uint64),
        "dtype": DTYPES.index(dtype),
        "op": OPS.index(op or "sum"),
    }
    shared = max(HEAD_BYTES + PACK_BYTES * threads, placement.whole_sm_bytes)
    return Job("grid_reduce", "grid_reduce", words, placement.blocks, threads, shared, defines=known_kind(words))
