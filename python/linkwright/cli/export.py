"""`linkwright export RUN --as FORMAT`: write a finished run, or a schedule, in a format of another tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from linkwright.ask.question import ALL, DEFAULT, Scheduled, collectives
from linkwright.base.errors import UsageError
from linkwright.cli import options, values

# Ranks and bytes of a schedule.
USUAL = (8, 64 << 10)


@click.command(cls=options.Command, name="export")
@click.argument("what", default="latest", metavar="[RUN|COLLECTIVE/ALGORITHM|SOURCE]")
@click.option(
    "--as", "format_key", required=True, metavar="FORMAT", shell_complete=options.completed("exporters", "plans"),
    help="The format; `linkwright list exporters` lists those of runs, `linkwright list plans` those of schedules.",
)  # fmt: skip
@click.option("--machine", metavar="NAME", help="Export only this machine of the run, by its name in the report.")
@options.file("--out", help="Write to FILE (of tt-metalium, a new folder), all or nothing; default: stdout.")
@click.option("--ranks", "-p", type=values.RANKS, help="Ranks of a schedule; default: 8, or those of a file.")
@click.option("--size", type=values.SIZE, help="Message size of a schedule; default: 64K, or that of a file.")
@options.data
@click.option("--grid", type=values.GRID, help="Ranks of a schedule as a grid of columns x rows.")
@options.runs
def command(what: str, format_key: str, machine: str | None, out: Path | None, root_folder: Path, **shape: Any) -> None:
    """RUN is an id, a path or `latest`; its formats are tables (csv, json, ...) and those of other tools. A schedule
    is that of a registered algorithm, such as allreduce/ring, or of a SOURCE, such as own.lw or own.py:bucket;
    `linkwright list plans` lists the formats that other tools execute.

    \b
    linkwright export --as hwloc --machine "AMD EPYC" --out machine.xml
    HWLOC_XMLFILE=machine.xml lstopo --distances
    linkwright export ./own.py:bucket -p 16 --as lw --out bucket.lw
    linkwright export allreduce/ring -p 16 --size 2K --as tt-metalium --out folder
    """
    from linkwright.base import registry

    if format_key in registry.keys("plans"):
        _schedule(what, format_key, machine, out, shape)
    else:
        _rows(what, format_key, machine, out, root_folder, shape)


def _schedule(what: str, format_key: str, machine: str | None, out: Path | None, shape: dict[str, Any]) -> None:
    """Write the schedule that `what` names."""
    from linkwright.ask import schedules
    from linkwright.base.files import write_text

    made = _asked(what, format_key, machine, shape)
    text = schedules.of(made).export(format_key)
    if out is None:
        click.echo(text, nl=False)
    else:
        write_text(out, text)
        click.echo(f"wrote {out} ({len(text.encode()):,} B): {format_key}, from {made.algorithm}")


def _asked(what: str, format_key: str, machine: str | None, shape: dict[str, Any]) -> Scheduled:
    """The question that the schedule answers."""
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
    return questions.named("export", what, ranks, size, USUAL, **shape)


def _rows(
    what: str, format_key: str, machine: str | None, out: Path | None, root_folder: Path, shape: dict[str, Any]
) -> None:
    """Write the results of a run, or the one schedule in place of them."""
    from linkwright.ask import sources
    from linkwright.formats import interop
    from linkwright.store import run as runs

    exporter = interop.exporter(format_key)
    in_collective = what.partition("/")[0] in collectives()
    if exporter.schedules and not Path(what).is_dir() and (in_collective or sources.is_source(what)):
        content = interop.asked(_asked(what, format_key, machine, shape))
    else:
        content = interop.content(runs.find(root_folder, what), machine)
    if out is None:
        rendered = exporter.render(content)
        if not isinstance(rendered, str | bytes):
            raise UsageError(f"--as {format_key}: writes a folder; name it with --out FOLDER")
        click.echo(rendered, nl=False)
    else:
        size_bytes = exporter.write(content, out)
        click.echo(f"wrote {out} ({size_bytes:,} B): {exporter.key}, from {len(content.rows):,} rows of {content.run}")
