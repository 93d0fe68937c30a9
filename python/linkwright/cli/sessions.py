"""What `run`, `dissect` and `sweep` have in common: a live table, a run folder, a report at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click

from linkwright import report
from linkwright.cli.output import say
from linkwright.cli.table import LiveTable
from linkwright.executors import EXECUTORS
from linkwright.store import export
from linkwright.store import run as runs
from linkwright.suite import session
from linkwright.suite.engines import Engine
from linkwright.suite.load import Suite


def start(
    root: Path, suite: Suite, request: session.Request, outputs: tuple[Path, ...], engine: Engine | None = None
) -> int:
    """Run `suite`, what is modelled of it on `engine`; the exit status."""
    for path in outputs:
        export.check_suffix(path)
    with _leads(request.on) as leads:
        if not leads:
            return 0
        table = LiveTable()
        return _end(session.start(root, suite, request, table, engine), table, outputs, engine)


def resume(root: Path, name: str, outputs: tuple[Path, ...], engine: Engine | None = None) -> int:
    """Go on with a run; the exit status."""
    for path in outputs:
        export.check_suffix(path)
    with _leads("", resumed=True) as leads:
        if not leads:
            return 0
        table = LiveTable()
        return _end(session.resume(runs.find(root, name), table, engine), table, outputs, engine)


@contextmanager
def _leads(on: str, *, resumed: bool = False) -> Iterator[bool]:
    """Whether this process is the session; one that only serves it has done so and ends."""
    named = [name.strip() for name in on.split(",")]
    with ExitStack() as stack:
        roles = [stack.enter_context(executor.job(key in named, resumed)) for key, executor in EXECUTORS.items()]
        yield all(roles)


def _end(outcome: session.Outcome, table: LiveTable, outputs: tuple[Path, ...], engine: Engine | None) -> int:
    table.finish()
    for path in outputs:
        export.write(outcome.rows, path)
    run = outcome.run
    if outcome.interrupted:
        click.echo(
            f"linkwright: interrupted; everything finished is in {run.folder}; {session.goes_on(run, engine)}",
            err=True,
        )
        return 130
    say(f"# {_counts(outcome.rows)}")
    glance, page = report.conclude(run.folder)
    for line in glance:
        say(f"# {line}")
    say(str(page))
    return 1 if outcome.failed else 0


def _counts(rows: list[dict]) -> str:
    statuses = [row["status"] for row in rows if row["metric"] == "time"]
    words = [f"{statuses.count(s)} {s}" for s in ("ok", "unconverged", "waived", "failed") if s in statuses]
    return f"{len(statuses)} experiments: " + ", ".join(words or ["none"])
