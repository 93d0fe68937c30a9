"""What hosts with GPUs say about themselves, as machine files: by hand, and bad input."""

import re
import tomllib
from pathlib import Path

import pytest

import linkwright as lw
from linkwright.base import registry
from linkwright.base.errors import FileError, LinkwrightError, UsageError
from linkwright.formats.discovery import fitted, hosts, importing, node_file
from linkwright.formats.discovery.fitted import Log
from linkwright.formats.discovery.node import Nic
from linkwright.formats.interop.importing import Imported
from linkwright.libraries import nccl
from linkwright.machines import Variant, gpus, load
from linkwright_cases import invoke

FOLDER = Path(__file__).parent.parent / "hosts"


def text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def node(name: str, gpu: str | None = None):
    host = hosts.recognised(text(name))
    return host.read(text(name), name, gpus.called(gpu) if gpu else None)


def imported(tmp_path, name: str, **how):
    path = tmp_path / "here.toml"
    path.write_text(importing.machine_file(text(name), name, name="here", **how), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("two_h100.nccl.xml", "nccl-topology"),
        ("line.rccl.xml", "nccl-topology"),
        ("quad.nvidia.txt", "nvidia-smi"),
        ("line.rocm.txt", "rocm-smi"),
        ("two_l40s.hwloc.xml", "hwloc"),
        ("tray.nccl.xml", "nccl-topology"),
        ("bridged.hwloc.xml", "hwloc"),
        ("cores.hwloc.xml", "hwloc"),
    ],
)
def test_a_format_is_recognised_by_one_importer(name, key):
    assert [host.key for host in hosts.HOSTS if host.recognises(text(name))] == [key]


def test_nccl_states_switches_ports_and_pcie():
    found = node("two_h100.nccl.xml")
    # Nine links to each of two chips, which one switch stands for.
    assert found.peers == {("GPU 0", "NVSwitch"): 18, ("GPU 1", "NVSwitch"): 18}
    # The bridge between switch and GPU has one thing below it, and adds nothing.
    assert {child: parent for child, (parent, _) in found.tree.items()} == {
        "PCIe 0": "CPU 0", "GPU 0": "PCIe 0", "NIC 0": "PCIe 0",
        "PCIe 1": "CPU 1", "GPU 1": "PCIe 1", "NIC 1": "PCIe 1",
    }  # fmt: skip
    assert found.nics[1].mbps == 400_000
    # 32 GT/s on 16 lanes, 128 of 130 bits.
    assert found.tree["GPU 0"][1].gbps == pytest.approx(32 * 16 / 8 * 128 / 130, rel=1e-3)


def test_the_imported_node_is_as_fast_as_its_links(tmp_path):
    machine = lw.machine(imported(tmp_path, "two_h100.nccl.xml"))
    schedule = lw.schedule("allreduce", "ring", ranks=2, size="1G")
    # One ring of two sends the vector once: 1 GiB over 18 x 25 GB/s x 0.82, and two start-ups of 3.4 us.
    expected_us = (2**30 / (18 * 25e9 * 0.82)) * 1e6
    assert lw.simulate(schedule, machine, path="simple").time_us == pytest.approx(expected_us, rel=0.02)
    cluster = lw.machine(imported(tmp_path, "two_h100.nccl.xml"), nodes=2)
    assert cluster.ranks == 4


def test_rccl_counts_links_of_each_pair(tmp_path):
    assert node("line.rccl.xml").peers == {("GPU 0", "GPU 1"): 4, ("GPU 1", "GPU 2"): 1}
    made = imported(tmp_path, "line.rccl.xml").read_text(encoding="utf-8")
    assert 'edges = ["GPU 1 - GPU 0"]' in made.split("[fabric.links.xgmi_4]")[1]
    assert "value = 200" in made.split("[fabric.links.xgmi_4]")[1]
    # Nothing goes by two links, and the class of the part says so.
    assert "edges = []" in made.split("[fabric.links.xgmi_2]")[1][:200]


def test_the_graph_of_nccl_counts_channels(tmp_path):
    path = imported(tmp_path, "two_h100.nccl.xml", graph=text("graph.nccl.xml"))
    numbers = {number["key"]: number for number in lw.machine(path).numbers()}
    assert (numbers["path.simple.channels"]["value"], numbers["path.simple.channels"]["status"]) == ("24", "measured")


