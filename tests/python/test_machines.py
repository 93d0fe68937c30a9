"""Machines composed of parts, nodes and networks: every shipped one, alone and as clusters."""

import re
import time
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import linkwright as lw
from generated import DOCUMENTS
from linkwright import machines, registry
from linkwright.errors import FileError
from linkwright.machines import Variant, edges, writer
from linkwright_cases import invoke

ALL = registry.keys("machines")
NODES = [key for key in ALL if "cluster" in machines.compose.document(registry.machine_path(key))]


def text_of(name, **variant):
    return machines.source(name, Variant(**variant))[0]


@pytest.mark.parametrize("name", ALL)
def test_every_machine_is_named_like_its_file(name):
    machine = machines.load(name)
    assert machine.name == name
    assert machine.numbers()


@pytest.mark.parametrize("many", [False, True], ids=["two", "many"])
@pytest.mark.parametrize("name", NODES)
def test_every_node_joins_clusters(name, many):
    alone = machines.load(name)
    nodes = 2 if not many else 64 if alone.ranks <= 8 else 20
    joined = machines.load(name, Variant(nodes))
    assert joined.ranks == nodes * alone.ranks
    names = [end["name"] for end in joined.endpoints()][: joined.ranks]
    own = [end["name"] for end in alone.endpoints()][: alone.ranks]
    assert names == [f"node {k} {name}" for k in range(nodes) for name in own]
    schedule = lw.schedule("broadcast", "linear", ranks=2, size="64")
    for path in joined.paths:  # the first and last rank reach their like in the last node
        for rank in (0, alone.ranks - 1):
            placement = [rank, joined.ranks - alone.ranks + rank]
            assert lw.simulate(schedule, joined, path=path, placement=placement).time_us > 0


def test_a_network_in_a_document_joins_nodes(tmp_path):
    (text,) = re.findall(r"```network\n(.*?)```", (DOCUMENTS / "formats.md").read_text(encoding="utf-8"), re.DOTALL)
    file = tmp_path / "mine.toml"
    file.write_text(text)
    assert machines.load("hgx-h100", Variant(4, f"{file},taper=2")).ranks == 32


def test_composing_takes_no_time():
    """64 nodes of eight below 0.1 s, 20 racks of 72 ready to simulate below 1 s; of three tries the best counts."""

    schedule = lw.schedule("broadcast", "linear", ranks=2, size="8")

    def best_s(name, nodes):
        def once():
            begun = time.process_time()
            machine = machines._native.Machine.parse(text_of(name, nodes=nodes), name)
            lw.simulate(schedule, machine, placement=[0, machine.ranks - 1])
            return time.process_time() - begun

        return min(once() for _ in range(3))

    assert best_s("hgx-h100", 64) < 0.2  # of which the simulation takes half
    assert best_s("gb200-nvl72", 20) < 1


@pytest.mark.parametrize("name", registry.keys("networks"))
def test_a_network_describes_its_numbers_in_lines(name):
    shown = invoke("describe", name).out
    assert "port latency: " in shown
    assert f"{'mpi' if name.endswith('-hosts') else 'simple'} start: " in shown
    assert "{" not in shown


def test_cases_of_edges():
    ranks = ["a 0", "a 1", "a 2", "a 3"]
    assert edges.pairs("* / 2 - leaf 0..1", ranks) == [
        ("a 0", "leaf 0"), ("a 1", "leaf 0"), ("a 2", "leaf 1"), ("a 3", "leaf 1"),
    ]  # fmt: skip
    assert edges.pairs("leaf 0..1 - * / 2", ranks) == edges.pairs("* / 2 - leaf 0..1", ranks)
    assert edges.pairs("a 0..2 x a 0..2", []) == [("a 0", "a 1"), ("a 0", "a 2"), ("a 1", "a 2")]
    assert edges.pairs("a 0..1 = a 2..3", []) == [("a 0", "a 2"), ("a 1", "a 3")]
    assert edges.runs(["a 0", "a 1", "b", "a 2", "a 3"]) == ["a 0..1", "b", "a 2..3"]


def test_runs_of_names_with_leading_zeros_keep_them() -> None:
    padded = [f"n{i:03}" for i in (8, 9, 10, 11)]
    assert edges.runs(padded) == ["n008..011"]
    assert edges.names("n008..011") == padded
    # Ten follows nine, but not in a run whose names have one width; nor does 1 follow 00.
    assert edges.runs(["n9", "n10"]) == ["n9..10"]
    assert edges.runs(["n09", "n010"]) == ["n09", "n010"]
    assert edges.runs(["n00", "n1"]) == ["n00", "n1"]
    # Ten digits are too many for a number of a run.
    assert edges.runs(["n0000000001", "n0000000002"]) == ["n0000000001", "n0000000002"]
    for run in ("n001..9", "n1..09"):
        with pytest.raises(FileError, match="as many digits on both sides"):
            edges.names(run)


@given(
    st.lists(st.sampled_from(["n0", "n1", "n9", "n10", "n00", "n01", "n09", "n010", "n999", "b", "b1 2"]), max_size=8)
)
def test_runs_name_what_they_are_made_of(names: list[str]) -> None:
    assert [name for run in edges.runs(names) for name in edges.names(run)] == names


@pytest.mark.parametrize("name", NODES)
def test_composed_text_is_whole_and_reads_back(name):
    text = text_of(name, nodes=2)
    document = tomllib.loads(text)
    assert not {"parts", "cluster"} & document.keys()
    assert tomllib.loads(writer.text(document)) == document
    assert machines.load(name, Variant(2)).numbers() == machines._parsed(text, "copy.toml").numbers()


def test_a_saved_cluster_is_an_ordinary_machine(tmp_path):
    file = tmp_path / "two.toml"
    file.write_text(invoke("machines", "show", "hgx-h100", "--nodes", "2", "--toml").out)
    asked = ("simulate", "allreduce", "-a", "ring", "--sizes", "1M", "--on")
    saved, composed = invoke(*asked, str(file)).out, invoke(*asked, "hgx-h100", "--nodes", "2").out
    assert saved.splitlines()[-1] == composed.splitlines()[-1]
