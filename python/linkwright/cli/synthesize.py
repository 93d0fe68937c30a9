"""`linkwright synthesize COLLECTIVE --on MACHINE`: schedules that are found for a described machine."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwright.ask.question import collectives
from linkwright.base.errors import UsageError, check_known
from linkwright.base.units import format_ps
from linkwright.cli import exchanges, options, values

if TYPE_CHECKING:
    from linkwright.advise.synthesis import Outcome, Task
    from linkwright.machines import Variant

SIZES = "1K,1M,64M"


@click.command(cls=options.Command, name="synthesize")
@click.argument("collective", metavar="COLLECTIVE", shell_complete=options.completed("collectives"))
@options.on(required=True, help="A described machine, or the path of a machine file.")
@click.option(
    "--sizes", default=SIZES, show_default=True, metavar="A,B,C", help="Find a schedule for each of these sizes."
)
@click.option("--ranks", "-p", type=values.RANKS, help="Number of ranks; default: all that the machine has.")
@click.option("--grid", type=values.GRID, help="Arrange the ranks in columns x rows.")
@options.variant
@exchanges.stated
@options.packed_data
@click.option("--path", help="Software path of the machine file; default: its first.")
@click.option(
    "--budget", "budget_s", type=values.DURATION, default="30s", show_default=True, metavar="TIME",
    help="Search at most this long for each size; `1ms` gives one of the smallest known schedules.",
)  # fmt: skip
@click.option(
    "--method", "methods", metavar="A,B", shell_complete=options.completed("methods"),
    help="Methods of search; default: all (`linkwright list methods`).",
)  # fmt: skip
@click.option(
    "--serial-starts", is_flag=True,
    help="Start a rank's transfers one after another on any lane, so that no gain relies on concurrent starts.",
)  # fmt: skip
@click.option(
    "--fastest", is_flag=True,
    help="Take the fastest schedule on the machine as described, even if its gain is not robust.",
)  # fmt: skip
@options.file(
    "--out", metavar="FOLDER", help="Write each schedule to FOLDER as a .lw file, with its origin in the first lines."
)
@click.option(
    "--as", "formats", multiple=True, metavar="FORMAT", shell_complete=options.completed("plans"),
    help="With --out: also write this format (`linkwright list plans`); may be repeated.",
)  # fmt: skip
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE",
    help="Also write the table to FILE as JSON; `-` prints it instead of the table.",
)  # fmt: skip
@options.page(
    "--report",
    help="Write a page: the schedules found, why the winner wins, and its animation next to the best known schedule.",
)
@options.seed
def command(
    collective: str,
    on: str,
    sizes: str,
    ranks: int | None,
    grid: tuple[int, ...] | None,
    variant: Variant,
    dtype: str,
    op: str,
    root: int,
    path: str | None,
    budget_s: float,
    methods: str | None,
    serial_starts: bool,
    fastest: bool,
    out: Path | None,
    formats: tuple[str, ...],
    json_file: Path | None,
    report: Path | None,
    seed: int,
    exchange: exchanges.Stated,
) -> int:
    """For each size: the best known algorithm, the best schedule found, its gain, and the time that no schedule can
    beat. Each winner is proved before it counts. Ctrl-C ends the search with the best so far.

    A gain has to last. Both schedules are simulated again on 20 machines whose fabric has its rates and times drawn
    within 20 %, and with transfers of a rank that start one after another. The answer is the fastest schedule whose
    gain stays in 95 % of the draws, preferably one that also gains with serial starts. `lasts` shows the share of the
    draws and the gain with serial starts.

    A schedule in --out is a file like any other: `linkwright simulate FILE.lw --on MACHINE --issue POLICY`, with the
    policy that its first lines state, gives the time in the table, and `linkwright run FILE.lw --on threads` runs it.

    An uneven exchange is stated as for `simulate`: --tokens and the options of experts, or --counts; --seed also draws
    the experts of tokens.

    \b
    linkwright synthesize allreduce --on dgx1-p100 --sizes 1K,1M,256M --out found --report found.html
    """
    from linkwright.advise import synthesis
    from linkwright.executors import resolve_one

    # A subject may be a file, too, so this is refused before one is looked for.
    check_known("collective", collective, collectives(), lists="linkwright list collectives")
    dealt = exchange.of(options.subject(collective), dtype, seed)
    target = synthesis.described(resolve_one(on, ranks, grid, variant=variant))
    if dealt and dealt.ranks and target.extent.ranks not in dealt.ranks:
        raise UsageError(f"--counts: of {dealt.ranks[0]} ranks, not {target.extent.ranks}; state -p {dealt.ranks[0]}")
    dtype = dealt.dtype if dealt else dtype
    asked = dealt.sizes if dealt else options.chosen_sizes(collective, dtype, 0, 0, 0, sizes)
    wanted = tuple(methods.split(",")) if methods else ()
    tasks = [
        synthesis.task(target, collective, size, dtype=dtype, op=op, root=root, grid=grid, path=path, seed=seed,
                       budget_s=budget_s, methods=wanted, serial_starts=serial_starts, fastest=fastest,
                       exchange=dealt.exchange if dealt else None)
        for size in asked
    ]  # fmt: skip
    synthesis.check_outputs(out, formats, report, None if str(json_file) == "-" else json_file)
    return _search(list(dict.fromkeys(tasks)), out, formats, json_file, report)


def _search(
    tasks: list[Task], out: Path | None, formats: tuple[str, ...], json_file: Path | None, report: Path | None
) -> int:
    """Search for each size in turn; the exit status."""
    from linkwright.advise import synthesis

    table = str(json_file) != "-"
    found: list[Outcome] = []
    refused = False
    if table:
        click.echo(synthesis.heading(tasks[0]))
    try:
        for task in tasks:
            outcome = _one(task)
            found.append(outcome)
            if table:
                click.echo(outcome.line)
            for remark in outcome.remarks:
                click.echo(f"  {remark}", err=not table)
            written, why = synthesis.write(outcome, out, formats) if out else ([], [])
            for file in written:
                click.echo(f"  wrote {file}", err=not table)
            for one in why:
                refused = True
                click.echo(f"  not written: {one}", err=True)
            if outcome.interrupted:
                break
    finally:
        if json_file:
            _write_json(found, json_file)
        if report and found:
            _write_page(found, report, err=not table)
    return 130 if any(outcome.interrupted for outcome in found) else int(refused)


def _one(task: Task) -> Outcome:
    """Search, with the best so far on the live line."""
    from linkwright.cli.progress import Progress

    with closing(Progress(1, task.name)) as progress:
        progress.end_in(task.budget_s)
        return task.search(
            lambda best: progress.show(0, f"{task.name}: {format_ps(best['time_ps'])}, {best['recipe']}")
        )


def _write_page(found: list[Outcome], file: Path, *, err: bool) -> None:
    from linkwright.show import report
    from linkwright.show.report.search import page

    click.echo(f"wrote {report.render(page(found), file)}", err=err)


def _write_json(found: list[Outcome], file: Path) -> None:
    import json

    from linkwright.base.files import write_text

    text = json.dumps([outcome.explained for outcome in found], indent=2) + "\n"
    if str(file) == "-":
        click.echo(text, nl=False)
    else:
        write_text(file, text)
