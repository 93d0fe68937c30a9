"""`linkwright import FILE`: another tool's results as a run, to be queried and looked at with ours."""

from __future__ import annotations

from pathlib import Path

import click

from linkwright.cli import options


@click.command(name="import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option(
    "--as", "format_key", required=True, metavar="FORMAT", shell_complete=options.completed("importers"),
    help="Name of the format; `linkwright list importers` has all.",
)  # fmt: skip
@click.option("--machine", default="imported", show_default=True, metavar="NAME", help="The machine that was measured.")
@click.option("--collective", metavar="NAME", help="The collective, where the file does not tell.")
@click.option("--ranks", "-p", type=options.RANKS, help="Ranks that took part, where the file does not tell.")
@options.runs
def command(
    files: tuple[Path, ...],
    format_key: str,
    machine: str,
    collective: str | None,
    ranks: int | None,
    root_folder: Path,
) -> None:
    """Read FILEs of another tool into a new run folder.

    All are of one format. Ends with the path of the run's report. A file that is cut or mixed up is refused
    with its line, and nothing is written.
    """
    from linkwright import interop, report
    from linkwright.interop import importing
    from linkwright.store import run as runs
    from linkwright.store.files import read_text

    importer = interop.importer(format_key)
    defaults = importing.Defaults(collective, ranks, machine)
    found = [item for path in files for item in importer.parse(path, read_text(path, "result file"), defaults)]
    run = runs.create(root_folder, f"import-{format_key}", "", {"request": {"import": [str(path) for path in files]}})
    run.forget_machine()  # the numbers come from elsewhere
    run.write_results(importing.rows(run.id, found), runs.samples_table(run, []))
    run.mark("done")
    click.echo(str(report.render(run.folder)))
