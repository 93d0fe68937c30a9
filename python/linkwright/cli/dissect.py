"""`linkwright dissect`: run a suite on machines, real and modelled, and write the report."""

from __future__ import annotations

from pathlib import Path

import click

from linkwright.cli import options

# Level of a run -> seconds that it measures, unless the user says how many.
BUDGETS_S = {"quick": 60.0, "normal": 300.0, "full": 900.0}
LEVELS = tuple(BUDGETS_S)


@click.command(name="dissect")
@click.option(
    "--on",
    shell_complete=options.completed("executors", "machines"),
    metavar="A,B",
    help="Executors (measured) and machines (modelled); default: those of the suite, or threads.",
)
@click.option(
    "--suite", default="dissect", show_default=True, metavar="NAME", help="A suite, or the path of a suite file."
)
@click.option("--ranks", "-p", type=options.RANKS, help="Ranks that take part; default: all that the machine has.")
@click.option("--grid", type=options.Grid(), help="Ranks as a grid of columns x rows, where a machine leaves it open.")
@click.option(
    "--level", type=click.Choice(LEVELS), default="quick", show_default=True,
    help="How much of the suite, and how long: quick 60 s, normal 5 min, full 15 min.",
)  # fmt: skip
@click.option("--time-budget", type=options.Duration(), help="Stop measuring after this time instead.")
@options.watts
@options.seed
@click.option("--resume", metavar="RUN", help="Go on with an interrupted run: its id, or `latest`.")
@options.outputs
@options.runs
def command(
    on: str | None,
    suite: str,
    ranks: int | None,
    grid: tuple[int, int] | None,
    level: str,
    time_budget: float | None,
    watts: float | None,
    seed: int,
    resume: str | None,
    outputs: tuple[Path, ...],
    root_folder: Path,
) -> int:
    """Find out what a machine can do, and how good that is.

    Of a described machine with more than 64 endpoints 64 take part, evenly spread, unless --ranks asks for the
    first so many.

    Measured machines are given the time budget; modelled ones take what their simulation takes. The run
    folder holds every sample; it ends with the path of the report, one HTML file that works offline.
    """
    from linkwright import registry
    from linkwright.cli import sessions
    from linkwright.errors import UsageError
    from linkwright.suite import load
    from linkwright.suite.session import Request

    if resume:
        if on:
            raise UsageError("--resume goes on with what the run was asked for; leave --on away")
        return sessions.resume(root_folder, resume, outputs)
    asked = load.load(registry.suite_path(suite))
    request = Request(
        on=on or ",".join(asked.machines) or "threads",
        budget_s=time_budget or BUDGETS_S[level],
        level=level,
        ranks=ranks,
        grid=grid,
        seed=seed,
        watts=watts,
    )
    return sessions.start(root_folder, asked, request, outputs)
