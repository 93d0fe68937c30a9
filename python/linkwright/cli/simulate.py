"""`linkwright simulate COLLECTIVE --on MACHINE`: the schedules on a described machine."""

from __future__ import annotations

from pathlib import Path

import click

from linkwright.cli import options


@click.command(name="simulate")
@options.collective_argument
@click.option(
    "--on",
    shell_complete=options.completed("machines"),
    required=True,
    metavar="A,B",
    help="Described machines, or paths of machine files.",
)
@options.shape
@options.sizes
@options.data
@click.option("--path", help="Software path of the machine file; default: its first.")
@click.option("--issue", metavar="POLICY", help="blocking, window(k), batch(k) or unlimited.")
@click.option("--skew", metavar="HOW", help="Arrival of ranks: none, uniform:2us, late:RANK:2us, list:0us,1us.")
@click.option("--no-arithmetic", is_flag=True, help="Combines take no time; the rows say so.")
@click.option("--fold", is_flag=True, help="One rank stands for all, where ranks and endpoints are alike.")
@click.option("--stream", is_flag=True, help="Read the algorithm while it is simulated: little memory, the same times.")
@options.seed
@click.option(
    "--trace",
    "trace_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a trace that opens in Perfetto.",
)
@click.option(
    "--links",
    "links_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the busy time of every link, as CSV.",
)
@options.outputs
def command(
    collective: str,
    on: str,
    algorithm: str,
    ranks: int | None,
    grid: tuple[int, int] | None,
    seed: int,
    fold: bool,
    stream: bool,
    trace_file: Path | None,
    links_file: Path | None,
    outputs: tuple[Path, ...],
    **asked: object,
) -> int:
    """Simulate COLLECTIVE on described machines.

    Times are exact for the machine as described: the same input gives the same output. `limit` is the
    largest physical lower bound, and its name.

    With --fold a ring over a million ranks takes seconds; `linkwright describe ALGORITHM` says whether it folds.
    """
    from linkwright.cli import simulations
    from linkwright.errors import UsageError
    from linkwright.suite.load import one_part

    if fold and stream:
        raise UsageError("--fold simulates one rank, --stream all of them; give one of the two")
    walk = "fold" if fold else "stream" if stream else None

    suite = one_part(
        "simulate",
        f"{collective} by {algorithm}",
        collectives=(collective,),
        algorithms=tuple(algorithm.split(",")),
        sizes=options.chosen_sizes(
            collective, asked["dtype"], asked["min_bytes"], asked["max_bytes"], asked["factor"], asked["size_list"]
        ),
        dtype=asked["dtype"],
        op=asked["op"],
        root=asked["root"],
        path=asked["path"],
        issue=asked["issue"],
        skew=asked["skew"],
        arithmetic=not asked["no_arithmetic"],
        metrics=("time", "alg_bw", "bus_bw"),
    )
    return simulations.run(suite, on, ranks, grid, seed, trace_file, links_file, outputs, walk)
