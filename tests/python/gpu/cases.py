"""Schedules for the tests of the walk: every algorithm and pattern on every small number of ranks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from linkwright import _native
from linkwright.base.errors import LinkwrightError
from linkwright.executors.cuda import job, stream

RANKS = range(1, 10)
SMS = 11
TYPES = tuple((dtype, op) for dtype in job.DTYPES for op in job.OPS)
BYTES = {"f32": 4, "f64": 8, "i32": 4, "i64": 8, "u8": 1, "bf16": 2}
# Of a GPU: shared memory of a block.
MOST_SHARED = 100_000


@dataclass(frozen=True)
class Case:
    name: str
    schedule: _native.Schedule
    dtype: str
    op: str

    @property
    def stream(self) -> stream.Stream:
        return stream.encode(self.schedule, self.dtype, self.op)

    @property
    def memory(self) -> stream.Memory:
        return stream.memory(self.schedule, self.dtype, self.op, seed=7)


def build(key: str, ranks: int, elements: int, dtype: str = "f32", op: str = "sum") -> Case:
    """In no grid, or where the algorithm wants one, in two rows or three."""
    try:
        made = _native.Schedule.build(key, ranks, elements, element_bytes=BYTES[dtype])
    except LinkwrightError:
        rows = next((rows for rows in (2, 3) if ranks % rows == 0), 1)
        grid = (ranks // rows, rows)
        made = _native.Schedule.build(key, ranks, elements, element_bytes=BYTES[dtype], grid=grid)
    return Case(f"{key} p{ranks} {elements} {dtype} {op}", _native.without_aggregations(made), dtype, op)


def buildable(key: str, ranks: tuple[int, ...], elements: int, dtype: str = "f32", op: str = "sum") -> Iterator[Case]:
    """On those numbers of ranks that the algorithm can serve."""
    for count in ranks:
        with suppress(LinkwrightError):
            yield build(key, count, elements, dtype, op)


def algorithms(sizes: tuple[int, ...]) -> Iterator[Case]:
    """All that can be built; types and operators take turns."""
    turns = itertools.cycle(TYPES)
    for algorithm in _native.algorithms():
        for ranks in RANKS:
            for elements in sizes:
                yield from buildable(algorithm["key"], (ranks,), elements, *next(turns))


def patterns(elements: int) -> Iterator[Case]:
    for pattern in _native.patterns():
        for ranks in (2, 6):
            with suppress(LinkwrightError):
                made = _native.Schedule.pattern(pattern["key"], ranks, elements)
                made.verify()
                yield Case(f"{pattern['key']} p{ranks}", made, "u8", "sum")


def placement(ranks: int, most_shared_bytes: int = MOST_SHARED) -> job.Placement:
    """Ranks on SMs out of order."""
    return job.Placement.on([(3 * i + 1) % SMS for i in range(SMS)], ranks, 0, most_shared_bytes)


def walk_of(case: Case, *, repetitions: int = 1, threads: int = 1, cluster: bool = False, **more) -> job.Job:
    made = more.pop("stream", case.stream)
    placed = more.pop("placement", None) or placement(made.ranks)
    delays = more.pop("delays", np.zeros((repetitions, made.ranks)))
    return more.pop("make", job.walk)(
        made, case.memory.initial, placed, delays, dtype=case.dtype, op=case.op,
        threads=threads, margin_ns=0, patience_ns=more.pop("patience_ns", 20 * 10**9), cluster=cluster,
    )  # fmt: skip
