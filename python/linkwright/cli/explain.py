"""`linkwright explain SOMETHING`: why it takes its time, and what would be faster."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwright.cli import options

if TYPE_CHECKING:
    from linkwright.explain.schedule import Found
    from linkwright.machines import Variant

USUAL_SIZE = 1 << 20


@click.command(name="explain")
@click.argument("something", metavar="LOG|RUN[:EXPERIMENT]|SCHEDULE")
@click.option(
    "--on", "machine", metavar="MACHINE", shell_complete=options.completed("machines"),
    help="The described machine, or a machine file; of a log, default: by the devices that it names.",
)  # fmt: skip
@click.option("--ranks", "-p", type=options.RANKS, help="Ranks that took part, if a log does not say; of a schedule.")
@click.option("--size", type=options.Size(), help="Message size of a schedule; default: 1M, or that of a file.")
@click.option("--table", type=click.IntRange(1), help="Only this table of a log, from 1.")
@options.variant
@options.runs
def command(
    something: str,
    machine: str | None,
    ranks: int | None,
    size: int | None,
    table: int | None,
    variant: Variant,
    root_folder: Path,
) -> int:
    """Explain a number: why it is what it is, what binds it, and what would be faster.

    A LOG is what a benchmark or a profiler printed, however it was kept. It is compared with
    the model of a healthy machine. Then faults are simulated, and those whose numbers come nearest to the log's are
    listed, each with what to check. A RUN is one of ours: its collectives beside their limits. A SCHEDULE is that of
    an algorithm, such as allreduce/ring, or of a file or function; it needs --on.

    \b
    linkwright explain all_reduce.log
    linkwright explain all_reduce.log --on hgx-h100 --nodes 2 --fabric ndr-fat-tree
    linkwright explain allreduce/ring --on dgx1-p100 --size 64M
    """
    from linkwright.explain import shown

    if _is_log(something):
        _refuse(something, "a log", {"--size": size})
        lines = _log(something, machine, variant, ranks, table)
    elif _is_schedule(something):
        _refuse(something, "a schedule", {"--table": table})
        lines = shown.of_schedule(_schedule(something, machine, variant, ranks, size))
    else:
        given = {"--on": machine, "--ranks": ranks, "--size": size, "--table": table, "--nodes": variant.nodes}
        _refuse(something, "a run", given | {"--without": variant.without, "--degrade": variant.degrade})
        lines = _run(root_folder, something)
    for line in lines:
        click.echo(line)
    return 0


def _refuse(something: str, kind: str, given: dict[str, object]) -> None:
    from linkwright.errors import UsageError

    for name, value in given.items():
        if value:
            raise UsageError(f"{name} says nothing of {kind}, and `{something}` is one; leave it out")


def _is_log(name: str) -> bool:
    """Whether it is a file with the numbers of a known tool, or one that is not named as schedules are."""
    from linkwright import sources
    from linkwright.logs import is_log

    return Path(name).is_file() and (not sources.is_named_so(name) or is_log(name))


def _is_schedule(name: str) -> bool:
    from linkwright import _native, sources

    if (Path(name) / "run.json").is_file():
        return False
    return sources.is_source(name) or name in {entry["key"] for entry in _native.algorithms()}


def _log(name: str, machine: str | None, variant: Variant, ranks: int | None, only: int | None) -> Iterable[str]:
    from linkwright.errors import UsageError
    from linkwright.explain import log as logs
    from linkwright.explain import shown
    from linkwright.logs import read_log

    log = read_log(name)
    tables = logs.tables(log)
    if not tables:
        raise UsageError(f"{name}: holds {log.tool} numbers, but no times of a collective; `import` reads the others")
    if only and only > len(tables):
        raise UsageError(f"--table {only}: {name} has {len(tables)} tables that can be explained")
    for number, table in enumerate(tables, 1):
        if only in (None, number):
            answer = logs.answer(log, table, machine, variant, ranks)
            if number > 1 and only is None:
                yield ""
            yield from shown.of_log(answer, name, log.skipped, (*log.complaints, *log.left_out))


def _schedule(name: str, machine: str | None, variant: Variant, ranks: int | None, size: int | None) -> Found:
    from linkwright import api, machines, sources
    from linkwright.errors import UsageError
    from linkwright.explain import schedule

    if machine is None:
        raise UsageError(f"{name} is a schedule; give the machine that carries it out with --on")
    described = machines.load(machine, variant)
    if sources.is_source(name):
        found = api.load(name, ranks=ranks, size=size)
    else:
        collective, _, algorithm = name.partition("/")
        found = api.schedule(collective, algorithm, ranks=ranks or described.ranks, size=size or USUAL_SIZE)
    return schedule.explain(name, found, described, found.size_bytes, None)


def _run(root: Path, name: str) -> Iterable[str]:
    from linkwright.explain import run
    from linkwright.store import run as runs

    run_name, _, experiment = name.partition(":")
    rows = runs.find(root, run_name).results().records()
    return run.of_row(rows, experiment) if experiment else run.of_run(rows)
