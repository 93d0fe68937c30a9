"""A schedule on the queues of its GPUs, over and over.

copy       copied from GPU to GPU, on the queue of the rank that issues it
combine    copied next to its destination, then combined by a kernel of that GPU
wait       for the event of the operation that raised the counter
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np

from linkwright.base.errors import CudaError

from ..cuda.device import Device
from ..cuda.job import DTYPES, OPS, Job
from ..cuda.stream import Memory, Stream
from .node import Queue
from .order import Operation, ordered

_THREADS = 256
# Bytes that each block of the kernel combines, if there are enough.
_BLOCK_BYTES = 1 << 16


class Vectors:
    """The memory of all participants, each on the GPU of its rank; passive ones take turns."""

    def __init__(self, devices: Sequence[Device], stream: Stream, memory: Memory):
        self._ends, self._memory = stream.participant_first.tolist(), memory
        self.devices = [devices[each % len(devices)] for each in range(len(self._ends) - 1)]
        self.addresses: list[int] = []
        for device, (first, end) in zip(self.devices, self._parts(), strict=True):
            device.make_current()
            try:
                self.addresses.append(device.allocate(end - first))
            except CudaError:  # one GPU lacks the room: free what the others gave
                self.close()
                raise

    def restore(self) -> None:
        """Write what the memory held before the first repetition."""
        for device, address, (first, end) in zip(self.devices, self.addresses, self._parts(), strict=True):
            device.make_current()
            device.write(address, self._memory.initial[first:end])
            device.wait()  # a queue of another GPU does not wait for this copy

    def read(self) -> np.ndarray:
        """The present contents."""
        found = self._memory.initial.copy()
        for device, address, (first, end) in zip(self.devices, self.addresses, self._parts(), strict=True):
            device.make_current()
            found[first:end] = device.read(address, found[first:end])
        return found

    def close(self) -> None:
        """Free the memory."""
        for device, address in zip(self.devices, self.addresses, strict=False):
            device.make_current()
            device.free(address)

    def _parts(self) -> list[tuple[int, int]]:
        return list(zip(self._ends, self._ends[1:], strict=False))


class Commands:
    """One repetition, ready to be enqueued."""

    notes = ()

    def __init__(self, queues: Sequence[Queue], vectors: Vectors, stream: Stream, dtype: str, op: str | None):
        self._queues, self._vectors = queues, vectors
        self._kind = {"dtype": DTYPES.index(dtype), "op": OPS.index(op or "sum")}
        self._operations = ordered(stream)
        awaited = {number for operation in self._operations for number in operation.after}
        self._closing = ExitStack()
        self._events = {number: self._event(self._operations[number].rank) for number in sorted(awaited)}
        self._helpers: dict[tuple[int, int], tuple[Queue, object, object]] = {}
        try:
            self._steps = [self._step(operation) for operation in self._operations]
        except CudaError:
            self.close()
            raise

    @property
    def entries(self) -> int:
        """An upper bound on the entries of the busiest queue."""
        per_rank = [0] * len(self._queues)
        for operation in self._operations:
            per_rank[operation.rank] += 1 + len(operation.after) + 4 * len(operation.pieces)
        return max(per_rank)

    def enqueue(self) -> None:
        """One repetition on all queues; each event is recorded before any queue waits for it."""
        for number, (operation, steps) in enumerate(zip(self._operations, self._steps, strict=True)):
            queue = self._queues[operation.rank]
            for other in operation.after:
                queue.wait_for(self._events[other])
            for step in steps:
                step()
            if number in self._events:
                queue.record(self._events[number])

    def close(self) -> None:
        """Free buffers, words and events."""
        self._closing.close()

    def _step(self, operation: Operation) -> list:
        make = self._combined if operation.combines else self._copied
        return [make(operation.rank, piece) for piece in operation.pieces if piece[4]]

    def _copied(self, rank: int, piece):
        source, offset, target, at, nbytes = piece
        vectors, queue = self._vectors, self._queues[rank]
        to, there = vectors.devices[target], vectors.addresses[target] + at
        here, begin = vectors.devices[source], vectors.addresses[source] + offset
        return lambda: queue.copy(to, there, here, begin, nbytes)

    def _combined(self, rank: int, piece):
        """Combine by a kernel of the GPU that holds the destination, on a queue there."""
        source, offset, target, at, nbytes = piece
        vectors, queue = self._vectors, self._queues[rank]
        device, there = vectors.devices[target], vectors.addresses[target] + at
        begin, before = vectors.addresses[source] + offset, None
        if vectors.devices[source] is not device:
            before = self._buffer(device, nbytes)
        words = {"to": there, "from": before or begin, "bytes": nbytes, **self._kind}
        blocks = min(2 * device.sm_count, -(-nbytes // _BLOCK_BYTES))
        job = Job("combine_pieces", "combine_pieces", words, blocks=blocks, threads=_THREADS, cooperative=False)
        device.make_current()
        loaded = self._closing.enter_context(device.loaded(job))
        self._closing.callback(device.make_current)
        there_queue, handed, returned = self._helper(rank, device)

        def enqueue() -> None:
            if before:
                queue.copy(device, before, vectors.devices[source], begin, nbytes)
            if there_queue is not queue:
                queue.record(handed)
                there_queue.wait_for(handed)
            there_queue.launch(loaded)
            if there_queue is not queue:
                there_queue.record(returned)
                queue.wait_for(returned)

        return enqueue

    def _helper(self, rank: int, device: Device) -> tuple[Queue, object, object]:
        """The queue of a rank on a GPU: its own, or one that it hands over to."""
        own = self._queues[rank]
        if own.device is device:
            return own, None, None
        key = rank, device.number
        if key not in self._helpers:
            helper = Queue(device)
            self._closing.callback(helper.close)
            self._helpers[key] = helper, self._event(rank), self._event_of(device)
        return self._helpers[key]

    def _buffer(self, device: Device, nbytes: int) -> int:
        device.make_current()
        address = device.allocate(nbytes)
        self._closing.callback(device.call, "cuMemFree", address)
        return address

    def _event(self, rank: int):
        return self._event_of(self._queues[rank].device)

    def _event_of(self, device: Device):
        event = device.call("cuEventCreate", 2)  # without a time, which costs less
        self._closing.callback(device.call, "cuEventDestroy", event)
        return event
