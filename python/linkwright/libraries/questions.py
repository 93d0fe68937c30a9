"""Ask one question by the names that a user gives: a collective, or a source of their own."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from linkwright import _native
from linkwright.ask import sources
from linkwright.ask.question import DTYPES, Collective, Program
from linkwright.base.errors import UsageError, unknown
from linkwright.libraries import library

if TYPE_CHECKING:
    from linkwright.base.native_types import AlgorithmRow


def collective_question(
    part: str,
    collective: str,
    algorithm: str,
    ranks: int,
    size_bytes: int,
    dtype: str,
    op: str,
    **more: Any,
) -> Collective:
    """Ask for a collective; a block is a whole number of elements for each rank, at least one."""
    if collective not in collectives():
        raise unknown("collective", collective, collectives(), lists="linkwright list collectives")
    traits = collectives()[collective]
    source = source_of(collective, algorithm)
    step = DTYPES[dtype] * (ranks if traits["blocked"] else 1)
    asked_bytes, exchange = size_bytes, more.get("exchange")
    if exchange:
        size_bytes = exchange.whole(size_bytes, ranks, DTYPES[dtype])
    size_bytes = 0 if collective == "barrier" or not size_bytes else max(step, size_bytes // step * step)
    if size_bytes not in (0, asked_bytes):
        more["asked_bytes"] = asked_bytes
    reduced = op if traits["reduces"] else None
    asked = Collective(part, algorithm, ranks, size_bytes, dtype, collective=collective, op=reduced, **more)
    return sources.of(source, asked) if source else asked


def own_question(
    part: str, name: str, ranks: int | None, size_bytes: int | None, dtype: str, op: str, **more: Any
) -> Collective | Program:
    """Ask for what a source makes, which states its collective, and its ranks and size if they are None."""
    source = sources.find(name)
    count = ranks or source.ranks
    if count is None:
        raise UsageError(f"{source.label}: takes any number of ranks; choose one with --ranks")
    asked = Program(part, source.label, count, size_bytes, dtype, op=op, **more)
    return sources.of(source, asked)


def named(
    part: str,
    name: str,
    ranks: int | None,
    size_bytes: int | None,
    usual: tuple[int, int],
    dtype: str = "f32",
    op: str = "sum",
    **more: Any,
) -> Collective | Program:
    """Ask for `COLLECTIVE/ALGORITHM` or a source; `usual` are ranks and bytes that neither of them states."""
    collective, slash, algorithm = name.partition("/")
    if slash and collective in collectives():
        size = usual[1] if size_bytes is None else size_bytes
        return collective_question(part, collective, algorithm, ranks or usual[0], size, dtype, op, **more)
    source = sources.find(name)
    size_bytes = usual[1] if size_bytes is None and source.size_bytes is None else size_bytes
    return own_question(part, name, ranks or source.ranks or usual[0], size_bytes, dtype, op, **more)


def source_of(collective: str, algorithm: str) -> sources.Source | None:
    """Return the source of an algorithm; None for a registered one."""
    if (collective, algorithm) in registered() or library.is_plan(algorithm):
        return None
    return sources.find(algorithm) if sources.is_source(algorithm) else sources.package(f"{collective}/{algorithm}")


@functools.cache
def registered() -> dict[tuple[str, str], AlgorithmRow]:
    """Return every registered algorithm by (collective, name), in the order of the registry."""
    return {(row["collective"], row["name"]): row for row in _native.algorithms()}


@functools.cache
def collectives() -> dict[str, dict]:
    """Return every collective with its traits."""
    return {row["key"]: row for row in _native.collectives()}
