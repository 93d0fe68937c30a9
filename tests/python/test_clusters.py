"""Clusters by hand: two GPUs on a hub, a NIC of 10 GB/s for each, without latencies.

    GPU i -- hub          100 GB/s
    GPU i -- NIC i         50 GB/s, then 10 GB/s into the network
    CPU -- GPU i, NIC i    20 GB/s

A message of S bytes takes S / (the smallest share of a link on its way), so every time below is one division.
"""

import contextlib
import copy
import random
import tomllib

import pytest

import linkwright as lw
from linkwright import machines
from linkwright.base.errors import FileError, LinkwrightError, UsageError
from linkwright.machines import Variant, writer
from linkwright.session.suite import load as suites
from linkwright.session.suite.backends import Local
from linkwright.session.suite.session import Request, Watcher, resume, start
from linkwright_cases import invoke

S = 1_000_000_000
NODE = """
[machine]
name = "pair"
summary = "two GPUs"
description = "For tests."
format = 1
sources = ["by hand"]

[[level]]
name = "GPU"
count = 2
source = "by hand"

[endpoints]
count = 2
name = "GPU {i}"
source = "by hand"

[[endpoints.memory]]
name = "host"
count = 1
source = "by hand"

[cluster]
ports = "NIC 0..1"
network = "NETWORK"
direct = ["nic"]
staged = ["host"]
forward = ["nvlink"]

[fabric]
kind = "flow"
switches = ["hub", "CPU", "NIC 0..1"]

[fabric.links.nvlink]
edges = ["* - hub"]
source = "by hand"
bandwidth = { value = 100, unit = "GB/s", status = "assumed", source = "by hand" }

[fabric.links.nic]
edges = ["GPU 0..1 = NIC 0..1"]
source = "by hand"
bandwidth = { value = 50, unit = "GB/s", status = "assumed", source = "by hand" }

[fabric.links.host]
edges = ["CPU - GPU 0..1", "CPU - NIC 0..1", "CPU - host"]
source = "by hand"
bandwidth = { value = 20, unit = "GB/s", status = "assumed", source = "by hand" }

[fabric.transport.nvlink_simple]
links = ["nvlink"]
start = { value = 0, unit = "us", status = "assumed", source = "by hand" }

[fabric.transport.host_simple]
links = ["host"]
start = { value = 0, unit = "us", status = "assumed", source = "by hand" }

[fabric.network.simple]
transports = ["nvlink_simple", "host_simple"]

[hints]
networks = ["simple"]

[path.put]
summary = "a write"
network = "simple"
fused_combine = true
"""
NETWORK = """
[network]
name = "wires"
summary = "wires of 80 Gb/s"
sources = ["by hand"]
topology = "TOPOLOGY"

[network.parameters]
rate = { value = 80, unit = "Gb/s", status = "assumed", source = "by hand" }
gpudirect = { value = 1, unit = "count", status = "assumed", source = "by hand" }
forwarding = { value = 1, unit = "count", status = "assumed", source = "by hand" }
sharp = { value = 0, unit = "count", status = "assumed", source = "by hand" }
ports = { value = 0, unit = "count", status = "assumed", source = "by hand" }
PARAMETERS

[network.transport.simple]
start = { value = 0, unit = "us", status = "assumed", source = "by hand" }

[network.staged.simple]
start = { value = 0, unit = "us", status = "assumed", source = "by hand" }
rate = { value = 4, unit = "GB/s", status = "assumed", source = "by hand" }
"""
SHAPES = {
    "switch": [],
    "fat_tree": ["taper", "nodes_per_leaf"],
    "rail_fat_tree": ["taper", "nodes_per_leaf"],
    "dragonfly": ["taper", "nodes_per_leaf", "group_leaves", "group_links"],
}


