"""Load: traffic patterns on the command line, their rates and latencies, issue policies that executors obey.

The crossbar of the cases has round numbers: a byte takes 1 ns, a message 100 ns of software and 500 ns of latency.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from linkwright import _native
from linkwright.ask import schedules
from linkwright.ask.question import Pattern
from linkwright.base.errors import UsageError
from linkwright.base.stats.quantile import percentiles
from linkwright.executors.process import Sampling
from linkwright.executors.threads.launch import Host
from linkwright.session.suite import load_rows
from linkwright_cases import invoke

CROSSBAR = str(Path(__file__).parents[1] / "cases" / "machines" / "crossbar.toml")


def simulated(tmp_path, *arguments, on=CROSSBAR):
    """The rows by metric of each experiment, in order."""
    output = tmp_path / "rows.json"
    result = invoke("simulate", *arguments, "--on", on, "--output", str(output))
    assert result.status == 0, result.err
    found: dict[str, dict] = {}
    for row in json.loads(output.read_text())["rows"]:
        found.setdefault(row["experiment"], {})[row["metric"]] = row
    return list(found.values())


def values(found):
    return {metric: row["value"] for metric, row in found.items()}


def test_senders_of_a_hot_spot_share_its_port(tmp_path):
    """Three heads arrive at 600 ns; the port in takes 1000 ns for each message, so they end at 1600, 2600, 3600."""
    (found,) = simulated(tmp_path, "pattern/hot_spot", "-p", "4", "--sizes", "1000", "-d", "u8")
    got = values(found)
    assert got["time"] == 3600
    assert got["bandwidth"] == pytest.approx(3000 / 3600e-9)
    shares = [1000 / ns * 1e9 for ns in (3600, 2600, 1600)]
    assert [got[f"endpoint_rate_{of}"] for of in ("min", "median", "max")] == pytest.approx(shares)
    assert (got["message_min"], got["message_p50"], got["message_max"]) == (1600, 2600, 3600)


def test_the_total_rate_of_a_hot_spot_tends_to_the_rate_of_its_port(tmp_path):
    """With k messages at the port without a gap, k * 1000 bytes take 600 + k * 1000 ns, whoever sends them."""
    asked = ("pattern/hot_spot", "-p", "2..9", "--sizes", "1000", "-d", "u8", "--messages", "16")
    for ranks, found in enumerate(simulated(tmp_path, *asked, "--issue", "unlimited"), 2):
        k = 16 * (ranks - 1)
        assert found["time"]["ranks"] == ranks
        assert found["bandwidth"]["value"] == pytest.approx(k * 1000 / (600 + k * 1000) * 1e9)


@pytest.mark.parametrize(
    ("policy", "time_ns", "middle_ns"),
    [
        # Each takes 100 + 500 + 1000 before the next.
        ("blocking", 10 * 1600, 1600),
        # The port out never rests: 600 + 10 * 1000. Two are under way, so a message takes two times 1000.
        ("window(2)", 600 + 10 * 1000, 2000),
        # Two are there after 100 + 2 * 1000 + 500. The first takes 1600, the second is taken up 100 later: 2500.
        ("batch(2)", 5 * 2600, (1600 + 2500) / 2),
        # All wait in the port; number n from 0 is taken up at 100 n and is there at 1600 + 1000 n.
        ("unlimited", 600 + 10 * 1000, 1600 + 4.5 * 900),
    ],
)
def test_a_window_hides_the_latency_and_shows_in_that_of_messages(tmp_path, policy, time_ns, middle_ns):
    asked = ("pattern/pairs", "-p", "2", "--sizes", "1000", "-d", "u8", "--messages", "10", "--issue", policy)
    (found,) = simulated(tmp_path, *asked)
    got = values(found)
    assert got["time"] == time_ns
    assert got["bandwidth"] == pytest.approx(10_000 / time_ns * 1e9)
    assert got["message_p50"] == pytest.approx(middle_ns)


def test_both_ways_and_a_grid_reach_the_pattern(tmp_path):
    (one,) = simulated(tmp_path, "pattern/neighbour", "-p", "4", "--sizes", "1000", "-d", "u8")
    (grid,) = simulated(
        tmp_path, "pattern/neighbour", "-p", "4", "--sizes", "1000", "-d", "u8", "--grid", "2x2", "--both-ways"
    )
    # A ring of four messages; on a grid each rank sends along both axes, and back.
    assert one["bandwidth"]["value"] * one["time"]["value"] == pytest.approx(4 * 1000e9)
    assert grid["bandwidth"]["value"] * grid["time"]["value"] == pytest.approx(16 * 1000e9)
    assert (grid["time"]["grid"], grid["time"]["both_ways"]) == ("2x2", True)


def test_a_hot_spot_on_the_cell_reports_the_bytes_that_move(tmp_path):
    for ranks, found in enumerate(
        simulated(tmp_path, "pattern/hot_spot", "-p", "2..8", "--sizes", "16K", "--messages", "4", on="cell-be"), 2
    ):
        moved = 4 * (ranks - 1) * 16384
        assert found["bandwidth"]["value"] == pytest.approx(moved / found["time"]["value"] * 1e9)


def test_python_counts_the_bytes_of_a_pattern_as_the_command_does():
    made = _native.Schedule.pattern("hot_spot", ranks=3, elements=1000, element_bytes=1)
    result = lw.simulate(made, CROSSBAR)
    assert result.time_us == 2.6
    assert result.row("alg_bw")["value"] == pytest.approx(2000 / 2.6e-6)
    assert result.row("message_max")["value"] == 2600


def test_one_rank_has_no_one_to_send_to(tmp_path):
    output = tmp_path / "rows.json"
    result = invoke("simulate", "pattern/hot_spot", "-p", "1,2", "--sizes", "1K", "--on", "loggp", "--output", output)
    assert result.status == 0
    first = json.loads(output.read_text())["rows"][0]
    assert (first["ranks"], first["status"]) == (1, "waived")
    assert "use 2 ranks or more" in first["reason"]


def test_several_rank_counts_serve_collectives_too(tmp_path):
    found = simulated(tmp_path, "allreduce/ring", "-p", "2,5..6,4", "--sizes", "4K", on="loggp")
    assert [rows["time"]["ranks"] for rows in found] == [2, 5, 6, 4]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pattern/hot_spott"], "did you mean `pattern/hot_spot`"),
        (["pattern/"], "unknown pattern `pattern/`"),
        (["pattern/pairs", "-a", "ring"], "--algorithm: pattern/pairs has no algorithms; omit it"),
        (["pattern/pairs", "-o", "max"], "--op: pattern/pairs combines nothing; omit it"),
        (["pattern/pairs", "--messages", "0"], "0 is not in the range"),
        (["pattern/pairs", "--issue", "window(0)"], "`window(0)` is not a policy; write blocking, window(k)"),
        (["pattern/pairs", "--sizes", "0"], "size 0: pattern/pairs moves at least one element"),
        (["pattern/hot_spot", "-r", "9", "-p", "4"], "root 9: there are ranks 0 to 3"),
        (["allreduce", "--messages", "2"], "--messages: only patterns have it"),
        (["allreduce", "--both-ways"], "--both-ways: only patterns have it"),
        (["allreduce", "-p", "4..2"], "`4..2` ends before it begins; write `2..4`"),
        (["allreduce", "-p", "2,,4"], "`2,,4` is not a number of ranks; write `8`, `2,4,8` or `1..8`"),
        (["allreduce", "-p", "0..4"], "0 is not in the range"),
        (["allreduce", "-p", "1..4000000"], "is 4000000 numbers of ranks; ask for at most 1024"),
    ],
)
@pytest.mark.parametrize(("verb", "on"), [("simulate", "loggp"), ("run", "threads")])
def test_bad_input_is_one_clear_message(verb, on, arguments, said, tmp_path):
    result = invoke(verb, *arguments, "--on", on, *([] if verb == "simulate" else ["--runs", str(tmp_path / "runs")]))
    assert result.status == 2
    assert said in result.err


def test_a_wrong_policy_in_a_suite_is_refused_before_anything_runs(tmp_path):
    (tmp_path / "own.toml").write_text(
        '[suite]\nformat = 1\nname = "own"\nsummary = "s"\n[[part]]\nname = "p"\nsummary = "s"\n'
        'pattern = "pairs"\nsizes = ["1K"]\nissue = "window"\n'
    )
    result = invoke("dissect", str(tmp_path / "own.toml"), "--on", "threads", "--runs", str(tmp_path / "runs"))
    assert result.status == 2
    assert "own.toml: part[0]" in result.err
    assert "`window` is not a policy" in result.err


@pytest.mark.parametrize("policy", [None, "blocking", "window(2)", "batch(2)", "unlimited"])
def test_threads_obey_a_policy_and_move_the_right_data(policy):
    experiment = Pattern("p", "hot_spot", 4, 4096, "u8", messages=4, both_ways=True, issue=policy)
    record = Host().measure(experiment, Sampling(3, 1, 1.0, None, seed=3))
    notes = {note.code: note.text for note in record.notes}
    assert "unchecked" not in notes
    assert ("window(2) runs as batch(2)" in notes.get("remark", "")) == (policy == "window(2)")
    assert len(record.rank_ns) == 4
    assert len(record.message_ns) in (0, 101)  # none where every repetition was disturbed
    assert list(record.message_ns) == sorted(record.message_ns)


def test_the_journal_keeps_latencies_and_times_of_ranks():
    from linkwright.store.record import Record, from_json, to_json

    record = Record(experiment="e", values_ns=[1.0], first_ns=1.0, rank_ns=[1.0, 2.0], message_ns=[0.5] * 101)
    assert from_json(json.loads(json.dumps(to_json(record)))) == record


def test_percentiles_are_those_of_numpy():
    latencies = np.random.default_rng(7).exponential(size=1234)
    assert percentiles(latencies) == pytest.approx(np.percentile(latencies, range(101)), rel=1e-12)
    assert percentiles(np.empty(0)) == []


def test_measured_rows_have_the_median_of_the_launches_and_its_interval():
    """Rank 0 only receives. Rank 1 sends 200 bytes and rank 2 100; six launches, the last one slower."""
    sent = np.array([0, 200, 100], np.uint64)
    ranks = [np.array([50.0, 100.0, 100.0 + launch]) for launch in (0, 0, 0, 0, 0, 100)]
    messages = [np.linspace(10, 110 + launch, 101) for launch in (0, 0, 0, 0, 0, 100)]
    found = dict(load_rows.measured(sent, ranks, messages))
    assert found["endpoint_rate_max"] == {"value": 2e9, "ci_low": 2e9, "ci_high": 2e9}
    assert found["endpoint_rate_min"]["value"] == 1e9
    assert found["endpoint_rate_min"]["ci_low"] == 0.5e9
    assert found["message_p50"]["value"] == 60
    assert (found["message_max"]["value"], found["message_max"]["ci_high"]) == (110, 210)


def test_an_endpoint_that_sends_nothing_has_no_rate():
    assert dict(load_rows.modelled(np.zeros(2, np.uint64), np.array([1.0, 2.0]), np.empty(0))) == {}


def test_a_multicast_gives_its_bytes_to_each_target():
    made = lw.Builder("broadcast", ranks=4, size=1000, dtype="u8")
    made.buffer("output", 1)
    made.multicast(0, [1, 2, 3], "output", 0)
    assert made.finish().sent_bytes().tolist() == [3000, 0, 0, 0]


def test_the_native_half_reads_policies_as_it_writes_them():
    for policy in ("blocking", "window(3)", "batch(12)", "unlimited"):
        _native.check_issue(policy)
    with pytest.raises(UsageError, match="is not a policy") as refusal:
        _native.check_issue("eager")
    assert refusal.value.code == "issue.syntax"


def test_matrices_of_pairs_do_not_ask_for_messages():
    """Thousands of cells need their times only."""
    placed = Pattern("p", "pairs", 2, 64, "u8", placement=(0, 1))
    assert not schedules.how(placed).messages
