"""Schedules on the cores of a chip: the kernel on CPU threads under sanitizers, and the executor around it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import cases
import numpy as np
import pytest
from walks import Case, needs_compiler, places, sweep

from linkwright import _native
from linkwright.ask import schedules
from linkwright.ask.question import Collective
from linkwright.base import registry
from linkwright.base.errors import ExecError, NoMetaliumError, WaivedError, WrongResultError
from linkwright.executors.metalium import launch, lower, runtime
from linkwright.executors.metalium.image import INSTRUCTION, Timing, rectangle
from linkwright.executors.process import Sampling
from linkwright.executors.protocol import Extent, Options
from linkwright.session.suite import load
from linkwright.session.suite.expand import expand
from linkwright_cases import invoke


@needs_compiler
@pytest.mark.parametrize(("ranks", "least"), [(4, 75), (8, 75), (16, 75)])
def test_every_algorithm_is_right_element_by_element(ranks, least):
    checked = {case.name: case.check(case.rows()) for case in sweep((ranks,), 96)}
    assert len(checked) >= least
    assert {name for name, elements in checked.items() if not elements} <= {
        name for name in checked if name.startswith("barrier")
    }


@needs_compiler
def test_no_two_processors_race():
    for case in sweep((8,), 37, (("f32", "sum"),)):
        case.check(case.rows(sanitizer="thread"))


@needs_compiler
def test_patterns_are_right():
    found = [Case(case) for case in cases.patterns(24)]
    assert len(found) > 10
    for case in found:
        case.check(case.rows())


@needs_compiler
@pytest.mark.parametrize(
    ("dtype", "op"),
    [("f32", "prod"), ("f64", "sum"), ("i32", "sum"), ("i64", "prod"), ("u8", "min"), ("bf16", "max")],
)
def test_every_type_and_operator(dtype, op):
    for elements in (1, 33, 256):
        case = Case(cases.build("reduce/binomial", 3, elements, dtype, op))
        assert case.check(case.rows()) == elements


@needs_compiler
def test_repetitions_wait_for_one_another_and_are_timed():
    case = Case(cases.build("allgather/ring", 8, 96))
    rows = case.rows(repetitions=5)
    assert case.check(rows)
    times = case.image.times(rows, 5)[0]  # by (rank, repetition, stamp)
    assert (times[..., 1] > times[..., 0]).all()
    assert (times[:, 1:, 0].min(axis=0) > times[:, :-1, 1].max(axis=0)).all()


@needs_compiler
def test_cores_may_lie_anywhere():
    case = Case(cases.build("allreduce/ring", 4, 64), at=[(3, 1), (0, 0), (2, 2), (1, 0)])
    assert case.check(case.rows())


@needs_compiler
def test_a_missing_acknowledgement_is_noticed():
    """The cores of the tests deliver late, as a network may: what a schedule forgets to wait for comes out wrong."""
    case = Case(cases.build("allgather/ring", 8, 96))
    for walker, code in case.lowered.programs.items():
        case.lowered.programs[walker] = [word for word in code if word[0] & 255 != lower.LANDED]
    wrong = 0
    for seed in range(20):
        try:
            case.check(case.rows(seed=seed, patience=10**5))
        except WrongResultError:
            wrong += 1
    assert wrong


@needs_compiler
def test_a_processor_that_waits_in_vain_says_for_what():
    case = Case(cases.build("broadcast/ring", 4, 64))
    code = case.lowered.programs[lower.Walker(2, 0)]
    last = max(at for at, word in enumerate(code) if word[0] & 255 == lower.RAISE)
    del code[last]  # rank 2 tells rank 3 nothing
    with pytest.raises(
        ExecError, match=r"rank 3 on core \(1, 1\), processor 0, waited too long for notice 1 of rank 2"
    ):
        case.check(case.rows(patience=10**4))


@needs_compiler
def test_one_rank_needs_nobody():
    case = Case(cases.build("allreduce/ring", 1, 8))
    assert case.check(case.rows()) == 8


def test_a_multicast_to_a_rectangle_is_one_write():
    case = Case(cases.build("broadcast/multicast", 8, 64))
    codes = [word[0] & 255 for word in case.lowered.programs[lower.Walker(0, 0)]]
    assert codes.count(lower.MULTICAST_TOO) == 1
    assert lower.WRITE not in codes


def test_lanes_take_turns_between_two_processors():
    one, two = (Case(cases.build(f"allreduce/{key}", 16, 96)) for key in ("ring", "hamiltonian_rings_bidirectional"))
    assert (one.lowered.processors, two.lowered.processors) == (1, 2)
    assert all(len(code) > 10 for code in two.lowered.programs.values())


@needs_compiler
def test_writes_that_no_wait_separates_share_a_notice():
    """16 writes to one core: a notice of when all begin, and one for all of them."""
    made = _native.Schedule.pattern("pattern/pairs", 2, 16, count=16)
    case = Case(cases.Case("pairs", made, "u8", "sum"))
    codes = [word[0] & 255 for word in case.lowered.programs[lower.Walker(0, 0)]]
    assert (codes.count(lower.WRITE), codes.count(lower.RAISE)) == (16, 2)
    case.check(case.rows())


@needs_compiler
@pytest.mark.parametrize("windows", [1, 4, 16, 64])
def test_a_blocking_policy_signals_each_window(windows):
    """Two steps of a whole vector of 16 chunks: a notice for each window, one at the start, one for each buffer."""
    made = _native.Schedule.build("allreduce/swing_latency", 4, 1024).unfuse().refine(16).windows(windows)
    case = Case(cases.Case("signals", made, "f32", "sum"), batch=launch.batch("blocking"))
    assert case.check(case.rows())
    codes = [word[0] & 255 for word in case.lowered.programs[lower.Walker(1, 0)]]
    assert codes.count(lower.RAISE) >= 2 * windows
    assert codes.count(lower.WRITE) == 2 * min(windows, 16)


def test_issue_policies_are_batches():
    said = {issue: launch.batch(issue) for issue in (None, "unlimited", "blocking", "batch(4)", "window(16)")}
    assert said == {None: None, "unlimited": None, "blocking": 1, "batch(4)": 4, "window(16)": 16}


def test_an_instruction_is_small():
    assert 4 * INSTRUCTION <= 24


def test_what_does_not_fit_is_refused_before_anything_is_compiled():
    case = cases.build("allgather/ring", 8, 1 << 19)
    with pytest.raises(WaivedError, match=r"a core needs 2\d{6} bytes of L1.*has 1393312; use a smaller size"):
        Case(case)
    with pytest.raises(WaivedError, match="memories beside its ranks"):
        Case(cases.build("allreduce/shared_memory", 4, 16))


def test_rectangles_are_as_square_as_possible():
    assert [rectangle(ranks, 8, 9) for ranks in (1, 4, 8, 12, 64, 72, 7, 11, 73)] == [
        (1, 1), (2, 2), (4, 2), (4, 3), (8, 8), (8, 9), (7, 1), None, None,
    ]  # fmt: skip


# The executor, with a runtime whose chip is CPU threads.


def run(*words: str) -> tuple[int, str]:
    """Exit status and what was said, on one line."""
    command = [sys.executable, "-m", "linkwright", "run", *words, "--on", "metalium", "--time-budget", "2s"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.returncode, " ".join((done.stdout + done.stderr).replace("#", " ").split())


def test_a_run_is_right_and_says_that_it_is_simulated(environment):
    status, said = run("allreduce", "--algorithm", "ring", "--sizes", "1K")
    assert status == 0, said
    assert "metalium: Wormhole simulated by wolfpine; simulated by wolfpine, not measured" in said
    assert "4 of 72 workers take part" in said
    rows = json.loads(invoke("query", "select machine, flags from results where metric = 'time'", "--json").out)
    assert {row["machine"] for row in rows} == {"Wormhole simulated by wolfpine"}
    assert all("simulated" in row["flags"] for row in rows)


def test_without_arithmetic_moves_and_waits_are_the_same():
    """A ring of 4 combines 3 times on each rank; nothing else is gone."""
    case = Case(cases.build("allreduce/ring", 4, 64))
    plain = case.lowered.without_arithmetic()
    assert case.lowered.combines
    assert not plain.combines
    for walker, code in case.lowered.programs.items():
        assert len(code) - len(plain.programs[walker]) == 3
        assert [word for word in code if word[0] & 255 != lower.COMBINE] == plain.programs[walker]


def ring(**more) -> Collective:
    asked = {"collective": "allreduce", "op": "sum", **more}
    return Collective("run", "ring", 4, 1024, "f32", grid=(2, 2), **asked)


def test_a_run_without_arithmetic_is_not_checked(environment):
    measurer = launch.CoreMeasurer(runtime.runtime(), places(4))
    sampling = Sampling.of(Options(samples=1), 0, 60.0)
    notes = {
        arithmetic: {note.code for note in measurer.measure(ring(arithmetic=arithmetic), sampling).notes}
        for arithmetic in (True, False)
    }
    assert notes[False] - notes[True] == {"no-arithmetic", "unchecked"}
    # Nothing is combined in a gather, so nothing is left out of it.
    gathered = ring(collective="allgather", op=None, arithmetic=False)
    assert {note.code for note in measurer.measure(gathered, sampling).notes} == {"no-arithmetic", "simulated"}


@needs_compiler
def test_the_suite_of_the_thesis_is_right_on_cores():
    """All that a quick run on 16 cores asks, but for the memory in DRAM."""
    suite = load.load(registry.suite_path("metalium")).at("quick")
    waived = []
    for question in expand(suite, Extent("measured", 16, (4, 4))):
        schedule = _native.without_aggregations(schedules.of(question))
        try:
            case = Case(cases.Case(question.key, schedule, question.dtype, question.op or "sum"))
        except WaivedError:
            waived.append(question.part)
        else:
            case.check(case.rows())
    assert waived == ["shared_memory"]


def test_a_pair_of_cores_is_a_placement(environment):
    status, said = run("pattern/ping_pong", "--sizes", "64", "--ranks", "4")
    assert status == 0, said


def test_a_path_is_the_network_of_even_lanes(environment, monkeypatch, tmp_path):
    monkeypatch.setenv("STAND_IN_RECORDS", str(tmp_path / "networks"))
    for arguments, networks in (((), "NOC_0"), (("--path", "noc1"), "NOC_1")):
        status, said = run("pattern/pairs", "--sizes", "64", "--ranks", "2", *arguments)
        assert status == 0, said
        assert (tmp_path / "networks").read_text() == networks
    status, said = run("broadcast", "-a", "multicast", "--sizes", "64", "--ranks", "4", "--path", "noc1")
    assert status == 0, said
    assert "there is no path `noc2`; use noc0 or noc1" in run("broadcast", "--sizes", "64", "--path", "noc2")[1]


def test_a_functional_simulator_gives_no_times(environment, monkeypatch, tmp_path):
    (tmp_path / "functional.so").touch()
    monkeypatch.setenv("TT_METAL_SIMULATOR", str(tmp_path / "functional.so"))
    _, said = run("allgather", "--algorithm", "ring", "--sizes", "1K", "--ranks", "4")
    assert "1024 elements compared, all correct; functional is functional and has no times" in said


def test_cycles_of_a_simulator_are_those_of_its_chip():
    """1 GHz and 1.35 GHz, by the machine files."""
    assert launch.described_rate("wormhole_b0") == 1.0
    assert launch.described_rate("blackhole") == 1.35
    with pytest.raises(WaivedError, match="no machine file has its clock"):
        launch.described_rate("grayskull")


def test_of_a_board_clocks_are_compared_and_repetitions_sampled(environment):
    device = runtime.runtime()
    device.simulator = None  # as if the chip were one
    measurer = launch.CoreMeasurer(device, places(4))
    question = ring(collective="allgather", op=None)
    found = measurer.measure(question, Sampling.of(Options(samples=8), 0, 60.0))
    assert len(found.values_ns) == 8
    assert len(found.ranks_ns) == 4
    assert not [note for note in found.notes if note.code == "simulated"]
    (clocks,) = measurer._clocks.values()
    assert clocks.rate == pytest.approx(1e-4, rel=0.2)  # a cycle of these cores is 10 us
    assert max(map(abs, clocks.offsets)) <= 2 * clocks.wrong + 1e6


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--ranks", "73"), "--ranks 73: this Wormhole has 72 workers; ask for at most 72"),
        (("--grid", "9x2"), "--grid 9x2: this Wormhole has 8 columns and 9 lines of workers"),
        (("--ranks", "8", "--sizes", "4M"), "bytes of L1"),
    ],
)
def test_what_the_chip_does_not_have_is_refused(environment, words, said):
    assert said in run("allgather", "--algorithm", "ring", *words)[1]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: shutil.rmtree(folder / "bin"), "there is no bin/python); `make setup-metalium`"),
        (lambda folder: shutil.rmtree(folder / "site/ttnn"), "has no ttnn; `make setup-metalium` in a checkout makes"),
        (lambda folder: shutil.rmtree(folder / "site/ttnn/runtime"), "there is no compiler for the cores at"),
        (lambda folder: shutil.rmtree(folder / "site/framework"), "there is no board (/dev/tenstorrent), and no sim"),
    ],
)
def test_what_is_missing_is_named_with_its_cure(environment, spoil, said):
    spoil(environment)
    with pytest.raises(NoMetaliumError) as caught:
        runtime.runtime()
    assert said in str(caught.value)
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("TT_METAL_SIMULATOR", "/nowhere/at/all", "TT_METAL_SIMULATOR=/nowhere/at/all: there is no such file"),
        ("STAND_IN_FAILS", "open", "the device could not be opened: TT_THROW the board is in use by process 4711"),
    ],
)
def test_a_device_that_cannot_be_opened_says_why(environment, monkeypatch, name, value, said):
    monkeypatch.setenv(name, value)
    with pytest.raises(NoMetaliumError, match="--on metalium") as caught:
        runtime.runtime()
    assert said in str(caught.value)


def test_a_process_that_dies_names_its_last_words(environment, monkeypatch):
    monkeypatch.setenv("STAND_IN_FAILS", "launch")
    case = Case(cases.build("allgather/ring", 4, 64))
    device = runtime.runtime()
    with pytest.raises(ExecError, match=r"ended the runtime's process .a line that"):
        device.launch(case.image, [case.program.initial(r) for r in range(4)], Timing(1, 0, 1 << 20, [0] * 4))


# The real runtime, where its environment exists.

REAL = (
    "allreduce/ring", "allreduce/recursive_doubling_latency", "allreduce/swing_bandwidth", "allreduce/one_shot",
    "allgather/ring", "allgather/bruck", "alltoall/linear", "reduce_scatter/ring", "reduce/binomial",
    "broadcast/multicast", "gather/linear", "allreduce/hamiltonian_rings_bidirectional",
)  # fmt: skip


@pytest.mark.parametrize("key", REAL)
def test_the_runtime_agrees(device, key):
    (made,) = cases.buildable(key, (4,), 96, "i32") if key != REAL[-1] else [cases.build(key, 8, 96, "i32")]
    case = Case(made)
    timing = Timing(1, 1000, launch.patience(device, case.image), [0] * case.program.ranks)
    initial = [case.program.initial(rank) for rank in range(case.program.ranks)]
    rows, _ = device.launch(case.image, initial, timing, *case.kind)
    assert case.check(rows)
    assert np.ptp(case.image.times(rows, 1)[0, :, 0, 0]) < 1000  # cycles: they start together


def test_the_kernel_is_small(device):
    found = [
        elf for elf in (runtime.python().parents[1] / "cache").rglob("*risc.elf") if "Kernel_Source_Code" in str(elf)
    ]
    tool = shutil.which("riscv64-unknown-elf-size")
    if not found or not tool:
        pytest.skip("no kernel in the cache, or no `size` of the compiler")
    told = subprocess.run([tool, *map(str, found)], capture_output=True, text=True, check=True).stdout.splitlines()
    assert max(int(line.split()[0]) for line in told[1:]) <= 8192  # bytes of instructions and constants


def test_a_python_without_wheels_is_refused(tmp_path):
    if sys.version_info[:2] in ((3, 10), (3, 12)):
        pytest.skip("this Python has wheels, so the environment would be made")
    setup = runtime.KERNEL.parents[1] / "executors/metalium/setup.sh"
    done = subprocess.run(
        ["bash", setup, tmp_path / "environment", sys.executable], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "is neither Python 3.10 nor 3.12" in done.stderr
