"""Lines of the library's topology, and links that were measured, state causes or exclude them."""

import random
from dataclasses import replace

import pytest

from linkwright.advise.explain import links, remarks
from linkwright.advise.explain import log as logs
from linkwright.advise.explain.hypotheses import cases
from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts, LogRow, LogTable, Source, read_source
from linkwright.formats.logs.facts import Gathered
from linkwright.formats.logs.topology import ChannelSearch, SeenTopology
from linkwright.machines import Variant
from linkwright_cases import invoke
from log_cases import nccl, pairs, perftest

NODE = System("hgx-h100", 1, 8, None, "nccl-2.27", "allreduce")
PAIR = System("hgx-h100", 2, 8, "ndr-fat-tree", "nccl-2.27", "allreduce")
SIZES = [1 << at for at in range(16, 31, 2)]
LINES = [
    "n0:4:7 [0] NCCL INFO Pattern 4, crossNic 1, nChannels 12, bw 30.000000/30.000000, type NVL/PIX, sameChannels 1",
    "n0:4:7 [0] NCCL INFO  0 : NET/0 GPU/0 GPU/1 NET/0",
    "n0:4:7 [0] NCCL INFO  1 : NET/0-a GPU/0-a000 GPU/0-b000 NET/0-a",
    "n0:4:7 [0] NCCL INFO Channel 00/24 :    0   1   2   3",
    "n0:4:7 [0] NCCL INFO Trees [0] 1/2/-1->0->-1 [1] 1/-1/-1->0->2",
    "n0:4:7 [0] NCCL INFO + NET[25.0] - NET/0 (1d0f/1/25.000000)",
    "n0:4:7 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR 1",
    "n0:4:7 [0] NCCL INFO 24 coll channels, 0 collnet channels, 16 nvls channels, 32 p2p channels",
    'n0:4:7 [0] RCCL WARN Missing "iommu=pt" from kernel command line which can lead to system instablity or hang!',
]


def read(*lines):
    gathered = Gathered()
    assert [line for line in lines if not gathered.see(line)] == []
    return gathered.facts


def test_lines_of_a_topology_are_read():
    found = read(*LINES)
    topology = found.topology
    assert topology.searches == {"ring": ChannelSearch(12, 30.0, "NVL", "PIX", True)}
    assert topology.rings == {0: (0, 1, 2, 3)}
    assert topology.parents == {0: {0: -1}, 1: {0: 2}}
    assert (topology.port, len(topology.warnings)) == (25.0, 1)
    assert found.ports_used == {"n0": {0, 10}}
    assert (found.channels, found.switch_channels, found.gpudirect) == (24, 16, True)


@pytest.mark.parametrize(
    ("said", "network"),
    [
        (["Using network IB", "NET/Socket : Using [0]eth0:10.0.0.1<0>"], "IB"),
        (["NET/IB : No device found.", "NET/Socket : Using [0]eth0:10.0.0.1<0>"], "Socket"),
        (["NET/IB : Using [0]mlx5_0:1/IB ; OOB ib0:10.0.0.1<0>", "NET/Socket : Using [0]eth0:10.0.0.1<0>"], None),
        (["NET/OFI Selected Provider is efa", "Using network AWS Libfabric"], "efa"),
        (["NET/OFI Selected Provider is tcp;ofi_rxm"], "Socket"),
        (["misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]", "Using network AWS Libfabric"],
         "AWS Libfabric"),
        (["Assigned NET plugin Socket to comm"], "Socket"),
    ],
)  # fmt: skip
def test_a_network_goes_by_the_words_of_each_version(said, network):
    assert read(*(f"n0:1:2 [0] NCCL INFO {line}" for line in said)).network == network


def test_the_slowest_search_of_a_pattern_counts():
    """Ranks agree on the least that any of them has found. RCCL calls the GPUs' links XGMI, and NCCL 2.7 `speed`."""
    text = "NCCL INFO Pattern 4, crossNic 0, nChannels {}, speed {}/{}, type XGMI/SYS, sameChannels 0"
    ring = read(text.format(8, 20, 20), text.format(4, 20, 20), text.format(6, 20, 20)).topology.searches["ring"]
    assert (ring.channels, ring.way, ring.network_way) == (4, "XGMI", "SYS")


