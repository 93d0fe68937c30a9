"""The instruction stream of a schedule: what each rank does, in flat tables that a kernel can read.

The native half compiles it, as for `threads`, and hands over its tables as columns.

    rank r         instructions[rank_first[r] : rank_first[r + 1]], in order
    instruction    code, and where its waits, pieces and raises end; they begin where the previous ones ended
    wait, raise    counter, ordinal, messages per epoch: counter >= epoch x messages + ordinal
    piece          participant and offset of the source, participant and offset of the destination, bytes

All memory is one array: participants in order, buffers aligned to 256 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwright import _native
from linkwright.base.errors import WrongResultError

CODES: dict[str, int] = _native.instruction_codes()
# Bytes in the kernel of an instruction, a linked wait or raise, a linked piece.
_INSTRUCTION_BYTES, _COUNT_BYTES, _PIECE_BYTES = 16, 24, 24


@dataclass(frozen=True)
class Stream:
    """The program of all ranks, and where their memory lies."""

    rank_first: np.ndarray
    instructions: np.ndarray  # by instruction: code, ends of waits, pieces, raises
    waits: np.ndarray  # by wait: counter, ordinal, per epoch
    raises: np.ndarray
    pieces: np.ndarray  # by piece: from, offset, to, offset, bytes
    readers: np.ndarray  # by counter: the rank that waits on it; the largest number: a barrier's
    participant_first: np.ndarray
    buffer_first: np.ndarray  # by (participant, buffer): offset in the participant's memory
    buffer_bytes: np.ndarray
    buffers: tuple[str, ...]

    @property
    def ranks(self) -> int:
        """Ranks of the schedule."""
        return len(self.rank_first) - 1

    @property
    def memory_bytes(self) -> int:
        """Memory of all participants."""
        return int(self.participant_first[-1])

    @property
    def rank_bytes(self) -> int:
        """Memory of the largest rank."""
        return int(np.diff(self.participant_first)[: self.ranks].max())

    @property
    def link_bytes(self) -> int:
        """Bytes of the longest program once the kernel has linked it, with addresses in place of numbers."""
        ends = np.vstack([np.zeros((1, 4), np.int64), self.instructions.astype(np.int64)])
        first, end = ends[self.rank_first[:-1]], ends[self.rank_first[1:]]
        waits, pieces, raises = (end - first)[:, 1:].T
        length = np.diff(self.rank_first)
        whole = _INSTRUCTION_BYTES * length + _COUNT_BYTES * (waits + raises) + _PIECE_BYTES * pieces
        return int(whole.max()) + 15 & ~15

    def counter_homes(self) -> tuple[np.ndarray, int]:
        """Where each counter lives in a cluster, as rank << 32 | number there; and the most counters of one rank."""
        readers = np.where(self.readers < self.ranks, self.readers, 0).astype(np.uint64)
        number = np.zeros(len(readers), np.uint64)
        taken = [0] * self.ranks
        for counter, reader in enumerate(readers.tolist()):
            number[counter] = taken[reader]
            taken[reader] += 1
        return readers << np.uint64(32) | number, max(taken, default=0)

    def place(self, offset: int) -> str:
        """Which rank and buffer the byte at `offset` belongs to, in words."""
        participant = int(np.searchsorted(self.participant_first, offset, side="right")) - 1
        within = offset - int(self.participant_first[participant])
        for number, name in enumerate(self.buffers):
            first, length = self.buffer_first[participant, number], self.buffer_bytes[participant, number]
            if first <= within < first + length:
                return f"rank {participant}: byte {within - first} of {name}"
        return f"rank {participant}: byte {within} of its memory, which belongs to no buffer,"


def encode(schedule: _native.Schedule, dtype: str, op: str | None) -> Stream:
    """The stream of a schedule; raises if the schedule is wrong."""
    found = _native.instruction_stream(schedule, _data(dtype, op))
    buffers = tuple(found["buffers"])
    return Stream(
        rank_first=found["rank_first"],
        instructions=found["instructions"].reshape(-1, 4),
        waits=found["waits"].reshape(-1, 3),
        raises=found["raises"].reshape(-1, 3),
        pieces=found["pieces"].reshape(-1, 5),
        readers=found["readers"],
        participant_first=found["participant_first"],
        buffer_first=found["buffer_first"].reshape(-1, len(buffers)),
        buffer_bytes=found["buffer_bytes"].reshape(-1, len(buffers)),
        buffers=buffers,
    )


@dataclass(frozen=True)
class Memory:
    """All memory of a schedule before and after, as the executor `reference` leaves it."""

    initial: np.ndarray
    reference: np.ndarray
    checked_elements: int  # that the postcondition names, and `reference` got right

    def check(self, stream: Stream, found: np.ndarray, executor: str) -> None:
        """Compare every byte, and raise if one is wrong."""
        if np.array_equal(found, self.reference):
            return
        wrong = np.flatnonzero(found != self.reference)
        raise WrongResultError(
            f"{stream.place(int(wrong[0]))} is wrong, and {len(wrong)} bytes in all, after {executor} ran the "
            f"schedule; no time is reported; `linkwright verify` checks the schedule, and the same seed repeats this"
        )


def memory(schedule: _native.Schedule, dtype: str, op: str | None, seed: int) -> Memory:
    """Data whose result is exactly predictable, and that result."""
    return Memory(**_native.schedule_memory(schedule, {**_data(dtype, op), "seed": seed}))


def _data(dtype: str, op: str | None) -> dict[str, str]:
    return {"dtype": dtype, "op": op or "sum"}
