"""Studies that are not installed: what needs them says how to get them, and everything else works."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from linkwright.base import extras, studies

# The command line where no package brings studies.
WITHOUT = """
import sys
from importlib import metadata
found = metadata.entry_points
metadata.entry_points = lambda **asked: () if asked.get("group") == "linkwright.studies" else found(**asked)
from linkwright.cli.main import main
main(sys.argv[1:])
"""


def without(*arguments, folder):
    command = [sys.executable, "-c", WITHOUT, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "arguments",
    [
        ["reproduce", "vollo"],
        ["reproduce", "vollo", "--json", "-"],
        ["reproduce"],
        ["list", "studies"],
        ["describe", "vollo"],
        ["draw", "20260101-reproduce-vollo", "--report"],
    ],
)
def test_what_needs_studies_says_how_to_get_them(arguments, tmp_path):
    run = tmp_path / "runs" / "20260101-reproduce-vollo"
    run.mkdir(parents=True)
    (run / "run.json").write_text(json.dumps({"format": 4, "state": "done", "request": {"study": "vollo"}}))
    (run / "study.json").write_text(json.dumps({"paper": "vollo", "cells": [], "claims": [], "tuned": []}))
    done = without(*arguments, folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert "the package linkwright-evidence, which is not installed; `make setup` installs it" in done.stderr


@pytest.mark.parametrize(
    "arguments", [["list"], ["reproduce", "--help"], ["describe", "ring"], ["machines", "show", "loggp"]]
)
def test_everything_else_works_without(arguments, tmp_path):
    done = without(*arguments, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "vollo-ia420f" in done.stdout or arguments != ["list"]


def test_outside_a_checkout_the_wheel_is_named(monkeypatch):
    monkeypatch.setattr(extras, "CHECKOUT", Path("/nowhere"))
    wheel = f"linkwright_evidence-{version('linkwright')}-py3-none-any.whl"
    assert f"`{sys.executable} -m pip install {wheel}` installs it" in str(studies.missing())
