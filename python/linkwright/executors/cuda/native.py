"""An allreduce as one would write it without schedules, by two barriers of the whole grid (`grid_reduce.cu`).

It is called `cuda-native` and measured like our algorithms: the same ranks on the same SMs, the same start, the same
data. The data are those of a schedule without scratch, so the memory of a rank is its vector, and the result must be
what `reference` leaves there.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from linkwright.ask.question import Collective
from linkwright.base.errors import WaivedError

from .job import DTYPES, HEAD_BYTES, LINE_WORDS, OPS, PACK_BYTES, Job, Placement, known_kind, ranks_words
from .names import NATIVE
from .stream import Stream

_SAME_DATA = "ring"


def same_data(experiment: Collective) -> Collective:
    """The experiment with a schedule that works on the same data."""
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
    """A launch that reduces once for each row of delays; parameters as of `job.walk`."""
    if cluster:
        raise WaivedError(f"cuda: waived: {NATIVE} is a barrier of the whole grid; omit the path")
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