def test_nvidia_smi_needs_the_gpu_where_links_do_not_tell():
    with pytest.raises(FileError, match="4 NVLinks between two GPUs, which several GPUs have; name yours"):
        node("quad.nvidia.txt")
    found = node("quad.nvidia.txt", "A100-SXM4-40GB")
    assert set(found.peers.values()) == {4}
    assert len(found.peers) == 6
    # PXB puts a port behind the switch of its GPU; NUMA nodes are in ascending order.
    assert found.tree["NIC 1"][0] == found.tree["GPU 0"][0]
    assert found.tree[found.tree["GPU 0"][0]][0] == "CPU 3"
    assert [nic.name for nic in found.nics] == ["mlx5_0", "hsn1"]


def test_rocm_smi_joins_pairs_of_weight_15():
    with pytest.raises(FileError, match="does not report the GPU model"):
        node("line.rocm.txt")
    found = node("line.rocm.txt", "AMD Instinct MI250X")
    assert found.peers == {("GPU 0", "GPU 1"): 1, ("GPU 1", "GPU 2"): 1}
    assert found.tree["GPU 2"][0] == "CPU 1"


def test_hwloc_finds_gpus_by_their_class_and_leaves_the_console_out():
    found = node("two_l40s.hwloc.xml")
    assert (found.gpus, found.device.part, found.nics[0].name) == (2, "pcie-gpu", "mlx5_0")
    assert found.tree["GPU 1"][0] == "PCIe 0"
    assert not found.peers


def test_hwloc_describes_a_host_without_gpus(tmp_path):
    path = imported(tmp_path, "cores.hwloc.xml")
    machine = lw.machine(path)
    assert [(level["name"], level["count"]) for level in tomllib.loads(path.read_text())["level"]] == [
        ("CPU", 2), ("L3", 2), ("core", 2),
    ]  # fmt: skip
    schedule = lw.schedule("broadcast", "linear", ranks=2, size="8")
    # Start 300 ns, the links' latencies, 8 B at 8 GB/s, 300 ns to match. Cores of one cache: 2 x 20 ns; of two
    # processors: 20 + 20 + 60 + 20 + 20.
    assert lw.simulate(schedule, machine, placement=[0, 1]).time_us == pytest.approx(0.300 + 0.040 + 0.001 + 0.300)
    assert lw.simulate(schedule, machine, placement=[0, 7]).time_us == pytest.approx(0.300 + 0.140 + 0.001 + 0.300)
    # The port of PCIe Gen4 x16 joins hosts; a port of Ethernet has no network of hosts.
    assert lw.machine(path, nodes=2).ranks == 16
    numbers = {number["key"]: number for number in machine.numbers()}
    assert (numbers["fabric.links.nic.bandwidth"]["value"], numbers["facts.l3_size"]["value"]) == ("31.508", "33554432")
    assert numbers["fabric.links.core.bandwidth"]["status"] == "assumed"


def test_hwloc_groups_cores_as_both_versions_nest_them():
    """Version 1 has cores inside NUMA nodes; where a cache or a memory divides nothing, it is left out."""
    core = '<object type="Core"><object type="PU"/></object>'
    inside = f'<object type="NUMANode"><object type="Cache" depth="3" cache_size="9">{core * 2}</object></object>'
    old = f'<topology><object type="Machine"><object type="Socket">{inside * 2}</object></object></topology>'
    near = f'<object type="Group"><object type="NUMANode"/>{core * 2}</object>'
    new = f'<topology><object type="Machine"><object type="Package">{near}{near}</object></object></topology>'
    uneven = f'<topology><object type="Machine"><object type="Package">{near}{core}</object></object></topology>'
    no_cores = '<topology><object type="Machine"><object type="PU"/><object type="PU"/></object></topology>'
    for text_, levels in (
        (old, [("memory", 2), ("core", 2)]), (new, [("memory", 2), ("core", 2)]), (uneven, [("core", 3)]),
        (no_cores, [("core", 2)]),
    ):  # fmt: skip
        made = tomllib.loads(importing.machine_file(text_, "x.xml", name="x"))
        assert [(level["name"], level["count"]) for level in made["level"]] == levels, text_


