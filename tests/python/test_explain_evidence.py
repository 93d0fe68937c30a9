"""What a log says comes before what fits its times; a verdict looks at sizes that can show it."""

import gzip
import io
import json
import os
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from hang_cases import watchdog
from linkwright import machines, schemas
from linkwright.advise.explain import document, findings, remarks, suspects, verdict
from linkwright.advise.explain import log as logs
from linkwright.advise.explain.hypotheses import algorithm_forced, cases
from linkwright.advise.explain.posterior import Observed
from linkwright.advise.explain.sensitivity import Effect
from linkwright.advise.explain.system import System
from linkwright.advise.explain.verdict import Point
from linkwright.formats.logs import Facts, LogRow, LogTable, read_log
from linkwright.libraries import library, tolerance
from linkwright.libraries.tolerance import Basis, Tolerance
from linkwright_cases import invoke
from log_cases import nccl, osu

LOGS = Path(__file__).parent.parent / "logs"
NODE = System("hgx-h100", 1, 8, None, "nccl-2.27", "allreduce")
PAIR = System("hgx-h100", 2, 8, "ndr-fat-tree", "nccl-2.27", "allreduce")
PCIE = System("l40s", 1, 8, None, "nccl-2.27", "allreduce")
SIZES = [1 << at for at in range(16, 31, 2)]


def explained(system, facts, healthy, factor=1.0, sizes=SIZES):
    """The answer to the log of a system whose lines say these facts."""
    rows = tuple(LogRow(size, system.time(size).time_us * factor, at) for at, size in enumerate(sizes, 1))
    table = LogTable("nccl-tests", "allreduce", system.ranks, system.nodes, "float", "sum", None, rows)
    return logs.explained(table, healthy, "", facts)


# ---- logs as people have them


@pytest.mark.parametrize(
    ("name", "says", "not_said"),
    [
        ("two-nodes-one-hostname", ["16 ranks on 2 nodes"], []),
        ("version-2.19", ["nccl-2.19", "NCCL 2.19.3 in the log", "Verdict: fine"], ["2.27"]),
        ("four-nics-named-in-log", ["1. 9% away: the node uses 4 of its 8 network ports (stated by the log: "],
         ["the protocol is LL", "grep 'NET/IB", "env | grep NCCL_IB_HCA", "is weak"]),
        ("nccl-algo-named-in-log", ["1. 0% away: the library uses Ring (stated by the log: NCCL_ALGO=Ring)"],
         ["the protocol is Simple", "env | grep NCCL_", "2. "]),
        ("all-rates-below-1GBs", ["Verdict: broken", "not explained by links, ports or protocols"], ["1. "]),
        ("slow-between-256K-and-1M", ["1M takes 3.3 times as long as 2M", "NCCL_PROTO=^LL"], []),
        ("only-rank-0-listed", ["8 ranks", "Verdict: suspicious", "the library uses Ring"], []),
    ],
)  # fmt: skip
def test_a_log_of_others_is_answered(name, says, not_said):
    answer = invoke("explain", str(LOGS / f"{name}.log"))
    assert answer.status == 0, answer.err
    text = " ".join(answer.out.split())
    assert [part for part in says if part not in text] == []
    assert [part for part in not_said if part in text] == []


# ---- the verdict


def test_a_verdict_looks_at_sizes_that_show_rates(tmp_path):
    """37 % at 1 GiB, and above 100 % at 1 KiB and 1 MiB, is not fine."""
    file = tmp_path / "x.log"
    file.write_text(nccl())
    answer = invoke("explain", str(file), "--on", "hgx-h100")
    assert "Verdict: broken. At 1G" in answer.out
    assert invoke("explain", str(file), "--on", "hgx-h100", "--gate").status == 1


def test_small_sizes_alone_are_said_to_be_so():
    answer = explained(NODE, None, NODE, 1.3, SIZES[:3])
    assert (answer.verdict.word, answer.verdict.small) == ("fine", True)
    assert "a verdict on small sizes only: at 1M a healthy machine reaches" in " ".join(logs.verdict_in_words(answer))


def points(*shares, rates=None):
    rates = rates or [100.0] * len(shares)
    return [
        Point(1 << at, 1.0, rate * share, share, rate)
        for at, (share, rate) in enumerate(zip(shares, rates, strict=True))
    ]


@pytest.mark.parametrize(
    ("shares", "rates", "word", "share"),
    [
        ((0.3, 0.9, 1.0), (10, 95, 100), "fine", 0.95),  # the small size does not count
        ((1.0, 1.0, 0.4), (100, 100, 100), "broken", 0.4),  # the last one counts for itself
        ((0.5, 0.5, 1.0), (100, 100, 100), "unsure", 0.5),  # no published system of the kind
        ((1.0, 1.5, 1.4), (100, 100, 100), "faster than expected", 1.4),
    ],
)
def test_the_share_is_the_lower_of_median_and_last(shares, rates, word, share):
    found = verdict.of(points(*shares, rates=rates), 100.0)
    assert (found.word, found.share) == (word, pytest.approx(share))


@pytest.mark.parametrize(
    ("floor", "small", "words"),
    [  # of shares 0.3, 0.45, 0.6, 0.75, 0.85, 0.95
        (0.94, False, "broken broken suspicious suspicious suspicious fine"),
        (0.36, False, "broken unsure fine fine fine fine"),
        (0.72, True, "broken suspicious suspicious fine fine fine"),
        (None, False, "broken broken unsure unsure fine fine"),
        (None, True, "broken suspicious unsure unsure fine fine"),
    ],
)
def test_the_floors_of_expect_decide(floor, small, words):
    own = verdict.UNKNOWN if floor is None else Tolerance(1 - floor, Basis.SYSTEM, 9, 6)
    its = [[replace(one, tolerance=own) for one in points(at)] for at in (0.3, 0.45, 0.6, 0.75, 0.85, 0.95)]
    assert [verdict.of(one, 1000.0 if small else 100.0).word for one in its] == words.split()


