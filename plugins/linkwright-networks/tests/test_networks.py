"""Networks of simulators as machines: what a message costs by hand, what is refused, and how; mutants."""

import shutil
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from linkwright.base.errors import FileError
from linkwright.formats.discovery import networks
from linkwright_cases import invoke
from linkwright_networks import simgrid_units, yaml_text
from network_cases import SIZE, Folder, runs_once_imported, time_us

ROOT = Path(__file__).parents[1]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
# Not by `networks.find`, which would turn a bug into a message.
FORMATS = [entry.load() for entry in entry_points(group=networks.GROUP) if entry.name in DECLARED[networks.GROUP]]
GIB = 2**30
FILES = Folder(ROOT / "tests" / "networks", FORMATS)
machine = FILES.machine


def test_the_package_is_installed_as_it_is_declared():
    assert {network.key for network in FORMATS} == set(DECLARED[networks.GROUP]) == set(networks.PACKAGED)


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
    split = machine("two_hosts.simgrid.xml", ('<link_ctn id="1"/>', ""))
    assert time_us(split, (0, 1), (1, 0)) == pytest.approx(200 + 8_000, rel=1e-5)


def test_a_fatpipe_limits_each_message_alone():
    fatpipe = ('latency="100us"', 'latency="100us" sharing_policy="FATPIPE"')
    pipe = machine("two_hosts.simgrid.xml", fatpipe, ('bandwidth="125MBps"', 'bandwidth="50MBps"'))
    assert time_us(pipe, (0, 1), (1, 0)) == pytest.approx(300 + 20_000, rel=1e-5)


def test_a_backbone_carries_all_messages_of_a_cluster():
    backbone = (' bw="1GBps"', ' bw="1GBps" bb_bw="1GBps" bb_lat="3us"')
    shared = machine("flat.simgrid.xml", backbone)
    # Two messages of 1 MB through 1 GB/s; the private links meet in none.
    assert time_us(shared, (0, 1), (2, 3)) == pytest.approx(2 + 3 + 2000, rel=1e-5)
    policy = ('bb_bw="1GBps"', 'bb_bw="0.5GBps" bb_sharing_policy="FATPIPE"')
    fatpipe = machine("flat.simgrid.xml", backbone, policy)
    assert time_us(fatpipe, (0, 1), (2, 3)) == pytest.approx(5 + 2000, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "latency_us", "rate"), [("fat_tree.simgrid.xml", 4, 1e9), ("switch.ns3.txt", 2, 50e9)]
)
def test_messages_spread_over_spines(name, latency_us, rate):
    assert time_us(machine(name), (0, 2), (1, 3)) == pytest.approx(latency_us + SIZE / rate * 1e6, rel=1e-5)


def test_tori_are_tori():
    torus = tomllib.loads(FILES.made_of(FILES.texts["torus.astra.yml"]))["fabric"]
    assert (torus["torus"]["y"]["latency"]["value"], "links" in torus) == (1000, False)


def test_older_yaml_of_meshes_counts_boards():
    text = FILES.texts["ports.tt.yaml"].split("Mesh:")[0]
    boards = text + "Mesh: [ { id: 0, board: B, topology: [2, 1], host_ranks: [[0], [1]] } ]\nGraph: []\n"
    assert tomllib.loads(FILES.made_of(boards))["endpoints"]["grid"] == [2, 2]
    ring = boards.replace("type: Mesh", "type: TORUS_2D").replace("[1, 2]", "[1, 4]")
    assert tomllib.loads(FILES.made_of(ring))["fabric"]["torus"]["wrap"] is True


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


# File, what is changed in it, and parts of the message.
WRONG = [
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
    ("torus.astra.yml", "[ 500.0", "[ .inf", ["`.inf`: write a number in decimals"]),
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
    FILES.refuses(name, old, new, parts)


def test_every_file_becomes_a_machine_that_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        runs_once_imported(name)


def test_a_torus_is_no_tree_of_nodes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "tests" / "networks" / "galaxy.textproto", tmp_path)
    refused = invoke("machines", "import", "galaxy.textproto", "--node", "hgx-h100")
    assert (refused.status, "lists no tree of switches" in refused.err) == (2, True)
    assert [file.name for file in tmp_path.iterdir()] == ["galaxy.textproto"]


def test_two_networks_in_one_file_are_refused():
    with pytest.raises(FileError, match="node 2 and node 0 are not connected"):
        machine("switch.ns3.txt", ("4 5 400Gbps", "0 1 400Gbps"))


def test_yaml_is_bounded():
    with pytest.raises(FileError, match="at most 1,048,576 are read"):
        yaml_text.load("a: " + "x" * (1 << 20), "x")
    with pytest.raises(FileError, match="nested too deeply"):
        yaml_text.load("[" * 5000, "x")
    with pytest.raises(FileError, match="not valid YAML"):
        yaml_text.load("a: !!python/object/apply:os.system [ls]", "x")
    with pytest.raises(FileError, match="holds no table"):
        yaml_text.load("- a", "x")


@pytest.mark.parametrize("key", networks.PACKAGED)
def test_mutants(key):
    FILES.judge_mutants(key)
