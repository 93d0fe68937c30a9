"""A schedule as an executor sees it: what each rank does, with byte offsets and waits; the data, and their check.

    program = Program.of(question, seed)
    memory = program.initial(rank)                   one array per participant, all its buffers in it
    for operation in program.issued_by(rank):        in this order
        wait for every `operation.waits`             what the rank itself can observe
        move `operation.pieces`                      (offset at the source, target, offset there, bytes)
    wait for everything that others send here
    program.check(rank, memory)                      raises if a byte is wrong

A rank that issues its operations in this order, and receives and serves meanwhile, cannot deadlock: ids are a
topological order. It serves until all ranks have finished, because others may get data from it. Lanes of a rank are
independent, so an executor may also issue each lane on its own.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from linkwright import _native
from linkwright.ask import schedules
from linkwright.ask.question import Scheduled
from linkwright.base.errors import UsageError
from linkwright.base.lazy import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOMENTS = {code: name for name, code in _native.moment_codes()}


class Wait(NamedTuple):
    """What a rank must have observed before it issues an operation.

    Attributes:
        operation: the id of the earlier operation.
        moment: `free`: the rank issued it, and may overwrite what it sent; `arrived`: its data, or its notice, are
            here; `done`: the rank issued it, and it is complete at every target.
    """

    operation: int
    moment: str


class Piece(NamedTuple):
    """Contiguous bytes to move.

    Attributes:
        source_offset: where they begin in the memory of the operation's source, in bytes.
        target: the participant that gets them.
        target_offset: where they go in its memory, in bytes.
        bytes: how many there are, at least one.
    """

    source_offset: int
    target: int
    target_offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a schedule.

    Attributes:
        id: its number; a rank issues by id.
        kind: `put` and `multicast` (issued by the source), `get` (issued by the target), `local` (within one rank),
            `notice` (a message without data), `compute` (arithmetic without data), `fence` (only waits).
        initiator: the rank that issues it.
        source: the participant whose data move.
        targets: the participants that it reaches; none for `compute` and `fence`.
        pieces: what it moves; an operation without data has none.
        combine: whether data are combined into the target (`Program.combine`) instead of replacing what is there. Two
            operations may combine into the same bytes at the same time: one must follow the other.
        lane: the lane of its rank.
        work: arithmetic operations of a `compute`.
        waits: what the initiator observes first.
    """

    id: int
    kind: str
    initiator: int
    source: int
    targets: tuple[int, ...]
    pieces: tuple[Piece, ...]
    combine: bool
    lane: int
    work: int
    waits: tuple[Wait, ...]

    def pieces_to(self, target: int) -> tuple[Piece, ...]:
        """The pieces of one target; those of a multicast differ in their offsets."""
        return tuple(piece for piece in self.pieces if piece.target == target)


