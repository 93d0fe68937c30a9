"""`linkwright export RUN`: a finished run in the format of another tool."""

from __future__ import annotations

from pathlib import Path

import click

from linkwright.cli import options


@click.command(name="export")
@click.argument("run", default="latest")
@click.option(
    "--as", "format_key", required=True, metavar="FORMAT", shell_complete=options.completed("exporters"),
    help="Name of the format; `linkwright list exporters` has all.",
)  # fmt: skip
@click.option("--machine", metavar="NAME", help="Only this machine of a run with several, as the report names it.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Write here, whole or not at all; default: stdout."
)
@options.runs
def command(run: str, format_key: str, machine: str | None, out: Path | None, root_folder: Path) -> None:
    """Write RUN in another tool's format.

    RUN is an id, a path or `latest`.

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
        exporter.write(content, out)
