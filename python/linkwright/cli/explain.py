"""`linkwright explain SOMETHING`: why it takes its time, and what would be faster."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwright.cli import options

if TYPE_CHECKING:
    from linkwright.machines import Variant
    from linkwright.show.report import Report

Answered = tuple[Iterable[str], Callable[[], "Report"]]  # the lines of the answer, and what makes its page


@click.command(name="explain")
@click.argument("something", metavar="LOG|RUN[:EXPERIMENT]|SCHEDULE")
@click.option(
    "--on", "machine", metavar="MACHINE", shell_complete=options.completed("machines"),
    help="The described machine, or a machine file; default for a log: chosen by the devices that it names.",
)  # fmt: skip
@click.option("--ranks", "-p", type=options.RANKS, help="Ranks of a schedule, or of a log that does not state them.")
@click.option("--size", type=options.Size(), help="Message size of a schedule; default: 1M, or that of a file.")
@click.option("--table", type=click.IntRange(1), help="Only this table of a log, counted from 1.")
@click.option(
    "--search", "search_s", type=options.Duration(), metavar="TIME",
    help="Search this long for a faster schedule, and say how to enable it.",
)  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE.html", help="Also write the answer as a page.")
@options.seated
@options.runs
def command(
    something: str,
    machine: str | None,
    ranks: int | None,
    size: int | None,
    table: int | None,
    search_s: float | None,
    out: Path | None,
    variant: Variant,
    root_folder: Path,
) -> int:
    """A LOG is the output of a benchmark or a profiler, in any form. It is compared with the model of a healthy
    machine. Then faults are simulated, and those whose numbers are nearest to the log's are listed, each with what
    to check. A RUN is one of linkwright's: its collectives are compared with their limits. A SCHEDULE is that of an
    algorithm, such as allreduce/ring, or of a file or function; it needs --on.

    \b
    linkwright explain all_reduce.log
    linkwright explain all_reduce.log --on hgx-h100 --nodes 2 --fabric ndr-fat-tree
    linkwright explain allreduce/ring --on dgx1-p100 --size 64M
    """
    if out:
        from linkwright.base.files import check_page

        check_page(out, "--out")
    if Path(something).is_file() and not Path(something).stat().st_size:
        from linkwright.base.errors import FileError

        raise FileError(f"{something}: is empty; give a log or a schedule")
    if _is_log(something):
        _refuse(something, "a log", {"--size": size, "--place": variant.place})
        if variant.ranks_per_node:
            ranks = _counted(variant, ranks)
        lines, page = _log(something, machine, variant, ranks, table, search_s or 0)
    elif _is_schedule(root_folder, something):
        _refuse(something, "a schedule", {"--table": table})
        lines, page = _schedule(something, machine, variant, ranks, size, search_s or 0)
    else:
        given = {"--on": machine, "--ranks": ranks, "--size": size, "--table": table, "--nodes": variant.nodes,
                 "--ranks-per-node": variant.ranks_per_node, "--search": search_s}  # fmt: skip
        given |= {"--without": variant.without, "--degrade": variant.degrade, "--place": variant.place}
        _refuse(something, "a run", given)
        lines, page = _run(root_folder, something)
    for line in lines:
        click.echo(line)
    if out:
        from linkwright.show import report

        click.echo(f"\nwrote {report.render(page(), out)}")
    return 0


def _refuse(something: str, kind: str, given: dict[str, object]) -> None:
    from linkwright.base.errors import UsageError

    for name, value in given.items():
        if value:
            raise UsageError(f"{name} does not apply to {kind}, and `{something}` is one; omit it")


def _counted(variant: Variant, ranks: int | None) -> int:
    """The ranks of a log, of which so many are on each node."""
    from linkwright.base.errors import UsageError

    assert variant.ranks_per_node
    if not variant.nodes:
        raise UsageError("--ranks-per-node: give the number of nodes of the log, too, with --nodes")
    count = variant.nodes * variant.ranks_per_node
    if ranks not in (None, count):
        raise UsageError(
            f"--ranks {ranks}: {variant.ranks_per_node} on each of {variant.nodes} nodes are {count}; omit --ranks"
        )
    return count


def _is_log(name: str) -> bool:
    """Whether it is a file with the numbers of a known tool, or one that is not named as schedules are."""
    from linkwright.ask import sources
    from linkwright.formats.logs import is_log

    return Path(name).is_file() and (not sources.is_named_so(name) or is_log(name))


def _is_schedule(root: Path, name: str) -> bool:
    """Whether it is named as schedules are; a collective alone is a slip."""
    from linkwright import _native
    from linkwright.ask import sources
    from linkwright.show.picture import subjects

    if subjects.is_run(root, name.partition(":")[0]):
        return False
    return sources.is_source(name) or name.partition("/")[0] in {entry["key"] for entry in _native.collectives()}


def _log(
    name: str, machine: str | None, variant: Variant, ranks: int | None, only: int | None, search_s: float
) -> Answered:
    from linkwright.advise.explain import log as logs
    from linkwright.base.errors import UsageError
    from linkwright.formats.logs import read_log
    from linkwright.show.explanations import shown

    log = read_log(name)
    tables = logs.tables(log)
    if not tables:
        raise UsageError(f"{name}: holds {log.tool} numbers, but no times of a collective; give the log of one")
    if only and only > len(tables):
        raise UsageError(f"--table {only}: {name} has {len(tables)} tables that can be explained")
    chosen = [tables[only - 1]] if only else tables
    answers = [logs.answer(log, table, machine, variant, ranks, search_s) for table in chosen]

    def page() -> Report:
        from linkwright.show import explanations as pages
        from linkwright.show.explanations import moving

        return pages.log(Path(name).name, log, answers, moving.of_logs(answers))

    return shown.of_logs(answers, name, log), page


def _schedule(
    name: str, machine: str | None, variant: Variant, ranks: int | None, size: int | None, search_s: float
) -> Answered:
    from linkwright import machines
    from linkwright.advise.explain import schedule
    from linkwright.base.errors import UsageError
    from linkwright.show.explanations import shown
    from linkwright.show.picture import subjects

    if machine is None:
        raise UsageError(f"{name} is a schedule; name the machine that runs it with --on")
    described = subjects.sized(machines.load(machine, variant), subjects.Asked(ranks))
    places = variant.places(described, ranks)
    asked = subjects.Asked(len(places) if places else ranks, size=size, placement=places)
    found = schedule.explain(name, subjects.question(described, name, asked), described)
    if search_s:
        found = schedule.searched(found, machine, variant, search_s)

    def page() -> Report:
        from linkwright.show import explanations as pages
        from linkwright.show.explanations import moving

        return pages.schedule(found, moving.of_schedule(found))

    return shown.of_schedule(found), page


def _run(root: Path, name: str) -> Answered:
    from linkwright.advise.explain import run
    from linkwright.store import run as runs

    run_name, _, experiment = name.partition(":")
    made = runs.find(root, run_name)
    rows = made.results().records()

    def page() -> Report:
        from linkwright.show import explanations as pages
        from linkwright.show.explanations import moving

        if experiment:
            return pages.row(made.id, run.row(rows, experiment), moving.of_run(made, experiment))
        return pages.run(made.id, run.fastest(rows), moving.of_run(made))

    return run.of_row(run.row(rows, experiment)) if experiment else run.of_run(rows), page
