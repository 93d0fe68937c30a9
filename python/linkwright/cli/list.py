"""`linkwright list KIND`: one line for each entry of a registry, or for each run."""

from __future__ import annotations

from pathlib import Path

import click

from linkwright.base import registry
from linkwright.base.errors import UsageError, unknown
from linkwright.cli import options
from linkwright.cli.output import print_json, print_pairs

KINDS = (*registry.KINDS, "runs")
HELP = f"""KIND is one of {", ".join(KINDS[:-1])}, or `runs`, listed from newest to oldest.
"""


@click.command(cls=options.Command, name="list", help=HELP)
@click.argument("kind", required=False, metavar="[KIND]", shell_complete=options.among(KINDS))
@click.option("--json", "as_json", is_flag=True, help="Print every field of every entry as JSON.")
@options.file("--runs", "root_folder", metavar="FOLDER", help="Folder that holds the run folders.  [default: runs]")
def command(kind: str | None, as_json: bool, root_folder: Path | None) -> None:
    """Print the entries of one kind, or of all that are registered."""
    if kind and kind not in KINDS:
        raise unknown("kind", kind, KINDS, lists="linkwright list --help")
    if root_folder and kind != "runs":
        raise UsageError("--runs is for `linkwright list runs`; leave it out")
    show(kind, as_json, root_folder)


def show(kind: str | None, as_json: bool, root_folder: Path | None = None) -> None:
    """Print the entries of one kind, or of all that are registered, as text or as JSON."""
    if kind == "studies" and not registry.keys(kind):
        from linkwright.base import studies

        raise studies.missing()
    found = {name: _entries(name, root_folder) for name in ([kind] if kind else registry.KINDS)}
    if as_json:
        print_json(found[kind] if kind else found)
        return
    for number, (name, entries) in enumerate(found.items()):
        if not kind:
            click.echo(("\n" if number else "") + name)
        print_pairs([(str(e["key"]), str(e["summary"])) for e in entries], indent=0 if kind else 2)


def _entries(kind: str, root_folder: Path | None) -> list[registry.Entry]:
    if kind != "runs":
        return registry.entries(kind)
    from linkwright.store import run as runs

    return runs.entries(root_folder or runs.DEFAULT_ROOT)
