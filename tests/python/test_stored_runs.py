"""Runs of every format that was ever written open, compare, report and export as those of today do.

`tests/stored/format-N` is a run folder as that format left it, without its page. Raise `schema.FORMAT`, and this asks
for a folder of the format before, which `linkwright run allreduce/ring -p 2 --sizes 4K` makes.
"""

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from linkwright.store import run, schema
from linkwright_cases import invoke

STORED = Path(__file__).resolve().parents[1] / "stored"
# Format -> the experiment that a table shows, and its time in ns.
KNOWN = {
    1: ("latency/pattern/ping_pong/p2/8/(1,1)>(1,2)", 33.0),
    2: ("run/allreduce/ring/p4/1K/f32/sum", 405514.8),
    3: ("run/allreduce/ring/p4/4K/f32/sum", 9198.24),
    4: ("run/allreduce/ring/p2/4K/f32/sum", 182.27),
}


@pytest.fixture
def runs(tmp_path):
    folder = tmp_path / "runs"
    for stored in STORED.iterdir():
        name = json.loads((stored / "run.json").read_text(encoding="utf-8"))["id"]
        shutil.copytree(stored, folder / name)
    return folder


def folder_of(runs, number):
    (found,) = (path.parent for path in runs.glob("*/run.json") if f'"format": {number}' in path.read_text())
    return found


def test_there_is_a_run_of_every_format():
    assert sorted(KNOWN) == list(range(1, schema.FORMAT + 1))
    assert sorted(path.name for path in STORED.iterdir()) == [f"format-{number}" for number in KNOWN]


@pytest.mark.parametrize("number", KNOWN)
def test_values_are_those_that_were_stored(runs, number):
    experiment, value = KNOWN[number]
    rows = run.find(runs, folder_of(runs, number).name).results().records()
    (row,) = (row for row in rows if row["experiment"] == experiment and row["metric"] in ("time", "latency"))
    assert row["value"] == pytest.approx(value, rel=1e-4)
    assert row["status"] == "ok"
    assert set(row) == set(schema.RESULTS)


@pytest.mark.parametrize("number", KNOWN)
def test_every_verb_reads_it(runs, number):
    folder = folder_of(runs, number)
    before = sorted((path.name, path.read_bytes()) for path in folder.iterdir() if path.is_file())
    experiment = KNOWN[number][0]
    assert "<html" in Path(invoke("draw", "--report", str(folder)).out.strip().splitlines()[-1]).read_text(
        encoding="utf-8"
    )
    again = shutil.copytree(folder, folder.with_name("20990101-000000-again"))
    (again / "run.json").write_text((folder / "run.json").read_text().replace(folder.name, again.name))
    assert invoke("compare", str(folder), str(again)).status == 0
    table = list(csv.DictReader(io.StringIO(invoke("export", str(folder), "--as", "csv").out)))
    assert experiment in {row["experiment"] for row in table}
    assert sorted((path.name, path.read_bytes()) for path in folder.iterdir() if path.is_file()) == before


def test_one_query_reads_all(runs):
    asked = "select count(distinct run) as runs from results where status = 'ok'"
    answer = invoke("query", asked, "--runs", str(runs))
    assert answer.status == 0
    assert str(len(KNOWN)) in answer.out.split()


@pytest.mark.parametrize("verb", [["draw", "--report"], ["export", "--as", "csv"], ["fit"]])
def test_a_later_format_is_refused(runs, verb):
    file = folder_of(runs, schema.FORMAT) / "run.json"
    later = schema.FORMAT + 1
    file.write_text(file.read_text().replace(f'"format": {schema.FORMAT}', f'"format": {later}'))
    answer = invoke(*verb, str(file.parent))
    assert answer.status == 1
    assert f"has format {later}, but this linkwright reads formats 1 to {schema.FORMAT}" in answer.err