@pytest.mark.parametrize(
    ("old", "new", "how", "message"),
    [
        ("0300 [1a03:2000]", "0302 [10de:ffff]", {}, "line 34: unknown GPU 10de:ffff; known: V100"),
        ("", "", {"gpu": "H100"}, "lists no known GPU; omit --gpu"),
        ("", "", {"logs": [Log("a.log", "x")]}, "--fit a.log: cores.hwloc.xml describes no GPUs"),
        ("", "", {"rates": ["port=1Gb/s"]}, "--rate port=1Gb/s: cores.hwloc.xml does not describe a network"),
        ('"33554432"', '"-1"', {}, "line 9: cache_size='-1' is not in bytes"),
        ('"Machine"', '"Core"', {}, "lists 1 core; a machine"),
    ],
)
def test_a_host_without_gpus_is_refused(old, new, how, message):
    changed = text("cores.hwloc.xml").replace(old, new) if old else text("cores.hwloc.xml")
    with pytest.raises(LinkwrightError, match=re.escape(message)):
        importing.machine_file(changed, "cores.hwloc.xml", name="x", **how)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("two_h100.nccl.xml", "<system", '<!DOCTYPE a [<!ENTITY b "c">]>\n<system', "document type"),
        ("two_h100.nccl.xml", "</system>", "", "not valid XML"),
        ("two_h100.nccl.xml", "0000:8a:00.0", "0000:0a:00.0", "GPU 1 has bus id 0000:0a:00.0, as GPU 0 has"),
        ("two_h100.nccl.xml", 'sm="90"', 'sm="61"', "unknown GPU sm61; known: V100"),
        ("two_h100.nccl.xml", 'count="9"', 'count="99"', "198 links between GPU 0 and NVSwitch"),
        ("two_h100.nccl.xml", 'count="9"', 'count="x"', "count='x' is not a whole number"),
        ("two_h100.nccl.xml", "32.0 GT/s", "31.0 GT/s", "does not belong to a PCIe generation"),
        (
            "line.rccl.xml",
            '<xgmi target="0000:c1:00.0" count="4"',
            '<xgmi target="0000:c1:00.0" count="3"',
            "one is down",
        ),
        ("line.rccl.xml", 'target="0000:c9:00.0"', 'target="0000:ff:00.0"', "which is not in the file"),
        ("quad.nvidia.txt", "GPU3\tNV4", "GPU3\tNV2", "GPU0 to GPU3 is NV4, and GPU3 to GPU0 is NV2"),
        ("quad.nvidia.txt", "NIC1\tPXB", "NICx\tPXB", "is not a row of the matrix, whose columns are GPU0 to NIC1"),
        ("quad.nvidia.txt", "GPU2\tNV4\tNV4", "GPU2\tNV4\tNW4", "`NW4` is not a connection"),
        ("line.rocm.txt", "GPU2   30", "GPU7   30", "no row of 3 GPUs"),
        ("two_l40s.hwloc.xml", "0000:03:00.0", "0000:02:00.0", "two GPUs with bus id"),
        ("two_l40s.hwloc.xml", "[10de:26b9]", "[10de:0000]", "line 9: unknown GPU 10de:0000; known: V100"),
        ("two_l40s.hwloc.xml", '"hwloc2.dtd">', '"hwloc2.dtd" [<!ENTITY b "c">]>', "document type"),
        ("two_l40s.hwloc.xml", 'version="2.0"', 'version="&b;"', "not valid XML"),
        ("two_l40s.hwloc.xml", "</topology>", "", "not valid XML"),
        (
            "line.rccl.xml",
            'target="0000:c9:00.0" count="1" tclass="0x038000"',
            'target="0000:ff:00.0" count="1"',
            "GPU 1 has a link to 0000:ff:00.0, which is not in the file; complete",
        ),
        ("tray.nccl.xml", 'bw="45000"', 'bw="0"', "bw=0, count=5; an existing link"),
        ("tray.nccl.xml", "0009:06:00.0", "0008:06:00.0", "as GPU 0 has; are they parts of one"),
        ("line.rocm.txt", "GPU1   XGMI", "GPU1   PCIE", "GPU0 to GPU1 is XGMI, and back PCIE"),
        ("line.rocm.txt", "= Weight between", "= Hops between", "has no table `Weight between two GPUs`"),
    ],
)
def test_bad_input_is_refused(name, old, new, message):
    changed = text(name).replace(old, new)
    assert changed != text(name)
    gpu = "A100" if "nvidia" in name else "MI250X" if "rocm" in name else None
    with pytest.raises(LinkwrightError, match=message.replace("[", r"\[").replace("?", r"\?")) as error:
        importing.machine_file(changed, name, name="here", gpu=gpu)
    assert "\n" not in str(error.value)


