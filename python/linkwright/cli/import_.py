"""`linkwright import FILE`: read another tool's results into a run, to query and view them with ours."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwright.cli import options, values
from linkwright.cli.columns import terminal_columns
from linkwright.cli.output import print_json

if TYPE_CHECKING:
    from linkwright.machines import Variant


@click.command(cls=options.Command, name="import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option(
    "--as", "format_key", metavar="FORMAT", shell_complete=options.completed("importers"),
    help="Read only the tables of this tool; `linkwright list importers` lists all.",
)  # fmt: skip
@click.option("--machine", default="imported", show_default=True, metavar="NAME", help="The machine that was measured.")
@click.option("--collective", metavar="NAME", help="The collective, if the file does not state it.")
@click.option("--ranks", "-p", type=values.RANKS, help="Ranks that took part, if the file does not state them.")
@options.on(help="The healthy machine to compare with; default: chosen by the devices that the log names.")
@options.variant
@options.as_json
@options.runs
def command(
    files: tuple[Path, ...],
    format_key: str | None,
    machine: str,
    collective: str | None,
    ranks: int | None,
    on: str | None,
    variant: Variant,
    as_json: bool,
    root_folder: Path,
) -> None:
    """Tools are recognised by the content of a file, which may hold the output of several. Lines that belong to no
    table are counted and skipped. A malformed row is refused with its line number, and nothing is written. The run
    keeps the files, so that `explain`, `compare` and its report judge them alike. Six or more files of the same test
    give an interval. The last line of output is the path of the run's report.

    \b
    linkwright import all_reduce.log
    linkwright import osu/*.txt --on hgx-h100 --nodes 2 --fabric ndr-fat-tree
    """
    from linkwright.advise.explain import imported
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
    asked: dict[str, object] = {"import": [str(path) for path in files]}
    asked |= {name: value for name, value in (("on", on), ("ranks", ranks)) if value}
    asked |= {"variant": variant.to_json()} if variant != type(variant)() else {}
    with runs.whole(root_folder, f"import-{format_key or 'logs'}", {"request": asked}) as run:
        run.forget_machine()  # the numbers come from elsewhere
        its = logs.merged(found)
        run.write_results(importing.rows(run.id, its), runs.samples_table(run, importing.records(its)))
        for number, path in enumerate(files, 1):
            run.keep_log(number, path)
        run.mark("done")
        loaded = report.load(run.folder)
        judged = imported.worst(loaded.judged)  # once: the report shows the same
        page = root_folder / run.id / report.render(loaded).relative_to(run.folder)
    if as_json:
        print_json({"run": run.id, "report": str(page), "state": judged.state, "verdict": judged.sentences})
        return
    for sentence in judged.sentences:
        click.echo(textwrap.fill(sentence, terminal_columns(), break_on_hyphens=False))
    click.echo(str(page))
