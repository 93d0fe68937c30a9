"""Ask one question by the names that a user gives: a collective, or a source of their own."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from linkwright import _native
from linkwright.ask import sources
from linkwright.ask.question import DTYPES, Collective, Own, Program, Question, collectives
from linkwright.base.errors import UnknownNameError, UsageError, WaivedError, check_known
from linkwright.libraries import library
from linkwright.machines.variant import nodes_of

if TYPE_CHECKING:
    from linkwright.base.native_types import AlgorithmRow

Asked = TypeVar("Asked", bound=Question)
Seats = Callable[[int], tuple[int, ...] | None]  # the endpoint of each of so many ranks; None: the first ones


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
    check_known("collective", collective, collectives(), lists="linkwright list collectives")
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


def planned(machine: _native.Machine, seats: Seats | None, asked: Asked) -> Asked:
    """Return `asked` as it runs on the machine.

    An algorithm of the machine's library gets its schedule, path and issue policy; one that works by nodes gets those
    of the machine as its grid, unless it was given another. `seats` has the endpoint of each of so many ranks; without
    it they are where `asked` says.
    """
    if not isinstance(asked, Collective):
        return asked
    at = asked.placement or (seats(asked.ranks) if seats else None)
    if not library.is_plan(asked.algorithm):
        traits = registered().get((asked.collective, asked.algorithm))
        by_nodes = asked.grid is None and traits and traits["on_nodes"]
        return replace(asked, grid=node_grid(machine, asked.ranks, at)) if by_nodes else asked
    if asked.path or asked.issue:
        error = WaivedError(f"{asked.algorithm}: chooses its own path and issue policy; omit --path and --issue")
        return replace(asked, own=Own(error=error))
    try:
        return replace(library.plan(machine, replace(asked, placement=at)).question, placement=asked.placement)
    except (WaivedError, UnknownNameError) as error:  # forced to what does not work here, or is not there
        return replace(asked, own=Own(error=error))


def node_grid(machine: _native.Machine, ranks: int, placement: Sequence[int] | None) -> tuple[int, int] | None:
    """Return ranks of a node x nodes, where several ranks of each node follow each other; else None.

    `placement` has the endpoint of each rank; without it they are the first ones.
    """
    counts = ranks_by_node(machine, ranks, placement)
    several = counts is not None and len(counts) > 1 and counts[0] > 1 and len(set(counts)) == 1
    return (counts[0], len(counts)) if counts and several else None


def ranks_by_node(machine: _native.Machine, ranks: int, placement: Sequence[int] | None) -> list[int] | None:
    """Return how many ranks each node has, in the order of ranks; None if those of a node do not follow each other."""
    nodes = nodes_of(machine)
    if nodes < 2:  # 0: the machine leaves its size open
        return [ranks]
    each = machine.ranks // nodes
    found = [
        (node, len(list(its))) for node, its in itertools.groupby(placement or range(ranks), lambda at: at // each)
    ]
    return [count for _, count in found] if len({node for node, _ in found}) == len(found) else None


def source_of(collective: str, algorithm: str) -> sources.Source | None:
    """Return the source of an algorithm; None for a registered one."""
    if (collective, algorithm) in registered() or library.is_plan(algorithm):
        return None
    return sources.find(algorithm) if sources.is_source(algorithm) else sources.package(f"{collective}/{algorithm}")


@functools.cache
def registered() -> dict[tuple[str, str], AlgorithmRow]:
    """Return every registered algorithm by (collective, name), in the order of the registry."""
    return {(row["collective"], row["name"]): row for row in _native.algorithms()}
