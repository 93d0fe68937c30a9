"""Descriptions of networks made wrong by hand, each by a small change: refused with one message, or read right."""

from importlib.metadata import entry_points
from pathlib import Path

import pytest

from linkwright.formats.discovery import networks
from network_cases import Folder

ROOT = Path(__file__).parents[1]
FORMATS = [entry.load() for entry in entry_points(group=networks.GROUP) if entry.name in networks.PACKAGED]
FILES = Folder(ROOT / "tests" / "networks", FORMATS)

# File, what is changed in it, and a part of the message.
WRONG = [
    # An unknown field was passed over, and other chips were joined.
    ("pods.textproto", "device_id", "device_ix", "unknown field `device_ix`; did you mean `device_id`"),
    ("pods.textproto", "mesh_id", "mesh_ix", "unknown field `mesh_ix`"),
    ("pods.textproto", "channels { count", "channels { kount", "unknown field `kount`"),
    ("pods_of_pods.textproto", "graph_id", "graph_ix", "unknown field `graph_ix`"),
    ("pods_of_pods.textproto", "layout_type", "layout_kind", "unknown field `layout_kind`"),
    ("pods_of_pods.textproto", "host_topology { dims", "host_topology { dimz", "unknown field `dimz`"),
    ("pods_of_pods.textproto", 'instances { graph { graph_descriptor: "G0" graph_id: 1 } }',
     'instances { mesh { mesh_descriptor: "M0" mesh_id: 1 } graph { graph_descriptor: "G0" graph_id: 1 } }',
     "a mesh and a graph in one reference"),
    ("pods_of_pods.textproto", '  instances { mesh { mesh_descriptor: "M0" mesh_id: 0 } }\n'
     '  instances { mesh { mesh_descriptor: "M0" mesh_id: 1 } }\n', "", "graph G0 has no instances"),
    # A misspelt attribute was its default.
    ("two_hosts.simgrid.xml", "latency=", "latencx=", "unknown attribute `latencx`; did you mean `latency`"),
    ("two_hosts.simgrid.xml", "sharing_policy=", "sharing_polcy=", "unknown attribute `sharing_polcy`"),
    ("two_hosts.simgrid.xml", "direction=", "directionn=", "unknown attribute `directionn`"),
    ("two_hosts.simgrid.xml", "routing=", "rooting=", "unknown attribute `rooting`"),
    ("two_hosts.simgrid.xml", "</route>", '</route><route src="A" dst="B"><link_ctn id="1"/></route>',
     "a second route from A to B"),
    ("two_hosts.simgrid.xml", "</route>",
     '</route><route src="A" dst="B"><link_ctn id="1"/><link_ctn id="2" direction="UP"/></route>',
     "a second route from A to B"),
    ("two_hosts.simgrid.xml", '<host id="B" speed="1Gf"/>', '<host id="B" speed="1Gf"><link id="3"/></host>',
     "<link> inside of <host>; move it out"),
    # A misspelt key was an assumption, an empty slice no link, and two units the one that was looked for first.
    ("rack.infragraph.yaml", "physical:\n", "fysical:\n", "unknown key `fysical`; did you mean `physical`"),
    ("rack.infragraph.yaml", "latency:", "latencyy:", "unknown key `latencyy`"),
    ("rack.infragraph.yaml", "{ name: spine, device: switch, count: 2 }", "{ name: spine, device: switch, kount: 2 }",
     "unknown key `kount`"),
    ("rack.infragraph.yaml", "host[0:2]", "host[0:0]", "the slice [0:0] selects nothing"),
    ("rack.infragraph.yaml", "choice: gigabits_per_second", "choice: gigabytes_per_second",
     "the choice is gigabytes_per_second, and the value is in gigabits_per_second"),
    ("rack.infragraph.yaml", "gigabits_per_second: 400", "gigabits_per_second: 400, gigabytes_per_second: 50",
     "the value is in gigabits_per_second, gigabytes_per_second"),
    ("rack.infragraph.yaml", "us: 0.5", "ns: 500", "the choice is us, and the value is in ns"),
    # tt-metal's YAML.
    ("ports.tt.yaml", "host_ranks", "host_rank", "unknown key `host_rank`; did you mean `host_ranks`"),
    ("ports.tt.yaml", "type: Mesh", "type: Mesh, tipe: 1", "unknown key `tipe`"),
    ("ports.tt.yaml", "arch:", "speed: 1, arch:", "unknown key `speed`"),
    ("ports.tt.yaml", "[[0, E1], [1, W1]],", "[[0, E1], [1, W1]], [[0, E0], [1, W1]],",
     "port E0 of mesh 0 is joined to another one, too"),
    ("ports.tt.yaml", "[[0, E1], [1, W1]],", "[[0, E1], [1, W1]], [[0, E1], [1, W1]],", "keep one"),
    # Numbers.
    ("switch.ns3.txt", "0.001ms 0", "0.001ms 0.5", "error rate `0.5`; lost packets are not modelled"),
    ("torus.astra.yml", "500.0", "1:30", "`1:30`: write a number in decimals"),
    ("torus.astra.yml", "[ 4, 2 ]", "[ 010, 2 ]", "`010`: write a number in decimals"),
    ("torus.astra.yml", "1000", "1_000", "`1_000`: write a number in decimals"),
    # Slurm's topology.yaml.
    ("tree.slurm.yaml", "children:", "childs:", "unknown key `childs`"),
    ("tree.slurm.yaml", "tree:", "trees:", "unknown key `trees`"),
    ("tree.slurm.yaml", "nodes: gpu[05-08]", "nodes: gpu[04-08]", "gpu04 is also below leaf1"),
    ("tree.slurm.yaml", "switch: leaf2", "switch: leaf1", "leaf1: is listed twice"),
    ("tree.slurm.yaml", "        nodes: gpu[05-08]\n", "", "has neither children nor nodes"),
    ("tree.slurm.yaml", "  tree:", "  flat: true\n  tree:", "has 2 of tree, block and flat"),
    ("tree.slurm.yaml", "cluster_default: true", "cluster_default: maybe", "is neither true nor false"),
    ("tree.slurm.yaml", "- topology: default\n  cluster_default: true\n",
     "- topology: other\n  flat: true\n- topology: default\n", "2 topologies, none of which alone is cluster_default"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new", "message"), WRONG, ids=lambda value: str(value)[:30])
def test_a_wrong_file_is_refused(name, old, new, message):
    FILES.refuses(name, old, new, [message])


def test_of_several_topologies_that_of_the_cluster_is_read():
    flat = ("- topology: default", "- topology: quick\n  flat: true\n- topology: default")
    assert FILES.machine("tree.slurm.yaml", flat).ranks == 8


def test_blocks_of_a_topology_yaml_are_those_of_a_topology_conf():
    text = (
        "- topology: racks\n  block:\n    block_sizes: [2, 4]\n    blocks:\n"
        "      - { block: b1, nodes: 'n[1-2]' }\n      - { block: b2, nodes: 'n[3-4]' }\n"
    )
    slurm = next(one for one in networks.NETWORKS if one.key == "slurm")
    same = "BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockSizes=2,4\n"
    made, other = FILES.made_of(text), networks.machine_file(slurm, same, "x")
    assert made.replace("topology.yaml", "topology.conf") == other


def test_graphs_of_several_meshes_are_joined_by_their_first_ones():
    machine = FILES.machine("pods_of_pods.textproto")
    assert machine.ranks == 32
    assert "which chips of two meshes are joined is assumed" in FILES.made_of(FILES.texts["pods_of_pods.textproto"])