@pytest.mark.parametrize(
    ("ring", "parents", "found"),
    [  # ranks 0, 1 on one node, 2, 3 on another: 0 1 | 2 3 | is two passages, 0 | 2 | 1 | 3 | four
        ({0: (0, 1, 2, 3)}, {}, (2, "ring")),
        ({0: (0, 2, 1, 3)}, {}, (4, "ring")),
        ({0: (0, 1, 2, 9)}, {}, (0, "")),  # a rank that is not listed
        ({}, {0: {0: -1, 1: 0, 2: 0, 3: 2}}, (1, "tree")),
        ({}, {0: {0: -1, 1: 2, 2: 0, 3: 1}}, (3, "tree")),
        ({}, {0: {0: -1, 1: 0}}, (0, "")),  # some ranks alone
    ],
)
def test_passages_between_nodes_are_counted(ring, parents, found):
    topology = SeenTopology(rings=ring, parents=parents)
    assert topology.crossings({0: "a", 1: "a", 2: "b", 3: "b"}) == found


def test_a_ring_whose_ranks_are_all_of_other_nodes_is_stated():
    """Eight ranks on each of two nodes, in turn: 16 passages where two suffice, so ports have an eighth."""
    hosts = {rank: (f"n{rank % 2}", 1) for rank in range(16)}
    facts = Facts(topology=SeenTopology(rings={0: tuple(range(16))}), hosts_of=hosts)
    (case,) = [case for case in cases(PAIR, facts) if case.kind == "slow network"]
    assert case.stated == "a ring passes from node to node 16 times, and 2 suffice"
    assert case.system.degrade == (("port", 1 / 8),)


def explained(system, facts, healthy, factor=1.0):
    rows = tuple(LogRow(size, system.time(size).time_us * factor, at) for at, size in enumerate(SIZES, 1))
    table = LogTable("nccl-tests", "allreduce", system.ranks, system.nodes, "float", "sum", None, rows)
    return logs.explained(table, healthy, "", facts)


def searched(way="NVL", far="PIX"):
    return Facts(topology=SeenTopology(searches={"ring": ChannelSearch(12, 30.0, way, far, False)}))


@pytest.mark.parametrize(
    ("healthy", "fault", "facts", "kind", "says"),
    [
        (NODE, NODE.lacking("nvlink"), searched(way="SYS"), "no links", "rings go over SYS inside a node"),
        (PAIR, PAIR.lacking("nic"), searched(far="PHB"), "ACS", "rings reach NICs by PHB, where PIX is usual"),
        (PAIR, PAIR.slowed("port", 0.5), Facts(topology=SeenTopology(ports=[25.0] * 8)), "slow network",
         "the library sees ports of 25 GB/s, where this network has 50"),
        (PAIR, PAIR.on("gpudirect=0"), Facts(gpudirect=False), "no GPUDirect", "GPU Direct RDMA Disabled"),
        (PAIR, PAIR.slowed("port", 0.4), Facts(measured={"port": (0.4, 0.4)}), "slow network",
         "ports were measured at 40% of their rate"),
        (NODE, NODE.slowed("nvlink", 0.3), Facts(measured={"nvlink": (0.3, 0.3)}), "links down",
         "pairs of GPUs were measured at 30% of the links' rate"),
    ],
)  # fmt: skip
def test_what_a_topology_or_a_measured_link_states_stands_first(healthy, fault, facts, kind, says):
    first = explained(fault, facts, healthy, 1.05).suspects[0].cases[0]
    assert (first.kind, first.stated) == (kind, says)


def test_few_channels_are_counted():
    """NVLS has 16 channels on H100; four of them are a quarter, and rings' channels do not count for it."""
    found = [one for one in cases(NODE, Facts(channels=24, switch_channels=4)) if one.kind == "few channels"]
    assert [one.stated for one in found] == ["4 channels, and 16 are usual here"]
    assert not [one for one in cases(NODE, Facts(channels=24, switch_channels=16)) if one.kind == "few channels"]