def test_one_link_down_at_a_switch_is_said():
    changed = text("two_h100.nccl.xml").replace('target="0000:c1:00.0" count="9"', 'target="0000:c1:00.0" count="8"', 1)
    with pytest.raises(FileError, match="GPU 0 has 17 links to the switch, others have 18; is one down"):
        importing.machine_file(changed, "x", name="here")


def test_the_verb_writes_a_file_and_never_over_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = invoke("machines", "import", str(FOLDER / "two_h100.nccl.xml"))
    assert done.status == 0
    assert "2 ranks" in done.out
    assert "--on ./here.toml" in done.out
    again = invoke("machines", "import", str(FOLDER / "two_h100.nccl.xml"))
    assert again.status == 2
    assert "exists already" in again.err
    assert str(FOLDER) not in (tmp_path / "here.toml").read_text(encoding="utf-8")


def test_what_is_not_known_is_refused_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("hello", encoding="utf-8")
    done = invoke("machines", "import", "a.txt")
    assert (done.status, "in no format that is known" in done.err) == (2, True)
    assert invoke("machines", "import", "a.txt", "--as", "hwlock").err.count("did you mean") == 1
    assert "letters, digits" in invoke("machines", "import", "a.txt", "--name", "../x").err
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_gpu_belongs_to_hosts_only():
    tree = (FOLDER.parent / "networks" / "tree.topology.conf").read_text(encoding="utf-8")
    with pytest.raises(UsageError, match="does not describe a host with GPUs"):
        importing.machine_file(tree, "x", name="here", gpu="H100")


def test_devices_of_the_table_have_parts():
    assert {device.part for device in gpus.known()} <= set(registry.keys("parts"))


CLOUD = """\
<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="AuthenticAMD">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="16 GT/s" link_width="16">
      <pci busid="0001:00:00.0" class="0x030200" vendor="0x10de" device="0x20b2" link_speed="16 GT/s" link_width="16"/>
      <pci busid="0101:00:00.0" class="0x020700" link_speed="16 GT/s" link_width="16"/>
    </pci>
    <pci busid="0002:00:00.0" class="0x030200" vendor="0x10de" device="0x20b2" link_speed="16 GT/s" link_width="16"/>
  </cpu>
</system>
"""


def test_files_of_clouds_have_devices_by_their_class():
    found = hosts.recognised(CLOUD).read(CLOUD, "cloud.xml", None)
    assert (found.gpus, found.device.name, len(found.nics)) == (2, "A100", 1)
    assert found.tree["GPU 0"][0] == found.tree["NIC 0"][0] == "PCIe 0"
    # NCCL finds the NVLinks when it runs: those of a board with switches.
    assert found.peers == {("GPU 0", "NVSwitch"): 12, ("GPU 1", "NVSwitch"): 12}
    unnamed = CLOUD.replace('vendor="0x10de" device="0x20b2" ', "")
    with pytest.raises(FileError, match=r"names no GPU; known: V100, "):
        hosts.recognised(unnamed).read(unnamed, "cloud.xml", None)
    assert hosts.recognised(unnamed).read(unnamed, "cloud.xml", gpus.called("H100")).device.name == "H100"
    with pytest.raises(FileError, match="holds no <gpu> and no device of a GPU's PCI class"):
        hosts.recognised(CLOUD).read(CLOUD.replace("0x0302", "0x0106"), "cloud.xml", None)


def test_a_link_to_itself_joins_nothing():
    own = '<xgmi target="0000:c1:00.0" count="2" tclass="0x038000"/>'
    changed = text("line.rccl.xml").replace('<xgmi target="0000:c5:00.0"', f'{own}<xgmi target="0000:c5:00.0"', 1)
    assert changed != text("line.rccl.xml")
    assert hosts.recognised(changed).read(changed, "x", None).peers == node("line.rccl.xml").peers


def test_the_declared_encoding_of_a_text_does_not_matter():
    declared = '<?xml version="1.0" encoding="UTF--1.5"?>\n' + text("two_h100.nccl.xml")
    assert hosts.recognised(declared).read(declared, "x", None).gpus == 2


