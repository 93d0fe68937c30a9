"""`linkwright reproduce`, and studies in the lists of linkwright."""

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from linkwright.base import registry
from linkwright_cases import invoke
from test_imports import circle, python_imports

ROOT = Path(__file__).parents[2]


def test_a_misspelt_study_gets_the_nearest_and_the_command_that_lists_them():
    result = invoke("reproduce", "volo")
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert "unknown study `volo`; did you mean `vollo`? `linkwright list studies` shows all" in result.err


def test_a_study_that_is_near_none_gets_all():
    result = invoke("reproduce", "foo")
    assert result.status == 2
    assert result.err.endswith(
        "known: `cell`, `gpu-nodes`, `ipu`, `kernels`, `modern`, `mpi-clusters`, `torus`, `training`, `tuner`, "
        "`vollo`, `wormhole` "
        "(`linkwright list studies`)\n"
    )


def test_a_study_is_described_by_one_word():
    assert invoke("describe", "vollo").out.startswith("vollo (study)\n")
    assert invoke("describe", "study/vollo").out == invoke("describe", "vollo").out


@pytest.mark.parametrize("entry", registry.entries("studies"), ids=lambda entry: entry["key"])
def test_every_study_is_listed_and_has_a_page(entry):
    assert f"{entry['key']} " in invoke("list", "studies").out
    assert (ROOT / "docs" / "studies" / f"{entry['key']}.md").is_file()


def test_the_two_packages_are_one_version():
    project = tomllib.loads((ROOT / "evidence/pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == version("linkwright")
    assert project["dependencies"] == [f"linkwright=={version('linkwright')}"]
    assert (ROOT / "evidence/LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_a_reader_that_goes_away_costs_no_result(tmp_path):
    file = tmp_path / "kept.json"
    command = [sys.executable, "-m", "linkwright", "reproduce", "vollo", "--json", str(file)]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        err = process.stderr.read()
    assert err == ""
    assert json.loads(file.read_text())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--json", "vollo"], "takes `vollo` for its FILE; write `linkwright reproduce vollo --json`"),
        (["--json", "cell", "vollo"], "takes `cell` for its FILE"),
        ([], "Missing argument 'STUDY'"),
        (["--json"], "Missing argument 'STUDY'"),
    ],
)
def test_a_study_is_not_mistaken_for_a_file(arguments, message):
    result = invoke("reproduce", *arguments)
    assert result.status == 2
    assert message in result.err
    assert result.err.count("\n") == 1


def test_studies_import_one_another_in_no_circle():
    graph = python_imports(ROOT / "evidence/linkwright_evidence")
    assert len(graph) > 80
    assert circle(graph) is None


def test_linkwright_knows_studies_by_their_entry_point_alone():
    sources = (ROOT / "python/linkwright").rglob("*.py")
    assert not [path for path in sources if re.search(r"(import|from) linkwright_evidence", path.read_text("utf-8"))]
