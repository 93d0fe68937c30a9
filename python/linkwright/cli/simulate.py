"""`linkwright simulate COLLECTIVE --on MACHINE`: the schedules on a described machine."""

from __future__ import annotations

from pathlib import Path

import click

from linkwright.cli import exchanges, options


@click.command(cls=options.Command, name="simulate")
@options.subject_argument
@click.option(
    "--on",
    shell_complete=options.completed("machines"),
    required=True,
    metavar="A,B",
    help="Described machines, or paths of machine files.",
)
@options.seated
@options.shape
@options.sizes
@options.packed_data
@click.option("--path", help="Software path of the machine file; default: that of the plan, or its first.")
@options.traffic
@exchanges.stated
@options.skew
@click.option(
    "--no-arithmetic", "arithmetic", is_flag=True, callback=lambda _context, _option, given: not given,
    help="Do not charge time for reductions; rows are marked.",
)  # fmt: skip
@click.option("--alternatives", is_flag=True, help="Compare the library's choice with its alternatives.")
@options.seed
@click.option(
    "--launches",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Simulate N launches with the noise of the machine file, from seeds SEED, SEED + 1, ...: median, p99.",
)
@click.option(
    "--trace",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a trace that ui.perfetto.dev opens, FILE.pftrace.",
)
@click.option(
    "--links",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the busy time of every link, as CSV.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.html",
    help="Write a page: figures, limits, what binds, a picture over time, the load of every link.",
)
@options.view
@options.outputs
def command(
    what: str,
    algorithm: str,
    alternatives: bool,
    dtype: str,
    op: str,
    root: int,
    min_bytes: int,
    max_bytes: int,
    factor: int,
    size_list: str | None,
    messages: int | None,
    both_ways: bool,
    ranks: tuple[int, ...] | None,
    exchange: exchanges.Stated,
    **asked: object,
) -> int:
    """A SOURCE is your own schedule: a file (own.lw, a plan of another tool, `-`), or a Python function
    (own.py:bucket, package:bucket) that returns one for the requested ranks and size.

    On a machine with a library, the library's choice runs (`nccl-2.27`); `-a nccl-2.27/tree/ll` forces algorithm
    and protocol, and --alternatives reports for each size whether another choice would be faster.

    Times are exact for the machine as described: the same input gives the same output. `limit` is the time that no
    algorithm can beat on that machine, with its name; `linkwright describe COLLECTIVE --limit` derives it.

    Where ranks are alike, one stands for all of very many: a ring over a million ranks takes seconds. `linkwright
    describe ALGORITHM` says whether it folds.
    """
    from linkwright.cli import simulations, traffic
    from linkwright.session.suite.load import one_part

    subject = options.subject(what, algorithm, patterns=True)
    if alternatives:
        subject = options.with_alternatives(subject)
    dealt = exchange.of(subject, dtype, int(str(asked["seed"])))
    if dealt:
        dtype, ranks = dealt.dtype, ranks or dealt.ranks
    loads = {"dtype": dtype, "op": op, "root": root, "ranks": ranks, "messages": messages, "both_ways": both_ways}
    suite = one_part(
        "simulate",
        subject.title,
        **subject.axes,
        **traffic.axes(subject, loads),
        sizes=(dealt.sizes if dealt else subject.sizes(dtype, min_bytes, max_bytes, factor, size_list)) or None,
        exchange=dealt.axis if dealt else None,
    )
    most = subject.most_ranks(ranks)
    return simulations.run(simulations.Request.of(suite, {**asked, "ranks": most}))