def test_explain_and_expect_have_one_floor(tmp_path):
    """A size that fails in `expect --log` is named by `explain`, with the same share."""
    file = tmp_path / "x.log"
    times = {
        size: NODE.time(size).time_us * (1.2 if size == 64 << 20 else 1.01) for size in (64 << 20, 1 << 30, 8 << 30)
    }
    file.write_text(nccl(times=times))
    judged = invoke("expect", "allreduce", "--on", "hgx-h100", "--log", str(file))
    assert (judged.status, judged.out.count("below the floor")) == (1, 2)  # with the summary
    said = " ".join(invoke("explain", str(file), "--on", "hgx-h100").out.split())
    assert "Verdict: fine" in said
    assert "Below the floors of `linkwright expect`, shares of the healthy rate: 64M (94%)." in said


@pytest.mark.parametrize(
    ("share", "word"),
    [(0.3, "broken"), (0.4, "unsure"), (0.79, "unsure"), (0.81, "fine"), (1.3, "unsure"), (4, "faster than expected")],
)
def test_a_rate_that_is_assumed_decides_only_what_is_far_from_it(share, word):
    assert verdict.of(points(share, share, rates=(100, 100)), 100.0, assumed=True).word == word


def test_sizes_that_disagree_are_no_verdict():
    """A limit that lasts holds at the largest size, which has 77 % where another has 35 %; a rate that falls lasts."""
    rates = (100, 100, 100)
    found = verdict.of(points(0.37, 0.35, 0.77, rates=rates), 100.0)
    assert (found.word, "disagree by a factor of 2.2; run again" in found.rule) == ("unsure", True)
    assert verdict.of(points(0.77, 0.37, 0.35, rates=rates), 100.0).word == "broken"


def test_just_below_a_floor_is_unsure():
    """Two runs differ by 3 %: of a floor of 94 %, 0.94 x 0.97 = 91.2 %."""
    own = Tolerance(0.06, Basis.SYSTEM, 6, 1)
    words = [verdict.of([replace(one, tolerance=own) for one in points(at)], 100.0).word for at in (0.93, 0.915, 0.91)]
    assert words == ["unsure", "unsure", "suspicious"]


@pytest.mark.parametrize(
    ("shares", "odd", "one_process", "slow"),
    [  # the floor is 60 %, so 30 % is far below it, and of the smallest sizes 20 %
        ((0.9, 0.29, 0.2, 0.9), (), False, True),
        ((0.9, 0.29, 0.31, 0.9), (), False, False),  # one size alone, as chance makes it
        ((0.9, 0.29, 0.31, 0.9), (1,), False, True),  # and the curve shows it, too
        ((0.29, 0.25, 0.9, 0.9), (), False, False),  # start-ups differ between sites
        ((0.19, 0.15, 0.9, 0.9), (), False, True),
        ((0.19, 0.15, 0.9, 0.9), (), True, False),  # one process starts all GPUs
        ((0.9, 0.9, 0.29, 0.9), (), False, False),
    ],
)
def test_sizes_between_that_are_slow_are_the_verdict(shares, odd, one_process, slow):
    its = points(*shares, 0.95, rates=(1, 2, 4, 8, 100))
    its = [replace(one, tolerance=Tolerance(0.4, Basis.SYSTEM, 9, 6)) for one in its]
    judged = verdict.of(its, 100.0)
    found = verdict.in_parts(judged, its, [its[at].size for at in odd], one_process=one_process)
    assert judged.word == "fine"
    assert (found.word == verdict.IN_PARTS, not found.passes) == (slow, slow)


def test_a_band_of_slow_sizes_counts_where_large_ones_are_unsure():
    """Lower large sizes must not let a log pass that fails with higher ones."""
    floor = Tolerance(0.06, Basis.SYSTEM, 9, 6)
    for large in (0.95, 0.93, 0.8):  # fine, unsure, suspicious
        its = [replace(one, tolerance=floor) for one in points(0.9, 0.1, 0.1, 0.9, large, rates=(1, 2, 4, 8, 100))]
        judged = verdict.of(its, 100.0)
        found = verdict.in_parts(judged, its, [], one_process=False)
        assert not found.passes
        assert [one.size for one in found.slow] == ([its[1].size, its[2].size] if judged.passes else [])


def test_a_band_of_slow_sizes_fails_a_gate(tmp_path):
    """All sizes from 8 B, of which only some are simulated, are as on a healthy machine but for 256K to 1M."""
    sizes = [1 << at for at in range(3, 33)]
    slow = range(256 << 10, (1 << 20) + 1)
    times = {size: NODE.time(size).time_us * (6 if size in slow else 1.02) for size in sizes}
    answers = []
    for name, its in (("slow", times), ("healthy", {size: NODE.time(size).time_us for size in sizes})):
        file = tmp_path / f"{name}.log"
        file.write_text(nccl(times=its))
        answers.append(invoke("explain", str(file), "--on", "hgx-h100", "--gate"))
    assert [one.status for one in answers] == [1, 0]
    assert "Verdict: slow at some sizes" in answers[0].out
    assert "but 256K to 1M take" in " ".join(answers[0].err.split())


def test_wrong_results_are_said_first(tmp_path):
    file = tmp_path / "x.log"
    lines = nccl().splitlines(keepends=True)
    file.write_text("".join(line.replace("      0 ", "    128 ", 1) if " 1048576 " in line else line for line in lines))
    answer = invoke("explain", str(file), "--on", "hgx-h100")
    assert answer.out.startswith("WRONG RESULTS: #wrong is not 0 at 1 of 3 sizes (up to 128 elements)")
    assert answer.status == 1