@pytest.fixture
def pair(tmp_path):
    """A function: the machine of some nodes on a network of a shape, and what else is asked for."""
    for shape, names in SHAPES.items():
        stated = [f'{name} = {{ value = 1, unit = "count", status = "assumed", source = "by hand" }}' for name in names]
        text = NETWORK.replace("TOPOLOGY", shape).replace("PARAMETERS", "\n".join(stated))
        (tmp_path / f"{shape}.toml").write_text(text)
    node = tmp_path / "pair.toml"
    node.write_text(NODE.replace("NETWORK", str(tmp_path / "switch.toml")))

    def made(shape="switch", nodes=2, parameters="", **more):
        fabric = ",".join(filter(None, [str(tmp_path / f"{shape}.toml"), parameters]))
        return lw.machine(node, nodes=nodes, fabric=fabric, **more)

    made.file = node
    return made


def gbps(machine, *pairs):
    """What each of some messages that are sent at once gets, in GB/s, if all get the same."""
    b = lw.Builder("pattern", machine.ranks, S, dtype="u8")
    b.buffer("output")
    b.step()
    for a, z in pairs:
        b.put(a, z, "output", 0)
    return S / lw.simulate(b.finish(), machine).time_us / 1e3


def used(machine, a, z):
    """The links that a message takes."""
    b = lw.Builder("pattern", machine.ranks, S, dtype="u8")
    b.buffer("output")
    b.step()
    b.put(a, z, "output", 0)
    links = lw.simulate(b.finish(), machine, links=True).links.frame()
    return list(links[links["bytes"] > 0]["link"])


def test_ports_are_the_limit_between_nodes(pair):
    # 0 and 1 are node 0; 2 and 3 are node 1.
    assert gbps(pair(), (0, 1)) == pytest.approx(100)
    assert gbps(pair(), (0, 2)) == pytest.approx(10)
    assert gbps(pair(), (0, 2), (1, 3)) == pytest.approx(10)
    assert gbps(pair(parameters="rate=16"), (0, 2)) == pytest.approx(2)


def test_every_leaf_of_a_fat_tree_has_its_share_of_the_spine(pair):
    # A leaf of two nodes has four ports of 10 GB/s, so 40 / taper GB/s up: four messages get 10 / taper each.
    across = [(i, i + 4) for i in range(4)]
    for taper in (1, 2, 5):
        machine = pair("fat_tree", 4, f"nodes_per_leaf=2,taper={taper}")
        assert gbps(machine, *across) == pytest.approx(10 / taper)
        assert gbps(machine, (0, 2), (1, 3)) == pytest.approx(10)  # below one leaf
    assert not any("spine" in link for link in used(pair("fat_tree", 2, "nodes_per_leaf=2"), 0, 2))


def test_rails_meet_in_the_spine_unless_a_gpu_forwards(pair):
    machine = pair("rail_fat_tree", 2, "nodes_per_leaf=2")
    names = used(machine, 0, 3)
    assert "node 0 hub -> node 0 GPU 1" in names  # GPU 0 hands on to GPU 1, whose rail leads to GPU 1 of node 1
    assert not any("spine" in name for name in names)
    straight = used(pair("rail_fat_tree", 2, "nodes_per_leaf=2,forwarding=0"), 0, 3)
    assert {"leaf 0 -> spine", "spine -> leaf 1"} <= set(straight)
    assert not any("hub" in name for name in straight)


def test_groups_of_a_dragonfly_share_the_links_between_them(pair):
    # Two nodes in each of two groups, and one link of 10 GB/s between the groups: four messages get 2.5 each.
    asked = "nodes_per_leaf=1,group_leaves=2,group_links="
    across = [(i, i + 4) for i in range(4)]
    assert gbps(pair("dragonfly", 4, asked + "1"), *across) == pytest.approx(2.5)
    assert gbps(pair("dragonfly", 4, asked + "3"), *across) == pytest.approx(7.5)
    assert gbps(pair("dragonfly", 4, asked + "1"), (0, 2), (1, 3)) == pytest.approx(10)


def test_without_gpudirect_data_go_through_the_host(pair):
    machine = pair(parameters="gpudirect=0")
    assert gbps(machine, (0, 2)) == pytest.approx(4)
    assert "node 0 GPU 0 -> node 0 CPU" in used(machine, 0, 2)
    assert gbps(pair(without=["net_simple"]), (0, 2)) == pytest.approx(4)


