"""The second model of faults, by which `benches/answers.py` scores `explain`: independent, seeded, plausible."""

import ast
import math
import statistics
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from linkwright.advise.explain.hypotheses import cases
from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts, Source, read_source

ROOT = Path(__file__).parents[2]
BENCHES = ROOT / "benches"
sys.path.insert(0, str(BENCHES))
import answers  # noqa: E402
import fault_model  # noqa: E402

GIB = 1 << 30
LOGS = fault_model.logs(60, seed=1)


def test_it_imports_nothing_of_linkwright():
    tree = ast.parse((BENCHES / "fault_model.py").read_text())
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert set(names) <= sys.stdlib_module_names | {"collections.abc"}
    code = "import sys, fault_model; sys.exit(any(name.startswith('linkwright') for name in sys.modules))"
    subprocess.run([sys.executable, "-c", code], cwd=BENCHES, check=True)


def test_the_same_seed_gives_the_same_logs_and_another_one_others():
    again, other = fault_model.logs(60, seed=1), fault_model.logs(60, seed=2)
    assert [one.log(lines=True) for one in again] == [one.log(lines=True) for one in LOGS]
    assert all(one.rows != two.rows for one, two in zip(LOGS, other, strict=True))
    assert [one.rows for one in fault_model.logs(20, seed=1)] == [one.rows for one in LOGS[:20]]


def test_every_fault_is_seen_on_several_systems():
    for fault in fault_model.FAULTS:
        its = [one.run for one in LOGS if one.fault == fault.key]
        assert len(its) == 4
        systems = {(run.node.machine, run.nodes, run.collective) for run in its}
        assert len(systems) >= (1 if fault.key == "multicast off" else 2), fault.key
    assert len({one.run.node.machine for one in LOGS}) == len(fault_model.NODES)
    assert {1, 2, 4, 8} == {one.run.nodes for one in LOGS}


@pytest.mark.parametrize("one", LOGS, ids=lambda one: one.fault)
def test_a_fault_slows_some_sizes_and_makes_none_faster(one):
    ratios = [one.run.time(size) / one.healthy.time(size) for size in fault_model.SIZES]
    assert min(ratios) > 0.999
    assert max(ratios) > 1.2
    small = one.fault == "one process" or one.run.protocols == ("simple",)
    assert small or ratios[-1] > 1.2


# GB/s, one node and several, of public tables: a second model that is far from them would prove nothing.
@pytest.mark.parametrize(
    ("machine", "nodes", "measured"),
    [
        ("hgx-h100", 1, 480), ("hgx-h100", 2, 470), ("dgx-a100", 1, 231), ("dgx-a100", 2, 183), ("b200", 1, 844),
        ("b200", 2, 684), ("b200", 8, 389), ("gh200-alps", 1, 339), ("gh200-alps", 4, 92), ("a100-polaris", 8, 36.1),
        ("mi300x", 1, 316), ("mi300x", 2, 357),
    ],
)  # fmt: skip
def test_healthy_allreduces_reach_what_was_published(machine, nodes, measured):
    run = fault_model.Run(fault_model.BY_MACHINE[machine], nodes, "allreduce")
    assert run.factor * 8 * GIB / run.time(8 * GIB) / 1e3 == pytest.approx(measured, rel=0.05)


# GB/s with one protocol or algorithm forced, of public tables and of the ceilings by which NCCL itself chooses.
@pytest.mark.parametrize(
    ("nodes", "forced", "low", "high"),
    [
        (1, {"protocols": ("ll",)}, 90, 185), (2, {"protocols": ("ll",)}, 22, 55),
        (1, {"algorithms": ("ring",)}, 340, 370),
        (4, {"algorithms": ("tree",)}, 180, 200), (2, {"algorithms": ("ring",)}, 380, 395),
    ],
)  # fmt: skip
def test_forced_choices_reach_what_is_known(nodes, forced, low, high):
    run = fault_model.Run(fault_model.BY_MACHINE["hgx-h100"], nodes, "allreduce", **forced)
    assert low < run.factor * 8 * GIB / run.time(8 * GIB) / 1e3 < high


