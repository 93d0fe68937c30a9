"""A schedule on the cores of its ranks, which are CPU threads."""

from __future__ import annotations

from contextlib import suppress

import cases
import cores
import pytest

from linkwright import _native
from linkwright.base.errors import WaivedError
from linkwright.executor_api import Program
from linkwright.executors.metalium import lower, runtime
from linkwright.executors.metalium.image import Image, Timing

L1_BYTES = 1393312
SIDES = {1: (1, 1), 2: (2, 1), 3: (3, 1), 4: (2, 2), 6: (3, 2), 8: (4, 2), 16: (4, 4)}
BASE, TABLES = 0x10000, (*range(1, 17), *range(2, 18))
KINDS = (("f32", "sum"), ("bf16", "sum"), ("i32", "max"))
needs_compiler = pytest.mark.skipif(cores.compiler() is None, reason="no C++ compiler (g++): no cores on CPU threads")


def places(ranks: int) -> list[tuple[int, int]]:
    width = SIDES[ranks][0]
    return [(rank % width, rank // width) for rank in range(ranks)]


class Case:
    """A schedule on the cores of its ranks."""

    def __init__(self, case: cases.Case, at: list[tuple[int, int]] | None = None, batch: int | None = None):
        self.name, self.kind = case.name, (case.dtype, case.op)
        self.program = Program(case.schedule, dtype=case.dtype, op=case.op, seed=7)
        self.places = at or places(self.program.ranks)
        self.lowered = lower.lower(self.program, self.places, batch)
        self.image = Image.of(self.lowered, self.places, L1_BYTES)

    def rows(self, repetitions: int = 1, patience: int = 1 << 31, seed: int = 1, sanitizer: str = "address"):
        """What a launch leaves."""
        initial = [self.program.initial(rank) for rank in range(self.program.ranks)]
        rows = self.image.rows(initial, Timing(repetitions, 1000, patience, [0] * len(initial)))
        arguments = [[[BASE, *own, *TABLES] for own in self.image.arguments()]] * len(initial)
        used = [x + y * self.image.width for x, y in self.places]
        defines = tuple(f"{name}={value}" for name, value in runtime.defines(*self.kind))
        process = cores.cores(runtime.KERNEL, defines, sanitizer)
        return process.run((self.image.width, self.image.height), used, arguments, rows, seed)

    def check(self, rows) -> int:
        self.image.check(rows)
        sizes = enumerate(self.program.memory_bytes)
        return sum(self.program.check(rank, self.image.memory(rows, rank, nbytes)) for rank, nbytes in sizes)


def sweep(ranks: tuple[int, ...], elements: int, kinds=KINDS):
    """Every algorithm that serves these ranks, types in turn; those with memories beside the ranks are waived."""
    for number, about in enumerate(_native.algorithms()):
        dtype, op = kinds[number % len(kinds)]
        for found in cases.buildable(about["key"], ranks, elements, dtype, op):
            with suppress(WaivedError):
                yield Case(found)
