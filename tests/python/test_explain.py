"""Explanations: curves of faults are recognised, verdicts follow their thresholds, and bad input has a cure."""

import json
import math
import re
from dataclasses import replace

import pytest

import linkwright as lw
from linkwright import _native, schemas
from linkwright.advise.explain import detours, faster, run, schedule, sensitivity
from linkwright.advise.explain import log as logs
from linkwright.advise.explain.hypotheses import HYPOTHESES, cases
from linkwright.advise.explain.imported import LogJudged
from linkwright.advise.explain.posterior import Observed
from linkwright.advise.explain.system import System, few
from linkwright.base import errors
from linkwright.base.units import format_us
from linkwright.formats.logs import LogRow, LogTable, read_log
from linkwright.libraries.times import predicted
from linkwright.machines import Variant
from linkwright.show.picture import subjects
from linkwright.store import run as runs
from linkwright_cases import invoke
from log_cases import nccl, osu

SIZES = [1 << at for at in range(13, 31)]
NODE = System("hgx-h100", 1, 8, None, "nccl-2.27", "allreduce")
ASKED = subjects.Asked(size=64 << 20)
DGX1 = System("dgx1-p100", 1, 8, None, "nccl-2.3.5", "allreduce")
GX8 = System("gx8-p100", 1, 8, None, "nccl-2.3.5", "allreduce")
CHIP = System("wormhole-n150", 1, 64, None, "", "allreduce")
PAIR = System("hgx-h100", 2, 8, "ndr-fat-tree", "nccl-2.27", "allreduce")


PCIE = System("l40s", 1, 8, None, "nccl-2.27", "allreduce")


def hypothesis(system, kind):
    """The first case of a kind, as a system."""
    return next(case.system for case in cases(system) if case.kind == kind)


def table(system, factor=1.0, sizes=SIZES):
    """What a benchmark would print on a system."""
    rows = tuple(LogRow(size, system.time(size).time_us * factor, at) for at, size in enumerate(sizes, 1))
    return LogTable("nccl-tests", system.collective, system.ranks, system.nodes, "float", "sum", None, rows)


def kinds(answer):
    return [[case.kind for case in suspect.cases] for suspect in answer.suspects]


def test_a_healthy_log_is_fine_and_has_no_suspects():
    answer = logs.explained(table(NODE, 1.05), NODE, "")
    assert (answer.verdict.word, answer.suspects) == ("fine", [])
    assert answer.verdict.share == pytest.approx(1 / 1.05)
    assert answer.distance == pytest.approx(1.05)


def test_tables_of_equal_tests_share_their_machine_and_its_times(tmp_path):
    """A log with a table twice has the answer twice, and is judged in one sentence."""
    log = tmp_path / "log.txt"
    log.write_text(nccl() + "\n" + nccl() + "\n")
    first, second = logs.answers(read := read_log(log), logs.tables(read), None, Variant(), None, causes=False)
    assert first.system is second.system
    assert (first.points, first.verdict, first.binds) == (second.points, second.verdict, second.binds)
    (sentence,) = LogJudged(log, read, [first, second]).sentences
    assert sentence.endswith(" 2 tables have this verdict.")


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [
        (1.0, "fine"), (1.05, "fine"), (1.07, "unsure"), (1.12, "suspicious"), (1.99, "suspicious"), (2.01, "broken"),
        (0.7, "faster than expected"),
    ],
)  # fmt: skip
def test_verdicts_follow_their_thresholds(factor, verdict):
    """The floor of published systems (94 %), 50 % of the healthy rate, and 1 / 80 % above it."""
    assert logs.explained(table(NODE, factor, SIZES[-4:]), NODE, "").verdict.word == verdict


