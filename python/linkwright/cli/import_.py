"""`linkwright import FILE`: read another tool's results into a run, to query and view them with ours."""

from __future__ import annotations

from pathlib import Path

import click

from linkwright.cli import options


@click.command(name="import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option(
    "--as", "format_key", metavar="FORMAT", shell_complete=options.completed("importers"),
    help="Read only the tables of this tool; `linkwright list importers` lists all.",
)  # fmt: skip
@click.option("--machine", default="imported", show_default=True, metavar="NAME", help="The machine that was measured.")
@click.option("--collective", metavar="NAME", help="The collective, if the file does not state it.")
@click.option("--ranks", "-p", type=options.RANKS, help="Ranks that took part, if the file does not state them.")
@options.runs
def command(
    files: tuple[Path, ...],
    format_key: str | None,
    machine: str,
    collective: str | None,
    ranks: int | None,
    root_folder: Path,
) -> None:
    """Tools are recognised by the content of a file, which may hold the output of several. Lines that belong to no
    table are counted and skipped. A malformed row is refused with its line number, and nothing is written. The last
    line of output is the path of the run's report.
    """
    from linkwright.formats import interop
    from linkwright.formats.interop import importing, logs
    from linkwright.show import report
    from linkwright.store import run as runs

    tool = interop.importer(format_key).tool if format_key else None
    defaults = importing.Defaults(collective, ranks, machine)
    found: list[importing.Imported] = []
    for path in files:
        taken = logs.take(path, defaults, tool)
        for told in taken.told:
            click.echo(f"linkwright: {told}", err=True)
        found += taken.rows
    asked = {"request": {"import": [str(path) for path in files]}}
    with runs.whole(root_folder, f"import-{format_key or 'logs'}", asked) as run:
        run.forget_machine()  # the numbers come from elsewhere
        run.write_results(importing.rows(run.id, logs.merged(found)), runs.samples_table(run, []))
        run.mark("done")
        page = report.render(run.folder).relative_to(run.folder)
    click.echo(str(root_folder / run.id / page))
