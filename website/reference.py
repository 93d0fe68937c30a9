"""The reference: help of verbs, algorithms as they describe themselves, Python from its docstrings, keys of files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

import linkwright
from linkwright import _native, schemas
from linkwright.cli.main import VERBS
from linkwright.cli.main import linkwright as program

WIDTH = 96
KINDS = ("machine", "network", "suite", "predict")
_WORDS = {"object": "table", "boolean": "true or false", "string": "text"}
MOST_WORDS = 8  # of a value that is one of many


def commands() -> str:
    """The help of every verb."""
    return "# Commands\n\n" + "\n".join(_helped(["linkwright", verb]) for verb in VERBS)


def _helped(words: list[str]) -> str:
    """The help of a verb, and of the commands below it."""
    command: click.Command = program
    context = click.Context(program, info_name=words[0], max_content_width=WIDTH, terminal_width=WIDTH)
    for word in words[1:]:
        assert isinstance(command, click.Group)
        found = command.get_command(context, word)
        assert found is not None
        command, context = found, click.Context(found, context, word, max_content_width=WIDTH, terminal_width=WIDTH)
    text = f"## `{' '.join(words)}`\n\n```text\n{command.get_help(context)}\n```\n"
    below = command.list_commands(context) if isinstance(command, click.Group) else []
    return "\n".join([text, *(_helped([*words, name]) for name in below)])


def python() -> str:
    """What `import linkwright` offers."""
    names = [name for name in linkwright.__all__ if name[0].islower()] + ["Builder", "Result", "Proof"]
    modules = linkwright._EXPORTS
    return "# Python\n\n" + "\n".join(f"::: linkwright.{modules[name]}.{name}\n" for name in names)


def algorithms() -> str:
    """Every algorithm, by collective, as it describes itself."""
    parts = ["# Algorithms", "p is the number of ranks, S the size of the vector or of all blocks together."]
    for collective in _native.collectives():
        parts.append(f"## {collective['key']}")
        for row in _native.algorithms():
            if row["collective"] == collective["key"]:
                facts = [f"- {name}: {row[name]}" for name in ("cost", "needs", "source") if row[name]]
                parts += [f"### `{row['key']}`", f"*{row['summary']}*", row["description"], "\n".join(facts)]
    return "\n\n".join(parts)


def keys() -> str:
    """Every key of the kinds of files that people write."""
    parts = [
        "# Keys of files",
        "What each kind of file may hold, from the schemas by which they are read; any other key is an error. "
        "`linkwright describe --schema KIND` prints a schema for your editor. [File formats](../formats.md) explains "
        "the parts with examples, and has the columns of results. A *time*, *size*, *rate* and the like is "
        "`{ value, unit, status, source }`. `NAME` is a name of your own, and `[]` means that there may be several.",
    ]
    for kind in KINDS:
        schema = json.loads(schemas.path(kind).read_text(encoding="utf-8"))
        rows = dict.fromkeys(f"| `{key}` | {told} |" for key, told in _Keys(schema).below(schema, ""))
        parts += [f"## `{kind}`", "\n".join(["| key | value |", "|---|---|", *rows])]
    return "\n\n".join(parts)


class _Keys:
    """The keys of a schema, from the outside to the inside."""

    def __init__(self, whole: dict[str, Any]) -> None:
        self.whole = whole

    def below(self, schema: dict[str, Any], place: str) -> Iterator[tuple[str, str]]:
        """(key, what its value is) of a schema and its variants."""
        for name, value in schema.get("properties", {}).items():
            yield from self.at(value, f"{place}{name}")
        for variant in schema.get("allOf", []):
            yield from self.below(variant.get("then", {}), place)
        others = schema.get("additionalProperties")
        if isinstance(others, dict):
            yield from self.at(others, f"{place}NAME")

    def at(self, value: dict[str, Any], key: str) -> Iterator[tuple[str, str]]:
        """The key itself, or those inside it."""
        items = value.get("items")
        inner, place = (items, f"{key}[]") if isinstance(items, dict) else (value, key)
        found = [*self.below(inner, f"{place}.")]
        told = value.get("description", "")
        yield from found or [(key, f"{self.kind(value)}{': ' if told else ''}{_cell(told)}")]

    def kind(self, value: dict[str, Any]) -> str:
        """What a value is, in words."""
        if "$ref" in value:
            return f"*{value['$ref'].rpartition('/')[2].replace('_', ' ')}*"
        if "anyOf" in value:
            return " or ".join(dict.fromkeys(self.kind(each) for each in value["anyOf"] if "status" not in str(each)))
        if "const" in value or "enum" in value:
            words = [f"`{word}`" for word in value.get("enum", [value.get("const")])]
            return ", ".join(words[:MOST_WORDS]) + (", ..." if len(words) > MOST_WORDS else "")
        if isinstance(value.get("items"), list):
            return "[" + ", ".join(map(self.kind, value["items"])) + "]"
        if "items" in value:
            return f"list of {self.kind(value['items'])}"
        kinds = [value["type"]] if isinstance(value.get("type"), str) else value.get("type", [])
        return " or ".join(_WORDS.get(kind, kind) for kind in kinds)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