HEAD = """\
# Collective test starting: all_reduce_perf
#   Rank  0 Group  0
#   Rank  1 Group  0
#       size         count      type   redop    root     time   algbw   busbw #wrong
"""
END = "# Out of bounds values : 0 OK\n"


def log_of(times, ranks=2):
    """What all_reduce_perf prints on one or two GPUs."""
    head = HEAD if ranks == 2 else HEAD.replace("#   Rank  1 Group  0\n", "")
    rates = {size: size / time / 1e3 for size, time in times.items()}
    bus = 2 * (ranks - 1) / ranks
    rows = [f"{n} {n // 4} float sum -1 {t} {rates[n]:.2f} {bus * rates[n]:.2f} 0\n" for n, t in times.items()]
    return head + "".join(rows) + END


def fitted_numbers(tmp_path, log):
    return {
        number["key"]: number for number in lw.machine(imported(tmp_path, "two_h100.nccl.xml", logs=[log])).numbers()
    }


def test_start_ups_and_shares_are_fitted_to_a_log(tmp_path):
    numbers = fitted_numbers(tmp_path, Log("mine.log", log_of({8: 9.5, 1 << 30: 3100})))
    share = numbers["fabric.links.nvlink.share"]
    # Two GPUs exchange halves: each sends the vector once in all, 1 GiB over 450 GB/s. What the library's threads and
    # start-ups add to that is not scaled: it is what the unfitted machine takes beyond its links.
    unfitted = lw.machine(imported(tmp_path, "two_h100.nccl.xml"))
    row = Imported(1, "allreduce", "nccl", 2, 2**30, "f32", "sum", 0, "time", 1.0, "nccl-tests", "x")
    was = float({n["key"]: n for n in unfitted.numbers()}["fabric.links.nvlink.share"]["value"])
    added_s = fitted._ns(unfitted, row) / 1e9 - 2**30 / (450e9 * was)
    assert float(share["value"]) == pytest.approx(2**30 / (3100e-6 - added_s) / 450e9, rel=0.03)
    assert (share["status"], "mine.log: allreduce of 1 GiB in 3100 us" in share["source"]) == ("fitted", True)
    # One factor for the start-ups of all protocols.
    unfitted = {n["key"]: n for n in lw.machine(imported(tmp_path, "two_h100.nccl.xml")).numbers()}
    starts = [f"fabric.transport.nvlink_{protocol}.start" for protocol in ("simple", "ll", "ll128")]
    factors = [float(numbers[key]["value"]) / float(unfitted[key]["value"]) for key in starts]
    assert factors == pytest.approx([factors[0]] * 3, rel=1e-2)
    assert numbers["fabric.transport.nvlink_copy.start"]["status"] != "fitted"


def test_the_fitted_node_takes_as_long_as_the_log_says(tmp_path):
    machine = lw.machine(
        imported(tmp_path, "two_h100.nccl.xml", logs=[Log("mine.log", log_of({8: 9.5, 1 << 30: 3100}))])
    )
    row = Imported(1, "allreduce", "nccl", 2, 8, "f32", "sum", 0, "time", 9500.0, "nccl-tests", "x")
    assert fitted._ns(machine, row) == pytest.approx(9500, rel=0.03)
    # The library starts first; the rest are steps.
    launch = {n["key"]: n["value"] for n in machine.numbers()}["library.launch"]
    assert fitted._ns(machine, row) > 1e3 * float(launch)


def test_a_log_without_large_sizes_leaves_the_share(tmp_path):
    numbers = fitted_numbers(tmp_path, Log("mine.log", log_of({8: 9.5})))
    assert numbers["fabric.links.nvlink.share"]["status"] == "documented"
    assert numbers["fabric.transport.nvlink_ll.start"]["status"] == "fitted"


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (log_of({8: 9.5, 1 << 30: 2000}), "is faster than its nvlink links can be"),
        (log_of({8: 9.5, 1 << 30: 6200}), "would call a slow node healthy; see `linkwright explain mine.log`"),
        (log_of({8: 9.5, 1 << 30: 3100}, ranks=1), "one rank has nobody to send to"),
        ("# OSU MPI Latency Test v7.3\n# Size          Latency (us)\n8    1.46\n", "holds none of the collectives"),
        (
            log_of({131072: 9.5}),
            "determines neither start-ups nor rates",
        ),
    ],
)  # fmt: skip
def test_a_log_that_does_not_fit_writes_nothing(tmp_path, monkeypatch, log, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.log").write_text(log, encoding="utf-8")
    done = invoke("machines", "import", str(FOLDER / "two_h100.nccl.xml"), "--fit", "mine.log")
    assert done.status == 2
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "here.toml").exists()