def test_matching_takes_the_place_of_handling(pair):
    """Two messages of 10 ns to one process, which then handles the second: 2 us of hardware from 10 B on, or 3 us."""
    file = pair.file.parent / "switch.toml"
    numbers = [("handling", 2, "us"), ("handling_from", 10, "B"), ("matching", 3, "us"), ("matching_from", 200, "B")]
    stated = "".join(f'{key} = {{ value = {value}, unit = "{unit}", status = "assumed", source = "by hand" }}\n'
                     for key, value, unit in numbers)  # fmt: skip
    switch = 'software_matching = { value = 0, unit = "count", status = "assumed", source = "by hand" }\n'
    text = file.read_text().replace("[network.staged", f"{stated}\n[network.staged")
    file.write_text(text.replace("[network.transport", f"{switch}\n[network.transport", 1))

    def time_us(size, parameters=""):
        machine = pair(nodes=3, parameters=parameters)
        b = lw.Builder("pattern", machine.ranks, 2 * size, dtype="u8")
        b.buffer("output", 2)  # two blocks
        b.step()
        b.put(0, 4, "output", 0)
        b.put(2, 4, "output", 1)
        return lw.simulate(b.finish(), machine).time_us

    assert time_us(100) == pytest.approx(2.01, abs=0.02)
    assert time_us(100, "software_matching=1") == pytest.approx(0.02, abs=0.02)
    assert time_us(200, "software_matching=1") == pytest.approx(3.02, abs=0.03)


def test_processes_that_match_messages_are_busy_with_each():
    # The four GPUs of the second node send to the first GPU, whose process handles one message after the other.
    def messages(parameters):
        machine = machines.load("a100-polaris", Variant(2, f"slingshot-11{parameters}"))
        return {
            size: lw.simulate(lw.schedule("gather", "linear", ranks=8, size=size), machine, path="ll").time_us
            for size in (8 * 1024, 8 * 4096)
        }

    usual, matched, all_sizes = map(messages, ("", ",software_matching=1", ",software_matching=1,gdrcopy=0"))
    assert matched[8 * 1024] == usual[8 * 1024]  # of 1 KiB each, below 4 KiB with flags
    assert usual[8 * 4096] + 3 * 8 <= matched[8 * 4096] <= usual[8 * 4096] + 4 * 8.5  # 8.4 us for each before the last
    assert usual[8 * 1024] + 3 * 8 <= all_sizes[8 * 1024] <= usual[8 * 1024] + 4 * 8.5
    # A slice of Simple costs 6.1 us from 16 KiB on, whoever matches; the first node adds nothing of its own.
    simple = {
        (parameters, size): lw.simulate(
            lw.schedule("gather", "linear", ranks=8, size=8 * size),
            machines.load("a100-polaris", Variant(2, f"slingshot-11{parameters}")),
            path="simple",
        ).time_us
        for parameters in ("", ",software_matching=1")
        for size in (8 * 1024, 16 * 1024)
    }
    assert simple["", 8 * 1024] == simple[",software_matching=1", 8 * 1024]
    assert simple["", 16 * 1024] == simple[",software_matching=1", 16 * 1024]
    assert 3 * 5.5 <= simple["", 16 * 1024] - simple["", 8 * 1024] <= 4 * 6.5
    with pytest.raises(LinkwrightError, match="gdrcopy=0 changes nothing where NICs match"):
        machines.load("a100-polaris", Variant(2, "slingshot-11,gdrcopy=0"))


