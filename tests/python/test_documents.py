"""Examples and the code in documents run; the commands in documents exist with their options."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from linkwright import _native
from linkwright.cli.main import VERBS, linkwright
from linkwright.executors.protocol import Extent
from linkwright.session.suite import load
from linkwright.session.suite.expand import expand
from linkwright.store import record

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")


def blocks(language):
    return [
        pytest.param(text, id=f"{path.relative_to(ROOT)}:{number}")
        for path in DOCUMENTS
        if path.parent.name != "tutorials"  # whose blocks are files: test_tutorials.py
        for number, (kind, text) in enumerate(FENCE.findall(path.read_text(encoding="utf-8")), 1)
        if kind == language
    ]


def run(arguments, folder):
    result = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("example", sorted(ROOT.glob("examples/*.py")), ids=lambda path: path.name)
def test_example(example, tmp_path):
    assert run([str(example)], tmp_path)


@pytest.mark.parametrize("code", blocks("python"))
def test_python_in_a_document(code, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    run(["-c", code], tmp_path)


@pytest.mark.parametrize("text", blocks("suite"))
def test_suite_in_a_document(text):
    suite = load.parse(text, "document")
    assert expand(suite, Extent("measured", 4))
    assert expand(suite, Extent("modelled", 4))


@pytest.mark.parametrize("text", blocks("json"))
def test_journal_records_in_a_document(text):
    for line in text.splitlines():
        written = json.loads(line)
        if "rows" not in written:
            outcome = record.from_json(written)
            assert json.loads(json.dumps(record.to_json(outcome))) == written


def helps(verb, command):
    """The texts of a command's help and of those below it."""
    yield verb, command.help or ""
    for name, below in getattr(command, "commands", {}).items():
        yield from helps(f"{verb} {name}", below)


def commands():
    """What follows `linkwright` in documents and in help."""
    texts = [(param.id, *param.values) for language in ("console", "sh", "bash") for param in blocks(language)]
    texts += [text for verb in VERBS for text in helps(verb, linkwright.get_command(None, verb))]
    for where, text in texts:
        for line in text.replace("\\\n", " ").splitlines():
            shown = line.removeprefix("$ ").strip()
            if re.match(r"(mpirun .*)?linkwright ", shown) and shown.count('"') % 2 == 0:
                words = shlex.split(shown, comments=True)
                words = words[words.index("linkwright") + 1 :]
                yield pytest.param(words, id=f"{where} {' '.join(words[:3])}")


@pytest.mark.parametrize("words", list(commands()))
def test_command_in_a_document(words):
    context = linkwright.make_context("linkwright", list(words))
    verb = linkwright.get_command(context, words[0])
    # Parses the options and checks them; runs nothing.
    parsed = verb.make_context(words[0], words[1:], parent=context)
    if isinstance(verb, click.Group):
        assert verb.get_command(parsed, words[1]) is not None
    collectives = {row["key"] for row in _native.collectives()}
    known = {row["key"] for row in _native.algorithms()}
    named = {word for word in words if word.partition("/")[0] in collectives and "/" in word}
    assert {name for name in named if "ccl-" not in name} <= known


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_in_a_document_lead_somewhere(path):
    links = LINK.findall(path.read_text(encoding="utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []
