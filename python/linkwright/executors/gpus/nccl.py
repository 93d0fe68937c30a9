"""NCCL's own collectives on the data of a schedule, through CuPy.

The data are those of an in-place schedule that leaves nothing but its result, so NCCL must leave what `reference`
leaves. Every rank's part is enqueued on the queue of its GPU, in one group.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from linkwright.ask.question import Collective
from linkwright.base.errors import WaivedError

from ..cuda.probes.libraries import CURES, cupy
from .node import Queue
from .program import Vectors

# Collective -> the schedule whose data it works on.
SAME_DATA = {"allreduce": "ring", "allgather": "ring", "broadcast": "binomial"}
_TYPES = {"f32": "FLOAT32", "f64": "FLOAT64", "i32": "INT32", "i64": "INT64", "u8": "UINT8", "bf16": "BFLOAT16"}


class LibraryCall:
    """One repetition, ready to be enqueued."""

    entries = 1

    def __init__(self, queues: Sequence[Queue], vectors: Vectors, question: Collective, element_bytes: int):
        self._nccl = cupy("nccl")
        if self._nccl is None or not self._nccl.available:
            raise WaivedError(f"gpus: waived: NCCL's collectives need {CURES['cupy']}")
        self._queues = queues
        devices = tuple(queue.device.number for queue in queues)
        start = getattr(self, f"_{question.collective}")
        kind = getattr(self._nccl, f"NCCL_{_TYPES[question.dtype]}")
        self._calls = [
            start(comm, address, int(queue.handle), kind, question, element_bytes)
            for comm, address, queue in zip(_communicators(devices), vectors.addresses, queues, strict=True)
        ]

    @property
    def notes(self) -> list[str]:
        """Which library answers."""
        return [f"library: CuPy, NCCL {self._nccl.get_version()}"]

    def enqueue(self) -> None:
        """One repetition on all queues."""
        self._nccl.groupStart()
        for queue, call in zip(self._queues, self._calls, strict=True):
            queue.device.make_current()
            call()
        self._nccl.groupEnd()

    def close(self) -> None:
        """Nothing: communicators serve the next experiment."""

    def _allreduce(self, comm, address, stream, kind, question, element_bytes) -> Callable[[], None]:
        op = getattr(self._nccl, f"NCCL_{question.op.upper()}")
        count = question.size_bytes // element_bytes
        return lambda: comm.allReduce(address, address, count, kind, op, stream)

    def _allgather(self, comm, address, stream, kind, question, element_bytes) -> Callable[[], None]:
        block = question.size_bytes // question.ranks
        own = address + comm.rank_id() * block
        return lambda: comm.allGather(own, address, block // element_bytes, kind, stream)

    def _broadcast(self, comm, address, stream, kind, question, element_bytes) -> Callable[[], None]:
        count = question.size_bytes // element_bytes
        return lambda: comm.broadcast(address, address, count, kind, question.root, stream)


@functools.cache
def _communicators(devices: tuple[int, ...]) -> list:
    return cupy("nccl").NcclCommunicator.initAll(list(devices))