def test_switches_with_sharp_combine_on_the_way(pair):
    # CollNetDirect: half of S to the neighbour at 100 GB/s, up and down a port of 10 GB/s at once, and back.
    schedule = lw.schedule("allreduce", "collnet_direct", ranks=6, size=S // 1000 * 96, grid=(2, 3))
    half = S // 1000 * 96 / 2 / 1e9
    found = lw.simulate(schedule, pair(nodes=3, parameters="sharp=1")).time_us / 1e6
    assert found == pytest.approx(half / 100 + half / 10 + half / 100)
    assert lw.simulate(schedule, pair(nodes=3)).time_us / 1e6 > 2 * found


def test_a_port_that_is_not_connected_is_reached_by_the_neighbour(pair):
    machine = pair(parameters="ports=1")
    assert "node 0 hub -> node 0 GPU 0" in used(machine, 1, 3)
    assert gbps(machine, (0, 2), (1, 3)) == pytest.approx(5)


def test_memories_stages_pairs_and_limits_are_repeated(pair):
    more = """
[fabric.switch.CPU]
throughput = { value = 8, unit = "GB/s", status = "assumed", source = "by hand" }

[fabric.pair."GPU 0 -> GPU 1"]
route = ["CPU"]
transport = "host_simple"
"""
    pair.file.write_text(pair.file.read_text() + more)
    machine = pair()
    assert [end["name"] for end in machine.endpoints()][4:] == ["node 0 host", "node 1 host"]
    for first in (0, 2):  # received and sent: half of 8 GB/s; the other way is the hub's
        assert gbps(machine, (first, first + 1)) == pytest.approx(4)
        assert gbps(machine, (first + 1, first)) == pytest.approx(100)


def test_names_mean_every_node_or_one(pair):
    slow = pair(degrade={"NIC 0": 0.5})
    assert gbps(slow, (0, 2)) == pytest.approx(5)
    assert gbps(slow, (1, 3)) == pytest.approx(10)
    one = pair(degrade={"node 0 NIC 0": 0.5})
    assert gbps(one, (0, 2)) == pytest.approx(5)
    assert gbps(pair(nodes=3, degrade={"node 0 NIC 0": 0.5}), (2, 4)) == pytest.approx(10)
    assert gbps(pair(degrade={"NIC 0 - switch": 0.5}), (0, 2)) == pytest.approx(5)
    assert gbps(pair(degrade={"nvlink": 0.1}), (0, 1)) == pytest.approx(10)
    assert gbps(pair(degrade={"host_net_simple": 0.5}, without=["net_simple"]), (0, 2)) == pytest.approx(2)


def test_what_is_taken_away_is_gone(pair):
    assert gbps(pair(without=["nvlink"]), (0, 1)) == pytest.approx(20)  # by the CPU
    assert gbps(pair(without=["GPU 1 - hub"]), (0, 1)) == pytest.approx(20)
    assert gbps(pair(without=["node 1 hub"]), (0, 1)) == pytest.approx(100)
    alone = pair(without=["NIC 1"])  # both GPUs by one NIC
    assert pair(without="NIC 1").text == alone.text
    assert gbps(alone, (0, 2), (1, 3)) == pytest.approx(5)
    text = machines.source(str(pair.file), Variant(2, None, ("nvlink",)))[0]
    assert "links.nvlink]" not in text
    assert "nvlink_simple" not in text  # which used nothing else
    assert gbps(pair(without=["nvlink", "nic"]), (0, 2)) == pytest.approx(4)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"nodes": 0}, "--nodes 0: a cluster has 1 to 65,536 nodes"),
        ({"nodes": 65_537}, "--nodes 65537: a cluster has 1 to 65,536 nodes"),
        ({"nodes": None}, "a network connects nodes; give their number with --nodes"),
        ({"parameters": "tapper=2", "shape": "fat_tree"}, "unknown parameter of wires `tapper`; did you mean `taper`?"),
        ({"parameters": "taper=2"}, "unknown parameter of wires `taper`; known: `forwarding`, `gpudirect`"),
        ({"parameters": "taper=x", "shape": "fat_tree"}, "taper is `x`; write a number above 0, such as `taper=2`"),
        ({"parameters": "taper=0", "shape": "fat_tree"}, "taper is `0`; write a number above 0"),
        ({"parameters": "rate=nan"}, "rate is `nan`"),
        ({"parameters": "ports=3"}, "3 ports of a node that has 2; ask for fewer"),
        ({"degrade": {"nvlink": 0}}, "--degrade nvlink=0: the factor of a rate is above 0 and at most 10^6"),
        ({"degrade": {"nvlink": 1e7}}, "above 0 and at most 10^6"),
        ({"degrade": {"net_simple": 0.5}}, "transport net_simple states no rate; degrade a class of its links instead"),
        ({"without": ["NIC 3"]}, "unknown link, node or transport `NIC 3`; did you mean `NIC 0`"),
        (
            {"without": ["xyz"]},
            "--without xyz: is no link, node or transport of this machine; classes of links: nvlink",
        ),
        ({"without": ["GPU 1"]}, "--without GPU 1: is a rank; take fewer ranks with --ranks"),
        ({"without": ["NIC 0", "NIC 1"]}, "node 1 GPU 0 and 1 more cannot be reached from node 0 GPU 0 any more"),
    ],
)
def test_what_cannot_be_is_refused(pair, asked, says):
    with pytest.raises(UsageError) as error:
        pair(**asked)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('ports = "NIC 0..1"', 'port = "NIC 0..1"', "cluster: missing key `ports`; did you mean it by `port`?"),
        ('ports = "NIC 0..1"', 'ports = "NIC 0..1"\nrails = 3', "3 rails for 2 ports; a rail has at least one port"),
        ('ports = "NIC 0..1"', 'ports = "NIC 0..2"\nrails = 2', "3 ports do not divide into 2 rails"),
        ('name = "GPU"\ncount', 'name = "node"\ncount', "`node` is the level of whole nodes in a cluster"),
        ('[fabric.links.host]', '[fabric.links.port]', "fabric.links.port: is a class of the network's links"),
        ('count = 2\nname = "GPU {i}"', 'grid = [2, 1]\nname = "GPU {i}"', "a node has `count` endpoints, or `names`"),
        ("[cluster]", "[clusters]", "unknown key `clusters`; did you mean `cluster`?"),
        ('"NIC 0..1"\nnetwork', '"port 0..1"\nnetwork', "no node `node 0 port 0`"),
    ],
)  # fmt: skip
def test_a_node_that_is_none_is_refused(pair, old, new, says):
    assert old in pair.file.read_text()
    pair.file.write_text(pair.file.read_text().replace(old, new))
    with pytest.raises(UsageError) as error:
        gbps(pair(), (0, 2))
    assert says in str(error.value)


