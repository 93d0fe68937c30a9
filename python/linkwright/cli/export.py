"""`linkwright export RUN --as FORMAT`: write a finished run in a format of another tool, or as a table."""

from __future__ import annotations

from pathlib import Path

import click

from linkwright.cli import options


@click.command(name="export")
@click.argument("run", default="latest")
@click.option(
    "--as", "format_key", required=True, metavar="FORMAT", shell_complete=options.completed("exporters"),
    help="The format; `linkwright list exporters` lists all.",
)  # fmt: skip
@click.option("--machine", metavar="NAME", help="Export only this machine of the run, by its name in the report.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to FILE, all or nothing; default: stdout.",
)
@options.runs
def command(run: str, format_key: str, machine: str | None, out: Path | None, root_folder: Path) -> None:
    """Write RUN in another format.

    RUN is an id, a path or `latest`. Formats are tables (csv, json, ...) and those of other tools.

    \b
    linkwright export --as hwloc --machine "AMD EPYC" --out machine.xml
    HWLOC_XMLFILE=machine.xml lstopo --distances
    """
    from linkwright import interop
    from linkwright.store import run as runs

    exporter = interop.exporter(format_key)
    content = interop.content(runs.find(root_folder, run), machine)
    if out is None:
        click.echo(exporter.render(content), nl=False)
    else:
        size_bytes = exporter.write(content, out)
        click.echo(f"wrote {out} ({size_bytes:,} B): {exporter.key}, from {len(content.rows):,} rows of {content.run}")
