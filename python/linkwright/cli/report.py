"""`linkwright report RUN`: render the report of a run again."""

from __future__ import annotations

from pathlib import Path

import click

from linkwright.cli import options


@click.command(name="report")
@click.argument("run", default="latest")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Write to FILE instead of into the run folder."
)
@options.runs
def command(run: str, out: Path | None, root_folder: Path) -> None:
    """Render the HTML report of RUN and print its path.

    RUN is an id, a path or `latest`.
    """
    from linkwright import report
    from linkwright.store import run as runs

    click.echo(str(report.render(runs.find(root_folder, run).folder, out)))