def test_an_imported_node_states_its_library(tmp_path):
    machine = lw.machine(imported(tmp_path, "two_h100.nccl.xml"))
    assert machine.library()["hardware"] == {"gpu": "sm90", "host": "intel"}
    # Its switch combines, which an L40S board has none of.
    assert "nvls" in machine.library()["modes"]
    assert lw.machine(imported(tmp_path, "two_l40s.hwloc.xml")).library()["hardware"]["gpu"] == "sm89"
    amd = lw.machine(imported(tmp_path, "line.rccl.xml"))
    assert (amd.library()["name"], amd.library()["hardware"]) == ("rccl", {"gpu": "gfx90a", "host": "amd"})
    done = invoke("simulate", "allreduce", "--on", str(tmp_path / "here.toml"), "--sizes", "1M")
    assert (done.status, "rccl-2.22" in done.out) == (0, True)


def test_hosts_of_one_nvlink_domain_are_one_machine(tmp_path):
    found = node("tray.nccl.xml")
    # Bus ids repeat from host to host; the socket below each processor of a host is one port.
    assert found.peers == {(f"GPU {i}", "NVSwitch"): 18 for i in range(3)}
    assert [found.tree[f"GPU {i}"][0] for i in range(3)] == ["CPU 0", "CPU 1", "CPU 2"]
    assert [nic.name for nic in found.nics] == ["mlx5_0", "eth0", "eth0"]
    # Five links of 45 GB/s to the processor, where the file has NVLink-C2C.
    assert found.tree["GPU 0"][1].gbps == 225
    made = imported(tmp_path, "tray.nccl.xml").read_text(encoding="utf-8")
    # Only the processors of one host are joined; no port has GPUDirect.
    assert 'edges = ["CPU 1 - CPU 0"]' in made.split("[fabric.links.socket]")[1].split("bandwidth")[0]
    assert 'host = "arm"' in made
    assert ",gpudirect=0" in made
    assert lw.machine(imported(tmp_path, "tray.nccl.xml"), nodes=2).ranks == 6


def test_hwloc_states_links_by_their_bandwidth():
    found = node("bridged.hwloc.xml")
    # 100 and 50 GB/s at 25 GB/s a link; links of the processor are left out.
    assert found.peers == {("GPU 0", "GPU 1"): 4, ("GPU 1", "GPU 2"): 2}
    switched = text("bridged.hwloc.xml").replace("Package:2", "PCIDev:13").replace("25000 0 0 1000000", "25000 0 0 0")
    changed = switched.replace("100000 1000000 50000 0", "0 1000000 0 25000").replace(
        "0 50000 1000000 0", "0 0 1000000 25000"
    )
    changed = changed.replace("1000000 100000 0 25000", "1000000 0 0 25000").replace(
        "25000 0 0 0", "25000 25000 25000 0"
    )
    # A device that is no GPU is a chip of a switch, even if its class is hidden.
    assert hosts.recognised(changed).read(changed, "x", None).peers == {(f"GPU {i}", "NVSwitch"): 1 for i in range(3)}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1000000 100000 0", "1000000 50000 0", "GPU 0 to GPU 1 is 50000 MB/s, and back 100000; is a link down"),
        ("OSDev:22", "OSDev:99", "the file lacks object OSDev:99"),
        ("OSDev:22", "", "16 numbers for 3 objects"),
        ("50000", "36000", "36000 MB/s is not a whole number of links of A100, 25 GB/s each"),
        ("100000", "1e5", "cut file"),
    ],
)
def test_a_matrix_that_cannot_be_is_refused(old, new, message):
    changed = text("bridged.hwloc.xml").replace(old, new)
    assert changed != text("bridged.hwloc.xml")
    with pytest.raises(FileError, match=message):
        hosts.recognised(changed).read(changed, "x", None)


