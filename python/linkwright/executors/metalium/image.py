"""The rows of bytes that the cores begin with: who finds what where, in the L1 of every core at the same offset.

head | counters | stamps | programs | data and landings          as `metalium_walk.cpp` documents them
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwright.base.errors import ExecError, WaivedError

from .lower import END, STAMP, Lowered, Place, Walker

HEAD, COUNTER, INSTRUCTION = 16, 4, 4  # words
# Words of the head.
OFFSET, MARGIN, PATIENCE, REPETITIONS, STRIDE, TROUBLE = 2, 4, 5, 6, 7, 8
_LATE = 2  # what a processor gave up on: the start; any other is a notice
# Words of L1 for stamps: repetitions that need more are launched again.
_STAMPS = 4096


class Timing(NamedTuple):
    """How a launch is timed, in cycles.

    Attributes:
        repetitions: of the schedule.
        margin: from choosing a start until it.
        patience: after which a processor gives up a wait.
        offsets: by rank: its clock less that of the first rank.
    """

    repetitions: int
    margin: int
    patience: int
    offsets: Sequence[int]


@dataclass(frozen=True)
class Image:
    """The layout of the rows of one schedule.

    Attributes:
        lowered: its programs.
        places: the core of each rank.
        offsets: of counters, data, and for each processor stamps and program, in words.
        words: of a row.
    """

    lowered: Lowered
    places: tuple[Place, ...]
    counters: int
    stamps: tuple[int, ...]
    programs: tuple[int, ...]
    data: int
    words: int
    stride: int
    most: int

    @classmethod
    def of(cls, lowered: Lowered, places: Sequence[Place], l1_bytes: int) -> Image:
        """Lay out the rows; a `WaivedError` if a core has less than they need."""
        counters = COUNTER * max(1, *map(len, lowered.senders))
        codes = [code[0] for own in lowered.programs.values() for code in own]
        stride = 2 + 2 * max(code >> 8 for code in codes if code & 255 == STAMP)
        stride += stride % 4
        most = max(1, _STAMPS // stride)
        at = HEAD + counters
        stamps, programs = [], []
        for processor in range(lowered.processors):
            stamps.append(at)
            at += stride * most
            programs.append(at)
            own = [len(code) for walker, code in lowered.programs.items() if walker.processor == processor]
            at += INSTRUCTION * (1 + max(own))
        words = at + -(-lowered.data_bytes // 16) * 4
        if 4 * words > l1_bytes:
            raise WaivedError(
                f"metalium: waived: a core needs {4 * words} bytes of L1, {lowered.data_bytes} of them for data and "
                f"landings, and has {l1_bytes}; use a smaller size or more ranks"
            )
        return cls(lowered, tuple(places), HEAD, tuple(stamps), tuple(programs), at, words, stride, most)

    @property
    def width(self) -> int:
        """Columns from 0 to the last core."""
        return 1 + max(x for x, _ in self.places)

    @property
    def height(self) -> int:
        """Lines from 0 to the last core."""
        return 1 + max(y for _, y in self.places)

    def arguments(self) -> list[list[int]]:
        """By processor: where its parts begin, in bytes, as the kernel's runtime arguments have them."""
        return [
            [4 * self.counters, 4 * stamps, 4 * program, 4 * self.data, processor]
            for processor, (stamps, program) in enumerate(zip(self.stamps, self.programs, strict=True))
        ]

    def rows(self, initial: Sequence[NDArray[np.uint8]], timing: Timing) -> NDArray[np.uint32]:
        """The rows of all cores of the rectangle, line by line, before a launch."""
        rows = np.zeros((self.height * self.width, self.words), np.uint32)
        for rank, memory in enumerate(initial):
            row = rows[self._row(rank)]
            offset = np.array([timing.offsets[rank]], np.int64).view(np.uint32)
            row[OFFSET : OFFSET + 2] = offset
            row[MARGIN], row[PATIENCE] = timing.margin, timing.patience
            row[REPETITIONS], row[STRIDE] = timing.repetitions, 4 * self.stride
            for number, (_, notices) in enumerate(self.lowered.senders[rank]):
                row[self.counters + COUNTER * number + 1] = notices
            for processor, first in enumerate(self.programs):
                code = [*self.lowered.programs.get(Walker(rank, processor), ()), (END, 0, 0, 0)]
                row[first : first + INSTRUCTION * len(code)] = np.array(code, np.uint32).ravel()
            row[self.data :].view(np.uint8)[: len(memory)] = memory
        return rows

    def memory(self, rows: NDArray[np.uint32], rank: int, nbytes: int) -> NDArray[np.uint8]:
        """The memory of a rank, in rows that have come back."""
        return rows[self._row(rank), self.data :].view(np.uint8)[:nbytes]

    def times(self, rows: NDArray[np.uint32], repetitions: int) -> NDArray[np.int64]:
        """The stamps of all ranks, in cycles: by (processor, rank, repetition, stamp)."""
        own = rows[[self._row(rank) for rank in range(len(self.places))]]
        found = [own[:, first : first + self.stride * repetitions] for first in self.stamps]
        shape = (len(found), len(own), repetitions, self.stride // 2)
        return np.ascontiguousarray(np.stack(found)).view(np.int64).reshape(shape)

    def check(self, rows: NDArray[np.uint32]) -> None:
        """Raise if a processor gave up: which core waits for which notice of which other."""
        for walker in self.lowered.programs:
            first = TROUBLE + 4 * walker.processor
            what, counter, wanted, found = rows[self._row(walker.rank), first : first + 4].tolist()
            if not what:
                continue
            who = f"metalium: rank {walker.rank} on core {self.places[walker.rank]}, processor {walker.processor},"
            if what == _LATE:
                raise ExecError(f"{who} did not reach the common start; clocks of cores differ", code="exec.stuck")
            sender, _ = self.lowered.senders[walker.rank][counter]
            raise ExecError(
                f"{who} waited too long for notice {wanted} of rank {sender.rank}, processor {sender.processor} "
                f"(counter {counter}); {found} have come; verify the schedule, and see that nobody else uses the board",
                code="exec.stuck",
            )

    def _row(self, rank: int) -> int:
        x, y = self.places[rank]
        return x + y * self.width


def rectangle(ranks: int, columns: int, lines: int) -> tuple[int, int] | None:
    """The squarest rectangle with so many places; None if none fits."""
    fitting = [
        (width, ranks // width) for width in range(1, columns + 1) if ranks % width == 0 and ranks // width <= lines
    ]
    return min(fitting, key=lambda sides: (abs(sides[0] - sides[1]), -sides[0]), default=None)
