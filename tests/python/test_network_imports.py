"""Machine files made of descriptions of networks: what a message costs by hand, what is refused, and how."""

import re
import tomllib
from pathlib import Path

import pytest

import linkwright as lw
from linkwright import _native
from linkwright.base.errors import FileError, UsageError
from linkwright.formats.discovery import hostlists, importing, network_rates, networks, planes
from network_cases import SIZE, Folder, time_us

FILES = Folder(Path(__file__).parent.parent / "networks", networks.NETWORKS)

# Per message: latencies of the links, and the start-up where the importer assumes one (2 us, of Tenstorrent 0.08), in
# microseconds; then the rate in bytes per second.
MESSAGES = {
    # 4xNDR; ports 0.6 us, trunks 0.25 us.
    ("fat_tree.ibnetdiscover", 0, 1): (2 + 2 * 0.6, 50e9),
    ("fat_tree.ibnetdiscover", 0, 2): (2 + 2 * 0.6 + 2 * 0.25, 50e9),
    ("tree.topology.conf", 0, 1): (2 + 2 * 0.6, 50e9),
    ("tree.topology.conf", 0, 3): (2 + 2 * 0.6 + 2 * 0.25, 50e9),
    ("blocks.topology.conf", 0, 1): (2 + 2 * 0.6, 50e9),
    ("blocks.topology.conf", 0, 2): (2 + 2 * 0.6 + 2 * 0.25, 50e9),  # two blocks of 2 are one of 4
    ("blocks.topology.conf", 0, 7): (2 + 2 * 0.6 + 4 * 0.25, 50e9),
}


@pytest.mark.parametrize("case", MESSAGES, ids=lambda case: f"{case[0]} {case[1]} to {case[2]}")
def test_a_message_takes_its_latencies_and_its_bytes(case):
    name, a, b = case
    latency_us, rate = MESSAGES[case]
    assert time_us(FILES.machine(name), (a, b)) == pytest.approx(latency_us + SIZE / rate * 1e6, rel=1e-5)


@pytest.mark.parametrize("name", ["fat_tree.ibnetdiscover", "tree.topology.conf"])
def test_messages_spread_over_spines(name):
    assert time_us(FILES.machine(name), (0, 2), (1, 3)) == pytest.approx(3.7 + SIZE / 50e9 * 1e6, rel=1e-5)


def test_every_number_says_how_it_is_known():
    numbers = {number["key"]: number for number in FILES.machine("tree.topology.conf").numbers()}
    assert {number["status"] for number in numbers.values()} == {"assumed"}
    numbers = FILES.machine("fat_tree.ibnetdiscover").numbers()
    assert {n["status"] for n in numbers if "bandwidth" in n["key"]} == {"documented", "derived"}
    assert all(n["status"] == "assumed" for n in numbers if "latency" in n["key"])


def rated(*rates, name="tree.topology.conf"):
    found = networks.described(networks.find("slurm"), FILES.texts[name], name, rates)
    return {key: (str(links.bandwidth.value), links.bandwidth.unit, links.bandwidth.status, links.edges)
            for key, links in found.links.items()}  # fmt: skip


def test_rates_that_slurm_does_not_state_are_given():
    """Two leaves of two ports each, below one plane of two spines."""
    ports = [(leaf, f"node0{i}") for leaf, i in (("leaf1", 1), ("leaf1", 2), ("leaf2", 3), ("leaf2", 4))]
    trunks = [("spine1", "leaf1"), ("spine1", "leaf2")]
    assert rated("port=200Gb/s") == {
        "port": ("200", "Gb/s", "documented", ports), "trunk 2": ("400", "Gb/s", "assumed", trunks),
    }  # fmt: skip
    # A whole name goes before a pattern, in any order.
    assert (
        rated("leaf2=25GB/s", "leaf*=300 Gb/s")
        == rated("leaf*=300 Gb/s", "leaf2=25GB/s")
        == {
            "port": ("50", "GB/s", "assumed", ports),
            "trunk leaf*": ("300", "Gb/s", "documented", trunks[:1]),
            "trunk leaf2": ("25", "GB/s", "documented", trunks[1:]),
        }
    )
    made = importing.machine_file(
        FILES.texts["tree.topology.conf"], "tree.topology.conf", name="x", rates=["port=200Gb/s", "leaf*=100Gb/s"]
    )
    machine = _native.Machine.parse(made, "x.toml")
    schedule = lw.schedule("broadcast", "linear", ranks=2, size="1G")
    # Behind the trunk of 100 Gb/s, half of a port.
    near, far = (lw.simulate(schedule, machine, placement=[0, to]).time_us for to in (1, 3))
    assert (near, far) == (pytest.approx(2**30 / 25e3, rel=1e-3), pytest.approx(2**30 / 12.5e3, rel=1e-3))
    joined = importing.machine_file(
        FILES.texts["tree.topology.conf"], "tree.topology.conf", name="x", node="hgx-h100", rates=["port=200Gb/s"]
    )
    assert '{ value = 200, unit = "Gb/s", status = "documented", source = "--rate port=200Gb/s" }' in joined
    # Of 8 ports of 200 Gb/s for each of 2 nodes, a leaf has 16 upwards; stated, 1600 Gb/s are 8 ports in all.
    assert [line for line in joined.splitlines() if "trunk 16" in line]
    stated = importing.machine_file(
        FILES.texts["tree.topology.conf"], "tree.topology.conf", name="x", node="hgx-h100",
        rates=["port=200Gb/s", "leaf*=1600Gb/s"],
    )  # fmt: skip
    assert [line for line in stated.splitlines() if "trunk 8" in line]


