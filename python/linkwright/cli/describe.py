"""`linkwright describe NAME`: everything that a registry entry says about itself."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from linkwright import schemas
from linkwright.ask.exchange import PACKED
from linkwright.ask.question import DTYPES
from linkwright.base import registry
from linkwright.base.errors import UsageError
from linkwright.cli import exchanges, options, values
from linkwright.cli.columns import INDENT, filled, terminal_columns
from linkwright.cli.output import print_json


@click.command(cls=options.Command, name="describe")
@click.argument("name", required=False, shell_complete=options.completed(*registry.KINDS))
@click.option("--algorithm", "-a", metavar="A,B", help="Algorithms of the collective NAME.")
@options.as_json
@click.option(
    "--schema", type=click.Choice(schemas.NAMES), help="Print the JSON schema of this kind of file, for editors."
)
@click.option(
    "--limit", "asks_limit", is_flag=True, help="Print the time that no schedule of the collective NAME can beat."
)
@click.option("--on", metavar="MACHINE", help="With --limit: a described machine, or the path of a machine file.")
@options.variant
@click.option(
    "--ranks",
    "-p",
    type=values.RANKS,
    help="For a limit or your own schedule: ranks; default: all of the machine, or 8.",
)
@click.option("--grid", type=values.GRID, help="For a limit or your own schedule: the grid.")
@click.option(
    "--sizes", metavar="A,B,C", help="For a limit: message sizes; default: 8,64K. For your own schedule: its size."
)
@click.option(
    "--dtype", "-d", type=click.Choice([*DTYPES, *PACKED]), default="f32", show_default=True, help="With --limit."
)
@exchanges.stated
@options.seed
@click.option("--root", "-r", type=values.ROOT, default=0, show_default=True, help="With --limit.")
@click.option("--path", help="With --limit: software path of the machine file; default: its first.")
@click.pass_context
def command(
    context: click.Context,
    name: str | None,
    algorithm: str | None,
    as_json: bool,
    schema: str | None,
    asks_limit: bool,
    **asked: Any,
) -> None:
    """NAME is any name that `linkwright list` shows: of an algorithm, a machine, a probe, a suite, an error code, ...
    Your own schedule, such as own.lw or own.py:bucket, is described with the result of its proof, and your own TOML
    file by what it says of itself. With --limit, NAME is a collective, and every lower bound on the time of its
    schedules on a machine is derived.
    """
    if asks_limit:
        if algorithm:
            raise UsageError("a limit holds for every algorithm; omit --algorithm")
        if schema:
            raise UsageError("--schema and --limit ask different things; give one of the two")
        from linkwright.cli import describe_limit

        describe_limit.show(name, as_json=as_json, **asked)
        return
    is_file = bool(name) and str(name).endswith(".toml") and Path(str(name)).is_file()
    if name and not algorithm and not schema and not is_file and _is_source(name):
        from linkwright.cli import describe_source

        _refuse(context, "ranks", "sizes", "grid")
        describe_source.show(name, asked["ranks"], asked["sizes"], asked["grid"], as_json)
        return
    _refuse(context)
    if bool(name) == bool(schema):
        raise UsageError("name one thing (`linkwright list` has all), or a kind of file with --schema")
    if schema and algorithm:
        raise UsageError("--algorithm needs a collective; omit it with --schema")
    if schema:
        click.echo(schemas.path(schema).read_text(encoding="utf-8"), nl=False)
        return
    if is_file and not algorithm:
        found = [registry.of_file(Path(str(name)))]
    else:
        found = [entry for full in _full_names(name, algorithm) for entry in registry.find(full)]
    if as_json:
        print_json([{"kind": kind, **entry} for kind, entry in found])
        return
    click.echo("\n\n".join(describe(kind, entry) for kind, entry in found))


def _is_source(name: str) -> bool:
    from linkwright.ask import sources

    return sources.is_source(name)


def _refuse(context: click.Context, *but: str) -> None:
    """Refuse options that the question has no use for."""
    for option in context.command.params:
        other = option.name not in (*but, "name", "algorithm", "as_json", "schema", "asks_limit")
        if other and context.get_parameter_source(str(option.name)) is not ParameterSource.DEFAULT:
            raise UsageError(f"--{option.name} applies to a limit; add --limit")


def _full_names(name: str, algorithm: str | None) -> list[str]:
    """`allreduce/ring` of `allreduce --algorithm ring`; the name alone without an algorithm."""
    if algorithm is None:
        return [name]
    collective, names = options.collective_and_algorithm(name, algorithm)
    return [f"{collective}/{each}" for each in names.split(",")]


def describe(kind: str, entry: registry.Entry) -> str:
    """The entry as text: key and summary, the long description, then the other fields."""
    columns = terminal_columns()
    lines = [f"{entry['key']} ({registry.one(kind)})", filled(str(entry["summary"]), columns, INDENT)]
    description = str(entry.get("description") or "").strip()
    if description:
        lines += ["", filled(description, columns, INDENT)]
    fields = {k: v for k, v in entry.items() if k not in ("key", "summary", "description") and v not in (None, "", [])}
    if fields:
        width = max(map(len, fields))
        lines.append("")
        room = columns - len(INDENT) - width - 2
        for name, value in fields.items():
            words = [part for line in _texts(value) for part in textwrap.wrap(line, room) or [""]]
            heads = [name.replace("_", " "), *[""] * (len(words) - 1)]
            lines += [f"{INDENT}{head:<{width}}  {word}".rstrip() for head, word in zip(heads, words, strict=True)]
    return "\n".join(lines)


def _texts(value: object) -> list[str]:
    """The lines of a value: words on one line, phrases one per line, a number of a machine file with its source."""
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    if isinstance(value, list):
        texts = [str(item) for item in value]
        return texts if any(" " in text for text in texts) else [", ".join(texts)]
    if isinstance(value, dict) and "value" in value:
        number = " ".join(str(value[key]) for key in ("value", "unit") if key in value)
        return ["; ".join([number, *(str(value[key]) for key in ("status", "source") if value.get(key))])]
    if isinstance(value, dict):  # of numbers by name, or of such tables
        named = [(name, _texts(one), isinstance(one, dict) and "value" not in one) for name, one in value.items()]
        return [f"{name}{' ' if nested else ': '}{line}" for name, lines, nested in named for line in lines]
    return [str(value)]
