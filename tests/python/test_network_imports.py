"""Machine files made of descriptions of networks: what a message costs by hand, what is refused, and how."""

import functools
import sys
import tomllib
from pathlib import Path

import pytest

import linkwright as lw
from linkwright import _native
from linkwright.discovery import hostlists, network_rates, networks, planes, simgrid_units, yaml_text
from linkwright.errors import FileError, UsageError

FOLDER = Path(__file__).parent.parent / "networks"
SIZE = 1_000_000
GIB = 2**30


def source(name):
    return (FOLDER / name).read_text(encoding="utf-8")


def made_of(text, file="x"):
    network = networks.recognised(text)
    assert network is not None
    return networks.machine_file(network, text, file)


@functools.cache
def machine_text(name):
    return made_of(source(name), name)


def machine(name):
    return _native.Machine.parse(machine_text(name), "x.toml")


def time_us(on, *messages):
    """The time of messages of `SIZE` bytes that begin together, each (from, to)."""
    builder = lw.Builder("pattern", ranks=on.ranks, size=SIZE, dtype="u8")
    builder.buffer("output")
    builder.step()
    for a, b in messages:
        builder.put(a, b, "output", 0)
    return lw.simulate(builder.finish(), on).time_us


def names(name):
    return machine(name).names


# Per message: latencies of the links, and the start-up where the importer assumes one (2 us, of Tenstorrent 0.08), in
# microseconds; then the rate in bytes per second.
MESSAGES = {
    # Link 1 (100 us, 125 MB/s), link 2 (200 us, 1 Gb/s).
    ("two_hosts.simgrid.xml", 0, 1): (300, 125e6),
    ("two_hosts.simgrid.xml", 1, 0): (300, 125e6),
    # Hosts a0, a1 behind private links of 50 us and a backbone of 10; b0, b1 likewise with 20; c0 behind c (5 us).
    ("zones.simgrid.xml", 0, 1): (50 + 10 + 50, 125e6),
    ("zones.simgrid.xml", 0, 2): (50 + 10 + 1000 + 20 + 50, 100e6),
    ("zones.simgrid.xml", 2, 4): (50 + 20 + 100 + 5, 125e6),
    ("zones.simgrid.xml", 0, 4): (50 + 10 + 1000 + 100 + 5, 100e6),  # by the gateway of the zone in between
    ("zones.simgrid.xml", 4, 0): (5 + 3 + 10 + 50, 50e6),  # the bypass, which is for this direction alone
    # Every link 1 us, 1 GB/s.
    ("flat.simgrid.xml", 0, 3): (2, 1e9),
    ("torus.simgrid.xml", 0, 3): (2, 1e9),
    ("fat_tree.simgrid.xml", 0, 1): (2, 1e9),
    ("fat_tree.simgrid.xml", 0, 2): (4, 1e9),
    ("dragonfly.simgrid.xml", 1, 2): (3, 1e9),  # local, blue, local
    ("dragonfly.simgrid.xml", 0, 3): (5, 1e9),  # local, green, blue, green, local
    # 4xNDR; ports 0.6 us, trunks 0.25 us.
    ("fat_tree.ibnetdiscover", 0, 1): (2 + 2 * 0.6, 50e9),
    ("fat_tree.ibnetdiscover", 0, 2): (2 + 2 * 0.6 + 2 * 0.25, 50e9),
    ("tree.topology.conf", 0, 1): (2 + 2 * 0.6, 50e9),
    ("tree.topology.conf", 0, 3): (2 + 2 * 0.6 + 2 * 0.25, 50e9),
    ("blocks.topology.conf", 0, 1): (2 + 2 * 0.6, 50e9),
    ("blocks.topology.conf", 0, 2): (2 + 2 * 0.6 + 2 * 0.25, 50e9),  # two blocks of 2 are one of 4
    ("blocks.topology.conf", 0, 7): (2 + 2 * 0.6 + 4 * 0.25, 50e9),
    # Rank 6 is (2, 1): two links of 0.5 us, then one of 1 us at 25 GB/s, which are 2^30 bytes to ASTRA-sim.
    ("torus.astra.yml", 0, 6): (2 * 0.5 + 1, 25 * GIB),
    ("mixed.astra.yml", 0, 1): (0.05, 200 * GIB),
    ("mixed.astra.yml", 0, 4): (0.5, 100 * GIB),
    ("mixed.astra.yml", 0, 6): (2 * 2, 50 * GIB),
    ("mixed.astra.yml", 0, 11): (0.05 + 0.5 + 2 * 2, 50 * GIB),
    ("switch.ns3.txt", 0, 2): (0.5 + 1 + 0.5, 50e9),
    # Two rows of four chips in a ring, four channels of 12.5 GB/s, 0.67 us a hop.
    ("galaxy.textproto", 0, 3): (0.08 + 0.67, 50e9),
    ("galaxy.textproto", 0, 4): (0.08 + 0.67, 50e9),
    ("galaxy.textproto", 0, 6): (0.08 + 3 * 0.67, 50e9),
    # Blackhole: two channels of 50 GB/s, 0.679 us; an express link from 0 to 3, and one channel from chip 1 to chip 4.
    ("pods.textproto", 0, 3): (0.08 + 0.679, 100e9),
    ("pods.textproto", 1, 4): (0.08 + 0.679, 50e9),
    ("pods.textproto", 4, 8): (0.08 + 0.679, 100e9),
    ("pods.textproto", 5, 9): (0.08 + 0.679, 100e9),
    ("ports.tt.yaml", 0, 3): (0.08 + 3 * 0.67, 25e9),
    # 16 lanes of 32 GT/s, of which 128 of 130 bits are data; two ports of 400 Gb/s as one, 0.5 us a link.
    ("rack.infragraph.yaml", 0, 1): (2, 32e9 * 16 / 8 * 128 / 130),
    ("rack.infragraph.yaml", 0, 2): (2 + 2 * 0.5, 32e9 * 16 / 8 * 128 / 130),
}