@pytest.mark.parametrize(
    ("healthy", "fault", "kind"),
    [
        (NODE, NODE.having(algorithm="nccl-2.27/ring"), "algorithm"),
        (NODE, NODE.having(algorithm="nccl-2.27/ring/ll"), "protocol"),
        (NODE, NODE.lacking("nvlink"), "no links"),
        (NODE, NODE.slowed("nvlink", 0.25), "links down"),
        (PAIR, PAIR.on("gpudirect=0"), "no GPUDirect"),
        (PAIR, PAIR.having(fabric="sockets"), "sockets"),
        (PAIR, PAIR.lacking("NIC 6", "NIC 7"), "missing ports"),
        (NODE, NODE.slowed("GPU 3", 0.5), "slow rank"),
        (NODE, hypothesis(NODE, "low clock"), "low clock"),
        (PAIR, PAIR.slowed_all([f"node 0 NIC {at} - leaf {at}" for at in range(8)], 0.25), "neighbour"),
        (PCIE, hypothesis(PCIE, "no peer access"), "no peer access"),
    ],
)
def test_a_fault_is_recognised_by_its_curve(healthy, fault, kind):
    """Three percent of noise between the simulated fault and the log."""
    answer = logs.explained(table(fault, 1.03), healthy, "")
    # One slow rank and all, or a low clock and links that are down, give nearly one curve.
    found = next(one for one in answer.suspects[:2] if kind in {case.kind for case in one.cases})
    assert found.distance <= 1.03 + 1e-3  # less where the strength of the fault gives it


def test_curves_that_times_cannot_tell_apart_share_a_place():
    assert {"no GPUDirect", "ACS"} in map(set, kinds(logs.explained(table(PAIR.on("gpudirect=0")), PAIR, "")))


def test_a_cause_that_is_no_likelier_than_a_healthy_machine_is_listed_where_something_is_wrong():
    """Sizes up to 1M take two to three times as long: one process, or a protocol that is worse at large sizes, too."""
    sizes = [1 << at for at in (10, 13, 15, 18, 20, 23, 25, 28, 30, 33)]
    factors = (2.2, 2.6, 2.4, 3.3, 2.2, 1.4, 1.0, 1.1, 0.9, 1.15)
    rows = tuple(LogRow(size, NODE.time(size).time_us * by, 1) for size, by in zip(sizes, factors, strict=True))
    asked = LogTable("nccl-tests", "allreduce", 8, 1, "float", "sum", None, rows)
    answer = logs.explained(asked, NODE, "")
    assert answer.verdict.word != "fine"
    assert [its[0] for its in kinds(answer)[:2]] == ["one process", "protocol"]


# ---- how probable a curve makes a log

LARGE = [1 << at for at in range(26, 34)]


def test_an_effect_at_one_size_alone_is_not_relied_on():
    """A library switches protocols at other sizes than the model: a peak that the log lacks says little."""
    healthy = dict.fromkeys((1 << at for at in range(20, 30)), 1.0)
    twice = dict.fromkeys(healthy, 2.0)
    log = Observed(twice, healthy, 1.0)
    peak, step = ({size: 8.0 if at in its else 2.0 for at, size in enumerate(healthy)} for its in ((4,), (4, 5)))
    assert log.fit(peak)[1] < 1.1 < 1.4 < log.fit(step)[1]


def observed(measured, healthy):
    return Observed(dict(zip(LARGE, measured, strict=True)), dict(zip(LARGE, healthy, strict=True)), 1.0)


def rates(*shares):
    """Times at these shares of one rate."""
    return [size / 1e5 / share for size, share in zip(LARGE, shares, strict=True)]


def test_distance_is_the_root_of_the_mean_square():
    """ln 2 at one of eight sizes that the model knows alike: sqrt(ln(2)^2 / 8)."""
    healthy = rates(*[1] * 8)
    log = observed(rates(0.5, *[1] * 7), healthy)
    assert log.fit(log.healthy)[1] == pytest.approx(math.exp(math.log(2) / math.sqrt(8)))


