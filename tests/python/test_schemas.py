"""Schemas are those of this version, accept what the program accepts and refuse mistakes of structure."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from generated import DOCUMENTS, machine_files
from linkwright import schemas
from linkwright.base import registry
from linkwright_cases import invoke

CORE = DOCUMENTS.parent / "crates" / "linkwright-core" / "tests" / "machine"
EXAMPLE = (CORE / "example.toml").read_text(encoding="utf-8")
EXAMPLES = list(DOCUMENTS.parent.glob("examples/*.toml"))
MACHINES = [registry.machine_path(key) for key in registry.keys("machines")]
PARTS = [registry.part_path(key) for key in registry.keys("parts")]
NETWORKS = [registry.network_path(key) for key in registry.keys("networks")]
WORKLOADS = [registry.workload_path(key) for key in registry.keys("workloads")]

# Mistakes that no schema sees: they depend on other keys, on a clock, or on the exact value.
BEYOND_A_SCHEMA = {
    "a library whose links are no network",
    "a library whose mode takes no path of the file",
    "a library with a version twice",
    "a path for a name",
    "cycles without a clock", "too many digits", "time beyond 64 bits", "part of a byte", "not a number", "infinite",
    "level counts that do not multiply to the ranks", "two levels of one name", "open level of a machine of fixed size",
    "grid and count", "grid of one number", "grid without places", "columns without rows", "column outside the grid",
    "column named twice", "names that are not unique", "format from the future", "tile costs without a tile",
    "tile of nothing", "hint at an unknown network", "names together with a grid",
    "axis that does not exist", "lane that is not a number", "a path like one that does not stand above",
}  # fmt: skip


def validator(name):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(schemas.path(name).read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def first_error(name, document):
    return next((error.message for error in validator(name).iter_errors(document)), None)


@pytest.mark.parametrize("name", schemas.NAMES)
def test_a_schema_is_that_of_this_version(name):
    text = schemas.path(name).read_text(encoding="utf-8")
    assert schemas.made(name, machine_files()) == text, "if this is meant, run `make generate`"
    assert invoke("describe", "--schema", name).out == text


def test_every_table_of_machine_files_is_known():
    schema = json.loads(schemas.path("machine").read_text(encoding="utf-8"))
    free = [key for key, found in schema["properties"].items() if found.get("additionalProperties", False) is not False]
    assert set(free) == {"facts", "path"}
    bare, stated = schema["properties"]["path"]["additionalProperties"]["properties"]["engine"]["anyOf"]
    assert set(bare["enum"]) == {"lanes", "rank"}
    assert stated["properties"]["value"] == bare
    kinds = schema["properties"]["fabric"]["properties"]["kind"]["enum"]
    assert set(kinds) == set(registry.keys("fabrics"))


@pytest.mark.parametrize(
    ("text", "file"), machine_files(whole=True), ids=lambda value: value if value.endswith(".toml") else ""
)
def test_machines_are_valid(text, file):
    assert first_error("machine", tomllib.loads(text)) is None


@pytest.mark.parametrize("path", [*MACHINES, *PARTS], ids=lambda path: path.name)
def test_machine_files_and_their_parts_are_valid(path):
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    assert first_error("part" if "parts" in document or "part" in document else "machine", document) is None
    assert first_error("part", {**document, "fabrik": {}})


@pytest.mark.parametrize("path", NETWORKS, ids=lambda path: path.name)
def test_networks_are_valid(path):
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    assert first_error("network", document) is None
    del document["network"]["parameters"]
    assert first_error("network", document)


@pytest.mark.parametrize(
    "case", tomllib.loads((CORE / "errors.toml").read_text(encoding="utf-8"))["case"], ids=lambda case: case["name"]
)
def test_bad_machines_are_refused(case):
    text = EXAMPLE.replace(case["find"], case["put"]) if case["find"] else EXAMPLE + case["put"]
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    error = first_error("machine", document)
    assert (error is None) == (case["name"] in BEYOND_A_SCHEMA), error


@pytest.mark.parametrize("name", registry.keys("suites"))
def test_suites_are_valid(name):
    assert first_error("suite", tomllib.loads(registry.suite_path(name).read_text(encoding="utf-8"))) is None


@pytest.mark.parametrize("path", [*WORKLOADS, *EXAMPLES], ids=lambda path: path.name)
def test_programs_and_example_machines_are_valid(path):
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    assert first_error("predict" if "app" in document else "machine", document) is None


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("suite", r'sizes = \["8"\]', "sizes = [8]"),
        ("suite", 'placement = "every_pair"', 'placement = "pairs"'),
        ("suite", "metrics =", "metric ="),
        ("predict", "times = 100", "times = 0"),
        ("predict", 'kind = "supersteps"', 'kind = "superstep"'),
        ("predict", 'pattern = "neighbour"', 'pattrn = "neighbour"'),
    ],
)
def test_mistakes_in_documented_examples_are_refused(name, old, new):
    fence = {"suite": "suite", "predict": "app"}[name]
    formats = (DOCUMENTS / "formats.md").read_text(encoding="utf-8")
    (text,) = re.findall(rf"```{fence}\n(.*?)```", formats, re.DOTALL)[:1]
    assert first_error(name, tomllib.loads(text)) is None
    assert first_error(name, tomllib.loads(re.sub(old, new, text)))


def test_results_are_valid(tmp_path: Path):
    rows = tmp_path / "rows.json"
    invoke(
        *["simulate", "allreduce", "--on", "loggp", "--ranks", "4", "-a", "ring", "--sizes", "1K", "--output"],
        str(rows),
    )
    document = json.loads(rows.read_text())
    assert first_error("results", document) is None
    document["rows"][0]["metric"] = "speed"
    assert first_error("results", document)
