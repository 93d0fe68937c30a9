"""`linkwright dissect`: run a suite on machines, measured and modelled, and write the report."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwright.base.errors import UsageError
from linkwright.base.units import size_sweep
from linkwright.cli import options, values

if TYPE_CHECKING:
    from linkwright.session.suite.backends import Backend
    from linkwright.session.suite.load import Suite
    from linkwright.session.suite.session import Request

# Level of a run -> seconds of measuring, unless --time-budget is given.
BUDGETS_S = {"quick": 60.0, "normal": 300.0, "full": 900.0}
BACKENDS = ("local", "dask")
# More threads or processes only cost memory and start-up time: no machine has as many processors.
MOST_JOBS = 1024
# Options that --resume accepts: where the remaining experiments run, and where their rows go.
_WITH_RESUME = {"resume", "backend", "scheduler", "jobs", "grain", "outputs", "root_folder", "wide", "columns", "color"}
LONGEST_NAME = 40  # characters of --name, which appears in titles and legends


def _checked_name(value: str | None) -> str | None:
    """Return the name without surrounding spaces; reject one that does not fit a title."""
    name = value.strip() if value is not None else None
    if name is not None and not (name and name.isprintable() and len(name) <= LONGEST_NAME):
        raise click.BadParameter(f"{value!r} is not a usable title; give 1 to {LONGEST_NAME} printable characters")
    return name


@click.command(cls=options.Command, name="dissect")
@click.argument("suite", required=False, metavar="[SUITE|SOURCE]", shell_complete=options.completed("suites"))
@click.option("--suite", "named", metavar="NAME", help="Same as SUITE.")
@click.option(
    "--on", shell_complete=options.completed("executors", "machines"), metavar="A,B",
    help="Executors (measured) and machines (modelled); default: those of the suite, or threads.",
)  # fmt: skip
@click.option("--ranks", "-p", type=values.RANKS, help="Participating ranks; default: all that the machine has.")
@click.option("--grid", type=values.GRID, help="Ranks as a grid of columns x rows, if the machine leaves it open.")
@options.seated
@click.option(
    "--level", type=click.Choice(list(BUDGETS_S)), default="quick", show_default=True,
    help="How much of the suite to run, and for how long: quick 60 s, normal 5 min, full 15 min.",
)  # fmt: skip
@click.option("--time-budget", type=values.DURATION, help="Measure for this long instead.")
@click.option(
    "--jobs", "-j", type=click.IntRange(1, MOST_JOBS), metavar="N",
    help="Threads of `local`, or processes that `dask` starts here; default: one per processor.",
)  # fmt: skip
@click.option(
    "--backend", "--engine", "backend", type=click.Choice(BACKENDS), default="local", show_default=True,
    help="Where modelled experiments run: threads of this process, or Dask workers.",
)  # fmt: skip
@click.option(
    "--scheduler", metavar="ADDRESS",
    help="Use this running Dask scheduler, such as tcp://head:8786; default: start processes on this machine.",
)  # fmt: skip
@click.option("--grain", type=click.IntRange(1), metavar="N", help="Experiments per Dask task; default: n / 512.")
@click.option(
    "--name", callback=lambda context, parameter, value: _checked_name(value), metavar="NAME",
    help="Name of the measured machine in titles and legends; default: host and processor, abbreviated.",
)  # fmt: skip
@options.target
@options.watts
@options.seed
@click.option("--resume", metavar="RUN", help="Continue an interrupted run: its id, or `latest`.")
@options.view
@options.outputs
@options.runs
def command(
    suite: str | None,
    named: str | None,
    backend: str,
    scheduler: str | None,
    jobs: int | None,
    grain: int | None,
    resume: str | None,
    outputs: tuple[Path, ...],
    root_folder: Path,
    **asked: object,
) -> int:
    """SUITE is a name (`linkwright list suites`) or the path of a suite file; by default it is the suite `dissect`.
    A SOURCE, your own schedule such as own.lw or own.py:bucket, is run at all sizes from 8 B to 64 KiB, or at its
    own.
    If a described machine has more than 64 endpoints, 64 of them take part, evenly spread; --ranks N takes the
    first N instead.

    Measured machines share the time budget; modelled ones take as long as their simulation. Modelled experiments run
    on all cores, and their rows are the same bytes for any number of jobs and on every backend. --jobs above 1 and
    Dask are refused for executors that measure, because a second job would disturb the measurement.

    The run folder keeps every sample. The last line of output is the path of the report, one HTML file that works
    offline. After Ctrl-C or the loss of a scheduler, --resume runs only what is missing.

    \b
    linkwright dissect                                            # all of this machine, in a minute
    linkwright dissect scaling --level full --backend dask        # a whole suite, in processes of a Dask cluster
    linkwright dissect --resume latest                            # what is missing of an interrupted run
    """
    from linkwright.cli import sessions

    if suite and named:
        raise UsageError(f"{suite} and --suite {named} both name the suite; give one of them")
    if scheduler and jobs:
        raise UsageError(
            "--jobs counts processes of this machine, but --scheduler uses its own workers; give one of them"
        )
    for option, value in (("--scheduler", scheduler), ("--grain", grain)):
        if value and backend != "dask":
            raise UsageError(f"{option} needs Dask; add --backend dask, or omit it")
    if resume:
        options.refuse_others("--resume continues a run as it was requested", _WITH_RESUME)
        with _opened(backend, scheduler, jobs, grain) as opened:
            return sessions.resume(root_folder, resume, outputs, opened)
    from linkwright.session.suite.session import Request

    loaded = _suite_of(suite or named or "dissect", asked)
    on = asked.pop("on") or ",".join(loaded.machines) or "threads"
    budget_s = asked.pop("time_budget") or BUDGETS_S[asked["level"]]
    request = Request(on=on, budget_s=budget_s, **asked)
    if backend == "dask" or (jobs or 1) > 1:
        _refuse_measured(request)
    with _opened(backend, scheduler, jobs, grain) as opened:
        return sessions.start(root_folder, loaded, request, outputs, opened)


def _suite_of(name: str, asked: dict[str, object]) -> Suite:
    """Return the suite called `name`, or one made for a pattern or a source, which also sets the ranks in `asked`."""
    from linkwright.ask import sources
    from linkwright.base import registry
    from linkwright.session.suite import load

    if pattern := options.pattern_of(name):
        swept = tuple(size_sweep(8, 64 << 10, 2))
        return load.one_part("dissect", name, pattern=pattern, sizes=swept, metrics=("time", "bandwidth"))
    if name.endswith(".toml") or not sources.is_source(name):
        return load.load(registry.suite_path(name))
    subject = options.subject(name)
    asked["ranks"] = subject.asked_ranks(asked["ranks"])
    sized = subject.sources[0].size_bytes is not None
    sizes = None if sized else tuple(size_sweep(8, 64 << 10, 2))
    metrics = ("time", "alg_bw", "bus_bw")
    return load.one_part("dissect", subject.title, **subject.axes, sizes=sizes, metrics=metrics)


def _refuse_measured(request: Request) -> None:
    from linkwright.executors import resolve

    for target in resolve(request.on, request.ranks, request.grid, variant=request.variant):
        if not target.modelled:
            raise UsageError(
                f"--on {target.name}: this executor measures, and a second job would disturb what it "
                "measures; leave out --jobs and --backend, or name described machines only"
            )


def _opened(
    backend: str, scheduler: str | None, jobs: int | None, grain: int | None
) -> AbstractContextManager[Backend | None]:
    """Return the requested backend; None leaves the choice to the session, whose record then names no backend."""
    from linkwright.session.suite.backends import Dask, Local

    if backend == "local" and jobs is None:
        return nullcontext()
    return Dask(scheduler, jobs or 0, grain) if backend == "dask" else Local(jobs or 0)