# ---- findings


@pytest.mark.parametrize(
    ("times", "kinds"),
    [
        ({1: 10, 2: 20, 4: 40, 8: 80}, []),
        ({1: 10, 2: 20, 4: 38, 8: 12, 16: 20}, [("late switch", 4)]),
        ({1: 10, 2: 11, 4: 90, 8: 15, 16: 20}, [("spike", 4)]),
        ({1: 10, 2: 11, 4: 13, 8: 90, 16: 180}, [("cliff", 8)]),
        ({1: 90, 2: 11, 4: 13}, []),  # a warm-up
        ({1: 10, 2: 10, 4: 10, 8: 33, 16: 110, 32: 240}, [("cliff", 32)]),  # 0.4 falls to 0.24, 0.15 and 0.13
        ({1: 10, 2: 10, 4: 10, 8: 33, 16: 67, 32: 133}, []),  # to 0.24, which is more than half
        ({1: 10, 2: 10, 4: 10, 8: 33, 16: 67, 32: 240}, []),  # only the last is below half: it may be one bad time
    ],
)
def test_findings_of_a_curve(times, kinds):
    assert [(one.kind, one.size) for one in findings.findings(times, {})] == kinds


def test_what_the_healthy_machine_does_itself_is_no_finding():
    times = {1: 10.0, 2: 20.0, 4: 38.0, 8: 12.0, 16: 20.0}
    assert findings.findings(times, times) == []


# ---- evidence


@pytest.mark.parametrize(
    ("healthy", "fault", "facts", "kind"),
    [
        (NODE, NODE.having(algorithm="nccl-2.27/ring"), Facts(settings={"NCCL_ALGO": "Ring"}), "algorithm"),
        (NODE, NODE.having(algorithm="nccl-2.27/ring"), Facts(multicast=False), "algorithm"),
        (NODE, NODE.having(algorithm="nccl-2.27/ring"), Facts(chosen={1 << 30: ("ring", "simple")}), "algorithm"),
        (NODE, NODE.having(algorithm="nccl-2.27/ring/ll"), Facts(settings={"NCCL_PROTO": "LL"}), "protocol"),
        (PAIR, PAIR.having(fabric="sockets"), Facts(transports={"NET/Socket": 4}), "sockets"),
        (PAIR, PAIR.on("gpudirect=0"), Facts(transports={"NET/IB": 32}), "no GPUDirect"),
        (PAIR, PAIR.lacking("NIC 7"), Facts(nics={"a": ("x:1/IB",) * 7, "b": ("x:1/IB",) * 8}), "missing ports"),
        (PAIR, PAIR.lacking(*(f"NIC {at}" for at in range(1, 8))),
         Facts(ports_used={"a": {0}}, passages={"a": 64}, channels=16), "missing ports"),
        (PCIE, next(case.system for case in cases(PCIE) if case.kind == "no peer access"),
         Facts(transports={"SHM": 16}), "no peer access"),
    ],
)  # fmt: skip
def test_what_the_log_states_stands_first(healthy, fault, facts, kind):
    """Five percent of noise; times alone would not tell some of these apart."""
    first = explained(fault, facts, healthy, 1.05).suspects[0]
    assert first.cases[0].kind == kind
    assert first.stated


def test_a_part_of_the_connections_says_nothing_of_the_ports():
    """One line of sixteen channels was pasted; the list of adapters still counts."""
    part = Facts(ports_used={"a": {0}}, passages={"a": 1}, channels=16)
    assert {case.stated for case in cases(PAIR, part) if case.kind == "missing ports"} == {""}
    listed = replace(part, nics={"a": ("x:1/IB",) * 4})
    assert {case.stated for case in cases(PAIR, listed) if case.kind == "missing ports"} == {"NET/IB : Using 4 ports"}


def test_one_node_without_gpudirect_is_stated():
    facts = Facts(transports={"NET/IB/GDRDMA": 8, "NET/IB": 8}, direct={"a": True, "b": False})
    found = {case.stated for case in cases(PAIR, facts) if case.kind == "no GPUDirect"}
    assert found == {"connections into b have no GDRDMA, and others have"}


@pytest.mark.parametrize(("direct", "word"), [(True, "unsure"), (False, "broken")])
def test_a_node_may_have_no_more_ports_than_its_log_lists(direct, word):
    """Four of eight ports, as many nodes of these GPUs have: fine for those; with another fault, that comes first."""
    four = PAIR.lacking(*(f"NIC {at}" for at in range(4, 8)))
    fault = four if direct else four.on("gpudirect=0").slowed("host", 0.25)
    rows = tuple(LogRow(size, fault.time(size).time_us, at) for at, size in enumerate(SIZES, 1))
    table = LogTable("nccl-tests", "allreduce", 16, 2, "float", "sum", None, rows)
    facts = Facts(nics=dict.fromkeys("ab", ("x:1/IB",) * 4))
    guessed, given = (logs.explained(table, PAIR, "", facts, guessed=its) for its in (True, False))
    assert guessed.verdict.word == word
    assert "with the 4 network ports that the log lists for a node" in guessed.verdict.rule
    assert ("missing ports + no GPUDirect" in {case.kind for case in guessed.suspects[0].cases}) is not direct
    assert given.verdict.word in ("suspicious", "broken")
    assert given.suspects[0].cases[0].kind == "missing ports"


