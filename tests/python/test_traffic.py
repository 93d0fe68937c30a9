"""Traffic patterns: the bytes that they move, round trips and latency, and data that are compared."""

import json
from dataclasses import replace

import pytest

from linkwright import _native
from linkwright.ask import schedules
from linkwright.ask.question import Pattern
from linkwright.base import registry
from linkwright.base.errors import UsageError, WaivedError
from linkwright.executors.process import Sampling
from linkwright.executors.threads.launch import Host
from linkwright.session.suite import rows
from linkwright_cases import invoke

PATTERNS = [pattern["name"] for pattern in _native.patterns()]
SUITE = """
[suite]
format = 1
name = "traffic"
summary = "s"
[[part]]
name = "p"
summary = "s"
pattern = "{pattern}"
sizes = ["{size}"]
dtype = "{dtype}"
ranks = [{ranks}]
messages = {messages}
both_ways = {both_ways}
metrics = {metrics}
"""


def dissected(tmp_path, on="crossbar", **asked):
    usual = {"size": "1K", "dtype": "u8", "ranks": 6, "messages": 1, "both_ways": "false", "metrics": '["bandwidth"]'}
    (tmp_path / "traffic.toml").write_text(SUITE.format(**{**usual, **asked}))
    output = tmp_path / "rows.json"
    result = invoke(
        "dissect", str(tmp_path / "traffic.toml"), "--on", on, "--output", str(output), "--runs", str(tmp_path / "runs")
    )
    if result.status:
        return result
    return {row["metric"]: row for row in json.loads(output.read_text())["rows"]}, result


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_bandwidth_is_the_bytes_of_the_schedule_over_its_time(pattern):
    context = rows.Context("r", "s", "m", "sim", ())
    served = 0
    for ranks in (2, 5, 6, 16):
        for messages, both_ways in ((1, False), (3, True)):
            experiment = Pattern("p", pattern, ranks, 64, "u8", messages=messages, both_ways=both_ways)
            try:
                moved = int(schedules.of(experiment).operations()["bytes"].sum())
            except WaivedError:
                continue
            assert schedules.moved_bytes(experiment) == moved
            time = context.row(experiment, "time", value=500.0, status="ok")
            (rate,) = rows._derived(context, experiment, ["bandwidth"], time, moved)
            assert rate["value"] == pytest.approx(moved / 500e-9)
            served += 1
    assert served >= 4


# One message of 1 KiB for each of these, over 6 ranks.
@pytest.mark.parametrize(
    ("pattern", "messages"),
    [("pairs", 3), ("hot_spot", 5), ("one_to_many", 5), ("complement", 6), ("neighbour", 6), ("uniform_random", 6)],
)
def test_a_run_reports_the_bandwidth_of_what_moved(pattern, messages, tmp_path):
    found, _ = dissected(tmp_path, pattern=pattern)
    assert found["bandwidth"]["value"] == pytest.approx(messages * 1024 / found["time"]["value"] * 1e9)


def test_latency_is_half_of_one_round_trip_however_many_there_are(tmp_path):
    one, _ = dissected(tmp_path, pattern="ping_pong", ranks=2, metrics='["latency"]')
    four, result = dissected(tmp_path, pattern="ping_pong", ranks=2, messages=4, metrics='["latency"]')
    assert one["latency"]["value"] == one["time"]["value"] / 2
    assert four["latency"]["value"] == four["time"]["value"] / 8
    assert four["latency"]["value"] == pytest.approx(one["latency"]["value"])
    assert "# time is that of 4 round trips, latency half of one\n" in result.out


def test_a_size_of_parts_of_elements_is_refused_everywhere(tmp_path):
    said = "size 7 is not a whole number of f64 elements of 8 bytes; use 8 or another data type"
    assert said in dissected(tmp_path, pattern="pairs", size="7", dtype="f64").err
    for verb in ("run", "simulate"):
        on = "threads" if verb == "run" else "loggp"
        assert said in invoke(verb, "allreduce", "--on", on, "-d", "f64", "--sizes", "7").err
    import linkwright as lw

    with pytest.raises(UsageError, match=said):
        lw.schedule("allreduce", "ring", ranks=2, size=7, dtype="f64")


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_patterns_move_is_compared_on_threads(pattern):
    experiment = Pattern("p", pattern, 4, 100, "u8", messages=2)
    sampling = Sampling(samples=3, warmup_at_most=1, budget_s=0.05, settle_within=None, seed=3)
    record = Host().measure(experiment, sampling)
    assert "unchecked" not in [note.code for note in record.notes]
    unchecked = Host().measure(experiment, replace(sampling, check=False))
    assert "unchecked" in [note.code for note in unchecked.notes]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_byte_of_a_message_has_an_owner(pattern):
    """The judge compares all memory, and what arrives differs from what was there."""
    experiment = Pattern("p", pattern, 4, 100, "u8")
    memory = _native.schedule_memory(schedules.of(experiment), {"dtype": "u8", "op": "sum", "seed": 3})
    assert memory["checked_elements"] > 0
    changed = int((memory["initial"] != memory["reference"]).sum())
    moved = schedules.moved_bytes(experiment)
    least = moved / 2 if pattern == "ping_pong" else moved  # a pong brings back what was there
    assert changed >= 0.95 * least  # one byte in 256 is the same by chance


def test_all_patterns_are_walked():
    assert len(PATTERNS) == len(registry.keys("patterns"))