def test_a_cluster_beyond_all_machines_is_refused():
    with pytest.raises(UsageError, match=r"--nodes 20000: 1,440,000 ranks; at most 1,048,576"):
        lw.machine("gb200-nvl72", nodes=20_000)


VALUES = [
    None, 0, -1, 1.5, True, "", "x", [], [1], ["x"], {}, {"value": 1}, [{}], "a - b", " .. ", "GPU 0..99",
    "* / 0 - hub", "* / x - hub", 10**30,
]  # fmt: skip


def paths(table, before=()):
    for key, value in table.items() if isinstance(table, dict) else enumerate(table):
        yield (*before, key)
        if isinstance(value, dict | list):
            yield from paths(value, (*before, key))


def mutant(document, random):
    """The document with one value gone, or another one in its place."""
    changed = copy.deepcopy(document)
    *way, last = random.choice(list(paths(document)))
    table = changed
    for key in way:
        table = table[key]
    value = random.choice(VALUES)
    if value is None:
        del table[last]
    else:
        table[last] = value
    return writer.text(changed)


@pytest.mark.parametrize("seed", range(4))
def test_wrong_values_are_errors_of_the_file(pair, seed):
    dice = random.Random(seed)
    network = pair.file.parent / "fat_tree.toml"
    node, joined = tomllib.loads(NODE.replace("NETWORK", str(network))), tomllib.loads(network.read_text())
    variants = [Variant(2), Variant(2, None, ("NIC 0",)), Variant(None, None, ("nvlink",), (("host", 0.5),))]
    refused = 0
    for _ in range(100):
        pair.file.write_text(mutant(node, dice))
        network.write_text(mutant(joined, dice) if dice.random() < 0.3 else writer.text(joined))
        with contextlib.suppress(LinkwrightError):
            machines.load(str(pair.file), dice.choice(variants))
            continue
        refused += 1
    assert 30 < refused < 100