def test_a_fault_may_be_stronger_than_it_was_simulated():
    """A third of the rate, simulated as a half: ln 3 = 1.58 ln 2. Half of ln 2 may be missing, and the rest is left."""
    log = observed(rates(*[1 / 3] * 8), rates(*[1] * 8))
    half = dict(zip(LARGE, rates(*[0.5] * 8), strict=True))
    assert log.fit(half, strength=0.6)[1] == pytest.approx(1)
    assert log.fit(half, strength=0.5)[1] == pytest.approx(1.5 / math.sqrt(2))
    assert log.fit(half)[1] == pytest.approx(1.5)
    assert log.fit(half, strength=0.6)[0] > log.fit(half, strength=0.15)[0] > log.fit(log.healthy)[0]


def test_what_changes_small_sizes_alone_does_not_explain_large_ones():
    """Half of the rate at large sizes: a curve with slow small sizes is no likelier than the healthy one."""
    sizes = [1 << at for at in range(10, 34, 3)]
    healthy = {size: 20 + size / 1e5 for size in sizes}
    log = Observed({size: 20 + size / 5e4 for size in sizes}, healthy, 1.0)
    slow_start = {size: 60 + size / 1e5 for size in sizes}
    half = {size: 20 + size / 5e4 for size in sizes}
    assert log.fit(slow_start, 0.15)[0] <= log.fit(healthy)[0] < log.fit(half, 0.5)[0]


def test_probabilities_are_shares_of_all_that_was_thought_of():
    answer = logs.explained(table(PAIR.having(fabric="sockets"), 1.03), PAIR, "")
    assert 0.7 < answer.suspects[0].probability <= sum(one.probability for one in answer.suspects) < 1
    assert logs.doubts(answer) == []
    unsure = replace(answer, verdict=replace(answer.verdict, word="unsure"))
    assert logs.doubts(unsure)[0].startswith("Whether anything is wrong is unsure; ")


def test_one_size_is_not_certain():
    """A single number fits many causes: the answer says so, with the first one's probability."""
    answer = logs.explained(table(PAIR.slowed("port", 0.5), 1.0, SIZES[-1:]), PAIR, "")
    assert answer.suspects[0].probability < 0.7
    doubts = logs.doubts(answer)
    assert doubts[0].startswith("Indistinguishable by this log: ")
    assert f"has {answer.suspects[0].probability:.0%}" in doubts[1]


def test_few_sizes_keep_the_ends():
    assert few(range(100), 5) == [0, 25, 50, 74, 99]
    assert few([4, 2, 2]) == [2, 4]


def test_every_hypothesis_says_how_to_check_it():
    assert len({one.key for one in HYPOTHESES}) == len(HYPOTHESES)
    found = list(cases(PAIR))
    assert all(case.what and case.cause and case.check and case.cure for case in found)
    assert {case.kind for case in found} >= {"algorithm", "protocol", "ACS", "sockets", "SHARP", "missing ports"}


def test_what_is_twice_as_good_is_simulated():
    """A ring over NVLink spends its time on a channel's rate: doubled, it gains, and no link of PCIe does."""
    ring = NODE.having(algorithm="nccl-2.27/ring/simple")
    found = ring.binds(1 << 30)
    assert all(one.gain > 0 for one in found)
    assert [one.gain for one in found] == sorted((one.gain for one in found), reverse=True)
    assert any("nvlink" in one.key for one in found)
    assert not any("pcie" in one.key for one in found)


@pytest.mark.parametrize("size", [1 << 13, 1 << 30])
def test_latencies_are_left_out_only_where_all_together_gain_nothing(size):
    """A small allreduce lives on latencies, a large one does not; each is as if every number was tried alone."""

    def time(on):
        return predicted(on, NODE, size).time_us

    machine = NODE.described
    alone = {}
    for row in machine.numbers():
        if (value := sensitivity._better(row)) is not None:
            alone[row["key"]] = 1 - time(machine.with_value(row["key"], value)) / time(machine)
    found = {one.key: one.gain for one in sensitivity.effects(machine, time)}
    assert found == {key: gain for key, gain in alone.items() if gain >= sensitivity.LEAST}