@pytest.mark.parametrize(
    ("name", "said", "fabric"),
    [
        ("NVIDIA H100 80GB HBM3", "Using network FasTrak", "gcp-tcpxo (from `NVIDIA H100"),
        ("NVIDIA H100 80GB HBM3", "NET/OFI Selected provider is efa, fabric is efa", "efa-p5,"),
        ("NVIDIA A100-SXM4-40GB", "NET/OFI Selected Provider is efa", "efa-p4,"),
        ("NVIDIA H100 80GB HBM3", "Using network AWS Libfabric", "efa-p5,"),
        ("NVIDIA H100 80GB HBM3", "Using network GPUDirectTCPX_v7", "gcp-tcpx,"),
        ("NVIDIA H100 80GB HBM3", "Using network IB", "ndr-fat-tree,"),
    ],
)
def test_the_network_is_that_of_the_plugin(tmp_path, name, said, fabric):
    file = tmp_path / "x.log"
    file.write_text(nccl(ranks=16, nodes=2, name=name, between=[f"n0:1:2 [0] NCCL INFO {said}"]))
    text = " ".join(invoke("explain", str(file)).out.split())
    assert f" over {fabric.partition(',')[0].partition(' ')[0]}" in text
    assert ("mostly has" in text) is ("ndr" in fabric)


def test_the_plugin_of_efa_and_slingshot_does_not_say_which(tmp_path):
    file = tmp_path / "x.log"
    said = "n0:1:2 [0] NCCL INFO Using network AWS Libfabric"
    file.write_text(nccl(ranks=8, nodes=2, name="NVIDIA GH200 120GB", between=[said]))
    assert "over slingshot-11" in " ".join(invoke("explain", str(file)).out.split())


@pytest.mark.parametrize(
    "said",
    [
        "NCCL_MNNVL_ENABLE set by environment to 0",
        "localRanks 4 localRank 1 MNNVL 0",
        "MNNVL 0 cliqueId 0 cliqueRank 0",
    ],
)
def test_trays_without_their_links_are_no_rack(tmp_path, said):
    file = tmp_path / "x.log"
    log = {"ranks": 8, "nodes": 2, "name": "NVIDIA GB200"}
    file.write_text(nccl(**log, between=[f"n0:1:2 [0] NCCL INFO {said}"]))
    answer = invoke("explain", str(file))
    assert (answer.status, "the NVLink between its 2 hosts is not used" in answer.err) == (2, True)
    file.write_text(nccl(**log))
    assert invoke("explain", str(file)).status == 0


def test_hosts_whose_names_hold_a_space_are_read(tmp_path):
    """As people mask them."""
    file = tmp_path / "x.log"
    file.write_text(nccl(ranks=16, nodes=2).replace(" on node", " on NODE "))
    assert "16 ranks on 2 nodes" in " ".join(invoke("explain", str(file)).out.split())


def test_wrong_results_are_said_although_the_machine_is_unknown(tmp_path):
    file = tmp_path / "x.log"
    mixed = nccl(ranks=2).replace("H100", "A100", 1)
    file.write_text(mixed.replace("      0 ", "    128 ", 1))
    answer = invoke("explain", str(file))
    assert answer.status == 2
    assert "WRONG RESULTS: #wrong is not 0" in answer.err
    assert "names 2 kinds of devices" in answer.err


def test_half_of_an_assumed_box_is_no_verdict(tmp_path):
    """Whether two cards share a processor is assumed; causes are listed for the case that something is wrong."""
    file = tmp_path / "x.log"
    box = System("assumed-l4", 1, 2, None, "nccl-2.27", "allreduce").slowed("pcie", 0.45)
    file.write_text(nccl(ranks=2, name="NVIDIA L4", times={size: box.time(size).time_us for size in SIZES}))
    text = " ".join(invoke("explain", str(file)).out.split())
    assert "Verdict: unsure" in text
    assert "links of class pcie run at 50% of their rate" in text


def test_a_gpu_for_a_machine_is_told_its_machine():
    assert "did you mean `assumed-rtx-4090`" in invoke("explain", "allreduce/ring", "--on", "rtx-4090").err


def test_a_bond_is_remarked(tmp_path):
    file = tmp_path / "x.log"
    using = "n0:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_bond_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>"
    file.write_text(nccl(ranks=2, nodes=2, between=[using]))
    assert "mlx5_bond_0 joins several ports" in " ".join(invoke("explain", str(file)).out.split())


def test_cards_that_beat_host_memory_may_have_peer_access(tmp_path):
    """25 GB/s where 6.7 are assumed, as published for cards with a modified driver."""
    file = tmp_path / "x.log"
    file.write_text(nccl(ranks=4, name="NVIDIA GeForce RTX 4090", times={1 << 28: 16_000.0, 1 << 30: 64_000.0}))
    text = " ".join(invoke("explain", str(file)).out.split())
    assert "Verdict: unsure" in text
    assert "as where a driver gives such GPUs peer access" in text


def test_a_machine_that_the_log_chose_has_its_devices(tmp_path):
    """GB300 are taken for GB200, whose architecture is another one; a named machine may be wrong."""
    file = tmp_path / "x.log"
    file.write_text(nccl(ranks=4, name="NVIDIA GB300"))
    assert "OTHER DEVICES" not in invoke("explain", str(file)).out
    assert "OTHER DEVICES" in invoke("explain", str(file), "--on", "hgx-h100").out


@pytest.mark.parametrize(
    ("kind", "facts", "proves"),
    [
        ("protocol", Facts(settings={"NCCL_PROTO": "LL128"}), True),
        ("protocol", Facts(settings={"NCCL_PROTO": "^LL"}), False),
        ("few channels", Facts(settings={"NCCL_MAX_NCHANNELS": "4"}, channels=4), True),
        ("few channels", Facts(settings={"NCCL_MAX_NCHANNELS": "32"}, channels=16), False),
        ("few channels", Facts(settings={"NCCL_MAX_NCHANNELS": "32"}), False),
        ("SHARP", Facts(settings={"NCCL_COLLNET_ENABLE": "0"}), True),
    ],
)
def test_a_variable_proves_only_what_it_decides(kind, facts, proves):
    stated = {case.stated for case in cases(PAIR, facts) if case.kind == kind}
    (name, value), *_ = facts.settings.items()
    assert stated == {f"{name}={value}" if proves else ""}


