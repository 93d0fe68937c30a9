"""Pages of the documentation site that follow from the program itself.

index.md               the README of the repository
reference/commands.md  the help of every verb
reference/python.md    what `import linkwright` offers, from its docstrings
machines/NAME.md       every shipped machine: what it is, and each number with its source

MkDocs calls the functions `on_*`. A link that leaves docs/ leads to a file of the repository, which the site does not
hold; it becomes the name of that file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import linkwright
from linkwright import machines, registry
from linkwright.cli.main import VERBS
from linkwright.cli.main import linkwright as program

ROOT = Path(__file__).parent.parent
WIDTH = 96
_LEAVING = re.compile(
    r"\[([^\]]*)\]\(((?:\.\./)+(?:python|crates|examples|benches|tests)/[^)]*|(?:\.\./)*[A-Z]+\.md[^)]*)\)"
)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for path, text in _pages():
        files.append(File.generated(config, path, content=text))
    return files


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the generated pages in the navigation."""
    listed = {next(iter(part)): next(iter(part.values())) for part in config.nav or []}
    listed["Reference"] += ["reference/commands.md", "reference/python.md"]
    listed["Machines"].append({"Described machines": [f"machines/{key}.md" for key in _machines()]})
    return config


def on_page_markdown(markdown: str, *, page: object, config: MkDocsConfig, files: Files) -> str:
    """Name what a link outside of the site leads to."""

    def named(link: re.Match[str]) -> str:
        words, target = link[1], link[2]
        if target.split("#")[0] == "README.md":
            return link[0]
        return words if words.strip("`").split("/")[-1] in target else f"{words} (`{target.lstrip('./')}`)"

    return _LEAVING.sub(named, markdown)


def _pages() -> Iterator[tuple[str, str]]:
    yield "index.md", _home()
    yield "reference/commands.md", _commands()
    yield "reference/python.md", _python()
    for key in _machines():
        yield f"machines/{key}.md", _machine(key)


def _home() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8").replace("](docs/", "](")


def _commands() -> str:
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


def _python() -> str:
    names = [name for name in linkwright.__all__ if name[0].islower()] + ["Builder", "Result", "Proof"]
    modules = linkwright._EXPORTS
    return "# Python\n\n" + "\n".join(f"::: linkwright.{modules[name]}.{name}\n" for name in names)


def _machines() -> list[str]:
    return [str(entry["key"]) for entry in registry.entries("machines")]


def _machine(key: str) -> str:
    machine = machines.load(key)
    rows = [
        f"| `{n['key']}` | {n['value']} {n['unit']} | {n['status']} | {_cell(n['source'])} |" for n in machine.numbers()
    ]
    rules = [f"- **{rule['name']}**: {rule['statement']}. {rule['evidence']}." for rule in machine.rules()]
    return "\n\n".join(
        [
            f"# {key}",
            f"{machine.summary}.",
            machine.description,
            f"Fabric `{machine.fabric}`, paths {', '.join(f'`{path}`' for path in machine.paths)}.",
            "## Numbers",
            "\n".join(["| number | value | status | source |", "|---|---|---|---|", *rows]),
            *(["## Rules", "\n".join(rules)] if rules else []),
            "## Sources",
            "\n".join(f"- {source}" for source in machine.sources),
        ]
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
