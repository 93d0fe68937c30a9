"""`linkwright plan experts`: which expert on which rank, so that dispatch and combine are fast."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwright.ask.exchange import PACKED, read_counts
from linkwright.ask.question import DTYPES
from linkwright.base.errors import UsageError
from linkwright.base.units import counted, format_grid, format_us
from linkwright.cli import options, values
from linkwright.cli.output import print_json

if TYPE_CHECKING:
    from linkwright.advise.plans.experts import ExpertPlan, PlacedExperts, TokenExchange
    from linkwright.machines import Variant

_MOST = 256  # ranks: direct exchanges of more take minutes


@click.command(cls=options.Command, name="experts")
@options.on("name", required=True, help="A described machine, or the path of its file.")
@options.seated
@click.option("--ranks", "-p", type=click.IntRange(2, _MOST), help="Ranks; default: all that the machine has.")
@click.option("--grid", type=values.GRID, help="Ranks of a node x nodes; default: those of the machine.")
@click.option(
    "--counts", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="CSV file of the tokens that each rank (row) has for each expert; one row is all ranks together.",
)  # fmt: skip
@click.option("--tokens", type=click.IntRange(1, 1 << 24), metavar="N", help="Tokens of each rank.")
@click.option("--experts", type=click.IntRange(1, 1 << 16), metavar="N", help="Experts of all ranks together.")
@click.option("--topk", type=click.IntRange(1), metavar="N", help="Experts of one token.")
@click.option("--routing", metavar="HOW", help="How tokens choose experts: uniform, zipf:S.  [default: uniform]")
@click.option("--hidden", type=click.IntRange(1), metavar="N", required=True, help="Elements of one token.")
@click.option(
    "--dtype", "-d", type=click.Choice([*DTYPES, *PACKED]), default="bf16", show_default=True,
    help="Data type of tokens on their way to experts; they return as bf16.",
)  # fmt: skip
@click.option(
    "--redundant", type=click.IntRange(0, 65536), default=0, show_default=True, metavar="N",
    help="Further copies of experts with many tokens.",
)  # fmt: skip
@options.seed
@options.as_json
def command(
    name: str, variant: Variant, ranks: int | None, grid: tuple[int, ...] | None, counts: Path | None,
    tokens: int | None, experts: int | None, topk: int | None, routing: str | None, hidden: int, dtype: str,
    redundant: int, seed: int, as_json: bool,
) -> None:  # fmt: skip
    """Place experts on ranks by the tokens that want them, so that dispatch and combine take the least time.

    State the tokens of each rank, experts and top-k, or --counts with what you recorded. Experts are placed so that
    the busiest rank gets the fewest tokens, and so that the busiest node gets the fewest from other nodes. Dispatch
    and combine are then simulated, each with its fastest algorithm, and compared with experts in plain order. The
    plain order is kept if no placement is faster.

    Counts do not say which experts share a token, so a token of --counts is sent once for each expert. Without
    --counts it may go to a rank or a node once, as `linkwright simulate dispatch` has it.

    \b
    linkwright plan experts --on hgx-h100 --nodes 8 --tokens 4096 --experts 256 --topk 8 --routing zipf:1.0 \\
        --hidden 7168 --dtype fp8
    """
    from linkwright.advise.plans import experts as planner
    from linkwright.cli.progress import Progress
    from linkwright.executors import resolve_one
    from linkwright.executors.sim import ModelledTarget
    from linkwright.libraries.questions import ranks_by_node

    target = resolve_one(name, ranks, grid, variant=variant)
    if not isinstance(target, ModelledTarget):
        raise UsageError(f"--on {name}: a placement is simulated; name a described machine")
    machine, each = target.machine, target.extent.ranks
    if not 2 <= each <= _MOST:
        raise UsageError(f"{counted(each, 'rank')}: experts are placed on 2 to {_MOST}; state -p")
    if grid and (len(grid) != 2 or grid[0] * grid[1] != each):
        raise UsageError(f"--grid {format_grid(grid)}: does not have {each} ranks; write ranks of a node x nodes")
    places = target.seats(each)
    by_node = ranks_by_node(machine, each, places) or ()
    if len(set(by_node)) != 1:
        said = f"has {', '.join(map(str, by_node))} on its nodes" if by_node else "has those of a node apart"
        raise UsageError(f"{each} ranks: {machine.name} {said}; place as many on each node, next to each other")
    nodes = (by_node[0], len(by_node))
    if grid and grid != nodes and 1 not in nodes:
        raise UsageError(f"--grid {format_grid(grid)}: {machine.name} has {by_node[0]} ranks on each node; omit it")
    layout = grid or (nodes if len(by_node) > 1 else None)
    given = {"--tokens": tokens, "--experts": experts, "--topk": topk}
    stated = [flag for flag, value in {**given, "--routing": routing}.items() if value is not None]
    if counts:
        if stated:
            raise UsageError(f"--counts: states everything; omit {stated[0]}")
        asked = planner.counted(read_counts(counts, square=False), each, hidden, dtype, layout)
    else:
        if missing := [flag for flag in given if flag not in stated]:
            raise UsageError(f"lacks {', '.join(missing)}; state all three, or --counts")
        drawn = tokens or 0, experts or 0, topk or 0
        asked = planner.routed(each, *drawn, routing or "uniform", hidden, dtype, seed, layout)
    with closing(Progress(1, "simulating")):
        found = planner.plan(machine, asked, redundant, places)
    _show(machine.name, found, as_json)


def _show(machine: str, found: ExpertPlan, as_json: bool) -> None:
    plain, planned = found.plain, found.planned
    if as_json:
        sides = {"plain": _plain(plain), "planned": _plain(planned)}
        print_json({"machine": machine, **sides, "least_tokens": found.least_tokens, "gained": planned is not plain})
        return
    for rank, experts in enumerate(planned.experts):
        click.echo(f"{rank:>6}  {' '.join(map(str, experts))}")
    click.echo()
    lines: list[tuple[str, Callable[[PlacedExperts], str]]] = [
        ("busiest rank", lambda side: f"{side.rank}: {side.rank_tokens:,} tokens"),
        ("busiest node", lambda side: f"{side.node}: {side.node_tokens:,} tokens from others"),
        ("dispatch", lambda side: _timed(side.dispatch)),
        ("  busiest", lambda side: _link(side.dispatch)),
        ("combine", lambda side: _timed(side.combine)),
        ("  busiest", lambda side: _link(side.combine)),
        ("both", lambda side: format_us(side.time_us)),
    ]
    for what, words in lines:
        before = "" if planned is plain else f"; in plain order {words(plain)}"
        click.echo(f"{what:<14} {words(planned)}{before}")
    click.echo(f"\n{_verdict(found)}")


def _timed(one: TokenExchange) -> str:
    return f"{format_us(one.time_us)} by {one.algorithm}"


def _link(one: TokenExchange) -> str:
    return f"{one.link}, {format_us(one.link_us)}"


def _verdict(found: ExpertPlan) -> str:
    plain, planned = found.plain, found.planned
    bound = f"no placement has less than {found.least_tokens:,} tokens on its busiest rank"
    if planned is plain:
        return f"nothing gained: no placement that was tried is faster, the plain order is kept; {bound}"
    if not planned.time_us:
        return f"nothing crosses a link: every rank has the experts that its tokens want; {bound}"
    copies = sum(map(len, planned.experts)) - sum(map(len, plain.experts))
    unused = "; with copies of experts it is slower, so none is used" if found.redundant and not copies else ""
    return f"{plain.time_us / planned.time_us:.2f} x as fast{unused}; {bound}"


def _plain(side: PlacedExperts) -> dict[str, object]:
    exchanges = {"dispatch": side.dispatch._asdict(), "combine": side.combine._asdict()}
    return {**side._asdict(), **exchanges, "time_us": side.time_us}
