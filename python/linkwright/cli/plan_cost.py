"""`linkwright plan cost`: a table of what collectives cost, for schedulers and planners."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwright.ask.question import DTYPES
from linkwright.base.errors import UsageError
from linkwright.base.units import format_size, parse_size
from linkwright.cli import options, values
from linkwright.cli.output import print_json, print_table

if TYPE_CHECKING:
    from linkwright.advise.cost_curve import Error
    from linkwright.advise.costs import CostTable
    from linkwright.machines import Variant


@click.command(cls=options.Command, name="cost")
@click.argument("collectives", metavar="COLLECTIVE[,COLLECTIVE]", shell_complete=options.collectives)
@options.on("machine", required=True, help="A described machine, or the path of its file.")
@options.seated
@click.option(
    "--algorithm", "-a", "algorithms", default="all", metavar="A,B",
    help="Algorithms or a library, such as `nccl-2.27`; the fastest of several counts.  [default: all]",
)  # fmt: skip
@click.option(
    "--ranks", "-p", type=values.RANK_COUNTS,
    help="Number of ranks, or several: `8`, `2,4,8`; default: all that the machine has.",
)  # fmt: skip
@click.option("--grid", type=values.GRID, help="Arrange the ranks in columns x rows, for an open grid.")
@click.option(
    "--sizes", metavar="A,B", help="Sizes to start from, such as `1K,64K,4M`; default: 64 B to 1 GiB by factors of 4."
)
@click.option("--dtype", "-d", type=click.Choice(list(DTYPES)), default="f32", show_default=True, help="Data type.")
@options.file("--out", help="Write the table, as FILE.json.")
@options.as_json
def command(
    collectives: str, machine: str, variant: Variant, algorithms: str, ranks: tuple[int, ...] | None,
    grid: tuple[int, ...] | None, sizes: str | None, dtype: str, out: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Tabulate the time of a COLLECTIVE by size, for programs that need it often.

    The times are simulated once. Sizes between the points are interpolated linearly, and a larger size never takes
    less. The printed error compares interpolated times with simulations at sizes that are not in the table.

    In Python, `lw.CostTable.load(FILE)` reads the table without simulating, and `lw.estimate` looks times up in it.
    """
    from linkwright.advise import cost_table, costs, costs_build
    from linkwright.base.files import check_place
    from linkwright.cli.progress import Progress

    if out is not None:
        cost_table.check_suffix(out)
        check_place(out, f"--out {out}")
    asked = [parse_size(size) for size in sizes.split(",")] if sizes else costs.SIZES
    names = [name.strip() for name in collectives.split(",")]
    if not all(names):
        raise UsageError(f"`{collectives}` has an empty name; write collectives as `allreduce,alltoall`")
    with closing(Progress(1, "simulating")):
        made = costs.CostTable(*costs_build.fields(machine, names, ranks, algorithms, asked, dtype, grid, variant))
    if out is not None:
        made.save(out)
    if as_json:
        print_json(costs.as_dict(made))
    else:
        _print(made)
    for told in _left_out(made, asked):
        click.echo(f"linkwright: {told}", err=True)


def _print(table: CostTable) -> None:
    click.echo(f"{table.machine}: fastest of {table.wanted}, {table.dtype}")
    click.echo("error: at sizes between the points, against the simulation\n")
    rows = [
        [
            curve.collective,
            str(curve.ranks),
            f"{format_size(curve.sizes[0])} to {format_size(curve.sizes[-1])}",
            str(len(curve.sizes)),
            str(curve.error.checked),
            *(_shown(curve.error, share) for share in (curve.error.median, curve.error.p90, curve.error.largest)),
        ]
        for curve in table.curves
    ]
    print_table(["collective", "ranks", "bytes", "points", "checked", "median", "p90", "largest"], rows)


def _left_out(table: CostTable, asked: Sequence[int]) -> Iterator[str]:
    """By curve, which of the sizes that were asked for have no time."""
    for curve in table.curves:
        missing = [format_size(size) for size in sorted(set(asked)) if size > curve.sizes[-1]]
        if missing:
            yield (
                f"{curve.collective} on {curve.ranks} ranks: no time for {', '.join(missing)}, so the table ends at "
                f"{format_size(curve.sizes[-1])}; `linkwright simulate` says why"
            )


def _shown(error: Error, share: float) -> str:
    return f"{share:.2%}" if error.checked else "-"