def test_a_topology_file_may_hide_the_links():
    """Where the log names one, it is the likelier reason for traffic over PCIe."""
    plain, named = (
        {case.kind: case for case in cases(NODE, facts)}
        for facts in (Facts(), Facts(settings={"NCCL_TOPO_FILE": "/etc/topo.xml"}))
    )
    assert "topology file" not in plain
    assert "/etc/topo.xml" in named["topology file"].cause
    assert named["topology file"].common > plain["no links"].common


def test_a_forced_protocol_leaves_the_algorithm_to_the_library():
    """The library chooses among algorithms that have the protocol: NVLS has no LL."""
    found = {case.system.algorithm: case.system for case in cases(NODE) if case.kind == "protocol"}
    assert set(found) == {"nccl-2.27//simple", "nccl-2.27//ll", "nccl-2.27//ll128"}
    assert found["nccl-2.27//simple"].choice(1 << 30).algorithm == "nvls"
    assert found["nccl-2.27//ll"].choice(1 << 30).algorithm in ("ring", "tree")
    ring = cases(NODE.having(algorithm="nccl-2.27/ring"))
    assert {case.system.algorithm for case in ring if case.kind == "protocol"} == {
        "nccl-2.27/ring/simple", "nccl-2.27/ring/ll", "nccl-2.27/ring/ll128",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("system", "facts", "gone"),
    [
        (NODE, Facts(lists_settings=True), "protocol"),
        (NODE, Facts(per_process=1), "one process"),
        (NODE, Facts(version="2.27.3"), "version"),
        (NODE, Facts(multicast=True), "no links"),
        (PAIR, Facts(network="IB"), "sockets"),
        (PAIR, Facts(nics={"a": ("x:1/RoCE",)}), "sockets"),
        (PAIR, Facts(transports={"NET/IB/GDRDMA": 32}), "no GPUDirect"),
        (PAIR, Facts(nics={"a": ("x:1/IB",) * 8}), "missing ports"),
        (PCIE, Facts(transports={"P2P": 16}), "no peer access"),
    ],
)
def test_what_the_log_excludes_is_gone(system, facts, gone):
    assert gone in {case.kind for case in cases(system)}
    assert gone not in {case.kind for case in cases(system, facts)} or gone == "no links"
    if gone == "no links":
        assert not any("over PCIe" in case.what for case in cases(system, facts))


@pytest.mark.parametrize("kind", ["no GPUDirect", "ACS"])
def test_an_alltoall_without_gpudirect_is_slow(kind):
    """Each GPU sends on its own port, so no single message shows that all of them share the way through the host.

    A quarter of 55.4 GB/s (63 x 0.88) is left to each port of 48.5, through which 8 of 15 parts of what a GPU sends go,
    so busbw is 15/8 of 13.9.
    """
    healthy = PAIR.having(collective="alltoall")
    rates = [
        (1 << 30) / case.system.time(1 << 30).time_us / 1e3 * 15 / 16 for case in cases(healthy) if case.kind == kind
    ]
    assert min(rates) == pytest.approx(63 * 0.88 / 4 * 15 / 8, rel=0.03)
    assert max(rates) > 3 * min(rates)


@pytest.mark.parametrize(
    ("system", "facts", "there"),
    [
        (PAIR.having(nodes=4), Facts(), True),
        (PAIR.having(nodes=4), Facts(version="2.19.3"), True),
        (PAIR.having(nodes=4), Facts(version="2.27.3"), False),
        (PAIR.having(nodes=4, collective="allgather"), Facts(), False),
        (PAIR, Facts(), False),
        (System("dgx-a100", 4, 8, "hdr-fat-tree", "nccl-2.27", "allreduce"), Facts(), False),
    ],
)
def test_small_chunks_of_nvls_tree_are_tried_where_they_may_be(system, facts, there):
    assert any("64 KiB" in case.what for case in cases(system, facts) if case.kind == "version") is there


def test_a_kind_is_chosen_where_the_log_is_off():
    """Between the ends, the size that is farthest from the healthy machine shows most."""
    healthy = dict.fromkeys((1, 2, 4, 8), 1.0)
    search = suspects.CauseSearch(Observed({1: 1.0, 2: 1.1, 4: 0.5, 8: 1.0}, healthy, 1.0), NODE)
    assert search.screened == [1, 4, 8]
    two = suspects.CauseSearch(Observed({1: 1.0, 8: 1.0}, {1: 1.0, 8: 1.0}, 1.0), NODE)
    assert two.screened == [1, 8]


def test_what_two_systems_do_alike_is_simulated_once(monkeypatch):
    """At 1 GiB four nodes take Ring Simple, whether or not it is forced."""
    four = PAIR.having(nodes=4)
    search = suspects.CauseSearch(Observed({1 << 30: 1.0}, {1 << 30: 1.0}, 1.0), four)
    alike = [four, four.having(algorithm="nccl-2.27/ring"), four.having(algorithm="nccl-2.27/ring/simple")]
    asked = []
    monkeypatch.setattr(System, "times", lambda self, sizes: asked.append(self) or {1 << 30: 7.0})
    assert {search._times(system, [1 << 30])[1 << 30] for system in alike} == {7.0}
    assert asked == [four]


def test_two_faults_are_tried_where_one_leaves_much():
    """A forced algorithm, and one process that starts eight GPUs: neither alone gives the curve."""
    both = NODE.having(algorithm="nccl-2.27/tree/simple", one_process=True)
    answer = explained(both, Facts(per_process=8, settings={"NCCL_ALGO": "Tree"}), NODE, 1.0, [8, 1 << 12, *SIZES])
    first = answer.suspects[0].cases[0]
    assert set(first.kind.split(" + ")) >= {"algorithm", "one process"}
    assert set(first.stated.split("; ")) == {"nThread 1 nGpus 8", "NCCL_ALGO=Tree"}


