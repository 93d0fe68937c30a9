"""One launch of a schedule on several GPUs, or of NCCL's collective on its data.

    first     once, executed as it is enqueued: what driver and NCCL load at first use may wait for idle GPUs
    enqueue   every queue waits for a word of the host; then a mark, the repetitions, a mark
    release   the host stores the word, so that the times exclude enqueuing
    time      of the slowest GPU from its first mark to its last, by events, less that of empty repetitions; a
              negative difference counts as 0, and the row says so

Between repetitions all queues wait for each other, because the next one overwrites what the last one read. A queue of
the driver holds about a thousand entries: a longer schedule is released before all of it is enqueued, and a note says
so. The same holds if enqueuing itself blocks, as copies through the host may do once the driver's buffers are full: a
second thread opens the gate after a while, and from then on the experiment is not held.
Source: nvbandwidth (NVIDIA) holds its copies like this; the undocumented capacity of a queue is from "CUDA stream are
blocked when launch lots of kernels" in NVIDIA's forum (68937).
"""

from __future__ import annotations

import ctypes
import dataclasses
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import numpy as np

from linkwright import _native
from linkwright.ask import schedules
from linkwright.ask.question import DTYPES, Collective, Probe, Question
from linkwright.base.errors import WaivedError
from linkwright.base.units import NS_PER_MS
from linkwright.store.record import UNCHECKED, Record, remarks

from ..cuda import stream as streams
from ..cuda.device import Device
from ..cuda.probes.sampling import collected
from ..process import Sampling
from .names import LEAST, NCCL, STAGED
from .nccl import SAME_DATA, LibraryCall
from .node import Node, Queue
from .program import Commands, Vectors

# Length of a sample, unless a queue has room for fewer repetitions.
SAMPLE_NS = 1e5
ROOM = 800
SAMPLES = 4
LONGEST_HOLD_S = 0.5
_AT_ONCE = "enqueued while the schedule ran, because queues are full; times of small sizes are those of enqueuing"
_LESS = "some samples took less time than empty repetitions and count as 0"
_RELEASED = "GPUs are released by one store of the host and timed by events; their relative start times are unknown"


def run(node: Node, question: Question, how: Sampling) -> Record:
    """One launch."""
    if len(node.devices) < LEAST:
        raise WaivedError(
            "gpus: waived: this node shows one GPU, and messages need two; CUDA_VISIBLE_DEVICES may hide some"
        )
    if isinstance(question, Probe):
        raise WaivedError(
            f"probe {question.algorithm}: waived: it is not measured between GPUs; `--on cuda` measures one of them"
        )
    native = question.algorithm == NCCL
    if native and question.path == STAGED:
        raise WaivedError(f"gpus: waived: NCCL chooses its own route, not path `{STAGED}`; omit the path")
    node.take(question.path)
    chosen = question.placement or range(question.ranks)
    devices = [node.devices[endpoint] for endpoint in chosen]
    schedule = _native.without_aggregations(schedules.of(_with_data(question) if native else question))
    stream = streams.encode(schedule, question.dtype, question.op)
    _fits(devices, stream.rank_bytes)
    memory = streams.memory(schedule, question.dtype, question.op, how.seed)
    with _queues(devices) as queues, closing(Vectors(devices, stream, memory)) as vectors:
        if native:
            made = LibraryCall(queues, vectors, question, DTYPES[question.dtype])
        else:
            made = Commands(queues, vectors, stream, question.dtype, question.op)
        with closing(made), closing(Gate(queues)) as gate:
            return _Launch(node, gate, made, vectors, lambda found: memory.check(stream, found, "gpus"), how).measure()


def _fits(devices: list[Device], nbytes: int) -> None:
    """Waive what leaves no room for copies next to their destinations."""
    most = min(device.memory_bytes for device in devices) // 4
    if nbytes > most:
        raise WaivedError(
            f"gpus: waived: a rank holds {nbytes} bytes and may use {most}, a quarter of a GPU's memory; "
            "use a smaller size"
        )


def _with_data(question: Collective) -> Collective:
    return dataclasses.replace(question, algorithm=SAME_DATA[question.collective])


@contextmanager
def _queues(devices: list[Device]) -> Iterator[list[Queue]]:
    queues = [Queue(device) for device in devices]
    try:
        yield queues
    finally:
        for queue in queues:
            queue.close()