def test_a_schedule_has_its_limit_its_parts_and_faster_ones():
    machine = lw.machine("dgx1-p100")
    ring = lw.schedule("allreduce", "ring", ranks=8, size="64M")
    found = schedule.explain("ring", subjects.question(machine, "allreduce/ring", ASKED), machine)
    assert found.time_us == pytest.approx(lw.simulate(ring, machine).time_us)
    assert sum(share for _, share in found.spent) == pytest.approx(1, abs=0.03)
    assert found.limit_us < found.time_us
    assert found.better[0][0] == "allreduce/hamiltonian_rings_bidirectional"
    assert all(time < found.time_us for _, time in found.better)


# What is wrong with a machine of our own, the log that it gives, and the words of the true cause.
OWN = {
    "dgx1-p100": (DGX1.lacking("GPU 2 - GPU 3"), SIZES[::3], "one link between GPUs is missing"),
    "gx8-p100": (GX8.having(detours=True), SIZES[::3], "through the processor instead of their switch"),
    "wormhole-n150": (CHIP.lacking("NoC 0"), [1 << 15, 1 << 17], "NoC 0 carries nothing"),
}


@pytest.mark.parametrize("machine", OWN)
def test_the_true_cause_is_among_the_first_three(tmp_path, machine):
    """The link that is gone is another one than the one that is tried."""
    system, sizes, cause = OWN[machine]
    file = written(tmp_path, system, sizes, name="P", factor=1.02, version="2.3.5")
    answer = invoke("explain", str(file), "--on", machine)
    assert answer.status == 0, answer.err
    places = " ".join(answer.out.partition("simulated causes of your numbers")[2].partition("4. ")[0].split())
    assert cause in places


def test_a_detour_goes_through_the_switch_above():
    nodes = {"name": ["GPU 0", "GPU 1", "root", "riser", "NIC 0", "NIC 1"]}
    kinds = ["rank"] * 2 + ["switch"] * 4
    ends = {"a": [2, 3, 3, 2, 3], "b": [3, 0, 1, 4, 5]}  # a NIC at the riser leads nowhere
    way = ["riser", "root", "riser"]

    def found(edges):
        columns = {"class": ["pcie"] * 5, **ends}
        edges = {name: [column[edge] for edge in edges] for name, column in columns.items()}
        return detours.routes({"nodes": {**nodes, "kind": kinds, "group": [-1] * 6}, "edges": edges})

    assert found([4, 0, 1, 2, 3]) == [("GPU 0", "GPU 1", way), ("GPU 1", "GPU 0", way)]
    assert found([1, 2, 4]) == []
    assert not DGX1.can_detour  # its GPUs have links of their own


def test_a_low_clock_leaves_links_alone():
    """Start-ups take 1 / 0.7 times as long and channels carry 0.7 times as much."""
    slow = hypothesis(NODE, "low clock").described
    before, after = ({row["key"]: float(row["value"]) for row in machine.numbers() if row["unit"] in ("us", "GB/s")}
                     for machine in (NODE.described, slow))  # fmt: skip
    factors = {key: after[key] / value for key, value in before.items() if value}
    assert factors["fabric.transport.nvlink_simple.start"] == pytest.approx(1 / 0.7)
    assert factors["fabric.transport.nvlink_simple.channel"] == pytest.approx(0.7)
    assert factors["fabric.links.nvlink.bandwidth"] == 1


def test_a_low_clock_lowers_links_whose_channels_no_file_states():
    """MI300X: what eight GPUs carry falls with the clock."""
    node = System("mi300x", 1, 8, None, "rccl-2.22", "allreduce")
    size = 1 << 33
    assert hypothesis(node, "low clock").time(size).time_us == pytest.approx(node.time(size).time_us / 0.7, rel=0.02)