@pytest.mark.parametrize("case", MESSAGES, ids=lambda case: f"{case[0]} {case[1]} to {case[2]}")
def test_a_message_takes_its_latencies_and_its_bytes(case):
    name, a, b = case
    latency_us, rate = MESSAGES[case]
    assert time_us(machine(name), (a, b)) == pytest.approx(latency_us + SIZE / rate * 1e6, rel=1e-5)


def test_a_shared_link_has_one_rate_for_both_directions():
    # Link 1 carries 2 MB at 125 MB/s, 16 ms; with link 2 alone, 8 ms.
    both = time_us(machine("two_hosts.simgrid.xml"), (0, 1), (1, 0))
    assert both == pytest.approx(300 + 16_000, rel=1e-5)
    alone = source("two_hosts.simgrid.xml").replace('<link_ctn id="1"/>', "")
    split = _native.Machine.parse(made_of(alone), "x.toml")
    assert time_us(split, (0, 1), (1, 0)) == pytest.approx(200 + 8_000, rel=1e-5)


def test_a_fatpipe_limits_each_message_alone():
    text = source("two_hosts.simgrid.xml").replace('latency="100us"', 'latency="100us" sharing_policy="FATPIPE"')
    text = text.replace('bandwidth="125MBps"', 'bandwidth="50MBps"')
    pipe = _native.Machine.parse(made_of(text), "x.toml")
    assert time_us(pipe, (0, 1), (1, 0)) == pytest.approx(300 + 20_000, rel=1e-5)


