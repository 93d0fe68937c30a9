"""A walk through README.md: every command, in its order and as printed, does what the README shows.

Below a command stand lines of its output, in order; `...` stands for any lines. What is measured is shown without
output. Two minutes of measuring are cut to the quick level; `make` is what continuous integration itself calls.
"""

import re
import shlex
from pathlib import Path

import pytest

import log_cases
from linkwright_cases import invoke

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def steps(text):
    """(command, lines of its output) of every console block, in order."""
    found = []
    for block in CONSOLE.findall(text):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            else:
                found[-1][1].append(line)
    return found


def shows(shown, printed):
    """Whether the lines of the document are lines of the output, with no other between them except at `...`."""
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in shown)
    return re.fullmatch(pattern, printed) is not None


def test_shapes_of_output():
    assert shows(["a", "...", "d"], "a\nb\nc\nd\n")
    assert shows(["...", "b", "..."], "a\nb\n")
    assert not shows(["a", "c"], "a\nb\nc\n")
    assert not shows(["a"], "a\nb\n")
    assert not shows(["a 1"], "a 2\n")


def test_the_readme_is_short_and_its_commands_are_found():
    assert len(README.splitlines()) <= 150
    verbs = {shlex.split(command)[1] for command, _ in steps(README)}
    assert {"dissect", "simulate", "run", "predict", "reproduce"} <= verbs


# Tutorials have files of their own, and a test that writes them: test_tutorials.py.
DOCUMENTS = sorted(path for path in ROOT.glob("docs/**/*.md") if path.parent.name != "tutorials")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_output_in_a_document_is_what_the_command_prints(path, tmp_path, monkeypatch):
    """Modelled commands of other documents, where they are shown with output."""
    shown = [(c, lines) for c, lines in steps(path.read_text(encoding="utf-8")) if lines and c.startswith("linkwright")]
    walk(shown, tmp_path, monkeypatch)


def test_every_command_of_the_readme_does_what_is_printed(tmp_path, monkeypatch):
    walk([step for step in steps(README) if not step[0].startswith("make ")], tmp_path, monkeypatch)


def walk(commands, folder, monkeypatch):
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "all_reduce.log").write_text(log_cases.nccl(), encoding="utf-8")
    monkeypatch.chdir(folder)
    for command, shown in commands:
        program, *words = shlex.split(command, comments=True)
        assert program == "linkwright"
        result = invoke(*(["dissect", "--level", "quick", "--time-budget", "10s"] if words[0] == "dissect" else words))
        assert result.status == 0, f"{command}: {result.err}"
        assert not shown or shows(shown, result.out), f"{command} prints\n{result.out}"
