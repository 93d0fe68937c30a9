"""`linkwright machines import`: files that descriptions become, clusters of nodes on listed networks, refusals."""

import shutil
import tomllib
from pathlib import Path

import pytest

import linkwright as lw
from linkwright.machines import Variant, load
from linkwright_cases import invoke
from network_cases import runs_once_imported

FOLDER = Path(__file__).parent.parent / "networks"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in FOLDER.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_every_description_becomes_a_machine_that_runs(here):
    for path in FOLDER.iterdir():
        runs_once_imported(path.name)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["fat_tree.ibnetdiscover", "--as", "slurm"], "line 6"),
        (["blocks.topology.conf", "--as", "slrm"], "did you mean `slurm`?"),
        (["blocks.topology.conf", "--name", "a b"], "--name"),
        (["blocks.topology.conf", "--fabric", "ndr-fat-tree"], "name their machine with --node"),
        (["blocks.topology.conf", "--output", "none.toml"], "exists already"),
        (["blocks.topology.conf", "--output", "none.json"], "a machine file ends in .toml; write none.toml"),
        (["tree.topology.conf", "--node", "torus-2d"], "has no [cluster]"),
        (["tree.topology.conf", "--node", "hgx-h100", "--fabric", "nd-fat-tree"], "did you mean `ndr-fat-tree`"),
        (["none.toml"], "in no format that is known"),
        (["nothing"], "cannot be read: No such file or directory"),
    ],
)
def test_refusals_write_nothing(here, asked, told):
    Path("none.toml").write_text("a = 1\n", encoding="utf-8")
    before = files(here)
    refused = invoke("machines", "import", *asked)
    assert (refused.status, files(here)) == (2, before)
    assert told in refused.err


def node_machine(*asked):
    made = invoke("machines", "import", *asked, "--node", "hgx-h100", "--name", "mine")
    assert made.status == 0, made.err
    return load("./mine.toml")


@pytest.mark.parametrize("file", ["tree.topology.conf", "tree.scontrol.txt"])
@pytest.mark.parametrize("algorithm", [("allreduce", "ring"), ("alltoall", "pairwise")])
def test_nodes_on_a_listed_tree_are_those_of_a_composed_one(here, algorithm, file):
    # Two leaves of two nodes with eight ports each, without taper: as the network file makes it of its parameters.
    listed = node_machine(file)
    composed = load("hgx-h100", Variant(nodes=4, fabric="ndr-fat-tree,nodes_per_leaf=2"))
    schedule = lw.schedule(*algorithm, ranks=32, size="1M")
    assert lw.simulate(schedule, listed).time_us == lw.simulate(schedule, composed).time_us


def test_adapters_are_ports_in_their_order(here):
    text = Path("fat_tree.ibnetdiscover").read_text(encoding="utf-8")
    for old, new in (
        ("node2 mlx5_0", "node1 mlx5_1"),
        ("node3 mlx5_0", "node2 mlx5_0"),
        ("node4 mlx5_0", "node2 mlx5_1"),
    ):
        text = text.replace(old, new)
    Path("two.txt").write_text(text, encoding="utf-8")
    assert node_machine("two.txt").ranks == 16
    fabric = tomllib.loads(Path("mine.toml").read_text(encoding="utf-8"))["fabric"]
    ends = [(node, nic) for node in (0, 1) for nic in (0, 1)]
    assert fabric["links"]["port"]["edges"] == [f"node {i} NIC {k} - leaf {i + 1}" for i, k in ends]
    # Each leaf has four links to both spines: as wide as four ports.
    assert fabric["links"]["trunk 4"]["bandwidth"]["value"] == 1600
    assert fabric["links"]["port"]["bandwidth"]["status"] == "documented"


def test_computers_of_another_kind_are_left_out(here):
    text = Path("fat_tree.ibnetdiscover").read_text(encoding="utf-8")
    Path("three.txt").write_text(text.replace("node4 mlx5_0", "node3 mlx5_1"), encoding="utf-8")
    machine = node_machine("three.txt")
    assert (machine.ranks, machine.summary) == (
        16,
        "2 x hgx-h100 on the network that three.txt lists, without 1 other computer",
    )