def test_two_faults_are_tried_without_a_word_of_the_log(monkeypatch):
    """Single faults leave 8 % of this curve, since launches differ between sites; where they leave too much, the pair
    that it has is tried."""
    both = NODE.having(algorithm="nccl-2.27/ring", one_process=True)
    sizes = [8, 1 << 12, *SIZES]
    assert "algorithm" in [one.cases[0].kind for one in explained(both, None, NODE, 1.0, sizes).suspects[:3]]
    tried = []
    doubles = suspects._doubles
    monkeypatch.setattr(suspects, "LEFT", 1.05)
    monkeypatch.setattr(suspects, "_doubles", lambda *asked: tried.extend(doubles(*asked)) or tried)
    explained(both, None, NODE, 1.0, sizes)
    pairs = [one for one in tried if set(one.cases[0].kind.split(" + ")) == {"algorithm", "one process"}]
    assert min(one.distance for one in pairs) < 1.01


def test_a_smooth_curve_far_off_is_not_explained():
    answer = explained(PAIR, None, PAIR, 40.0)
    assert answer.suspects == []
    assert answer.nearest
    assert "not explained by links, ports or protocols" in logs.doubts(answer)[0]


def test_a_weak_first_cause_is_said_to_be_weak():
    answer = explained(PAIR.having(fabric="sockets"), Facts(transports={"NET/Socket": 4}), PAIR, 2.0)
    assert "is weak: its simulation leaves" in logs.doubts(answer)[0]


@pytest.mark.parametrize(
    ("value", "names", "unknown"),
    [
        ("Ring", {"ring"}, []),
        ("ring,NVLSTree", {"ring", "nvls_tree"}, []),
        ("^NVLS,NVLSTree", {"ring", "tree", "collnet_chain"}, []),
        ("CollnetSHARP", set(), ["collnetsharp"]),
        ("allgather:nvls;allreduce:tree", {"tree"}, []),
    ],
)
def test_a_forced_algorithm_is_understood_or_named(value, names, unknown):
    assert algorithm_forced.asked(value, "allreduce") == (names, unknown)


def test_remarks_name_what_differs():
    table = LogTable("nccl-tests", "allreduce", 8, 1, "float", "sum", None, ())
    nics = {"n1": ("a:1/IB",) * 8, "n2": ("a:1/IB",) * 7, "n3": (*("a:1/IB",) * 7, "b:1/RoCE")}
    facts = Facts(nics=nics, runs=2, settings={"NCCL_ALGO": "CollnetSHARP"}, transports={"SHM": 2})
    facts.versions.update({"2.19.3": None, "2.27.3": None})
    staged = Effect("fabric.transport.host_simple.rate", "6.7 GB/s", "assumed", 1.0, 0.5)
    said = remarks.remarks(facts, table, System("l40s", 1, 8, None, "", "allreduce"), [staged])
    assert any("pass through host memory" in text for text in said)
    assert any("rests on an assumed number (fabric.transport.host_simple.rate = 6.7 GB/s)" in text for text in said)
    assert any("2.19.3 and 2.27.3" in text for text in said)
    assert any("2 independent runs of 8 ranks" in text for text in said)
    assert any("most list 8, n2 7" in text for text in said)
    assert any("n3 mixes links: b:1/RoCE among 7 of IB" in text for text in said)
    assert any("not modelled (collnetsharp)" in text for text in said)


# ---- versions and placement


@pytest.mark.parametrize(
    ("machine", "version", "plan"),
    [
        ("hgx-h100", "2.4.8", "nccl-2.18"), ("hgx-h100", "2.19.3", "nccl-2.19"), ("hgx-h100", "2.32.1", "nccl-2.32"),
        ("hgx-h100", "2.40", "nccl-2.32"), ("hgx-h100", "3", "nccl-2.18"), ("mi300x", "2.30.1", "rccl-2.30"),
    ],
)  # fmt: skip
def test_the_nearest_known_version_stands_for_one(machine, version, plan):
    assert library.nearest(machines.load(machine), "allreduce", version) == plan


def test_a_version_that_is_not_known_is_said(tmp_path):
    file = tmp_path / "x.log"
    file.write_text("NCCL version 2.14.3+cuda11.7\n" + nccl())
    assert "NCCL 2.14.3 in the log is taken for nccl-2.18" in " ".join(invoke("explain", str(file)).out.split())


def test_more_ranks_than_gpus_are_one_question(tmp_path):
    file = tmp_path / "x.log"
    file.write_text(nccl(ranks=16))
    answer = invoke("explain", str(file))
    assert answer.status != 0
    assert "16 ranks on a node, but hgx-h100 has 8 GPUs; how many nodes were there? Give --nodes" in answer.err
    assert invoke("explain", str(file), "--nodes", "2").status == 0


# ---- gates


@pytest.mark.parametrize(
    ("fault", "facts", "why"),
    [
        (NODE, Facts(), []),
        # A fine rate passes with a stated fault that costs nothing, but not as a test of something else.
        (NODE, Facts(per_process=8), []),
        (NODE, Facts(runs=2), ["2 independent runs of 8 ranks"]),
        (NODE, Facts(nics={"a": ("x:1/IB",) * 7, "b": ("x:1/IB",) * 8}), ["Nodes differ in their network ports"]),
        (NODE.having(algorithm="nccl-2.27/ring/ll"), Facts(settings={"NCCL_PROTO": "LL"}),
         ["The verdict is broken", "The log states a fault: NCCL_PROTO=LL."]),
    ],
)  # fmt: skip
def test_a_gate_fails_by_rates_and_by_facts(fault, facts, why):
    answer = explained(fault, facts, NODE)
    assert [part for part in why if not any(part in text for text in answer.failures)] == []
    assert (len(answer.failures), answer.passes) == (len(why), not why)


