"""Simulate a schedule on a described machine: the only call of the simulator.

    ask(machine, schedule, How(path="ll", skew="uniform:2us"))  ->  Answer

`How` holds all options of a run, and what it records; `how.but(seed=1)` derives another. The schedule is lowered for
the machine and its path (`schedules.lowered`), unless it already has been, then proved and run. `Answer` converts a
result when it is first read: `time`, `limit`, `ranks`, `critical`, and, if recorded, `links`, `path`, `operations`, ...
"""

from __future__ import annotations

from linkwright import _native
from linkwright._native import Answer, How, Limit
from linkwright.ask.exchange import UnevenExchange
from linkwright.ask.question import DTYPES, Collective, check_size, collectives
from linkwright.base.errors import ShapeError, check_known

__all__ = ["USUAL", "Answer", "How", "Limit", "ask", "limits"]

USUAL = How()


def ask(machine: _native.Machine, schedule: _native.Schedule, how: How = USUAL) -> Answer:
    """Simulate `schedule` on `machine`.

    Raises:
        VerifyError: the schedule is wrong.
        UnsuitedError: the machine has too few endpoints, or too little memory for a message.
        SimError: the simulation cannot go on, for example because two endpoints are not connected.
    """
    return _native.ask(machine, schedule, how)


def limits_of(machine: _native.Machine, question: Collective) -> list[Limit]:
    """Return the lower bounds for a collective where it runs, the largest first."""
    how = How(path=question.path, grid=question.grid, placement=question.placement or None)
    return limits(
        machine, question.collective, question.ranks, question.size_bytes or 0, dtype=question.dtype,
        root=question.root, grid=question.grid, exchange=question.exchange, how=how,
    )  # fmt: skip


def limits(
    machine: _native.Machine,
    collective: str,
    ranks: int,
    size_bytes: int,
    *,
    dtype: str = "f32",
    root: int = 0,
    grid: tuple[int, ...] | None = None,
    exchange: UnevenExchange | None = None,
    how: How = USUAL,
) -> list[Limit]:
    """Return the lower bounds for a collective on vectors of `size_bytes`, the largest first.

    An uneven `exchange` may send tokens once for each node, a row of `grid`.
    """
    check_known("collective", collective, collectives())
    check_known("data type", dtype, DTYPES)
    if size_bytes < 0 or ranks < 1:
        raise ShapeError(f"{size_bytes} bytes on {ranks} ranks: a size is at least 0, and there is at least one rank")
    check_size(collective, size_bytes, dtype)
    if not 0 <= root < ranks:
        raise ShapeError(f"root {root}: there are {ranks} ranks, numbered from 0; choose one of them")
    shape = {"ranks": ranks, "elements": size_bytes // DTYPES[dtype], "element_bytes": DTYPES[dtype], "root": root}
    if exchange:
        shape |= {**exchange.shape, "grid": grid}
    return _native.limits(machine, collective, shape, how)