class Gate:
    """Holds all queues until the host releases them, and times what follows."""

    def __init__(self, queues: list[Queue]):
        self._queues, self._opened = queues, 0
        self.blocked = False  # whether enqueuing waited for held work
        first = queues[0].device
        self._word = first.call("cuMemHostAlloc", ctypes.sizeof(ctypes.c_uint32), 1 | 2)  # for all contexts, mapped
        self._seen = ctypes.c_uint32.from_address(int(self._word))
        self._seen.value = 0
        self._addresses = [int(queue.device.call("cuMemHostGetDevicePointer", self._word, 0)) for queue in queues]
        self._marks = [[queue.device.call("cuEventCreate", 0) for _ in range(2)] for queue in queues]
        self._joints = [queue.device.call("cuEventCreate", 2) for queue in queues]

    def elapsed_ns(self, enqueue: Callable[[], None], repetitions: int, *, held: bool = True) -> float:
        """Time of one repetition on the slowest GPU."""
        self._opened += 1
        for queue, address, (first, _) in zip(self._queues, self._addresses, self._marks, strict=True):
            queue.hold(address, self._opened)
            queue.record(first)
        with self._gone_on(self._opened, held and not self.blocked):
            for number in range(repetitions):
                if number:
                    self._join()
                enqueue()
            for queue, (_, last) in zip(self._queues, self._marks, strict=True):
                queue.record(last)
        for queue in self._queues:
            queue.wait()
        marked = zip(self._queues, self._marks, strict=True)
        return max(queue.device.call("cuEventElapsedTime", *marks) for queue, marks in marked) * NS_PER_MS / repetitions

    @contextmanager
    def _gone_on(self, number: int, held: bool) -> Iterator[None]:
        """Open before the block, or after it even if enqueuing failed, because freeing memory waits for the queues."""
        if not held:
            self._seen.value = number
            yield
            return

        def give_up() -> None:
            self.blocked = True
            self._seen.value = number

        patience = threading.Timer(LONGEST_HOLD_S, give_up)
        patience.start()
        try:
            yield
        finally:
            patience.cancel()
            patience.join()
            self._seen.value = number

    def close(self) -> None:
        """Free the events and the word."""
        for queue, marks, joint in zip(self._queues, self._marks, self._joints, strict=True):
            for event in (*marks, joint):
                queue.device.call("cuEventDestroy", event)
        self._queues[0].device.call("cuMemFreeHost", self._word)

    def _join(self) -> None:
        """No queue proceeds before all have reached this point."""
        for queue, joint in zip(self._queues, self._joints, strict=True):
            queue.record(joint)
        for queue in self._queues:
            for joint in self._joints:
                queue.wait_for(joint)


class _Launch:
    def __init__(self, node: Node, gate: Gate, made: Commands | LibraryCall, vectors: Vectors, check, how: Sampling):
        self._node, self._gate, self._made, self._vectors = node, gate, made, vectors
        self._check, self._how = check, how
        # Each repetition joins all queues: a mark, and a wait for each of them.
        self._room = ROOM // (made.entries + 1 + len(node.devices))

    def measure(self) -> Record:
        """Check, size samples, sample, check."""
        first_ns = self._checked(held=False)
        one_ns = self._elapsed_ns(1)
        repetitions = int(min(max(1, self._room), max(1, np.ceil(SAMPLE_NS / max(one_ns, 1)))))
        empty_ns = min(self._gate.elapsed_ns(lambda: None, repetitions) for _ in range(SAMPLES))

        less = []

        def several() -> np.ndarray:
            found = np.array([self._elapsed_ns(repetitions) for _ in range(SAMPLES)]) - empty_ns
            less.extend(found[found < 0])
            return np.maximum(found, 0)

        found = collected(self._node, several, self._how)
        self._checked()
        at_once = self._gate.blocked or not self._room
        notes = remarks(*self._made.notes, _RELEASED, _LESS if less else None, _AT_ONCE if at_once else None)
        notes += [] if self._how.check else [UNCHECKED]
        return dataclasses.replace(found.noted(*notes), first_ns=round(first_ns, 2), batch=repetitions)

    def _checked(self, *, held: bool = True) -> float:
        """One repetition on fresh data, compared with `reference`; its time."""
        self._vectors.restore()
        taken = self._elapsed_ns(1, held=held)
        if self._how.check:
            self._check(self._vectors.read())
        return taken

    def _elapsed_ns(self, repetitions: int, *, held: bool = True) -> float:
        return self._gate.elapsed_ns(self._made.enqueue, repetitions, held=held and bool(self._room))