def test_a_stated_fault_fails_a_gate_where_the_healthy_rate_is_only_assumed():
    """Where the network is assumed, no fault is looked for but those that the log states."""
    rows = tuple(LogRow(size, PAIR.having(fabric="sockets").time(size).time_us, 1) for size in SIZES)
    table = LogTable("nccl-tests", "allreduce", 16, 2, "float", "sum", None, rows)
    unsure = verdict.LogVerdict("unsure", 0.5, (), False, "the network is assumed", 1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs.verdict, "of", lambda *a, **k: replace(unsure, judged=a[0][-1:]))
        facts = Facts(transports={"NET/Socket": 4})
        answers = [logs.explained(table, PAIR, "", one, guessed=True) for one in (facts, Facts())]
    assert [one.failures for one in answers] == [["The log states a fault: 4 connections via NET/Socket."], []]
    assert answers[0].suspects[0].stated


def test_a_gate_says_on_stderr_why_it_fails(tmp_path):
    file = tmp_path / "x.log"
    file.write_text(nccl())
    answer = invoke("explain", str(file), "--on", "hgx-h100", "--gate", "--json")
    assert "linkwright: --gate: The verdict is broken: below 50%." in answer.err
    assert json.loads(answer.out)["failures"] == ["The verdict is broken: below 50%."]


# ---- for programs


@pytest.mark.parametrize("name", sorted(path.stem for path in LOGS.glob("*.log")))
def test_the_document_is_that_of_its_schema(name):
    jsonschema = pytest.importorskip("jsonschema")
    answer = invoke("explain", str(LOGS / f"{name}.log"), "--json", "--gate")
    found = json.loads(answer.out)
    jsonschema.validate(found, json.loads(schemas.path("explain").read_text(encoding="utf-8")))
    assert found["format"] == document.FORMAT
    assert answer.status == (0 if found["passes"] else 1)
    assert len(found["tables"]) == len(logs.tables(read_log(LOGS / f"{name}.log")))


# ---- what was named or assumed, and contradicts the log


def test_devices_that_contradict_the_machine_are_named(tmp_path):
    file = tmp_path / "b200.log"
    file.write_text(nccl(name="NVIDIA B200"))
    said = " ".join(invoke("explain", str(file), "--on", "hgx-h100").out.split())
    assert "THE LOG IS OF OTHER DEVICES: NVIDIA B200 in the log; hgx-h100 has sm90." in said
    refused = invoke("expect", "allreduce", "--on", "hgx-h100", "--log", str(file))
    assert (refused.status, "NVIDIA B200 in the log; hgx-h100 has sm90" in refused.err) == (2, True)
    file.write_text(nccl())
    assert "OTHER DEVICES" not in invoke("explain", str(file), "--on", "hgx-h100").out
    assert "OTHER DEVICES" not in invoke("explain", str(file), "--on", "h100-a3-high").out


def test_an_assumed_network_is_doubted_before_the_log(tmp_path):
    """45 GB/s of one port each are beyond the 200 Gb/s that such machines mostly have, and fit 400 Gb/s."""
    file = tmp_path / "gh200.log"
    times = {size: size / 45e3 for size in (1 << 30, 8 << 30)}
    file.write_text(nccl(ranks=2, nodes=2, name="NVIDIA GH200 480GB", times=times))
    said = " ".join(invoke("explain", str(file)).out.split())
    assert "Verdict: unsure." in said
    assert "The network (slingshot-11) is assumed, as nothing names it. With ports of 400 Gb/s" in said
    assert "give --fabric slingshot-11,software_matching=1,rate=400" in said
    fabric = ("--fabric", "slingshot-11,software_matching=1,rate=400")
    stated = " ".join(invoke("explain", str(file), "--nodes", "2", *fabric).out.split())
    assert "Verdict: fine." in stated
    assert "is assumed, as nothing names it" not in stated


def test_times_in_place_that_differ_are_named():
    rows = [LogRow(1 << 30, NODE.time(1 << 30).time_us * (1 + place), 9, in_place=bool(place)) for place in (0, 1)]
    its = LogTable("nccl-tests", "allreduce", 8, 1, "float", "sum", None, tuple(rows))
    assert any("In place, 1G takes 2 times as long" in one for one in logs.explained(its, NODE, "").remarks)
    alike = replace(its, rows=(rows[0], replace(rows[0], in_place=True)))
    assert not any("In place" in one for one in logs.explained(alike, NODE, "").remarks)


def test_a_hang_and_a_table_in_one_file_are_both_named(tmp_path):
    file = tmp_path / "both.log"
    file.write_text(nccl() + watchdog(1, 641) + watchdog(2, 641))
    answer = invoke("explain", str(file))
    assert "entered" in answer.out
    assert f"`linkwright explain {file} --table 1`" in answer.out
    assert "Verdict:" in invoke("explain", str(file), "--table", "1").out
    file.write_text(watchdog(1, 641))
    assert "--table" not in invoke("explain", str(file)).out


# ---- where the log comes from, and what goes without saying


def test_a_log_may_come_through_a_pipe(tmp_path, monkeypatch):
    (tmp_path / "x.log").write_text(nccl())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper((tmp_path / "x.log").open("rb")))
    assert invoke("explain", "-").out.startswith("-: nccl-tests, allreduce, 8 ranks")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(gzip.compress(nccl().encode())))
    writer.start()
    assert "allreduce, 8 ranks" in invoke("explain", str(pipe)).out
    writer.join()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("https://a.b/c.log", "nothing is fetched; `curl -sL URL | linkwright explain -`"),
        ("-", "neither a log nor a dump"),
    ],
)
def test_what_is_not_a_log_is_called_by_its_name(monkeypatch, name, says):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"hello\n")))
    refused = invoke("explain", name)
    assert (refused.status, says in refused.err) == (2, True)


