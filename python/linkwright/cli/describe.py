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
@click.option("--algorithm", "-a", metavar="A,B", help="Algorithms of the collective NAME.")
@options.as_json
@click.option("--schema", type=click.Choice(schemas.NAMES), help="Print the JSON schema of such a file, for editors.")
def command(name: str | None, algorithm: str | None, as_json: bool, schema: str | None) -> None:
    """Describe what NAME stands for.

    NAME is any name that `linkwright list` shows: of an algorithm, a machine, a probe, a suite, an error code, ...
    """
    if bool(name) == bool(schema):
        raise UsageError("name one thing (`linkwright list` has all), or a kind of file with --schema")
    if schema and algorithm:
        raise UsageError("--algorithm is about a collective; leave it out with --schema")
    if schema:
        click.echo(schemas.path(schema).read_text(encoding="utf-8"), nl=False)
        return
    found = [entry for full in _full_names(name, algorithm) for entry in registry.find(full)]
    if as_json:
        print_json([{"kind": kind, **entry} for kind, entry in found])
        return
    click.echo("\n\n".join(describe(kind, entry) for kind, entry in found))


def _full_names(name: str, algorithm: str | None) -> list[str]:
    """`allreduce/ring` of `allreduce --algorithm ring`; the name alone without an algorithm."""
    if algorithm is None:
        return [name]
    collective, names = options.collective_and_algorithm(name, algorithm)
    return [f"{collective}/{each}" for each in names.split(",")]


def describe(kind: str, entry: registry.Entry) -> str:
    """The entry as text: key and summary, the long description, then the other fields."""
    lines = [f"{entry['key']} ({registry.one(kind)})", f"    {entry['summary']}"]
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


def _text(value: object, indent: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        # Words on one line, phrases one per line.
        return (indent if any(" " in str(item) for item in value) else ", ").join(map(str, value))
    return str(value)