# us of an allreduce of 1 KiB on one node, of public tables with a process or thread per GPU.
@pytest.mark.parametrize(
    ("machine", "measured"), [("hgx-h100", 16), ("dgx-a100", 21.8), ("b200", 25), ("gh200-alps", 9.4), ("mi300x", 13.7)]
)
def test_healthy_latencies_are_plausible(machine, measured):
    run = fault_model.Run(fault_model.BY_MACHINE[machine], 1, "allreduce")
    assert measured / 1.5 < run.time(1024) < measured * 1.5


def test_noise_is_ten_percent_and_not_one_factor():
    found = [
        math.log(one.rows[size] / one.run.time(size))
        for one in LOGS if one.fault != "port errors"
        for size in fault_model.SIZES
    ]  # fmt: skip
    assert statistics.stdev(found) == pytest.approx(fault_model.NOISE, rel=0.1)
    assert statistics.fmean(found) == pytest.approx(0, abs=0.01)


def test_shapes_are_no_scaled_healthy_curves():
    """A simulated fault mostly scales a rate; these change with size, from row to row, or by stalls."""
    for key in ("links slow", "neighbour", "low clock", "GPUDirect off", "sockets"):
        for one in (one for one in LOGS if one.fault == key and one.run.collective == "allreduce"):
            large = [size for size in fault_model.SIZES if size >= fault_model.MIB]
            ratios = [one.run.time(size) / one.healthy.time(size) for size in large]
            assert max(ratios) / min(ratios) > 1.1, (key, one.run.node.machine)
    stalled = next(one for one in LOGS if one.fault == "port errors")
    quiet = replace(stalled.run, stalls=lambda draw, size, time: 0.0)
    draws = [fault_model.random.Random(seed) for seed in range(20)]
    with_stalls = [fault_model.measured(stalled.run, 8 * GIB, draw) for draw in draws]
    draws = [fault_model.random.Random(seed) for seed in range(20)]
    without = [fault_model.measured(quiet, 8 * GIB, draw) for draw in draws]
    assert statistics.fmean(with_stalls) > statistics.fmean(without)


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("one", LOGS[:15], ids=lambda one: one.fault)
def test_logs_are_read_as_they_were_meant(one, lines):
    log = read_source(Source(Path("a.log"), one.log(lines=lines)))
    (table,) = log.tables
    assert (table.collective, table.ranks, table.nodes) == (one.run.collective, one.run.ranks, one.run.nodes)
    assert {row.size: row.time for row in table.rows} == pytest.approx(one.rows, rel=0.005)
    assert not log.complaints
    if lines:
        assert (log.facts.library, log.facts.version is not None) == (one.run.node.library[0], True)


def test_a_pasted_log_gives_nothing_away():
    for one in LOGS:
        text = one.log(lines=False)
        assert "NCCL INFO" not in text
        assert "nGpus" not in text
        assert " version " not in text


def test_posted_cases_name_their_cause_and_source():
    cases = tomllib.loads((ROOT / "tests" / "posted.toml").read_text())["case"]
    assert len(cases) == 12
    for case in cases:
        assert set(case) <= {"number", "what", "truth", "kinds", "typed", "device", "ranks", "nodes", "rows", "said",
                             "runs", "source"}  # fmt: skip
        assert bool(case["truth"]) == bool(case["kinds"])
        assert case["source"]
        if case.get("typed", True):
            assert case["ranks"] % case["nodes"] == 0
            assert all(size > 0 and rate > 0 for size, rate in case["rows"])


def test_every_fault_has_a_hypothesis_that_names_it():
    one = System("hgx-h100", 1, 8, None, "nccl-2.27", "allreduce")
    two = System("hgx-h100", 2, 8, "ndr-fat-tree", "nccl-2.27", "allreduce")
    kinds = {case.kind for system in (one, two) for case in cases(system, Facts())}
    assert set(answers.KINDS) == {fault.key for fault in fault_model.FAULTS}
    assert {kind for its in answers.KINDS.values() for kind in its} <= kinds


def test_shares_have_wilsons_interval():
    assert answers.interval(8, 12) == pytest.approx((0.391, 0.862), abs=0.001)
    assert answers.interval(60, 60)[1] == pytest.approx(1)


def test_posted_cases_become_logs():
    for case in answers.cases():
        if case.get("typed", True):
            asked = answers.retyped(case)
            table = read_source(Source(Path("a.log"), asked.text)).tables[0]
            assert (table.ranks, table.nodes) == (case["ranks"], case["nodes"])
        else:
            assert not answers.untyped(case).right
