"""A walk through each tutorial: its files are written, its commands run in order, and shown output is compared.

A block of Python, TOML or text begins with the name of its file, `# own.py`; `# own.py, continued` appends to it.
"""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from linkwright.ask import sources
from linkwright_cases import Result, invoke
from test_readme import ROOT, shows

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"^```(python|toml|text|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(block):
    """(command, lines of its output) of a console block."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(part.splitlines()[0], part.splitlines()[1:]) for part in parts]


def write(block):
    """Write a block into the file that its first line names."""
    head, _, body = block.partition("\n")
    name, continued, _ = head.removeprefix("# ").partition(", continued")
    with Path(name).open("a" if continued else "w", encoding="utf-8") as file:
        file.write("\n\n" + body if continued else body)
    sources.find.cache_clear()
    sources._function.cache_clear()


def run(command):
    """Run a command of a tutorial; what is not linkwright itself, in a process."""
    words = shlex.split(command)
    if words[0] == "linkwright":
        return invoke(*words[1:])
    if words[0] == "mpirun":
        at = words.index("linkwright")
        words[1:1] = ["--oversubscribe"]
        words[at + 1 : at + 2] = [sys.executable, "-m", "linkwright"]
    else:
        assert words[0] == "python"
        words[0] = sys.executable
    ended = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    return Result(ended.returncode, ended.stdout, ended.stderr)


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_does_what_it_says(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    for kind, block in BLOCK.findall(path.read_text(encoding="utf-8")):
        if kind != "console":
            write(block)
            continue
        for command, shown in commands(block):
            if command.startswith("mpirun") and shutil.which("mpirun") is None:
                continue
            result = run(command)
            assert result.status == 0, f"{command}: {result.out}{result.err}"
            printed = "".join(f"{line.rstrip()}\n" for line in result.out.splitlines())
            assert not shown or shows(shown, printed), f"{command} prints\n{result.out}"
