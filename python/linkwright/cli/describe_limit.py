"""`linkwright describe COLLECTIVE --limit`: every limit with its arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator

import click

from linkwright import machines
from linkwright.ask.answer import How, Limit, limits
from linkwright.base import units
from linkwright.base.errors import UsageError
from linkwright.cli import exchanges, options
from linkwright.cli.output import print_json, print_table


def show(
    named: str | None,
    on: str | None,
    variant: machines.Variant,
    ranks: int | None,
    sizes: str | None,
    dtype: str,
    *,
    as_json: bool,
    grid: tuple[int, ...] | None,
    root: int,
    exchange: exchanges.Stated,
    seed: int,
    **how,
) -> None:
    """Print the limits of the collective of that name on a machine."""
    if not named or not on:
        raise UsageError("--limit needs a collective and a machine: `linkwright describe allreduce --limit --on loggp`")
    collective, _ = options.collective_and_algorithm(named, "all")
    dealt = exchange.of(options.subject(named, "all"), dtype, seed)
    machine = machines.load(on, variant)
    ranks = ranks or (dealt and dealt.ranks and dealt.ranks[0]) or (math.prod(grid) if grid else machine.ranks)
    if not ranks:
        raise UsageError(f"{on} takes any number of ranks; choose one with --ranks or --grid")
    if collective == "barrier" and sizes:
        raise UsageError("a barrier moves no data; omit --sizes")
    if dealt:
        dtype, asked, its = dealt.dtype, dealt.sizes, dealt.exchange
    else:
        asked, its = options.chosen_sizes(collective, dtype, 8, 8, 2, sizes or "8,64K"), None
    how |= {"grid": grid, "placement": variant.places(machine, ranks)}
    found = [
        (
            size,
            limits(machine, collective, ranks, size, dtype=dtype, root=root, grid=grid, exchange=its, how=How(**how)),
        )
        for size in asked
    ]
    if as_json:
        print_json([{"collective": collective, "machine": machine.name, "ranks": ranks, **row} for row in _rows(found)])
        return
    click.echo(
        f"{collective}, {units.counted(ranks, 'rank')} of {machine.name}; no schedule beats the first of a size\n"
    )
    print_table(("size", "limit", "time", "from"), list(_lines(found)), left=(1, 3))


def _rows(found: list[tuple[int, list[Limit]]]) -> Iterator[dict[str, object]]:
    for size, known in found:
        for limit in known:
            yield {
                "size_bytes": size, "limit": limit.name, "moved_bytes": limit.size_bytes, "time_us": limit.time_us,
                "what": limit.what, "rate": limit.rate,
            }  # fmt: skip


def _lines(found: list[tuple[int, list[Limit]]]) -> Iterator[tuple[str, str, str, str]]:
    for size, known in found:
        shown = units.format_size(size)
        if not known:
            yield shown, "none", "-", "nothing must move"
        for limit in known:
            yield shown, limit.name, units.format_time(limit.time.ns), limit.derivation
            shown = ""
