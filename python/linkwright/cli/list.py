"""`linkwright list KIND`: one line for each entry of a registry."""

from __future__ import annotations

import click

from linkwright import registry
from linkwright.cli.output import print_json, print_pairs


@click.command(
    name="list",
    short_help="List everything that has a name, or one kind of it.",
    help=f"List everything that has a name, or one KIND of it: {', '.join(registry.KINDS)}.",
)
@click.argument("kind", metavar="[KIND]", required=False, type=click.Choice(list(registry.KINDS)))
@click.option("--json", "as_json", is_flag=True, help="Print every field of every entry as JSON.")
def command(kind: str | None, as_json: bool) -> None:
    """Print the entries of one kind, or of all."""
    kinds = [kind] if kind else list(registry.KINDS)
    if as_json:
        entries = {name: registry.entries(name) for name in kinds}
        print_json(entries[kind] if kind else entries)
        return
    for number, name in enumerate(kinds):
        if not kind:
            click.echo(("\n" if number else "") + name)
        print_pairs([(str(e["key"]), str(e["summary"])) for e in registry.entries(name)], indent=0 if kind else 2)
