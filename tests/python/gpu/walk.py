"""The CPU reference of `schedule_walk.cu`: the same stream, walked for all ranks in turn by one thread.

Each rank proceeds until it has to wait; then the next one has its turn. If no rank can proceed, the stream is wrong.
Counters, epochs and codes mean the same as in the kernel; the arithmetic is NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linkwright.base.errors import WrongResultError
from linkwright.executors.cuda.bf16 import narrow, widen
from linkwright.executors.cuda.stream import CODES, Stream

Combination = Callable[[np.ndarray, np.ndarray], np.ndarray]
_TYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "u8": np.uint8}
_OPS = {
    "sum": np.add,
    "prod": np.multiply,
    "max": lambda to, source: np.where(source > to, source, to),
    "min": lambda to, source: np.where(source < to, source, to),
}


def walk(stream: Stream, memory: np.ndarray, dtype: str, op: str | None, epochs: int = 1) -> np.ndarray:
    """What `memory` holds after `epochs`; no rank begins one before all have ended the last."""
    memory = memory.copy()
    combine = combination(dtype, op or "sum")
    counters = np.zeros(len(stream.readers), np.int64)
    for epoch in range(epochs):
        ranks = [_Rank(stream, rank, epoch, memory, counters, combine) for rank in range(stream.ranks)]
        while any(not rank.finished for rank in ranks):
            moved = [rank.advance() for rank in ranks]
            if not any(moved):
                held = next(number for number, rank in enumerate(ranks) if not rank.finished)
                raise WrongResultError(f"no rank can proceed; rank {held} waits for {ranks[held].waits_for()}")
    return memory


class _Rank:
    def __init__(
        self, stream: Stream, rank: int, epoch: int, memory: np.ndarray, counters: np.ndarray, combine: Combination
    ):
        self._stream, self._epoch, self._memory, self._counters = stream, epoch, memory, counters
        self._combine = combine
        self._next, self._end = int(stream.rank_first[rank]), int(stream.rank_first[rank + 1])

    @property
    def finished(self) -> bool:
        """Whether this epoch is over for the rank."""
        return self._next == self._end

    def advance(self) -> bool:
        """Proceed until this rank has to wait; whether it did anything."""
        moved = False
        while not self.finished and self.waits_for() is None:
            self._act()
            moved = True
            self._next += 1
        return moved

    def waits_for(self) -> str | None:
        """The first unmet wait of the next instruction."""
        for counter, wanted in self._counts(self._stream.waits, 1):
            if self._counters[counter] < wanted:
                return f"counter {counter} to reach {wanted}; it is at {self._counters[counter]}"
        return None

    def _span(self, column: int) -> slice:
        """The entries of the next instruction in a table."""
        ends = self._stream.instructions
        return slice(int(ends[self._next - 1, column]) if self._next else 0, int(ends[self._next, column]))

    def _counts(self, table: np.ndarray, column: int):
        for counter, ordinal, per_epoch in table[self._span(column)].tolist():
            yield counter, self._epoch * per_epoch + ordinal

    def _act(self) -> None:
        stream, code = self._stream, int(self._stream.instructions[self._next, 0])
        if code in (CODES["copy"], CODES["combine"]):
            for source, offset, target, at, length in stream.pieces[self._span(2)].tolist():
                begin = int(stream.participant_first[source]) + offset
                end = int(stream.participant_first[target]) + at
                read, written = self._memory[begin : begin + length], self._memory[end : end + length]
                written[:] = read if code == CODES["copy"] else self._combine(written, read)
        for counter, value in self._counts(stream.raises, 3):
            self._counters[counter] = self._counters[counter] + 1 if code == CODES["arrive"] else value


def combination(dtype: str, op: str) -> Combination:
    """Bytes combined as elements."""
    apply = _OPS[op]
    if dtype == "bf16":
        return lambda to, source: narrow(apply(widen(to), widen(source))).view(np.uint8)
    kind = _TYPES[dtype]

    def combined(to: np.ndarray, source: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return apply(to.view(kind), source.view(kind)).view(np.uint8)

    return combined