class Program:
    """The operations of all ranks, their data and the check of the result.

    Participants 0 to `ranks` - 1 issue operations. Those that follow are passive memories, which live with the rank
    that `host` names. Barriers have become notices.

    Attributes:
        ranks: how many participants issue operations.
        participants: ranks and passive memories.
        memory_bytes: the bytes of each participant's memory.
        columns: all operations as NumPy columns, for a runtime that is not written in Python. By operation: `kind`,
            `initiator`, `source`, `combine`, `lane`, `work`, and where its rows end in `targets`, `pieces`
            (source offset, target, target offset, bytes) and `waits` (operation, code of the moment), which are flat:
            `target_end`, `piece_end`, `wait_end`. By participant and buffer: `buffer_first`, `buffer_bytes`; the names
            of buffers are `buffers`.
    Example:
        >>> import linkwright as lw
        >>> from linkwright.executor_api import Program
        >>> program = Program(lw.schedule("broadcast", "ring", ranks=3, size="4K"))
        >>> first, second = program.operations
        >>> first.kind, first.initiator, first.targets, first.pieces[0].bytes, first.waits
        ('put', 0, (1,), 4096, ())
        >>> second.waits
        (Wait(operation=0, moment='arrived'),)
    """

    def __init__(self, schedule: _native.Schedule, *, dtype: str = "f32", op: str | None = None, seed: int = 0) -> None:
        """Compile a schedule.

        Args:
            schedule: the schedule; it is verified first.
            dtype: the type of its elements, `f32`, `f64`, `i32`, `i64`, `u8` or `bf16`.
            op: how values are combined, `sum`, `max`, `min` or `prod`; None where nothing is combined.
            seed: the seed of the data.
        Raises:
            VerifyError: the schedule is wrong.
            ExecError: its elements have another size than `dtype`, or its data do not fit into memory.
            WaivedError: an operation overwrites what it still has to read.
        """
        self._schedule = schedule
        self._data = {"dtype": dtype, "op": op or "sum", "seed": seed}
        self.columns = _native.rank_programs(schedule, self._data)
        self.ranks = schedule.ranks
        self.participants = schedule.ranks + schedule.memories
        self.memory_bytes: list[int] = self.columns["memory_bytes"].tolist()

    @classmethod
    def of(cls, question: Scheduled, seed: int) -> Program:
        """The program of a question, with the data of a seed (`Sampling.seed`).

        Every process that takes part makes it anew: the same question and seed give the same operations and data.
        """
        return cls(schedules.of(question), dtype=question.dtype, op=question.op, seed=seed)

    @functools.cached_property
    def operations(self) -> tuple[Operation, ...]:
        """All operations by id."""
        table = self.columns
        columns = (table[name] for name in ("kind", "initiator", "source", "combine", "lane", "work"))
        plain = [column if isinstance(column, list) else column.tolist() for column in columns]
        targets = _rows(table["targets"].tolist(), table["target_end"])
        pieces = _rows([Piece(*row) for row in table["pieces"].reshape(-1, 4).tolist()], table["piece_end"])
        moments = [Wait(operation, _MOMENTS[code]) for operation, code in table["waits"].reshape(-1, 2).tolist()]
        waits = _rows(moments, table["wait_end"])
        rows = zip(*plain, targets, pieces, waits, strict=True)
        return tuple(
            Operation(number, kind, initiator, source, its, moved, combine, lane, work, awaited)
            for number, (kind, initiator, source, combine, lane, work, its, moved, awaited) in enumerate(rows)
        )

    def issued_by(self, rank: int) -> list[Operation]:
        """The operations that a rank issues, in the order in which it does."""
        return [operation for operation in self.operations if operation.initiator == rank]

    def host(self, participant: int) -> int:
        """The rank that a participant's memory lives with: its own, or for a passive memory one of them in turn."""
        return participant if participant < self.ranks else (participant - self.ranks) % self.ranks

    def hosted_by(self, rank: int) -> list[int]:
        """The participants whose memory lives with a rank, itself first."""
        return [participant for participant in range(self.participants) if self.host(participant) == rank]

    def initial(self, participant: int) -> NDArray[np.uint8]:
        """The memory of a participant before the first operation.

        Args:
            participant: its number, 0 to `participants` - 1.
        Returns:
            A new array of `memory_bytes[participant]` bytes. What the collective starts with is a function of the seed;
            all other bytes hold a pattern that no result consists of.
        Raises:
            ExecError: it does not fit into memory.
        """
        return _native.initial_memory(self._schedule, self._known(participant), self._data)

    def check(self, participant: int, memory: NDArray[np.uint8]) -> int:
        """Compare the memory of a participant, after the last operation, with the exact answer.

        Args:
            participant: its number.
            memory: its `memory_bytes[participant]` bytes.
        Returns:
            How many elements were compared. If it is 0 for all participants, nothing is known of the result, and the
            record carries the note `UNCHECKED`.
        Raises:
            WrongResultError: an element is wrong; the message says where. There must be no number then.
        Example:
            >>> import linkwright as lw
            >>> from linkwright.executor_api import Program
            >>> program = Program(lw.schedule("broadcast", "ring", ranks=2, size="4K"))
            >>> program.check(0, program.initial(0))  # the root has the data from the start
            1024
        """
        expected = self.memory_bytes[self._known(participant)]
        if memory.shape != (expected,):
            raise UsageError(f"participant {participant} has {expected} bytes; got an array of shape {memory.shape}")
        return _native.check_memory(self._schedule, participant, np.ascontiguousarray(memory), self._data)

    def combine(self, into: NDArray[np.uint8], data: NDArray[np.uint8]) -> None:
        """Combine bytes that have arrived into memory, in place, by the type and operator of the experiment.

        Args:
            into: the bytes of the target, part of what `initial` returned.
            data: as many bytes.
        Raises:
            ValueError: the lengths differ, are not whole elements, or `into` is not aligned to elements.
        """
        _native.combine(into, data, self._data)

    def _known(self, participant: int) -> int:
        if not 0 <= participant < self.participants:
            raise UsageError(f"participant {participant}: this schedule has 0 to {self.participants - 1}")
        return participant


def _rows(values: Sequence[Any], ends: NDArray[np.uint32]) -> list[tuple[Any, ...]]:
    """The rows of a flat table, from where each of them ends."""
    found, first = [], 0
    for end in ends.tolist():
        found.append(tuple(values[first:end]))
        first = end
    return found