def test_an_unknown_file_is_told_all_tools_that_are_read(tmp_path):
    (tmp_path / "x.log").write_text("hello\n")
    refused = invoke("explain", str(tmp_path / "x.log"))
    assert [one for one in ("nccl-tests", "NCCL RAS", "flight recorder", "watchdog") if one not in refused.err] == []


def test_nodes_that_the_log_states_need_not_be_given(tmp_path):
    file = tmp_path / "x.log"
    file.write_text(nccl(ranks=16, nodes=2))
    assert "healthy machine: hgx-h100 over roce-400" in invoke("explain", str(file), "--fabric", "roce-400").out
    assert "16 ranks on 2 nodes" in invoke("explain", str(file), "--ranks-per-node", "8").out
    contradicts = invoke("explain", str(file), "--ranks-per-node", "8", "--ranks", "4")
    assert "8 on each of 2 nodes are 16; omit --ranks" in contradicts.err


def test_logs_of_mpi_have_a_floor(tmp_path):
    file = tmp_path / "x.txt"
    file.write_text(osu())
    asked = ("--on", "leonardo-mpi", "--nodes", "16", "--ranks", "16", "--fabric", "hdr-hosts", "--log", str(file))
    judged = invoke("expect", "allreduce", *asked)
    assert "leonardo-mpi --nodes 16 --fabric hdr-hosts, 16 ranks, MPI" in judged.out
    assert "has no library with versions" in invoke("expect", "allreduce", *asked, "-a", "nccl-2.27").err


# ---- floors, ranges, and faults that a log cannot tell apart


def test_the_document_has_floors_and_ranges(tmp_path):
    """Half of the healthy rate at 1 GiB is below its floor; the range is that of published systems on one node."""
    file = tmp_path / "x.log"
    file.write_text(nccl(times={1 << 30: 2 * NODE.time(1 << 30).time_us}))
    answer = invoke("explain", str(file), "--on", "hgx-h100", "--json", "--gate")
    found = json.loads(answer.out)["tables"][0]["points"][-1]
    low, high = tolerance.spread(1, 1 << 30)
    floor = tolerance.of("hgx-h100", None, "allreduce", 1, 1 << 30).least * found["healthy_busbw"]
    healthy = found["healthy_busbw"]
    expected = {"floor_busbw": floor, "low_busbw": healthy / high, "high_busbw": healthy / low}
    assert {key: found[key] for key in expected} == pytest.approx(expected)
    assert (found["below_floor"], answer.status) == (True, 1)


def test_a_share_is_compared_in_the_digits_of_its_floor():
    """The table of tolerances has thousandths: 0.9669 is not below 1 - 0.033."""
    assert tolerance.admits(0.9669, 0.033)
    assert not tolerance.admits(0.966, 0.033)
    own = Tolerance(0.033, Basis.SYSTEM, 1, 1)
    assert verdict.of([replace(one, tolerance=own) for one in points(0.9669)], 100.0).word == "fine"


def test_each_size_is_judged_by_its_own_floor():
    """Half of the sizes are at 0.8 with a floor of 0.7, the last is at 0.85 with one of 0.9."""
    loose, strict = (Tolerance(1 - floor, Basis.SYSTEM, 9, 6) for floor in (0.7, 0.9))
    its = [replace(one, tolerance=loose) for one in points(0.8, 0.8, 0.8)]
    assert verdict.of(its, 100.0).word == "fine"
    found = verdict.of([*its, replace(points(0.85)[0], size=16, tolerance=strict)], 100.0)
    assert (found.word, found.share) == ("suspicious", 0.85)


def test_more_than_the_model_within_what_links_carry_is_fine():
    """Sends between neighbours reached 43 GB/s over ports of 50 where the model has 28; 60 is beyond a port."""
    system = System("b200", 2, 8, "ndr-fat-tree", "nccl-2.27", "sendrecv")
    for rate, word in ((43, "fine"), (60, "faster than expected")):
        rows = tuple(LogRow(size, size / rate / 1e3, at) for at, size in enumerate((1 << 29, 1 << 30), 1))
        table = LogTable("nccl-tests", "sendrecv", 16, 2, "float", None, None, rows)
        assert logs.explained(table, system, "").verdict.word == word


@pytest.mark.parametrize(("factor", "shape", "alike"), [(1.3, 0.0, True), (1.0, 0.5, False), (4.0, 0.0, False)])
def test_faults_with_one_curve_but_for_their_strength_share_a_place(factor, shape, alike):
    """Slower by two and 2.6 at all sizes is one fault at other strengths; another shape or a factor of four is not."""
    healthy = {1 << at: float(1 << at) for at in range(20, 30)}
    log = Observed(healthy, healthy, 1.0)
    one = {size: 2.0 * time for size, time in healthy.items()}
    other = {size: factor * time * (1 + shape * (at % 2)) for at, (size, time) in enumerate(one.items())}
    assert (log.told_apart(one, other, 0.5) < suspects.INDISTINCT) is alike


def test_what_tells_faults_of_a_place_apart_is_said():
    answer = explained(PAIR.on("gpudirect=0"), None, PAIR)
    kinds = [case.kind for case in answer.suspects[0].cases]
    assert {"no GPUDirect", "ACS"} <= set(kinds)
    assert logs.doubts(answer)[0].startswith(f"Indistinguishable by this log: {', '.join(kinds)}.")
    assert "no GPUDirect: lsmod | grep peermem" in logs.doubts(answer)[0]