def test_sockets_may_use_the_port_of_another_network():
    """All GPUs of a node share a port of 100 Gb/s, or of 25."""
    pair = System("a100-polaris", 2, 4, "slingshot-11", "nccl-2.18", "alltoall")
    fast, slow = (case.system.time(1 << 28).time_us for case in cases(pair) if case.kind == "sockets")
    assert slow == pytest.approx(4 * fast, rel=0.1)


def test_what_to_type_is_of_the_vendor():
    assert "amd-smi" in System("mi300x", 1, 8, None, "rccl-2.22", "allreduce").command("links")
    assert "nvidia-smi" in NODE.command("links")


def test_a_protocol_without_a_way_through_the_host_takes_the_usual_one():
    """Without the links between GPUs and NICs, 256 KiB go by LL128 over the memory of the host."""
    assert PAIR.lacking("nic").time(1 << 18).time_us > PAIR.time(1 << 18).time_us


# ---- what users see


def written(folder, system, sizes, name="NVIDIA H100 80GB HBM3", factor=1.0, version="2.27.3"):
    """The log of nccl-tests on a system."""
    times = {size: system.time(size).time_us * factor for size in sizes}
    text = nccl(times=times, in_place=False, ranks=system.ranks, nodes=system.nodes, name=name)
    file = folder / "all_reduce.log"
    file.write_text(f"NCCL version {version}+cuda12.9\n{text}")
    return file


@pytest.fixture
def log(tmp_path):
    """The log of eight H100s with a ring where NVLS should be."""
    return written(tmp_path, NODE.having(algorithm="nccl-2.27/ring"), (1 << 20, 1 << 26, 1 << 30))


def test_a_log_is_explained_on_one_screen(log):
    answer = invoke("explain", str(log))
    assert answer.status == 0
    assert "healthy machine: hgx-h100, nccl-2.27" in answer.out
    assert "Verdict: suspicious. At 1G you have 360 GB/s, a healthy machine has 477" in answer.out
    assert "likely, 0% away: the library uses Ring" in answer.out
    assert all(len(line) <= 88 for line in answer.out.replace(str(log), "").splitlines())


def test_the_machine_may_be_given(log):
    assert "(given: " not in invoke("explain", str(log)).out
    answer = invoke("explain", str(log), "--on", "dgx-a100")
    assert "Verdict: faster than expected" in answer.out


@pytest.mark.parametrize(
    ("text", "words", "says"),
    [
        (nccl(devices=False), (), "names no device"),
        (nccl(devices=False), ("--ranks", "8"), "names no device"),
        (nccl(name="Abacus 9000"), (), "no rule knows the machine `Abacus 9000`"),
        (nccl(), ("--ranks", "9", "--nodes", "2"), "every node must have the same number"),
        (nccl(), ("--table", "2"), "has 1 table that can be explained"),
        (nccl(), ("--size", "1M"), "--size does not apply to a log"),
        (osu("Latency"), (), "no times of a collective"),
        ("nothing\n", (), "is neither a log nor a dump of a known tool"),
    ],
)
def test_a_log_that_says_too_little_has_a_cure(tmp_path, text, words, says):
    file = tmp_path / "x.log"
    file.write_text(text)
    answer = invoke("explain", str(file), *words)
    assert answer.status != 0
    assert says in answer.err


def test_equal_tables_have_one_answer(tmp_path):
    file = tmp_path / "x.log"
    table = nccl()
    file.write_text(table)
    alone = invoke("explain", str(file)).out
    file.write_text(table + table)
    twice = invoke("explain", str(file)).out
    alone, twice = (re.sub(r"\d+ lines skipped", "lines skipped", text) for text in (alone, twice))
    assert twice == f"{alone}\n2 tables of the log have this answer.\n"
    assert len(json.loads(invoke("explain", str(file), "--json").out)["tables"]) == 2


