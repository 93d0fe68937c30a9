"""`linkwright verify`: prove that schedules do what their collective demands, in every execution."""

from __future__ import annotations

from pathlib import Path

import click

from linkwright.cli import options
from linkwright.cli.output import Progress, print_json, print_table

# Rank counts of `--all`: every small one, a power of two, and squares.
SWEEP = (*range(1, 18), 32, 64, 100)


@click.command(name="verify")
@click.argument("what", required=False, metavar="[COLLECTIVE[/ALGORITHM]|FILE]")
@click.option(
    "--all", "everything", is_flag=True, help=f"Every algorithm, on {len(SWEEP)} numbers of ranks up to {SWEEP[-1]}."
)
@click.option("--algorithm", "-a", default="all", show_default=True, metavar="A,B", help="Algorithms, or `all`.")
@click.option("--ranks", "-p", type=options.RANKS, default=8, show_default=True, help="Ranks that take part.")
@click.option("--size", type=options.Size(), default="64K", show_default=True, help="Message size in bytes.")
@click.option("-r", "--root", type=click.IntRange(0), default=0, show_default=True, help="Root of rooted collectives.")
@click.option("--grid", type=options.Grid(), help="Ranks as a grid of columns x rows, for two-dimensional algorithms.")
@click.option("--on", "machine", metavar="MACHINE", help="Lower it for the default path of this machine first.")
@options.as_json
def command(
    what: str | None,
    everything: bool,
    algorithm: str,
    ranks: int,
    size: int,
    root: int,
    grid: tuple[int, int] | None,
    machine: str | None,
    as_json: bool,
) -> int:
    """Prove a COLLECTIVE or the schedule in FILE correct.

    A FILE holds a schedule in the canonical text form. The proof covers bounds, order, semantics (every chunk ends
    with exactly the contributions that its collective demands, each once) and the absence of races. An error names
    rank, step, chunk and cure. An algorithm that does not support this number of ranks is waived. The exit status is 1
    if anything is wrong.
    """
    from linkwright.errors import UsageError
    from linkwright.verification import Request, check, check_file

    if everything == bool(what):
        raise UsageError("name a collective or a file, or give --all: `linkwright verify allreduce -a ring --ranks 64`")
    if what and _is_file(what):
        findings = [check_file(Path(what))]
    else:
        shapes = SWEEP if everything else (ranks,)
        requests = [
            Request(key, p, size, root if root < p or not everything else 0, grid, machine)
            for key in _keys(what, algorithm)
            for p in shapes
        ]
        bar = Progress(len(requests), "verify")
        findings = []
        for done, request in enumerate(requests):
            bar.show(done, request.key)
            findings.append(check(request))
        bar.close()
    if as_json:
        print_json([finding.__dict__ for finding in findings])
    else:
        _print(findings, brief=everything)
    return 1 if any(finding.status == "failed" for finding in findings) else 0


def _is_file(what: str) -> bool:
    """Whether this names a file, and not COLLECTIVE/ALGORITHM."""
    from linkwright import _native

    collectives = [row["key"] for row in _native.collectives()]
    path = Path(what)
    return bool(path.suffix) or ("/" in what and (path.exists() or what.partition("/")[0] not in collectives))


def _keys(what: str | None, algorithm: str) -> list[str]:
    from linkwright import registry
    from linkwright.suite.expand import algorithms_of

    if what is None:
        return registry.keys("algorithms")
    collective, algorithm = options.collective_and_algorithm(what, algorithm)
    return [f"{collective}/{name}" for name in algorithms_of(collective, tuple(algorithm.split(",")))]


def _print(findings: list, brief: bool) -> None:
    counts = {status: sum(f.status == status for f in findings) for status in ("ok", "waived", "failed")}
    shown = [f for f in findings if not brief or f.status == "failed"]
    if shown:
        rows = [[f.status, f.key, str(f.ranks or ""), f.text] for f in shown]
        print_table(["", "schedule", "ranks", "proved, or what is wrong"], rows, left=(0, 1, 3))
        click.echo("")
    click.echo(f"{len(findings)} schedules: " + ", ".join(f"{n} {status}" for status, n in counts.items() if n))
