"""Machines composed of parts, nodes and networks: every shipped one, alone and as clusters."""

import re
import time
import tomllib

import pytest

import linkwright as lw
from generated import DOCUMENTS
from linkwright import machines
from linkwright.base import registry
from linkwright.machines import Variant
from linkwright_cases import invoke

ALL = registry.keys("machines")
NODES = [key for key in ALL if machines.load(key).cluster]


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
            machine = machines.draft(name, Variant(nodes)).machine()
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


@pytest.mark.parametrize("name", NODES)
def test_composed_text_is_whole_and_reads_back(name):
    text = text_of(name, nodes=2)
    document = tomllib.loads(text)
    assert not {"parts", "cluster"} & document.keys()
    composed, again = machines.load(name, Variant(2)), machines.read(text, "copy.toml")
    assert composed.text == again.text == text
    assert composed.numbers() == again.numbers()
    assert composed.network() == again.network()


def test_a_saved_cluster_is_an_ordinary_machine(tmp_path):
    file = tmp_path / "two.toml"
    file.write_text(invoke("machines", "show", "hgx-h100", "--nodes", "2", "--toml").out)
    asked = ("simulate", "allreduce", "-a", "ring", "--sizes", "1M", "--on")
    saved, composed = invoke(*asked, str(file)).out, invoke(*asked, "hgx-h100", "--nodes", "2").out
    assert saved.splitlines()[-1] == composed.splitlines()[-1]


def test_a_machine_that_was_read_from_its_text_does_not_stand_for_one_that_can_join_a_cluster():
    drawn = machines.draft("hgx-h100")
    machines.read(drawn.text, drawn.file)
    assert machines.load("hgx-h100").cluster
