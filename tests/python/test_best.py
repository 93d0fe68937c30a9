"""What a host gave at best, over its runs: `executors/best.py`."""

import dataclasses
import json
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import linkwright as lw
from linkwright.ask.question import Collective, Pattern
from linkwright.executors.best import NAME, Best, Host, remembered
from linkwright.executors.bounds import CACHE_LINE, COPY_RATE, Bounds
from linkwright.executors.measured import Measured
from linkwright.executors.peaks import Peaks
from linkwright.session.suite import rows
from linkwright.session.suite.context import Context
from linkwright_cases import BRIEF, invoke

HOST = Host("here", "a processor", 4, "threads", "this machine")
BALL = Pattern("latency", "ping_pong", 2, 8, "u8")
SLOW = Best(Bounds(100.0, {1000: 2.0}), Peaks({("f32", 1): 3.0}, {(64, 1): 50.0}))
FAST = Best(Bounds(40.0, {1000: 1.0, 2000: 5.0}), Peaks({("f32", 1): 1.0, ("f64", 2): 1.5}, {(64, 1): 20.0}))


def run_folder(runs, name):
    folder = runs / name
    folder.mkdir()
    return folder


def test_the_best_of_all_runs_of_a_host_counts_number_by_number(tmp_path):
    first, second = run_folder(tmp_path, "1"), run_folder(tmp_path, "2")
    assert remembered(first, HOST, SLOW) == SLOW
    both = remembered(second, HOST, FAST)
    assert both.bounds == Bounds(40.0, {1000: 2.0, 2000: 5.0})
    assert both.peaks == Peaks({("f32", 1): 3.0, ("f64", 2): 1.5}, {(64, 1): 20.0})
    # The slower run after the faster one is compared with the same numbers, so they do not double.
    assert remembered(first, HOST, SLOW) == both


def test_a_run_that_is_deleted_is_forgotten(tmp_path):
    first, second = run_folder(tmp_path, "1"), run_folder(tmp_path, "2")
    remembered(first, HOST, FAST)
    (first / NAME).unlink()
    assert remembered(second, HOST, SLOW) == SLOW


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Host)])
def test_other_hosts_do_not_count(tmp_path, field):
    other = dataclasses.replace(HOST, **{field: 8 if field == "processors" else "another"})
    remembered(run_folder(tmp_path, "1"), other, FAST)
    assert remembered(run_folder(tmp_path, "2"), HOST, SLOW) == SLOW


def test_a_run_on_several_machines_keeps_what_each_saw(tmp_path):
    folder, other = run_folder(tmp_path, "1"), dataclasses.replace(HOST, executor="mpi")
    remembered(folder, other, FAST)
    remembered(folder, HOST, SLOW)
    assert remembered(run_folder(tmp_path, "2"), other, Best()) == FAST


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", '{"format": 1}', '{"format": 1, "hosts": [{}]}', '{"format": 99, "hosts": []}',
        json.dumps({"format": 1, "hosts": [{"host": dataclasses.asdict(HOST), "cache_line_ns": -1,
                    "copy_rates_bytes_per_ns": [], "fma_peaks_per_ns": [], "stores_ns": []}]}),
        json.dumps({"format": 1, "hosts": [{"host": dataclasses.asdict(HOST), "cache_line_ns": 1,
                    "copy_rates_bytes_per_ns": [[1000, 1e999]], "fma_peaks_per_ns": [], "stores_ns": []}]}),
        json.dumps({"format": 1, "hosts": [{"host": dataclasses.asdict(HOST), "cache_line_ns": 1,
                    "copy_rates_bytes_per_ns": [[1e999, 1]], "fma_peaks_per_ns": [], "stores_ns": []}]}),
        "[" * 100_000,
    ],
)  # fmt: skip
def test_a_damaged_or_foreign_file_counts_for_nothing(tmp_path, text):
    (run_folder(tmp_path, "1") / NAME).write_text(text)
    (run_folder(tmp_path, "2") / NAME).write_bytes(b"\xff\xfe\x00")
    (run_folder(tmp_path, "3") / NAME).mkdir()
    (run_folder(tmp_path, "5") / NAME).symlink_to("/dev/zero")
    os.mkfifo(run_folder(tmp_path, "6") / NAME)
    assert remembered(run_folder(tmp_path, "4"), HOST, SLOW) == SLOW


def test_runs_side_by_side_do_not_meet(tmp_path):
    def one(number):
        folder = run_folder(tmp_path, str(number))
        seen = Best(Bounds(100.0 - number, {1000: 1.0 + number}))
        for _ in range(5):
            found = remembered(folder, HOST, seen)
            assert found.bounds.line_ns <= seen.bounds.line_ns
        return found

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(16)))
    assert remembered(run_folder(tmp_path, "last"), HOST, Best()).bounds == Bounds(85.0, {1000: 16.0})


def test_no_value_passes_what_was_seen_at_best():
    """A collective may be faster than its copies suggest; then it is itself the best seen."""
    found = Measured((np.array([30.0, 20.0]),), first_ns=0.0, dropped={}, notes=())
    context = Context("run", "suite", "machine", "threads", ())
    allreduce = Collective("c", "ring", 2, 8, collective="allreduce")
    for best_ns, seen in [(50.0, 25.0), (10.0, 10.0)]:
        made = rows.of_samples(context, allreduce, ("alg_bw",), found, (best_ns, CACHE_LINE))
        time, rate = (next(row for row in made if row["metric"] == metric) for metric in ("time", "alg_bw"))
        assert (time["best_seen"], time["best_seen_name"]) == (seen, CACHE_LINE)
        assert (time["limit"], time["bound"]) == (None, None)
        assert rate["best_seen"] == pytest.approx(8e9 / seen)
        assert rate["best_seen"] >= rate["value"]


def test_a_run_writes_what_it_saw_and_compares_with_it(tmp_path):
    suite, runs = tmp_path / "links.toml", tmp_path / "runs"
    suite.write_text(
        '[suite]\nformat = 1\nname = "links"\nsummary = "two parts"\n'
        '[[part]]\nname = "ball"\nsummary = "there and back"\npattern = "ping_pong"\nranks = [2]\nsizes = ["8"]\n'
        '[[part]]\nname = "stream"\nsummary = "one way"\npattern = "pairs"\nranks = [2]\nsizes = ["64K"]\n'
    )
    for _ in range(2):
        status, _, errors = invoke("dissect", "--suite", str(suite), "--on", "threads", "--runs", str(runs), *BRIEF)
        assert status == 0, errors
    seen = [json.loads(path.read_text())["hosts"][0] for path in runs.glob(f"*/{NAME}")]
    assert len(seen) == 2
    best_ns = min(entry["cache_line_ns"] for entry in seen)
    frame = lw.results("latest", runs)
    times = frame[(frame.metric == "time") & (frame.status == "ok")]
    assert set(times.best_seen_name) <= {CACHE_LINE, COPY_RATE}
    assert (times.best_seen <= times.value).all()
    assert times.limit.isna().all()
    ball = times[times.algorithm == "ping_pong"].iloc[0]
    assert ball.best_seen_name == COPY_RATE or ball.best_seen == pytest.approx(2 * best_ns)