def test_markup_of_a_log_stays_text(tmp_path):
    file = tmp_path / "x.log"
    file.write_text(nccl(name="NVIDIA H100 80GB HBM3 \x1b]0;x\x07<script>alert(1)</script>"))
    answer = invoke("explain", str(file))
    assert "\x1b" not in answer.out + answer.err
    assert "\x07" not in answer.out + answer.err


def test_a_plan_of_a_library_is_a_schedule():
    """At 1 GiB the plan stands for a longer one; its time is that of the library."""
    machine = NODE.described
    asked = subjects.question(machine, "allreduce/nccl-2.27/ring/simple", subjects.Asked(size=1 << 30))
    found = schedule.explain("nccl", asked, machine)
    assert found.time_us == pytest.approx(NODE.having(algorithm="nccl-2.27/ring/simple").time(1 << 30).time_us)
    assert found.question.chosen.startswith("Ring Simple")
    assert "allreduce/nccl-2.27" in dict(found.better)


def test_a_source_runs_on_all_ranks_of_the_machine():
    answer = invoke("explain", "examples/own_allreduce.py:bucket", "--on", "torus-2d", "--size", "16K")
    assert answer.status == 0, answer.err
    assert "on torus-2d, 64 ranks" in answer.out


# A dispatch and a combine lack more than an algorithm: `test_uneven.py`.
@pytest.mark.parametrize(
    "collective", [row["key"] for row in _native.collectives() if row["key"] not in ("dispatch", "combine")]
)
def test_a_collective_alone_is_no_schedule_and_the_cure_is_one(collective):
    said = invoke("explain", collective, "--on", "torus-2d").err
    cure = re.search(r"add one of its algorithms, such as `(\S+)`", said)[1]
    assert cure in {row["key"] for row in _native.algorithms()}


@pytest.mark.parametrize("name", ["./no.xyz", "no.log", "no.lw", "/no/such"])
@pytest.mark.parametrize("more", [(), ("--on", "torus-2d")])
def test_a_path_that_leads_nowhere_is_said_to(name, more):
    assert f"{name}: there is no such file" in invoke("explain", name, *more).err


def test_the_picture_shows_a_size_that_the_verdict_is_about(tmp_path):
    """A launch far from healthy tells nothing of links; under most faults small sizes are as on a healthy machine."""
    healthy = NODE.times(SIZES)
    path = tmp_path / "slow.log"
    path.write_text(nccl(times={size: time * (9 if size <= 1 << 14 else 2) for size, time in healthy.items()}))
    log = read_log(path)
    (answer,) = logs.answers(log, logs.tables(log), None, Variant(), None)
    assert answer.suspects
    assert answer.worst_size in {point.size for point in answer.verdict.judged}


def test_a_schedule_needs_a_machine():
    assert "name the machine that runs it with --on" in invoke("explain", "allreduce/ring").err
    answer = invoke("explain", "allreduce/ring", "--on", "dgx1-p100", "--size", "64M")
    assert "hamiltonian_rings_bidirectional" in answer.out
    assert "--table does not apply to a schedule" in invoke("explain", "allreduce/ring", "--table", "1").err


ROW = {
    "machine": "m", "collective": "allreduce", "ranks": 4, "size_bytes": 1024, "dtype": "f32", "metric": "time",
    "status": "ok", "limit": 50.0, "limit_name": "cut", "best_seen": None, "best_seen_name": None, "precision": 0.02,
    "grade": "tight", "unit": "ns", "reason": None,
}  # fmt: skip


def test_a_run_names_its_fastest_algorithms():
    times = {"ring": 200.0, "tree": 100.0}
    rows = [ROW | {"algorithm": name, "experiment": name, "value": value} for name, value in times.items()]
    (found,) = run.fastest(rows)
    assert (found.algorithm, found.share, found.others) == ("tree", 0.5, (("ring", 2.0),))
    text = "\n".join(run.of_row(run.row(rows, "ring")))
    assert "25% of the limit (cut)" in text
    assert "faster in this run: tree (-50%)" in text


