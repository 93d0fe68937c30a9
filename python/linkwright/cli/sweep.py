"""`linkwright sweep SUITE`: modelled experiments on all cores, or on the machines of a Dask cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwright.cli import options
from linkwright.cli.dissect import LEVELS
from linkwright.errors import UsageError

if TYPE_CHECKING:
    from linkwright.suite.engines import Engine
    from linkwright.suite.load import Suite

ENGINES = ("local", "dask")


@click.command(name="sweep")
@click.argument("suite", required=False, shell_complete=options.completed("suites"))
@click.option(
    "--on",
    shell_complete=options.completed("machines"),
    metavar="A,B",
    help="Described machines; default: those that the suite names.",
)
@click.option(
    "--engine", type=click.Choice(ENGINES), default="local", show_default=True,
    help="Threads of this process, or workers of Dask.",
)  # fmt: skip
@click.option(
    "--scheduler", metavar="ADDRESS",
    help="Of a Dask scheduler that runs, such as tcp://head:8786; default: processes of this machine.",
)  # fmt: skip
@click.option(
    "--jobs", "-j", type=click.IntRange(1), metavar="N",
    help="Threads of `local`, processes of `dask` here; default: one for each processor.",
)  # fmt: skip
@click.option("--grain", type=click.IntRange(1), metavar="N", help="Experiments in a task of `dask`; default: n / 512.")
@click.option("--ranks", "-p", type=options.RANKS, help="Ranks that take part; default: all that the machine has.")
@click.option("--grid", type=options.Grid(), help="Ranks as a grid of columns x rows, where a machine leaves it open.")
@click.option("--level", type=click.Choice(LEVELS), default="full", show_default=True, help="How much of the suite.")
@options.time_budget
@options.seed
@click.option("--resume", metavar="RUN", help="Go on with an interrupted run: its id, or `latest`; without SUITE.")
@options.outputs
@options.runs
def command(
    suite: str | None,
    on: str | None,
    engine: str,
    scheduler: str | None,
    jobs: int | None,
    grain: int | None,
    ranks: int | None,
    grid: tuple[int, int] | None,
    level: str,
    time_budget: float,
    seed: int,
    resume: str | None,
    outputs: tuple[Path, ...],
    root_folder: Path,
) -> int:
    """Run SUITE on described machines, on all cores.

    SUITE is a name or the path of a suite file. The results are those of `dissect`, byte for byte the same on
    any number of jobs and on every engine, in a run folder that ends with a report. What is finished is kept:
    after Ctrl-C or a lost scheduler `--resume` runs only the rest. Executors that measure are refused on more
    than one job, for one would disturb the other; --time-budget is theirs.
    """
    from linkwright.cli import sessions
    from linkwright.suite.session import Request

    if bool(suite) == bool(resume):
        raise UsageError("name a SUITE (`linkwright list suites`), or an interrupted run with --resume; one of them")
    _check(engine, scheduler, jobs, grain)
    if resume:
        if on:
            raise UsageError("--resume goes on with what the run was asked for; leave --on away")
        with _engine(engine, scheduler, jobs, grain) as opened:
            return sessions.resume(root_folder, resume, outputs, opened)
    asked = _suite(suite)
    names = on or ",".join(asked.machines)
    if not names:
        raise UsageError(
            f"sweep {suite}: no machine; name some with --on, such as `--on wormhole-n150`, or as `machines` in [suite]"
        )
    request = Request(on=names, budget_s=time_budget, level=level, ranks=ranks, grid=grid, seed=seed)
    _refuse_measured(request, alone=engine == "local" and jobs == 1)
    with _engine(engine, scheduler, jobs, grain) as opened:
        return sessions.start(root_folder, asked, request, outputs, opened)


def _suite(name: str) -> Suite:
    from linkwright import registry
    from linkwright.suite import load

    return load.load(registry.suite_path(name))


def _check(engine: str, scheduler: str | None, jobs: int | None, grain: int | None) -> None:
    """No option is given that would do nothing."""
    for option, value in (("--scheduler", scheduler), ("--grain", grain)):
        if value and engine != "dask":
            raise UsageError(f"{option} is for tasks of Dask; add --engine dask, or leave it away")
    if scheduler and jobs:
        raise UsageError("--jobs is for processes of this machine; workers of --scheduler are as many as were started")


def _refuse_measured(request, alone: bool) -> None:
    from linkwright.executors import resolve

    for target in resolve(request.on, request.ranks, request.grid):
        if not target.modelled and not alone:
            raise UsageError(
                f"--on {target.name}: this executor measures, and a second job beside it would disturb what it "
                "measures; use `linkwright dissect` or `--jobs 1`, and sweep over described machines"
            )


def _engine(engine: str, scheduler: str | None, jobs: int | None, grain: int | None) -> Engine:
    from linkwright.suite.engines import Dask, Local

    return Dask(scheduler, jobs or 0, grain) if engine == "dask" else Local(jobs or 0, command="sweep")