def test_a_backbone_carries_all_messages_of_a_cluster():
    text = source("flat.simgrid.xml").replace(' bw="1GBps"', ' bw="1GBps" bb_bw="1GBps" bb_lat="3us"')
    shared = _native.Machine.parse(made_of(text), "x.toml")
    # Two messages of 1 MB through 1 GB/s; the private links meet in none.
    assert time_us(shared, (0, 1), (2, 3)) == pytest.approx(2 + 3 + 2000, rel=1e-5)
    fatpipe = made_of(text.replace('bb_bw="1GBps"', 'bb_bw="0.5GBps" bb_sharing_policy="FATPIPE"'))
    assert time_us(_native.Machine.parse(fatpipe, "x.toml"), (0, 1), (2, 3)) == pytest.approx(5 + 2000, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "pairs", "latency_us", "rate"),
    [
        ("fat_tree.ibnetdiscover", [(0, 2), (1, 3)], 3.7, 50e9),
        ("tree.topology.conf", [(0, 2), (1, 3)], 3.7, 50e9),
        ("fat_tree.simgrid.xml", [(0, 2), (1, 3)], 4, 1e9),
        ("switch.ns3.txt", [(0, 2), (1, 3)], 2, 50e9),
    ],
)
def test_messages_spread_over_spines(name, pairs, latency_us, rate):
    assert time_us(machine(name), *pairs) == pytest.approx(latency_us + SIZE / rate * 1e6, rel=1e-5)


def test_every_number_says_how_it_is_known():
    numbers = {number["key"]: number for number in machine("tree.topology.conf").numbers()}
    assert {number["status"] for number in numbers.values()} == {"assumed"}
    numbers = machine("fat_tree.ibnetdiscover").numbers()
    assert {n["status"] for n in numbers if "bandwidth" in n["key"]} == {"documented", "derived"}
    assert all(n["status"] == "assumed" for n in numbers if "latency" in n["key"])


def test_tori_are_tori_and_trees_are_short():
    torus = tomllib.loads(machine_text("torus.astra.yml"))["fabric"]
    assert (torus["torus"]["y"]["latency"]["value"], "links" in torus) == (1000, False)
    text = "\n".join(f"SwitchName=leaf{i} Nodes=node[{i * 100}-{i * 100 + 99}]" for i in range(100))
    made = made_of(f"{text}\nSwitchName=top Switches=leaf[0-99]\n")
    assert tomllib.loads(made)["endpoints"]["count"] == 10_000
    assert len(made) < 8_000


def test_adapters_of_nodes_make_levels():
    text = source("fat_tree.ibnetdiscover")
    for old, new in (("node2 mlx5_0", "node1 mlx5_1"), ("node3", "node10"), ("node4 mlx5_0", "node10 mlx5_1")):
        text = text.replace(old, new)
    values = tomllib.loads(made_of(text))
    assert [(level["name"], level["count"]) for level in values["level"]] == [("node", 2), ("adapter", 2)]
    assert values["endpoints"]["names"][0] == "node1 mlx5_0"


def test_older_yaml_of_meshes_counts_boards():
    text = source("ports.tt.yaml").split("Mesh:")[0]
    boards = text + "Mesh: [ { id: 0, board: B, topology: [2, 1], host_ranks: [[0], [1]] } ]\nGraph: []\n"
    assert tomllib.loads(made_of(boards))["endpoints"]["grid"] == [2, 2]
    ring = boards.replace("type: Mesh", "type: TORUS_2D").replace("[1, 2]", "[1, 4]")
    assert tomllib.loads(made_of(ring))["fabric"]["torus"]["wrap"] is True


def test_every_format_is_recognised_by_itself_alone():
    for path in FOLDER.iterdir():
        text = path.read_text(encoding="utf-8")
        assert len([network for network in networks.NETWORKS if network.recognises(text)]) == 1, path
    assert networks.recognised('[machine]\nname = "x"\n') is None


