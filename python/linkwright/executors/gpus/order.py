"""The order in which the host enqueues the work of all ranks, from the instruction streams of `cuda`.

A kernel waits for a counter; a queue of a GPU waits for an event, which must have been recorded before. So the streams
are walked once, each rank in turn as far as it can proceed, and every wait becomes the operations that have raised its
counter so far:

    rank 0   copy, raise c to 1             -> operation 0
    rank 1   wait for c >= 1, combine       -> operation 1, after operation 0

Operations of one rank run in order on its queue and need no event.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwright.base.errors import WrongResultError

from ..cuda.stream import CODES, Stream

Piece = tuple[int, int, int, int, int]  # from, offset, to, offset, bytes


@dataclass(frozen=True)
class Operation:
    """One instruction of a rank."""

    rank: int
    after: tuple[int, ...]  # operations of other ranks, by number
    combines: bool
    pieces: tuple[Piece, ...]


def ordered(stream: Stream) -> list[Operation]:
    """All operations of one repetition, each after those that it waits for."""
    found: list[Operation] = []
    raised: dict[int, list[tuple[int, int]]] = {}  # by counter: its values in order, and the operations that set them
    at = [int(first) for first in stream.rank_first[:-1]]
    while any(now < end for now, end in zip(at, stream.rank_first[1:], strict=True)):
        before = len(found)
        for rank in range(stream.ranks):
            while at[rank] < stream.rank_first[rank + 1]:
                after = _after(stream, at[rank], raised)
                if after is None:
                    break
                others = sorted({number for number in after if found[number].rank != rank})
                code = int(stream.instructions[at[rank], 0])
                pieces = _entries(stream, stream.pieces, at[rank], 2) if code in _MOVES else []
                for counter, ordinal, _ in _entries(stream, stream.raises, at[rank], 3):
                    values = raised.setdefault(counter, [])
                    value = (values[-1][0] if values else 0) + 1 if code == CODES["arrive"] else ordinal
                    values.append((value, len(found)))
                found.append(Operation(rank, tuple(others), code == CODES["combine"], tuple(map(tuple, pieces))))
                at[rank] += 1
        if len(found) == before:
            raise WrongResultError("no rank can proceed; `linkwright verify` says which wait is never met")
    return found


_MOVES = (CODES["copy"], CODES["combine"])


def _after(stream: Stream, instruction: int, raised: dict[int, list[tuple[int, int]]]) -> list[int] | None:
    """The operations that met the waits of an instruction; None while one is unmet."""
    found: list[int] = []
    for counter, wanted, _ in _entries(stream, stream.waits, instruction, 1):
        values = raised.get(counter, [])
        if not wanted:
            continue
        if not values or values[-1][0] < wanted:
            return None
        enough = next(i for i, (value, _) in enumerate(values) if value >= wanted)
        found += [number for _, number in values[: enough + 1]]
    return found


def _entries(stream: Stream, table, instruction: int, column: int) -> list[list[int]]:
    ends = stream.instructions
    first = int(ends[instruction - 1, column]) if instruction else 0
    return table[first : int(ends[instruction, column])].tolist()
