"""`linkwright draw`: pictures of machines and of schedules running on them, and reports of runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwright.ask.question import DTYPES
from linkwright.base.errors import UsageError
from linkwright.cli import options, values

if TYPE_CHECKING:
    from linkwright.machines import Variant


@click.command(cls=options.Command, name="draw")
@click.argument("what", nargs=-1)
@click.option("--on", metavar="MACHINE", help="Draw schedules on this described machine; each WHAT is a schedule.")
@options.variant
@click.option("--ranks", "-p", type=values.RANKS, help="Endpoints of an open machine, or ranks that take part.")
@click.option("--grid", type=values.GRID, help="Columns x rows, for a machine that leaves its grid open.")
@click.option("--size", type=values.SIZE, help="Message size of schedules; default: 1M, or that of a file.")
@click.option("-d", "--dtype", type=click.Choice(list(DTYPES)), default="f32", show_default=True, help="Data type.")
@click.option("-r", "--root", type=values.ROOT, default=0, show_default=True, help="Root of rooted collectives.")
@click.option("--path", help="Software path of the machine file; default: its first.")
@click.option("--dark", is_flag=True, help="Light on dark, for .svg and .png; a page follows the browser's setting.")
@click.option("--report", is_flag=True, help="Write the HTML report of a run again.")
@options.file(
    "--out",
    help="Where to write: .svg and .png are still, .html is animated. A report goes into its run folder by default.",
)
@options.runs
def command(
    what: tuple[str, ...],
    on: str | None,
    variant: Variant,
    ranks: int | None,
    grid: tuple[int, ...] | None,
    size: int | None,
    dtype: str,
    root: int,
    path: str | None,
    dark: bool,
    report: bool,
    out: Path | None,
    root_folder: Path,
) -> None:
    """WHAT is a described machine or its file, or a run (an id, a path or `latest`): then its largest message by the
    fastest algorithm, or the experiment that RUN:EXPERIMENT names. With --on, each WHAT is a schedule:
    COLLECTIVE/ALGORITHM such as `allreduce/ring`, a file (own.lw) or a Python function (own.py:bucket). Several are
    played side by side, in step. With --report, WHAT is one run, by default `latest`.

    \b
    linkwright draw hgx-h100 --nodes 4 --out cluster.svg
    linkwright draw allreduce/ring allreduce/double_binary_tree --on hgx-h100 --size 64M --out both.html
    linkwright draw latest --report
    """
    if report:
        click.echo(str(_report(what, out, root_folder)))
        return
    if not what:
        raise click.UsageError("Missing argument 'WHAT...'.", click.get_current_context())
    if out is None:
        raise click.UsageError("Missing option '--out'; or give --report to draw a run.", click.get_current_context())
    from linkwright.show.picture import files, subjects

    for named in what if on else ():
        options.refuse_what_it_lacks(named)
    files.check(out, len(what), dark)
    asked = subjects.Asked(ranks, grid, size, dtype, root, path)
    scenes = subjects.scenes(what, on, variant, asked, root_folder)
    click.echo(str(files.write(out, scenes, dark=dark)))


def _report(runs: tuple[str, ...], out: Path | None, root_folder: Path) -> Path:
    """Write the report of a run again."""
    options.refuse_others("--report needs a run", {"what", "report", "out", "root_folder"})
    if len(runs) > 1:
        raise UsageError(f"--report takes one run; {len(runs)} are given")
    if out is not None and out.suffix != ".html":
        raise UsageError(f"--out {out}: a report is a page; write {out.with_suffix('.html')}")
    from linkwright.show import report
    from linkwright.store import run

    return report.render(run.find(root_folder, *(runs or ("latest",))).folder, out)
