"""Common to `run`, `probe` and `dissect`: a live table, a run folder, a report at the end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import click

from linkwright.cli.columns import remark, terminal_columns
from linkwright.cli.options import View
from linkwright.cli.output import print_json, say
from linkwright.cli.table import LiveTable
from linkwright.executors import EXECUTORS
from linkwright.formats import interop
from linkwright.session.suite import session
from linkwright.session.suite.backends import Backend
from linkwright.session.suite.load import Suite
from linkwright.store import run as runs
from linkwright.store import schema, tally


def start(
    root: Path, suite: Suite, request: session.Request, outputs: tuple[Path, ...], backend: Backend | None = None
) -> int:
    """Run `suite`, what is modelled of it on `backend`; the exit status."""
    return _run(lambda table: session.start(root, suite, request, table, backend), request.on, outputs, backend)


def resume(root: Path, name: str, outputs: tuple[Path, ...], backend: Backend | None = None) -> int:
    """Continue a run; the exit status."""
    return _run(lambda table: session.resume(runs.find(root, name), table, backend), None, outputs, backend)


def _run(
    work: Callable[[LiveTable], session.Outcome], on: str | None, outputs: tuple[Path, ...], backend: Backend | None
) -> int:
    """Run what is asked for `on` executors, or resume a run without them; a process that only serves a session ends."""
    for path in outputs:
        interop.check_output(path)
    named = [name.strip() for name in (on or "").split(",")]
    with ExitStack() as stack:
        roles = [stack.enter_context(executor.job(key in named, on is None)) for key, executor in EXECUTORS.items()]
        if not all(roles):
            return 0
        table = LiveTable()
        return _end(work(table), table, outputs, backend)


def _end(outcome: session.Outcome, table: LiveTable, outputs: tuple[Path, ...], backend: Backend | None) -> int:
    table.finish()
    for path in outputs:
        interop.write_output(outcome.rows, path)
    run = outcome.run
    if outcome.interrupted:
        kept = f"everything finished is in {run.folder}"
        click.echo(f"linkwright: interrupted; {kept}; {session.goes_on(run, backend)}", err=True)
        return 130
    from linkwright.show import report

    glance, page = report.conclude(run.folder)
    if View.current().json:
        print_json({"format": schema.FORMAT, "run": run.id, "report": str(page), "rows": outcome.rows})
    else:
        for line in (tally.sentence(tally.tally(outcome.rows)), *glance):
            for part in remark(line, terminal_columns()):
                say(part)
        say(str(page))
    if all(row["value"] is None for row in outcome.rows):
        click.echo("linkwright: no experiment gave a value; the lines above say why", err=True)
        return 1
    return 1 if outcome.failed else 0