@pytest.mark.parametrize(
    ("system", "facts", "gone"),
    [
        (NODE, searched(), "no links"),
        (PAIR, Facts(measured={"port": (0.97, 0.95)}), "slow network"),
        (NODE, Facts(measured={"nvlink": (0.9, 0.85)}), "links down"),
        (NODE, Facts(measured={"nvlink": (0.9, 0.85)}), "slow rank"),
        (NODE, Facts(measured={"nvlink": (0.9, 0.85)}), "no links"),
    ],
)
def test_links_at_their_rate_exclude_that_they_are_slow(system, facts, gone):
    def said(facts):
        its = [case for case in cases(system, facts) if "class pcie" not in case.what]
        return {case.kind for case in its if "over PCIe" in case.what or case.kind != "no links"}

    assert gone in said(None)
    assert gone not in said(facts)


def test_one_slow_pair_excludes_nothing():
    assert "links down" in {case.kind for case in cases(NODE, Facts(measured={"nvlink": (0.9, 0.4)}))}


def of(text, machine="hgx-h100", variant=None):
    return links.shares(read_source(Source("x", text)).links, machine, variant or Variant(2, "ndr-fat-tree"))


def test_shares_of_measured_links():
    """A port at 49 of 50 GB/s; one of twelve pairs at a tenth of the others."""
    assert of(nccl() + perftest())["port"] == pytest.approx((0.98, 0.98))
    usual, least = of(pairs(rate=390.0, slow={(0, 1)}))["nvlink"]
    assert least == pytest.approx(usual / 10, rel=0.01)


def test_tests_of_links_go_with_a_log(tmp_path):
    for name, text in (("a.log", nccl(nodes=2, ranks=16)), ("b.txt", perftest(rows=((1 << 20, 49.0),)))):
        (tmp_path / name).write_text(text)
    asked = ("--on", "hgx-h100", "--nodes", "2", "--fabric", "ndr-fat-tree")
    alone, both = (
        " ".join(invoke("explain", *(str(tmp_path / name) for name in names), *asked).out.split())
        for names in (["a.log"], ["b.txt", "a.log"])
    )
    assert "Links were measured, too, and have their rate (port 98%" in both
    assert "ports carry" not in both
    assert "Links were measured" not in alone
    (tmp_path / "c.log").write_text(nccl(nodes=2, ranks=16))
    refused = invoke("explain", *(str(tmp_path / name) for name in ("a.log", "c.log")), *asked)
    assert (refused.status, "2 of them have tables of collectives" in refused.err) == (2, True)


def test_ports_below_an_assumed_rate_may_be_those_of_another_network(tmp_path):
    for name, text in (("a.log", nccl(nodes=2, ranks=16)), ("b.txt", perftest(rows=((1 << 20, 24.5),)))):
        (tmp_path / name).write_text(text)
    words = ("explain", str(tmp_path / "a.log"), str(tmp_path / "b.txt"), "--on", "hgx-h100", "--nodes", "2")
    assumed, given = (" ".join(invoke(*words, *more).out.split()) for more in ((), ("--fabric", "ndr-fat-tree")))
    assert "ports carry 49% of their rate" in assumed
    assert "The network (ndr-fat-tree) is assumed" in assumed
    assert "is assumed, as nothing names it" not in given


def test_warnings_and_rails_are_remarked():
    facts = replace(read(*LINES), measured={"port": (0.97, 0.95)})
    table = LogTable("nccl-tests", "allreduce", 16, 2, "float", "sum", None, ())
    said = " ".join(remarks.remarks(facts, table, PAIR, []))
    assert "The library warns: iommu=pt is missing" in said
    assert "crossNic 1" in said
    assert "port 95%" in said


@pytest.mark.parametrize("seed", range(4))
def test_mutated_lines_are_read_or_passed_over(seed):
    draw = random.Random(seed)
    for _ in range(2500):
        line = list(draw.choice(LINES))
        for _ in range(draw.randint(1, 6)):
            at = draw.randrange(len(line))
            line[at : at + draw.randint(0, 2)] = draw.choice(
                ["", "9", "-", "/", " ", "\u0663", "NET/", "999999999", ">"]
            )
        gathered = Gathered()
        gathered.see("".join(line))
        gathered.facts.topology.crossings({0: "a", 1: "a", 2: "b", 3: "b"})