def test_names_of_variants_tell_machines_apart():
    asked = [
        Variant(), Variant(2), Variant(4), Variant(2, "ndr-fat-tree,taper=2"), Variant(2, "ndr-fat-tree,taper=2.5"),
        Variant(without=("NIC 3",)), Variant(degrade=(("NIC 3", 0.5),)), Variant(without=tuple(map(str, range(99)))),
        Variant(without=tuple(map(str, range(98)))),
    ]  # fmt: skip
    names = [variant.name("hgx-h100") for variant in asked]
    assert len(set(names)) == len(names)
    assert names[:2] == ["hgx-h100", "hgx-h100-x2"]
    assert names[3] == "hgx-h100-x2-ndr-fat-tree-taper-2"
    assert max(map(len, names)) <= 100


PART = """
[fabric]
sharing = "fifo"

[fabric.links.nvlink]
bandwidth = { value = 1, unit = "GB/s", status = "assumed", source = "of the part" }
share = { value = 0.5, unit = "ratio", status = "assumed", source = "of the part" }
edges = ["GPU 0 - hub"]
"""


def test_a_file_wins_over_its_parts_key_by_key(pair):
    (pair.file.parent / "slow.toml").write_text(PART)
    pair.file.write_text('parts = ["slow.toml"]\n' + pair.file.read_text())
    # The rate and the list of edges are those of the file, the share is that of the part: 100 x 0.5.
    assert gbps(pair(), (0, 1)) == pytest.approx(50)
    assert lw.machine(pair.file).ranks == 2


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ('["hoper"]', "unknown part `hoper`; did you mean `hopper`?"),
        ('["./none.toml"]', "part `./none.toml`: there is no"),
        ('"hopper"', 'write names of parts, such as `parts = ["hopper"]`'),
        ("[1]", "write names of parts"),
        ('["nested.toml"]', "nested.toml:1: parts: a part has no parts of its own"),
    ],
)
def test_wrong_parts_are_refused(pair, parts, says):
    (pair.file.parent / "nested.toml").write_text('parts = ["hopper"]')
    pair.file.write_text(f"parts = {parts}\n{pair.file.read_text()}")
    with pytest.raises(UsageError) as error:
        lw.machine(pair.file)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('topology = "fat_tree"', 'topology = "fat_three"', "unknown value `fat_three`; did you mean `fat_tree`?"),
        ("taper = {", "tapper = {", "missing key `taper`; did you mean it by `tapper`?"),
        ("[network.transport.simple]", "[network.transports.simple]", "unknown key `transports`"),
        (
            "rate = { value = 80,",
            "rate = { value = true,",
            "network.parameters.rate: `value` holds a boolean; write a number",
        ),
        (
            "[network.staged",
            'matching_from = { value = 9, unit = "B", status = "assumed", source = "by hand" }\n[network.staged',
            "network.transport.simple: `matching_from` changes nothing without `matching`",
        ),
    ],
)
def test_wrong_networks_are_refused(pair, old, new, says):
    file = pair.file.parent / "fat_tree.toml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(UsageError) as error:
        pair("fat_tree")
    assert says in str(error.value)
    assert isinstance(error.value, FileError) or "unknown" in says


