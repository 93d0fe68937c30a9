"""`linkwright verify`: prove that schedules do what their collective demands, in every execution."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from linkwright.base.errors import UsageError
from linkwright.base.units import counted
from linkwright.cli import exchanges, options, values
from linkwright.cli.output import print_json, print_table
from linkwright.cli.progress import Progress

if TYPE_CHECKING:
    from linkwright.machines import Variant

# Rank counts of `--all`: every small one, a power of two, and squares.
SWEEP = (*range(1, 18), 32, 64, 100)
USUAL_RANKS = 8


@click.command(cls=options.Command, name="verify")
@click.argument("what", required=False, metavar="[COLLECTIVE[/ALGORITHM]|SOURCE]")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help=f"Verify every algorithm on {len(SWEEP)} numbers of ranks up to {SWEEP[-1]}.",
)
@click.option("--algorithm", "-a", default="all", show_default=True, metavar="A,B", help="Algorithms, or `all`.")
@click.option("--ranks", "-p", type=values.RANKS, help="Ranks that take part; default: 8, or those of a file.")
@click.option("--size", type=values.SIZE, help="Message size in bytes; default: 64K, or that of a file.")
@click.option("-r", "--root", type=values.ROOT, default=0, show_default=True, help="Root of rooted collectives.")
@click.option("--grid", type=values.GRID, help="Ranks as a grid of columns x rows, for two-dimensional algorithms.")
@click.option(
    "--on", "machine", metavar="MACHINE", help="First lower the schedule for the default path of this machine."
)
@options.variant
@exchanges.stated
@options.as_json
def command(
    what: str | None,
    everything: bool,
    algorithm: str,
    ranks: int | None,
    size: int | None,
    root: int,
    grid: tuple[int, ...] | None,
    machine: str | None,
    variant: Variant,
    exchange: exchanges.Stated,
    as_json: bool,
) -> int:
    """A SOURCE is a file (own.lw, a plan of another tool, `-`) or a Python function (own.py:bucket).

    The proof covers bounds, order, semantics (every chunk ends with exactly the contributions that its collective
    demands, each once) and the absence of races. An error names rank, step, chunk and cure. An algorithm that does not
    support this number of ranks is waived. The exit status is 1 if anything is wrong.
    """
    from linkwright.session.verification import check

    if everything == bool(what):
        raise UsageError(
            "name a collective or a source, or give --all: `linkwright verify allreduce -a ring --ranks 64`"
        )
    dealt = exchange.of(options.subject(what, algorithm), "f32", 0) if what and exchange != exchanges.NOTHING else None
    if dealt:
        size, ranks = dealt.sizes[-1], ranks or (dealt.ranks or (None,))[0]
    asked = list(_asked(what, algorithm, ranks))
    bar = Progress(len(asked), "verify")
    findings = []
    for done, (key, count) in enumerate(asked):
        bar.show(done, key)
        at = 0 if everything and root >= count else root
        stated = dealt.exchange if dealt else None
        findings.append(check(key, count, size, root=at, grid=grid, machine=machine, variant=variant, exchange=stated))
    bar.close()
    if as_json:
        print_json([finding.__dict__ for finding in findings])
    else:
        _print(findings, brief=everything)
    return 1 if any(finding.status == "failed" for finding in findings) else 0


def _asked(what: str | None, algorithm: str, ranks: int | None) -> Iterator[tuple[str, int]]:
    """What is to be proved: an algorithm or a source, and its ranks."""
    from linkwright.session.suite.expand import algorithms_of
    from linkwright.session.verification import registered

    if what is None:
        yield from ((f"{of}/{name}", p) for of, names in registered().items() for name in names for p in SWEEP)
        return
    subject = options.subject(what, algorithm)
    ranks = subject.asked_ranks(ranks) or USUAL_RANKS
    if subject.collective is None:
        yield what, ranks
        return
    for name in algorithms_of(subject.collective, subject.axes["algorithms"]):
        yield f"{subject.collective}/{name}", ranks


def _print(findings: list, brief: bool) -> None:
    counts = {status: sum(f.status == status for f in findings) for status in ("ok", "waived", "failed")}
    shown = [f for f in findings if not brief or f.status == "failed"]
    if shown:
        rows = [[f.status, f.key, str(f.ranks or ""), f.text] for f in shown]
        print_table(["", "schedule", "ranks", "proved, or what is wrong"], rows, left=(0, 1, 3))
        click.echo("")
    click.echo(
        f"{counted(len(findings), 'schedule')}: " + ", ".join(f"{n} {status}" for status, n in counts.items() if n)
    )