def test_hostlists():
    assert hostlists.expand("a[01-03,7]b,c", "x") == ["a01b", "a02b", "a03b", "a7b", "c"]
    assert hostlists.expand("n[0-1]x[8-9]", "x") == ["n0x8", "n0x9", "n1x8", "n1x9"]
    for wrong in ("a[", "a]", "a[3-1]", "a[]", "a,,b", "a[1-2]]", "a[[1-2]]", "a[1-x]", "a b", "a\nrank 0=b"):
        with pytest.raises(FileError, match=r"is no (list of names|range of numbers)"):
            hostlists.expand(wrong, "x")
    for huge in ("a[0-999999999]", "a[0-999]b[0-999]c[0-999]", ",".join(["a[0-30000]"] * 3)):
        with pytest.raises(FileError, match="at most"):
            hostlists.expand(huge, "x")


def test_units_of_simgrid():
    rates = {"1kBps": 1e3, "8Kbps": 1e3, "1MiBps": 2**20, "2.5Gbps": 312.5e6, "1E3 MBps": 1e9, "1Tibps": 2**37}
    assert {text: simgrid_units.rate(text, "x") for text in rates} == rates
    times = {"0": 0, "0.0": 0, "1.5ms": 1.5e-3, "10ps": 1e-11, "2m": 120, "1E-4s": 1e-4}
    assert {text: float(simgrid_units.time(text, "x")) for text in times} == times
    for wrong in ("125", "1GB/s", "fast", "-1GBps", "1XBps", "1e99GBps", "0Bps", "", "1.2.3GBps"):
        with pytest.raises(FileError, match="write"):
            simgrid_units.rate(wrong, "x")
    for wrong in ("5", "1us2", "-1us", "1e9s", "soon"):
        with pytest.raises(FileError, match="write"):
            simgrid_units.time(wrong, "x")
    assert simgrid_units.radical("0-2,7", "x") == [0, 1, 2, 7]


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
    ("fat_tree.ibnetdiscover", "Ca\t1", "Rt\t1", ["is a router to another subnet", "take it out"]),
    ("fat_tree.ibnetdiscover", "vendid=0x2c9", "vendor", ["line 6", "is no line of ibnetdiscover"]),
    ("fat_tree.ibnetdiscover", "Switch\t65", "", ["line 10", "is no line"]),
    ("tree.topology.conf", "spine1 Switches=leaf[1-2]", "spine1 Switches=leaf[1-3]", ["leaf3", "no line describes"]),
    ("tree.topology.conf", "node[03,04]", "node[02,04]", ["node02 is below leaf1, too"]),
    ("tree.topology.conf", "SwitchName=leaf2", "SwitchName=leaf1", ["leaf1 stands in line 2, too"]),
    ("tree.topology.conf", "node[01-02]", "node[01-", ["line 2", "is no list of names"]),
    ("tree.topology.conf", "LinkSpeed", "Speed", ["unknown key `speed`", "linkspeed"]),
    ("tree.topology.conf", "SwitchName=spine", "RingName=spine", ["topology/ring is not described"]),
    ("tree.topology.conf", "spine2 Switches=leaf[1-2]", "s2 Switches=s3\nSwitchName=s3 Switches=s2", ["below itself"]),
    ("tree.topology.conf", "SwitchName=leaf", "SwitchName=tree", ["names switch leaf1, which no line describes"]),
    ("tree.topology.conf", "Nodes=node[01-02]", "Nodes=node[1-99999999]", ["at most 32,768"]),
    ("blocks.topology.conf", "BlockSizes=2,4", "BlockSizes=2,x", ["are no sizes"]),
    ("two_hosts.simgrid.xml", "125MBps", "125", ["line 7", "a rate has a unit", '"125MBps"']),
    ("two_hosts.simgrid.xml", "125MBps", "-125MBps", ["line 7", "not a rate"]),
    ("two_hosts.simgrid.xml", "100us", "100", ["a time has a unit"]),
    ("two_hosts.simgrid.xml", 'link_ctn id="1"', 'link_ctn id="3"', ["line 9", "unknown link `3`"]),
    ("two_hosts.simgrid.xml", ' direction="UP"', "", ["SPLITDUPLEX", 'direction="UP"']),
    ("two_hosts.simgrid.xml", 'dst="B"', 'dst="C"', ["a route of C"]),
    ("two_hosts.simgrid.xml", 'host id="B"', 'host id="A"', ["line 6", "two things are named A"]),
    ("two_hosts.simgrid.xml", 'link id="2"', 'link id="1"', ["two links are named 1"]),
    ("two_hosts.simgrid.xml", 'routing="Full"', 'routing="Vivaldi"', ["routing Vivaldi is not described"]),
    ("two_hosts.simgrid.xml", 'routing="Full"', 'routing="Fool"', ["unknown routing `Fool`", "Full"]),
    ("two_hosts.simgrid.xml", 'version="4.1"', 'version="3"', ["version 3", "simgrid_update_xml"]),
    ("two_hosts.simgrid.xml", "</platform>", "", ["not valid XML", "cut file"]),
    ("two_hosts.simgrid.xml", 'latency="100us"', 'latency="1us" latency_file="x"', ["latency_file", "take it out"]),
    ("two_hosts.simgrid.xml", '<host id="B" speed="1Gf"/>', '<peer id="B"/>', ["<peer>", "is not described"]),
    ("two_hosts.simgrid.xml", "<route ", '<route symmetrical="NO" ', ["no route from B to A"]),
    ("two_hosts.simgrid.xml", "<host ", "<hast ", ["line 5", "unknown element `hast`", "`host`"]),
    ("two_hosts.simgrid.xml", "platform SYSTEM", 'platform PUBLIC "x"', ["document type", "take it out"]),
    ("two_hosts.simgrid.xml", '.dtd">', '.dtd" [<!ENTITY a "b">]>', ["document type", "take it out"]),
    ("two_hosts.simgrid.xml", 'speed="1Gf"', 'speed="&a;"', ["entity"]),
    ("two_hosts.simgrid.xml", "SPLITDUPLEX", "WIFI", ["WIFI", "is not described"]),
    (
        "zones.simgrid.xml",
        '<router id="rb"/>',
        '<router id="rb"/><zone id="in" routing="Full"><host id="h" speed="1Gf"/></zone>',
        ["a route ends at zone in", "beside its cluster"],
    ),
    ("zones.simgrid.xml", 'gw_src="rb"', 'gw_src="rc"', ["gateway rc is no host or router of two"]),
    ("zones.simgrid.xml", '<zone id="three"', '<zone id="two"', ["two things are named two"]),
    ("zones.simgrid.xml", 'radical="0-1"', 'radical="0-999"', ["at most 512"]),
    ("zones.simgrid.xml", 'radical="0-1"', 'radical="1-0"', ["radical", '"0-15,20"']),
    ("fat_tree.simgrid.xml", "2;2,2;1,2;1,2", "2;2,3;1,2;1,2", ["describe 6 hosts, and radical lists 4"]),
    ("fat_tree.simgrid.xml", "2;2,2;1,2;1,2", "9;2", ["do not fit FAT_TREE", "2;4,4;1,2;1,2"]),
    ("fat_tree.simgrid.xml", "2;2,2;1,2;1,2", "99999;2", ["do not fit FAT_TREE"]),
    ("torus.simgrid.xml", "2,2", "2,999999", ["at most 32,768"]),
    ("torus.simgrid.xml", "2,2", "2,-2", ["do not fit TORUS"]),
    ("torus.simgrid.xml", 'topology="TORUS"', 'topology="TORUS" sharing_policy="SHARED"', ["sharing_policy SHARED"]),
    ("dragonfly.simgrid.xml", "2,2;1,1;2,1;1", "4,1;1,1;1,1;1", ["4 groups, and 1 routers"]),
    ("dragonfly.simgrid.xml", 'loopback_lat="0"', 'limiter_link="1GBps"', ["limiter_link", "take it out"]),
    ("flat.simgrid.xml", 'topology="FLAT"', 'topology="FLUT"', ["unknown topology `FLUT`"]),
    ("torus.astra.yml", "Ring, Ring", "Ring, Sprint", ["unknown topology `Sprint`", "FullyConnected"]),
    ("torus.astra.yml", "[ 4, 2 ]", "[ 4, 0 ]", ["npus_count is `0`"]),
    ("torus.astra.yml", "[ 4, 2 ]", "[ 4 ]", ["npus_count has 1 values, and topology 2"]),
    ("torus.astra.yml", "[ 4, 2 ]", "[ 4096, 4096 ]", ["at most 32,768"]),
    ("torus.astra.yml", "50.0", "-50.0", ["bandwidth is `-50.0`"]),
    ("torus.astra.yml", "50.0", "tbd", ["bandwidth is `tbd`"]),
    ("torus.astra.yml", "latency", "latencies", ["unknown key `latencies`", "latency"]),
    ("torus.astra.yml", "[ 500.0", "[ .inf", ["latency is `inf`"]),
    ("torus.astra.yml", "bandwidth:", "npus_count: [2]\nbandwidth:", ["key `npus_count` stands there twice"]),
    ("torus.astra.yml", "[ 50.0, 25.0 ]", "&a [ *a ]", ["an alias"]),
    ("torus.astra.yml", "[ 50.0, 25.0 ]", "[ 50.0", ["not valid YAML", "line"]),
    ("mixed.astra.yml", "[ 2, 3, 2 ]", "[ 2, 8192, 1 ]", ["at most 1,048,576"]),
    ("switch.ns3.txt", "6 2 6", "6 2 7", ["6 lines of links", "says 7", "cut file"]),
    ("switch.ns3.txt", "4 5\n", "4 9\n", ["line 2 names 1 switches"]),
    ("switch.ns3.txt", "0 4 400Gbps", "0 7 400Gbps", ["line 3", "0..5"]),
    ("switch.ns3.txt", "0 4 400Gbps", "0 4 0Gbps", ["line 3", "above 0"]),
    ("switch.ns3.txt", "0 4 400Gbps", "0 4 400GB", ["line 3", "is no link"]),
    ("galaxy.textproto", "WORMHOLE_B0", "GRAYSKULL", ["unknown arch `GRAYSKULL`", "BLACKHOLE"]),
    ("galaxy.textproto", "[ 2, 4 ]", "[ 2, 0 ]", ["dims is `[2, 0]`"]),
    ("galaxy.textproto", "[ 2, 4 ]", "[ 2, 99999 ]", ["dims"]),
    ("galaxy.textproto", "[ 2, 4 ]", "[ 1, 1 ]", ["a single chip"]),
    ("galaxy.textproto", "RING ]", "KNOT ]", ["an axis of type `KNOT`", "LINE or RING"]),
    ("galaxy.textproto", "count: 4", "count: 0", ["channels is `0`"]),
    ("galaxy.textproto", "channels", "chanels", ["unknown field `chanels`", "channels"]),
    ("galaxy.textproto", 'mesh_descriptor: "M0"', 'mesh_descriptor: "M1"', ["unknown mesh `M1`"]),
    ("galaxy.textproto", "mesh_id: 0 } }", "mesh_id: 0", ["cut file"]),
    ("galaxy.textproto", "top_level_instance", "#", ["`top_level_instance` stands there 0 times"]),
    ("pods.textproto", "src: 0 dst: 3", "src: 0 dst: 4", ["an express connection from 0 to 4"]),
    ("pods.textproto", "mesh_id: 0 device_id: 1", "mesh_id: 0 device_id: 9", ["has no device 9"]),
    ("pods.textproto", 'name: "POD"', 'name: "PAD"', ["line 20", "unknown graph `POD`", "`PAD`"]),
    ("pods.textproto", 'name: "POD"', 'name: "ALL"', ["two graphs are named ALL"]),
    ("pods.textproto", 'graph_descriptor: "POD"', 'graph_descriptor: "ALL"', ["graph ALL contains itself"]),
    ("ports.tt.yaml", "Graph:", "RelaxedGraph:", ["unknown key `RelaxedGraph`", "`Graph`"]),
    ("ports.tt.yaml", "W: 2", "W: 3", ["different numbers of ports"]),
    ("ports.tt.yaml", "[1, W1]", "[1, W2]", ["M1 has no W2"]),
    ("ports.tt.yaml", "board: B", "board: C", ["unknown board `C`"]),
    ("ports.tt.yaml", "id: 1", "id: 0", ["two meshes have the id 0"]),
    ("ports.tt.yaml", "[[0, E0], [1, W0]], [[0, E1], [1, W1]],", "[],", ["is no connection"]),
    ("rack.infragraph.yaml", 'component: "xpu[0:2]"', 'component: "xpu[0:3]"', ["goes beyond 2"]),
    ("rack.infragraph.yaml", 'component: "xpu[0:2]"', 'component: "gpu"', ["unknown component `gpu`"]),
    ("rack.infragraph.yaml", "link: eth", "link: ether", ["unknown link `ether`", "eth"]),
    ("rack.infragraph.yaml", "scheme: many2many", "scheme: ring", ["unknown scheme `ring`"]),
    ("rack.infragraph.yaml", "device: board, count: 2", "device: board, count: -2", ["count is `-2`"]),
    ("rack.infragraph.yaml", "device: switch", "device: swtch", ["unknown device `swtch`"]),
    (
        "rack.infragraph.yaml",
        "gigabits_per_second: 400 }",
        "gigabits_per_second: -4 }",
        ["gigabits_per_second is `-4`"],
    ),
    ("rack.infragraph.yaml", "choice: xpu", "choice: cpu", ["0 linked components of the type xpu"]),
    ("rack.infragraph.yaml", "name: nic, count: 1", "name: board, count: 1", ["board"]),
    ("rack.infragraph.yaml", "edges:\n- {", "connections:\n- {", ["draft of InfraGraph"]),
]


