"""`linkwright export RUN --as FORMAT`: write a finished run, or a schedule, in a format of another tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from linkwright.ask.question import ALL, DEFAULT
from linkwright.base.errors import UsageError
from linkwright.cli import options

# Ranks and bytes of a schedule.
USUAL = (8, 64 << 10)


@click.command(name="export")
@click.argument("what", default="latest", metavar="[RUN|COLLECTIVE/ALGORITHM|SOURCE]")
@click.option(
    "--as", "format_key", required=True, metavar="FORMAT", shell_complete=options.completed("exporters", "plans"),
    help="The format; `linkwright list exporters` lists those of runs, `linkwright list plans` those of schedules.",
)  # fmt: skip
@click.option("--machine", metavar="NAME", help="Export only this machine of the run, by its name in the report.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to FILE, all or nothing; default: stdout.",
)
@click.option("--ranks", "-p", type=options.RANKS, help="Ranks of a schedule; default: 8, or those of a file.")
@click.option("--size", type=options.Size(), help="Message size of a schedule; default: 64K, or that of a file.")
@options.data
@click.option("--grid", type=options.Grid(), help="Ranks of a schedule as a grid of columns x rows.")
@options.runs
def command(what: str, format_key: str, machine: str | None, out: Path | None, root_folder: Path, **shape: Any) -> None:
    """RUN is an id, a path or `latest`; its formats are tables (csv, json, ...) and those of other tools. A schedule
    is that of a registered algorithm, such as allreduce/ring, or of a SOURCE, such as own.lw or own.py:bucket;
    `linkwright list plans` lists the formats that other tools execute.

    \b
    linkwright export --as hwloc --machine "AMD EPYC" --out machine.xml
    HWLOC_XMLFILE=machine.xml lstopo --distances
    linkwright export ./own.py:bucket -p 16 --as lw --out bucket.lw
    """
    from linkwright.base import registry

    if format_key in registry.keys("plans"):
        _schedule(what, format_key, machine, out, shape)
    else:
        _run(what, format_key, machine, out, root_folder)


def _schedule(what: str, format_key: str, machine: str | None, out: Path | None, shape: dict[str, Any]) -> None:
    """Write the schedule that `what` names."""
    from linkwright.ask import schedules
    from linkwright.base.files import write_text
    from linkwright.libraries import questions
    from linkwright.session import verification
    from linkwright.session.suite import expand

    if machine:
        raise UsageError(f"--machine {machine}: a schedule has no machine; omit it")
    subject = options.subject(what)
    names = subject.axes.get("algorithms", ("",))
    if len(names) != 1 or names[0] in (ALL, DEFAULT):
        raise UsageError(
            f"{what}: --as {format_key} writes one schedule; name it, such as `allreduce/ring` or `own.lw`"
        )
    if subject.collective:
        if names[0] not in verification.registered()[subject.collective]:
            expand.algorithms_of(subject.collective, names)
        what = f"{subject.collective}/{names[0]}"
    ranks, size = subject.asked_ranks(shape.pop("ranks")), shape.pop("size") or None
    made = questions.named("export", what, ranks, size, USUAL, **shape)
    text = schedules.of(made).export(format_key)
    if out is None:
        click.echo(text, nl=False)
    else:
        write_text(out, text)
        click.echo(f"wrote {out} ({len(text.encode()):,} B): {format_key}, from {made.algorithm}")


def _run(run: str, format_key: str, machine: str | None, out: Path | None, root_folder: Path) -> None:
    """Write the results of a run."""
    from linkwright.formats import interop
    from linkwright.store import run as runs

    exporter = interop.exporter(format_key)
    content = interop.content(runs.find(root_folder, run), machine)
    if out is None:
        click.echo(exporter.render(content), nl=False)
    else:
        size_bytes = exporter.write(content, out)
        click.echo(f"wrote {out} ({size_bytes:,} B): {exporter.key}, from {len(content.rows):,} rows of {content.run}")