def test_a_run_of_a_variant_keeps_its_text_and_resumes(pair, tmp_path):
    text = """
[suite]
format = 1
name = "small"
summary = "two sizes"
[[part]]
name = "a"
summary = "one algorithm"
collectives = "allreduce"
algorithms = "ring"
sizes = ["8", "64K"]
"""

    class Stops(Watcher):
        said: tuple[str, ...] = ()

        def told(self, text):
            self.said += (text,)

        def rows(self, experiment, found):
            raise KeyboardInterrupt

    variant = Variant.of(3, None, ["NIC 1"], {"nvlink": 0.5})
    request = Request(str(pair.file), 1.0, variant=variant)
    begun = start(tmp_path / "runs", suites.parse(text, "small.toml"), request, Stops(), Local(jobs=1))
    assert begun.interrupted
    kept = list((begun.run.folder / "machines").iterdir())
    assert [file.read_text() for file in kept] == [machines.source(str(pair.file), variant)[0]]
    watcher = Watcher()
    watcher.told = lambda text: pytest.fail(text)
    done = resume(begun.run, watcher)
    assert {row["machine"] for row in done.rows} == {"pair-x3-without-nic-1-nvlink-by-0.5"}
    assert {row["ranks"] for row in done.rows} == {6}


def test_every_verb_takes_variants(pair):
    on = ("--on", "hgx-h100", "--nodes", "2")
    assert "hgx-h100-x2" in invoke("simulate", "allreduce", "-a", "ring", *on, "--sizes", "8").out
    assert "16 ranks of hgx-h100-x2" in invoke("describe", "allreduce", "--limit", *on).out
    assert invoke("verify", "allreduce", "-a", "ring", "-p", "16", *on).status == 0
    assert "hgx-h100-x2" in invoke("predict", "resnet", "--batch", "16", "--gpus", "16", *on).out
    assert "net_simple" in invoke("machines", "show", *on[1:]).out
    measured = invoke("run", "allreduce", "--on", "threads", "--nodes", "2", "-p", "2")
    assert measured.status == 2
    assert "--on threads: an executor measures the machine as it is" in measured.err
    refused = invoke("describe", "ring", "--nodes", "2")
    assert "--nodes applies to a limit; add --limit" in refused.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["torus-2d", "--nodes", "2"], "--nodes 2: torus-2d.toml has no [cluster], so it is no node"),
        (["crossbar", "--without", "nvlink"], "--without and --degrade are for `flow` fabrics with links"),
        (["wormhole-n150", "--without", "NoC 7"], "unknown network `NoC 7`; did you mean `NoC 0`"),
        (["wormhole-n150", "--without", "NoC 0", "--without", "NoC 1"], "no network is left"),
        (["wormhole-n150", "--degrade", "NoC 0=0.5"], "--without takes a network away"),
        (["hgx-h100", "--nodes", "2", "--fabric", "ndr-fat-tree,gpudirect=2"], "gpudirect is `2`; write 0 or 1"),
        (["hgx-h100", "--nodes", "2", "--fabric", "ndr-fat-tree,gpudirect=-1"], "such as `gpudirect=1`"),
        (["hgx-h100", "--nodes", "2", "--fabric", "ndr-fat-tree,ports=2.5"], "ports is `2.5`; write a whole number"),
        (["hgx-h100", "--nodes", "2", "--fabric", "ndr-fat-tree,taper=2,taper=4"], "taper is given twice"),
        (["hgx-h100", "--degrade", "nvlink=0.5", "--degrade", "nvlink=0.5"], "--degrade nvlink: is given twice"),
        (["hgx-h100", "--without", "NVLink"], "did you mean `nvlink`"),
        (["h100"], "did you mean `hgx-h100` or `assumed-h100-nvl` or"),
    ],
)
def test_what_people_type_wrongly_gets_one_message(arguments, says):
    done = invoke("machines", "show", *arguments)
    assert (done.status, done.err.count("\n"), says in done.err) == (2, 1, True), done.err


def test_a_chip_without_a_network_sends_all_on_the_other():
    """The ring of the thesis travels on NoC 0 alone: without NoC 1 nothing changes, without NoC 0 it takes longer."""
    ring = lw.schedule("allreduce", "ring", ranks=64, size="64K")
    whole, *one = (lw.simulate(ring, machines.load("wormhole-n150", Variant.of(None, None, gone, {}))).time_us
                   for gone in ((), ("NoC 1",), ("NoC 0",)))  # fmt: skip
    assert one[0] == whole
    assert one[1] > whole