@pytest.mark.parametrize(("name", "old", "new", "parts"), WRONG, ids=lambda value: str(value)[:30])
def test_wrong_files_give_one_message(name, old, new, parts):
    good = source(name)
    assert old in good
    network = networks.recognised(good)
    with pytest.raises(UsageError) as caught:
        networks.machine_file(network, good.replace(old, new), "mine")
    message = str(caught.value)
    assert message.startswith("mine: ")
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_two_networks_in_one_file_are_refused():
    text = source("switch.ns3.txt").replace("4 5 400Gbps", "0 1 400Gbps")
    with pytest.raises(FileError, match="nothing joins node 2 and node 0"):
        made_of(text)


def test_control_characters_never_reach_a_message():
    with pytest.raises(FileError, match="line 2: a control character"):
        made_of(source("tree.topology.conf").replace("Nodes", "No\x1bdes", 1))


def test_without_pyyaml_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(FileError, match=r"need PyYAML, which is not installed; .*\[import\]"):
        made_of(source("torus.astra.yml"))


def test_yaml_is_bounded():
    with pytest.raises(FileError, match="at most 1,048,576 are read"):
        yaml_text.load("a: " + "x" * (1 << 20), "x")
    with pytest.raises(FileError, match="nested too deeply"):
        yaml_text.load("[" * 5000, "x")
    with pytest.raises(FileError, match="not valid YAML"):
        yaml_text.load("a: !!python/object/apply:os.system [ls]", "x")
    with pytest.raises(FileError, match="holds no table"):
        yaml_text.load("- a", "x")