@pytest.mark.parametrize(
    ("one", "two", "what"),
    [
        ("port=200Gb/s", "port=400Gb/s", "ports"),
        ("leaf1=300Gb/s", "leaf1=100Gb/s", "the link of leaf1 to spine1"),
        ("leaf*=300Gb/s", "*2=100Gb/s", "the link of leaf2 to spine1"),
    ],
)
def test_two_rates_of_one_link_are_refused(one, two, what):
    with pytest.raises(UsageError, match=re.escape(f"--rate {one} and --rate {two} both state the rate of {what}")):
        rated(one, two)


@pytest.mark.parametrize(
    ("rate", "name", "message"),
    [
        ("port", "tree.topology.conf", "--rate port: is not a name and a rate; write `port=400Gb/s`"),
        ("port=0Gb/s", "tree.topology.conf", "is not a name and a rate"),
        ("port=400G", "tree.topology.conf", "is not a name and a rate"),
        ("leaf3=1Gb/s", "tree.topology.conf", "has no switch of that name below another one"),
        ("spine1=1Gb/s", "tree.topology.conf", "has no switch of that name below another one"),
        ("port=1Gb/s", "fat_tree.ibnetdiscover", "fat_tree.ibnetdiscover states rates; omit it"),
    ],
)
def test_rates_that_nothing_takes_are_refused(rate, name, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        importing.machine_file(FILES.texts[name], name, name="x", rates=[rate])


def test_trees_are_short():
    text = "\n".join(f"SwitchName=leaf{i} Nodes=node[{i * 100}-{i * 100 + 99}]" for i in range(100))
    made = FILES.made_of(f"{text}\nSwitchName=top Switches=leaf[0-99]\n")
    assert tomllib.loads(made)["endpoints"]["count"] == 10_000
    assert len(made) < 8_000


def test_adapters_of_nodes_make_levels():
    text = FILES.texts["fat_tree.ibnetdiscover"]
    for old, new in (("node2 mlx5_0", "node1 mlx5_1"), ("node3", "node10"), ("node4 mlx5_0", "node10 mlx5_1")):
        text = text.replace(old, new)
    values = tomllib.loads(FILES.made_of(text))
    assert [(level["name"], level["count"]) for level in values["level"]] == [("node", 2), ("adapter", 2)]
    assert values["endpoints"]["names"][0] == "node1 mlx5_0"


def test_a_machine_file_is_no_description():
    assert networks.recognised('[machine]\nname = "x"\n') == (None, [])


def test_hostlists():
    assert hostlists.expand("a[01-03,7]b,c", "x") == ["a01b", "a02b", "a03b", "a7b", "c"]
    assert hostlists.expand("n[0-1]x[8-9]", "x") == ["n0x8", "n0x9", "n1x8", "n1x9"]
    for wrong in ("a[", "a]", "a[3-1]", "a[]", "a,,b", "a[1-2]]", "a[[1-2]]", "a[1-x]", "a b", "a\nrank 0=b"):
        with pytest.raises(FileError, match=r"is not a (list of names|range of numbers)"):
            hostlists.expand(wrong, "x")
    for huge in ("a[0-999999999]", "a[0-999]b[0-999]c[0-999]", ",".join(["a[0-30000]"] * 3)):
        with pytest.raises(FileError, match="at most"):
            hostlists.expand(huge, "x")


def planes_of(edges, endpoints, switches, kinds=None):
    bundles = {tuple(edge.split("-")): planes.Counter({"x": 1}) for edge in edges.split()}
    return planes.merged(endpoints.split(), switches.split(), bundles, kinds)


def test_spines_above_one_leaf_stand_as_one():
    # Spine s3 has leaf l3 alone; g manages the network from spine s2, which is no leaf for that.
    edges = "l1-a l1-b l2-c l2-d l3-e l3-f s1-l1 s2-l1 s2-l2 s3-l3 s2-g t-s1 t-s3"
    plane, wide = planes_of(edges, "a b c d e f g", "s1 s2 s3 l1 l2 l3 t")
    assert plane == {"s1": "s1", "s2": "s1", "s3": "s3", "l1": "l1", "l2": "l2", "l3": "l3", "t": "t"}
    assert (wide["s1", "l1"], wide["s1", "l2"], wide["s1", "g"]) == ({"x": 2}, {"x": 1}, {"x": 1})


def test_switches_with_the_same_endpoints_stand_as_one_if_they_are_of_one_kind():
    edges = "p-a p-b q-a q-b"
    assert planes_of(edges, "a b", "p q")[0] == {"p": "p", "q": "p"}
    assert planes_of(edges, "a b", "p q")[1]["p", "a"] == {"x": 2}
    assert planes_of(edges, "a b", "p q", {"p": "nic", "q": "switch"})[0] == {"p": "p", "q": "q"}


def test_speeds_of_infiniband():
    assert str(network_rates.infiniband(4, "HDR", "x").value) == "200"
    assert (2 * network_rates.infiniband(1, "NDR", "x").value) == 200
    with pytest.raises(FileError, match="unknown speed `4xZDR`; known: 4xSDR"):
        network_rates.infiniband(4, "ZDR", "x")


# File, what is changed in it, and parts of the message.
WRONG = [
    ("fat_tree.ibnetdiscover", "4xNDR", "4xZDR", ["unknown speed `4xZDR`", "4xHDR"]),
    ("fat_tree.ibnetdiscover", "4xNDR", "", ["line 11", "no speed such as 4xNDR"]),
    ("fat_tree.ibnetdiscover", '"H-0000000000000010"[1]', '"H-00000000000000ff"[1]', ["does not describe", "cut file"]),
    ("fat_tree.ibnetdiscover", '[2]\t"H-0000000000000011"[1]', '[2]\t"H-0000000000000012"[1]', ["does not lead back"]),
    ("fat_tree.ibnetdiscover", '[2]\t"H', '[1]\t"H', ["port 1 of leaf 1 is listed twice"]),
    ("fat_tree.ibnetdiscover", "Ca\t1", "Rt\t1", ["is a router to another subnet", "remove it"]),
    ("fat_tree.ibnetdiscover", "vendid=0x2c9", "vendor", ["line 6", "is not a line of ibnetdiscover"]),
    ("fat_tree.ibnetdiscover", "Switch\t65", "", ["line 10", "is not a line"]),
    ("tree.topology.conf", "spine1 Switches=leaf[1-2]", "spine1 Switches=leaf[1-3]", ["leaf3", "no line describes"]),
    ("tree.topology.conf", "node[03,04]", "node[02,04]", ["node02 is also below leaf1"]),
    ("tree.topology.conf", "SwitchName=leaf2", "SwitchName=leaf1", ["leaf1 is also in line 2"]),
    ("tree.topology.conf", "node[01-02]", "node[01-", ["line 2", "is not a list of names"]),
    ("tree.topology.conf", "LinkSpeed", "Speed", ["unknown key `speed`", "linkspeed"]),
    ("tree.topology.conf", "SwitchName=spine", "RingName=spine", ["topology/ring are not supported"]),
    ("tree.topology.conf", "spine2 Switches=leaf[1-2]", "s2 Switches=s3\nSwitchName=s3 Switches=s2", ["below itself"]),
    ("tree.topology.conf", "SwitchName=leaf", "SwitchName=tree", ["names switch leaf1, which no line describes"]),
    ("tree.topology.conf", "Nodes=node[01-02]", "Nodes=node[1-99999999]", ["at most 32,768"]),
    ("blocks.topology.conf", "BlockSizes=2,4", "BlockSizes=2,x", ["are not sizes"]),
]


@pytest.mark.parametrize(("name", "old", "new", "parts"), WRONG, ids=lambda value: str(value)[:30])
def test_wrong_files_give_one_message(name, old, new, parts):
    FILES.refuses(name, old, new, parts)


def test_control_characters_never_reach_a_message():
    FILES.refuses("tree.topology.conf", "Nodes", "No\x1bdes", ["line 2: a control character"])
