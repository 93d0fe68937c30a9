"""`linkwright fit`: lines with change points, a known machine found again, and what is written of it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fit_cases import constant, measured, stored
from linkwright.advise.fit import hierarchy, host, prediction
from linkwright.advise.fit.points import SEEN, Point, points
from linkwright.advise.fit.protocol import Protocol
from linkwright.advise.fit.regimes import Fit, Regime, regimes
from linkwright.ask.question import Collective, Pattern
from linkwright.base.errors import StoreError
from linkwright.show.report.sections import fitted
from linkwright.store import run as runs
from linkwright_cases import invoke

KNOWN = host.Model(
    name="known", of="a known machine", run="r", ranks=2, start=constant(40), latency=constant(100),
    lines=(
        host.Line(0, constant(0), constant(0.05)),
        host.Line(4096, constant(300), constant(0.1)),
    ),
    arithmetic={
        "combine_start": constant(30), "combine_rate": constant(0.2),
        "copy_start": constant(25), "copy_rate": constant(0.08),
    },
)  # fmt: skip
SIZES = [8 * 4**k for k in range(9)]


# Two hosts of two ranks each; between hosts messages are slower in every way.
CLUSTER = replace(
    KNOWN,
    ranks=4,
    latency=constant(900),
    lines=(host.Line(0, constant(70), constant(0.4)), host.Line(4096, constant(500), constant(0.5))),
    nearer=(host.Level("host", constant(100), KNOWN.lines),),
    hierarchy=hierarchy.of_hosts(["a", "a", "b", "b"]),
)


def experiments():
    for size in SIZES:
        yield Pattern("latency_by_size", "ping_pong", 2, size, "u8")
        yield Pattern("bandwidth", "pairs", 2, size, "u8", messages=16)
        for key in (*SEEN, "allreduce/ring", "allreduce/recursive_doubling_latency", "reduce_scatter/ring"):
            collective, algorithm = key.split("/")
            op = "sum" if "reduce" in collective else None
            yield Collective("collectives", algorithm, 2, size, "f32", op=op, collective=collective)


def on_a_cluster():
    """The same pairs within a host and between hosts, collectives on both."""
    for experiment in experiments():
        if isinstance(experiment, Collective):
            yield from (experiment, replace(experiment, ranks=4))
        else:
            yield from (replace(experiment, placement=pair) for pair in ((0, 1), (0, 2)))


def measured_on(model, noise=0.0, of=experiments):
    """Points of a machine that is exactly like the model."""
    machine, prepared = model.machine(), {}
    return measured(lambda experiment: host.simulated_ns(experiment, machine, prepared), of(), noise)


# --- lines and change points ----------------------------------------------------------------------------


def test_a_straight_line_has_no_change_point():
    sizes = np.array([8.0 * 2**k for k in range(12)])
    (line,) = regimes(sizes, 100 + 0.5 * sizes, np.full(12, 1.0))
    assert line.start_ns.value == pytest.approx(100, rel=1e-6)
    assert line.ns_per_byte.value == pytest.approx(0.5, rel=1e-6)
    assert line.start_ns.low < 100 < line.start_ns.high


def test_a_change_of_protocol_is_found_where_it_is():
    sizes = np.array([64.0 * 2**k for k in range(12)])
    times = np.where(sizes < 4096, 100 + 0.5 * sizes, 2500 + 0.1 * sizes)
    first, second = regimes(sizes, times, 0.01 * times)
    assert second.from_bytes == 4096
    assert (first.at(1000), second.at(10_000)) == (pytest.approx(600), pytest.approx(3500))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(1.0, 1e6), min_size=4, max_size=14), st.integers(0, 100))
def test_the_lines_never_fall(times, seed):
    sizes = np.array([8.0 * 2**k for k in range(len(times))])
    found = regimes(sizes, np.array(times), 0.05 * np.array(times))
    at = sorted({1, *(r.from_bytes for r in found), *(r.from_bytes - 1 for r in found if r.from_bytes), 1 << 22})
    values = [next(r for r in reversed(found) if r.from_bytes <= size).at(size) for size in at]
    assert values == sorted(values)
    assert all(r.start_ns.low <= r.start_ns.value <= r.start_ns.high for r in found)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.0, 1e4), st.floats(1e-3, 10.0)), min_size=1, max_size=3),
    st.lists(st.integers(16, 1 << 20), min_size=2, max_size=2, unique=True),
)
def test_no_regime_of_a_machine_file_is_faster_than_the_one_before(lines, cuts):
    """Whatever lines were found, the file is one that the simulator takes."""
    at = [0, *sorted(cuts)]
    same = [constant(v) for pair in lines for v in pair]
    found = [Regime(at[k], same[2 * k], same[2 * k + 1], 3, 0.0) for k in range(len(lines))]
    machine = replace(KNOWN, lines=host._lines(found)).machine()
    ping_pong = Pattern("latency", "ping_pong", 2, 1024, "u8")
    assert host.simulated_ns(ping_pong, machine, {}) > 0


@pytest.mark.parametrize(("pingpong_ns", "row_ns"), [(200.0, 5.0), (20.0, 4000.0), (200.0, 1600.0)])
def test_start_and_latency_are_never_negative(pingpong_ns, row_ns):
    """Half a ping-pong above, below and between what messages in a row take."""
    short = Point(Pattern("l", "ping_pong", 2, 8, "u8"), pingpong_ns, 2 * pingpong_ns, seen=True)
    row = Fit(row_ns / 16, row_ns / 32, row_ns / 8)
    for fit in host._short([short], Regime(0, row, constant(1e-4), 3, 0.0), 16):
        assert 0 <= fit.low <= fit.value <= fit.high


def test_two_points_are_no_line():
    with pytest.raises(ValueError, match="2 points are too few"):
        regimes(np.array([1.0, 2.0]), np.array([1.0, 2.0]), np.array([0.1, 0.1]))


# --- a machine --------------------------------------------------------------------------------------------


def test_a_known_machine_is_found_again():
    found = host.fit(measured_on(KNOWN), "Known Machine", "a known machine", "r")
    assert found.name == "known-machine"
    # A ping-pong's first byte is free in loggp, hence the slack.
    assert found.start.value == pytest.approx(40, rel=0.05)
    assert found.latency.value == pytest.approx(100, rel=0.05)
    assert [line.from_bytes for line in found.lines] == [0, 8192]  # the first size seen beyond 4096
    assert [line.ns_per_byte.value for line in found.lines] == [pytest.approx(v, rel=0.05) for v in (0.05, 0.1)]
    for key, fit in found.arithmetic.items():
        assert fit.value == pytest.approx(KNOWN.arithmetic[key].value, rel=0.1), key
        assert fit.low <= fit.value <= fit.high


def test_hosts_of_a_cluster_are_told_apart():
    data = measured_on(CLUSTER, of=on_a_cluster)
    found = host.fit(data, "known", "a known cluster", "r", CLUSTER.hierarchy)
    (near,) = found.nearer
    assert near.name == "host"
    assert (near.latency.value, found.latency.value) == (pytest.approx(100, rel=0.05), pytest.approx(900, rel=0.1))
    assert near.lines[-1].ns_per_byte.value == pytest.approx(0.1, rel=0.05)
    assert found.lines[-1].ns_per_byte.value == pytest.approx(0.5, rel=0.05)
    assert found.lines[0].occupancy.value == pytest.approx(70, rel=0.2)
    predictions = prediction.predict(found, data, Protocol())
    assert np.median(prediction.errors(predictions, seen=False)) < 0.05
    numbers = {n["key"] for n in found.machine().numbers()}
    assert {"fabric.latency", "fabric.level[0].latency", "fabric.level[0].regime[0].bandwidth"} <= numbers


def test_what_was_not_seen_is_predicted():
    data = measured_on(KNOWN, noise=0.03)
    model = host.fit(data, "known", "a known machine", "r")
    predictions = prediction.predict(model, data, Protocol())
    assert np.median(prediction.errors(predictions, seen=False)) < 0.1
    assert {c.predicted for c in prediction.choices(predictions) if c.collective == "allreduce"} <= {
        "ring",
        "recursive_doubling_latency",
    }


def test_the_file_is_a_machine_whose_numbers_carry_run_and_interval():
    numbers = {n["key"]: n for n in KNOWN.machine().numbers()}
    assert numbers["fabric.latency"]["status"] == "fitted"
    assert numbers["fabric.latency"]["source"].endswith("run r; 95 % interval 100 to 100 ns")
    assert KNOWN.machine().fitted == len(numbers) - 1  # all but the gap, which is assumed


def test_too_few_sizes_name_the_cure():
    few = [point for point in measured_on(KNOWN) if point.question.size_bytes == 8]
    with pytest.raises(StoreError, match=r"1 ping-pongs and 1 sizes.*run the suite `fit`"):
        host.fit(few, "x", "x", "r")


# --- from a run to a report ---------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path):
    return stored(tmp_path / "runs", measured_on(KNOWN), "Box 1", "threads")


def test_a_third_of_the_sizes_and_all_but_plain_algorithms_are_held_out(run):
    judged = points(run)
    ring = [p for p in judged if p.question.algorithm_key == "allreduce/ring"]
    assert not any(p.seen for p in ring)
    pairs = [p.seen for p in judged if p.question.algorithm_key == "pairs"]
    assert pairs == [True, False, True] * 3


def test_the_verb_writes_a_machine_that_simulates(run, tmp_path):
    out = tmp_path / "box.toml"
    result = invoke("fit", "--runs", str(run.folder.parent), "--name", "box", "--out", str(out))
    assert result.status == 0, result.err
    assert "not seen" in result.out
    simulated = invoke("simulate", "allreduce", "-a", "ring", "--on", str(out), "-p", "4", "--sizes", "1K")
    assert simulated.status == 0, simulated.err
    kept = json.loads((run.folder / "fit.json").read_text())
    assert kept["machine"] == "box"
    assert (run.folder / "machines" / "box.toml").read_text() == out.read_text()


def test_a_run_that_measured_nothing_names_the_cure(run, tmp_path):
    empty = runs.create(tmp_path / "runs", "probe", "", {})
    empty.write_results([], runs.samples_table(empty, []))
    empty.mark("done")
    result = invoke("fit", empty.id, "--runs", str(run.folder.parent))
    assert result.status == 1
    assert "name another run, or make one with `linkwright dissect --suite fit`" in result.err


def test_a_machine_that_the_run_lacks_is_named(run):
    result = invoke("fit", "--runs", str(run.folder.parent), "--machine", "nope")
    assert result.status == 2
    assert "unknown machine in this run `nope`; known: `" in result.err


def test_what_the_table_of_ratios_leaves_empty_is_said_once():
    about = {"collective": "allreduce", "ranks": 2, "predicted_ns": 9, "measured_ns": 10}
    cases = (("ring", 8), ("ring", 64), ("swing_latency", 8))
    made = [about | {"algorithm": name, "size_bytes": size} for name, size in cases]
    table = fitted._ratios(made)
    assert [cell.text for cell in table.rows[1][2:]] == ["0.90", ""]
    assert all(not cell.detail for row in table.rows for cell in row)
    assert "Empty: not measured" in table.how_to_read
