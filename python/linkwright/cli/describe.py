"""`linkwright describe NAME`: everything that a registry entry says about itself."""

from __future__ import annotations

import textwrap

import click

from linkwright import registry
from linkwright.cli import options
from linkwright.cli.output import print_json


@click.command(name="describe")
@click.argument("name", shell_complete=options.completed(*registry.KINDS))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(name: str, as_json: bool) -> None:
    """Describe the entry called NAME; `list` shows all names."""
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
