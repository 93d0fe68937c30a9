"""`linkwright describe NAME`: everything that a registry entry says about itself."""

from __future__ import annotations

import textwrap

import click

from linkwright import registry, schemas
from linkwright.cli import options
from linkwright.cli.output import print_json
from linkwright.errors import UsageError


@click.command(name="describe")
@click.argument("name", required=False, shell_complete=options.completed(*registry.KINDS))
@options.as_json
@click.option("--schema", type=click.Choice(schemas.NAMES), help="Print the JSON schema of such a file, for editors.")
def command(name: str | None, as_json: bool, schema: str | None) -> None:
    """Describe the entry called NAME; `list` shows all names."""
    if bool(name) == bool(schema):
        raise UsageError("name one thing (`linkwright list` has all), or a kind of file with --schema")
    if schema:
        click.echo(schemas.path(schema).read_text(encoding="utf-8"), nl=False)
        return
    found = registry.find(name)
    if as_json:
        print_json([{"kind": kind, **entry} for kind, entry in found])
        return
    click.echo("\n\n".join(describe(kind, entry) for kind, entry in found))


def describe(kind: str, entry: registry.Entry) -> str:
    """The entry as text: key and summary, the long description, then the other fields."""
    lines = [f"{entry['key']} ({_one(kind)})", f"    {entry['summary']}"]
    description = str(entry.get("description") or "").strip()
    if description:
        lines += ["", textwrap.indent(description, "    ")]
    fields = {k: v for k, v in entry.items() if k not in ("key", "summary", "description") and v not in (None, "", [])}
    if fields:
        width = max(map(len, fields))
        lines.append("")
        indent = "\n" + " " * (width + 6)
        lines += [f"    {name.replace('_', ' '):<{width}}  {_text(value, indent)}" for name, value in fields.items()]
    return "\n".join(lines)


def _one(kind: str) -> str:
    """`study` of `studies`, `machine` of `machines`."""
    return f"{kind[:-3]}y" if kind.endswith("ies") else kind.removesuffix("s")


def _text(value: object, indent: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        # Words on one line, phrases one per line.
        return (indent if any(" " in str(item) for item in value) else ", ").join(map(str, value))
    return str(value)
