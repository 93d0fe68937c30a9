"""What the pages of the documentation site are made from: who a cell belongs to, bars of errors, keys of schemas."""

import json
import re
import sys
from pathlib import Path

import pytest

from linkwright import _native, machines, schemas
from linkwright.base import registry
from linkwright_evidence.outcome import Cell, Outcome

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "website"))

import agreement  # noqa: E402
import histogram  # noqa: E402
import machine_pages  # noqa: E402
import reference  # noqa: E402


def cell(machine, predicted=1.0, published=1.0, role="predicted"):
    keys = {} if machine is None else {"machine": machine}
    return Cell("t", keys, predicted, published, "us", role=role)


@pytest.mark.parametrize(
    ("said", "of", "belongs"),
    [
        ("gx8-p100", "dgx1-p100 and gx8-p100", "gx8-p100"),
        ("dgx1", "dgx1-p100 and gx8-p100", "dgx1-p100"),
        ("both", "dgx1-p100 and gx8-p100", None),
        (None, "vollo-ia420f", "vollo-ia420f"),
        (None, "14 machine files", None),
        ("ipu", "ipu-c2-server", None),  # begins three names
    ],
)
def test_a_cell_belongs_to_the_machine_that_it_names(said, of, belongs):
    assert agreement.machine_of(cell(said), Outcome("p", "t", of)) == belongs


@pytest.mark.parametrize(
    ("device", "belongs"), [("V100", "v100"), ("Graphcore IPU", "ipu-c2-chip"), ("IPU/V100", None), ("NVidia T4", None)]
)
def test_a_cell_of_a_device_belongs_to_its_machine(device, belongs):
    made = Cell("t", {"device": device}, 1.0, 1.0, "us")
    assert agreement.machine_of(made, Outcome("p", "t", "ipu-c2-server")) == belongs


def test_each_error_has_one_bar():
    # -100 %, -30 %, -6 %, 0, 4 %, 7 %, 20 %, 300 %: the bars from left to right hold 1 1 0 1 2 1 1 0 1.
    assert histogram.counts([-1, -0.3, -0.06, 0, 0.04, 0.07, 0.2, 3]) == [1, 1, 0, 1, 2, 1, 1, 0, 1]
    drawn = histogram.histogram([0.0, 0.04, -0.3, 0.09])
    assert "75 % are within 10 %" in drawn
    assert ">50%<" in drawn  # two of four within 5 %


def tables(*errors):
    return [agreement.Table("vollo", "vollo-ia420f", f"part {at}", 10, at, its) for at, its in enumerate(errors)]


def test_a_page_shows_all_numbers_and_pools_its_tables(monkeypatch):
    monkeypatch.setattr(machine_pages, "_all_tables", lambda: tables((0.01, -0.03), (0.2,), ()))
    page = machine_pages.page("vollo-ia420f")
    for number in machines.load("vollo-ia420f").numbers():
        assert f"{number['value']} {number['unit']}" in page
        assert number["source"].replace("|", "\\|").replace("<", "&lt;") in page
    assert "| part 0 | 10 |  | 2.0% | 3.0% | 3.0% | 100.0% |" in page
    assert "| part 2 | 10 | 2 | | | | |" in page
    assert "| **all** | 30 | 3 | 3.0% | 20.0% | 20.0% | 66.7% |" in page
    assert "(../studies/vollo.md)" in page
    for folder, name in re.findall(r"\]\(\.\./(fabrics|studies)/([\w-]+\.md)\)", page):
        assert (ROOT / "docs" / folder / name).exists()


def test_a_machine_without_published_tables_says_so(monkeypatch):
    monkeypatch.setattr(machine_pages, "_all_tables", list)
    assert "so its predictions are unchecked" in machine_pages.page("gaudi2")
    assert "an ideal network" in machine_pages.page("crossbar")
    gallery = machine_pages.gallery()
    assert all(f"[{key}]({key}.md)" in gallery for key in registry.keys("machines"))


@pytest.mark.parametrize("key", registry.keys("machines"))
def test_every_machine_has_its_picture_in_light_and_dark(key):
    (light, drawn), (dark, other) = machine_pages.drawings(key)
    assert (light, dark) == (f"machines/pictures/{key}.svg", f"machines/pictures/{key}-dark.svg")
    assert drawn.startswith("<svg")
    assert drawn != other


def test_keys_of_files_are_those_of_their_schemas():
    page = reference.keys()
    suite = json.loads(schemas.path("suite").read_text(encoding="utf-8"))
    for key in suite["properties"]["suite"]["properties"]:
        assert f"`suite.{key}" in page
    assert "| `endpoints.capacity` | *size* |" in page
    assert "| `part[].axes." in page
    assert not [line for line in page.splitlines() if line.startswith("| `") and re.search(r"\| *\|$", line)]


def test_the_page_of_algorithms_has_each_with_its_text():
    page = reference.algorithms()
    rows = _native.algorithms()
    assert sorted(re.findall(r"^### `(.*)`$", page, re.M)) == sorted(row["key"] for row in rows)
    assert all(row["description"] in page for row in rows)
