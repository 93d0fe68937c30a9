"""`linkwright import FILE`: read another tool's results into a run, to query and view them with ours."""

from __future__ import annotations

from pathlib import Path

import click

from linkwright.cli import options


@click.command(name="import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option(
    "--as", "format_key", required=True, metavar="FORMAT", shell_complete=options.completed("importers"),
    help="The format; `linkwright list importers` lists all.",
)  # fmt: skip
@click.option("--machine", default="imported", show_default=True, metavar="NAME", help="The machine that was measured.")
@click.option("--collective", metavar="NAME", help="The collective, if the file does not state it.")
@click.option("--ranks", "-p", type=options.RANKS, help="Ranks that took part, if the file does not state them.")
@options.runs
def command(
    files: tuple[Path, ...],
    format_key: str,
    machine: str,
    collective: str | None,
    ranks: int | None,
    root_folder: Path,
) -> None:
    """Read FILES of another tool into a new run folder.

    All have one format. The last line of output is the path of the run's report. A file that is truncated or mixed up
    is refused with the line at fault, and nothing is written.
    """
    from linkwright import interop, report, units
    from linkwright.interop import importing
    from linkwright.store import run as runs
    from linkwright.store.files import read_text

    importer = interop.importer(format_key)
    defaults = importing.Defaults(collective, ranks, machine)
    found: list[importing.Imported] = []
    for path in files:
        its = importer.parse(path, read_text(path, "a result file"), defaults)
        if not importer.marks_end:
            last = units.format_size(its[-1].size_bytes)
            click.echo(f"linkwright: {path}: ends at {last}; the format marks no end, so compare that", err=True)
        found += its
    asked = {"request": {"import": [str(path) for path in files]}}
    with runs.whole(root_folder, f"import-{format_key}", asked) as run:
        run.forget_machine()  # the numbers come from elsewhere
        run.write_results(importing.rows(run.id, found), runs.samples_table(run, []))
        run.mark("done")
        page = report.render(run.folder).relative_to(run.folder)
    click.echo(str(root_folder / run.id / page))