@pytest.mark.parametrize(
    ("pci", "gpu", "links"),
    [
        ("0x20b2", None, 12),  # A100 on a board
        ("0x20b5", None, None),  # A100 as a card: no switch
        ("0x20f3", None, 8),  # A800
        ("0x2342", None, None),  # GH200: boards without switches
        ("0x20b5", "A100", None),
    ],
)
def test_switches_are_those_of_boards(pci, gpu, links):
    told = CLOUD.replace("0x20b2", pci)
    found = hosts.recognised(told).read(told, "cloud.xml", gpus.called(gpu) if gpu else None)
    assert found.peers == ({(f"GPU {i}", "NVSwitch"): links for i in range(2)} if links else {})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["graph.nccl.xml"],
            "is NCCL's graph, which does not describe a host; give the topology of the same run first",
        ),
        (["two_h100.nccl.xml", "two_l40s.hwloc.xml"], "two_l40s.hwloc.xml: line 2: a document type"),
        (["two_h100.nccl.xml", "--collective", "allreduce"], "give the log with --fit"),
        (["two_h100.nccl.xml", "--gpu", "B300"], "two_h100.nccl.xml states that its GPUs are sm90"),
        (["two_l40s.hwloc.xml", "--gpu", "H100"], "states that its GPUs are L40S"),
    ],
)
def test_what_contradicts_itself_writes_nothing(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    done = invoke("machines", "import", *(str(FOLDER / word) if ".xml" in word else word for word in arguments))
    assert (done.status, message in done.err, done.err.count("\n")) == (2, True, 1), done.err
    assert not list(tmp_path.iterdir())


def test_an_empty_file_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text(" \n", encoding="utf-8")
    assert "a.txt: is empty" in invoke("machines", "import", "a.txt").err


def test_the_library_sees_classes_of_links_of_every_name(tmp_path):
    machine = lw.machine(imported(tmp_path, "line.rccl.xml"))
    # Classes `xgmi_4` and `xgmi`: four links from GPU 0 to 1, one from 1 to 2, none from 0 to 2.
    joined = nccl.hardware(machine, (0, 1, 2)).joined
    assert joined == ((0, 4, 0), (4, 0, 1), (0, 1, 0))


@pytest.mark.parametrize(("log", "small_us"), [("two.nccl-tests.log", 9.55), ("two.osu.log", 11.02)])
def test_logs_as_they_are_printed_are_read(tmp_path, log, small_us):
    # With what the library logs between the lines, and two groups of columns.
    numbers = fitted_numbers(tmp_path, Log(log, text(log)))
    assert f"{log}: allreduce of 8 B in {small_us:g} us" in numbers["fabric.transport.nvlink_ll.start"]["source"]
    assert numbers["fabric.links.nvlink.share"]["status"] == "fitted"


def test_links_of_processors_are_left_out():
    changed = text("two_h100.nccl.xml").replace(
        "<nvlink ", '<nvlink target="0000:00:01.0" count="2" tclass="0x068001"/><nvlink ', 1
    )  # fmt: skip
    assert hosts.recognised(changed).read(changed, "x", None).peers == node("two_h100.nccl.xml").peers


@pytest.mark.parametrize(
    ("name", "mbps", "direct", "network"),
    [
        ("mlx5_0", 400_000, True, "ndr-fat-tree"),
        ("ibp12s0", 200_000, True, "hdr-fat-tree"),
        ("mlx5_0", 100_000, False, "ndr-fat-tree,rate=100,gpudirect=0"),
        ("mlx5_0", None, True, "ndr-fat-tree"),
        ("bnxt_re0", 400_000, True, "roce-400"),
        ("rocep65s0f0", 200_000, False, "roce-400,rate=200,gpudirect=0"),
        ("hsn0", 200_000, True, "slingshot-11"),
        ("rdmap0", 100_000, True, "efa-p5"),
        ("eth0", 25_000, False, "sockets,rate=25"),
        ("enp1s0", None, False, "sockets"),
    ],
)
def test_the_network_is_guessed_by_the_ports(name, mbps, direct, network):
    found = node("two_h100.nccl.xml")
    found.nics = [Nic(name, mbps, direct)] * 2
    made = node_file.text(found, "x")
    assert f'network = "{network}"' in made
    assert load("hgx-h100", Variant(2, network)).ranks == 16