def test_an_unknown_experiment_suggests_the_nearest():
    with pytest.raises(errors.UnknownNameError, match="did you mean `ring`"):
        run.row([ROW | {"algorithm": "ring", "experiment": "ring", "value": 1.0}], "rang")


# ---- what a search finds


def searched(size, collective="allreduce", launch_ps=0):
    return faster.search("loggp", Variant(), collective, 4, size, 0.5, launch_ps)


def test_a_search_says_how_to_switch_its_winner_on():
    found = searched(1 << 16)
    file = "found/allreduce-loggp-4-64K.msccl-xml"
    asked = "linkwright synthesize allreduce --on loggp --ranks 4 --sizes 64K --budget 0.5s --seed 1 --out found"
    assert found.write == f"{asked} --as msccl-xml"
    assert found.switch_on.endswith(f"MSCCL_XML_FILES={file} NCCL_ALGO=MSCCL,RING,TREE")
    assert sum(found.spent.values()) == pytest.approx(1, abs=0.01)


def test_the_start_of_a_library_is_added_to_what_a_search_finds():
    first, second = (searched(16, launch_ps=launch).time_us for launch in (0, 5_000_000))
    assert second - first == pytest.approx(5)


def test_what_cannot_be_searched_is_refused():
    with pytest.raises(errors.LinkwrightError):
        searched(1 << 10, collective="sendrecv")


@pytest.mark.parametrize("more", [(), ("--search", "500ms")])
def test_the_document_of_a_schedule_is_valid_and_says_what_the_text_says(more):
    jsonschema = pytest.importorskip("jsonschema")
    asked = ("explain", "allreduce/ring", "--on", "loggp", "--ranks", "4", "--size", "1K", *more)
    found = json.loads(invoke(*asked, "--json").out)
    jsonschema.Draft7Validator(json.loads(schemas.path("schedule").read_text(encoding="utf-8"))).validate(found)
    assert format_us(found["time_us"]) in invoke(*asked).out
    assert bool(found["found"]) == bool(more)


def test_a_found_schedule_stands_in_text_and_page(tmp_path):
    asked = ("allreduce/ring", "--on", "loggp", "--ranks", "4", "--size", "1K", "--search", "500ms")
    answer = invoke("explain", *asked, "--report", str(tmp_path / "a.html"))
    assert answer.status == 0, answer.err
    assert "what a search found" in answer.out
    text = (tmp_path / "a.html").read_text()
    assert "Why it is faster" in text
    assert "found by a search" in text


@pytest.mark.parametrize("words", [("--search", "1s"), ("--gate",), ("--json",)])
def test_options_of_logs_do_not_apply_to_a_run_that_exists(tmp_path, words):
    made = runs.create(tmp_path, "dissect", "", {})
    made.write_results([], runs.samples_table(made, []))
    said = {name: invoke("explain", name, *words, "--runs", str(tmp_path)).err for name in (made.id, "no", "no.log")}
    assert f"{words[0]} does not apply to a run, and `{made.id}` is one" in said[made.id]
    assert "unknown run `no`" in said["no"]
    assert "no.log: there is no such file" in said["no.log"]


def test_sizes_of_one_rank_are_those_of_all_that_take_part(tmp_path):
    """An alltoall of OSU states the block of one rank, and not how many ranks there were."""
    log = tmp_path / "osu.txt"
    log.write_text(osu("All-to-All Personalized Exchange Latency"), encoding="utf-8")
    done = invoke("explain", str(log), "--on", "leonardo-mpi", "--nodes", "4", "--ranks", "4", "--fabric", "hdr-hosts")
    assert done.status == 0, done.err
    assert "4M " in done.out  # 1 MiB of each of four
